"""What a scenario is at one step of its run: how its lengths and solve rates have moved by then."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from rlqueue import curriculum, drift
from rlqueue.scenario import Scenario


def drift_path(scenario: Scenario, steps: int) -> np.ndarray:
    """Lengths at steps 0, 1, ... of the run: array of dtype ``drift.PATH``, of 1 row where nothing moves, else up to ``steps``.

    A step past the end has the values of the last row.
    """
    return drift.path(scenario.drift_start, scenario.drift, steps)


@lru_cache(maxsize=64)
def _law(law: str, mean: float, concentration: float, sigma: float, histogram: str) -> curriculum.SolveRates:
    if law == "histogram":
        return curriculum.histogram(histogram)
    if law == "logit-normal":
        return curriculum.LogitNormal(mean=mean, sigma=sigma)
    return curriculum.Beta(mean=mean, concentration=concentration)


def solve_rates(scenario: Scenario) -> curriculum.SolveRates | None:
    """How solve rates are spread over the prompts at the start of the scenario; None where it has no solve rates."""
    s = scenario
    if not s.has_solve_rates:
        return None
    law = _law(
        s.solve_rate_law,
        s.solve_rate_mean,
        s.solve_rate_concentration,
        s.solve_rate_logit_sigma,
        s.solve_rate_histogram,
    )
    return curriculum.Shifted(law=law, shift=s.solve_rate_logit_shift) if s.solve_rate_logit_shift else law


def at_step(scenario: Scenario, step: float, logit_shift: float = 0.0) -> Scenario:
    """The scenario that would stay as this one is at that step: no drift, no learning, for the closed form.

    Args:
        step: of the run, from 0. logit_shift: how far every prompt's logit has risen by then.
    """
    row = drift.at(scenario.drift_start, scenario.drift, np.array([step]))[0]
    return replace(
        scenario, mean_response_tokens=float(row["mean_response_tokens"]), tool_calls=float(row["tool_calls"]),
        mean_prompt_tokens=float(row["prompt_tokens"]), response_sigma_between_prompts=float(row["sigma_between"]),
        response_sigma_within_group=float(row["sigma_within"]), drift_law="constant", drift_steps=0,
        drift_length_factor=1.0, drift_tool_calls_factor=1.0, drift_prompt_factor=1.0, drift_sigma_factor=1.0,
        drift_series="", solve_rate_logit_shift=scenario.solve_rate_logit_shift + logit_shift, learning_logit_per_step=0.0,
    )  # fmt: skip
