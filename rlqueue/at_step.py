"""What a scenario is at one step of its run: how its lengths and solve rates have moved by then."""

from copy import copy
from dataclasses import fields, replace
from functools import lru_cache

import numpy as np

from rlqueue import curriculum, drift
from rlqueue.scenario import Scenario

MOVING = {
    "mean_response_tokens": "mean_response_tokens",
    "tool_calls": "tool_calls",
    "mean_prompt_tokens": "prompt_tokens",
    "response_sigma_between_prompts": "sigma_between",
    "response_sigma_within_group": "sigma_within",
}
"""Knobs that drift moves, and their columns of ``drift.PATH``."""

NO_DRIFT = {each.name: each.default for each in fields(Scenario) if each.name.startswith("drift_")}
"""The knobs of drift as they are where nothing moves."""


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


def moment(scenario: Scenario, row: np.void) -> Scenario:
    """The scenario with the lengths of one row of ``drift.PATH``, all else the same.

    Nothing is checked again, which would take a hundred times as long: the row lies between the ends of a drift that was.
    """
    moved = copy(scenario)
    for knob, column in MOVING.items():
        object.__setattr__(moved, knob, float(row[column]))
    return moved


def at_step(scenario: Scenario, step: float, logit_shift: float = 0.0) -> Scenario:
    """The scenario that would stay as this one is at that step: no drift, no learning, for the closed form.

    Args:
        step: of the run, from 0. logit_shift: how far every prompt's logit has risen by then.
    """
    risen = scenario.solve_rate_logit_shift + logit_shift
    lengths = _lengths(scenario, step)
    return replace(scenario, **NO_DRIFT, **lengths, solve_rate_logit_shift=risen, learning_logit_per_step=0.0)


def _lengths(scenario: Scenario, step: float) -> dict[str, float]:
    row = drift.at(scenario.drift_start, scenario.drift, np.array([step]))[0]
    return {knob: float(row[column]) for knob, column in MOVING.items()}


def without_drift(scenario: Scenario) -> Scenario:
    """The same run if lengths stayed as they are at the start."""
    return replace(scenario, **NO_DRIFT, **_lengths(scenario, 0.0))


def without_learning(scenario: Scenario) -> Scenario:
    """The same run if solve rates stayed as they are at the start."""
    return replace(scenario, learning_logit_per_step=0.0)
