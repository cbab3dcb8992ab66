"""Knobs that can't move alone: what else a move of one sets, so that the scenario stays a possible one and means the same.

``LINKED`` has, by knob, a function of the scenario and the new value that gives the other knobs' values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlqueue import curriculum, drift
from rlqueue.at_step import MOVING, NO_DRIFT, solve_rates
from rlqueue.scenario import Scenario

FACTORS = {
    "drift_length_factor": "log_median",
    "drift_tool_calls_factor": "tool_calls",
    "drift_prompt_factor": "prompt_tokens",
    "drift_sigma_factor": "sigma_between",
}
"""Factors of a drift, and what they are factors of in ``drift.PATH``."""
NARROW, WIDE = 0.05, 12.0
"""Spread of a logit between which a law's is looked for."""


def _split(scenario: Scenario, generator_gpus: int) -> dict[str, Any]:
    """What the generator gets the trainer gives."""
    return {"trainer_gpus": scenario.trainer_gpus + scenario.generator_gpus - generator_gpus}


def _own_filter(_: Scenario, solve_rate: float) -> dict[str, Any]:
    """Solve rates decide what is filtered."""
    return {"filtered_fraction": 0.0} if solve_rate else {}


def _law(scenario: Scenario, law: str) -> dict[str, Any]:
    """Another law with the same mean and, as far as it can, the same spread of solve rates."""
    if law in {scenario.solve_rate_law, "histogram"}:  # a histogram is given by its text
        return {}
    there = solve_rates(scenario)
    none = {"solve_rate_histogram": "", "solve_rate_concentration": math.inf, "solve_rate_logit_sigma": 0.0}
    if there is None:
        return none
    mean = there.mean
    variance = max(0.0, there.powers(2)[0] - mean**2)
    most = mean * (1.0 - mean)
    found = none | {"solve_rate_mean": mean, "solve_rate_logit_shift": 0.0, "filtered_fraction": 0.0}
    if variance < 1e-9 * most:
        return found
    if law == "beta":
        return found | {"solve_rate_concentration": _rounded(most / variance - 1.0)}
    return found | {"solve_rate_logit_sigma": _rounded(_logit_sigma(mean, variance))}


def _logit_sigma(mean: float, variance: float) -> float:
    """Spread of the logit at which a logit-normal law has that variance."""
    from scipy.optimize import brentq

    def apart(sigma: float) -> float:
        return curriculum.LogitNormal(mean=mean, sigma=sigma).powers(2)[0] - mean**2 - variance

    if apart(WIDE) < 0:
        return WIDE
    return brentq(apart, NARROW, WIDE, xtol=1e-6) if apart(NARROW) < 0 else NARROW


def _rounded(value: float) -> float:
    """Three digits: a knob's value, which a person reads."""
    return float(f"{value:.3g}")


def _histogram(scenario: Scenario, text: str) -> dict[str, Any]:
    """A histogram has its own mean; without one its mean and spread are a Beta law's."""
    if not text:
        return {"solve_rate_law": "beta"} | (_law(scenario, "beta") if scenario.solve_rate_law == "histogram" else {})
    return {
        "solve_rate_law": "histogram", "solve_rate_mean": 0.0, "solve_rate_concentration": math.inf,
        "solve_rate_logit_sigma": 0.0, "filtered_fraction": 0.0,
    }  # fmt: skip


def _drift_law(scenario: Scenario, law: str) -> dict[str, Any]:
    """Another law with the same ends; none has none."""
    if law in {scenario.drift_law, "series"}:  # a series is given by its text
        return {}
    if law == "constant":
        return dict(NO_DRIFT)
    if scenario.drift_law == "series":
        return _ends_of_series(scenario)
    return {} if scenario.drift_steps else {"drift_steps": max(1, scenario.training_steps - 1)}


def _ends_of_series(scenario: Scenario) -> dict[str, Any]:
    last = int(drift.series(scenario.drift_series)[0][-1])
    first, end = drift.at(scenario.drift_start, scenario.drift, np.array([0, last]))
    found: dict[str, Any] = {"drift_series": "", "drift_steps": max(1, last)}
    for knob, column in FACTORS.items():
        if column == "log_median":
            found[knob] = _rounded(math.exp(end[column] - first[column]))
        else:
            found[knob] = _rounded(end[column] / first[column]) if first[column] else 1.0
    return found | {knob: float(first[column]) for knob, column in MOVING.items()}


def _moves(scenario: Scenario, _: float) -> dict[str, Any]:
    """A factor or a span says that there is a drift."""
    if scenario.drift_law in ("constant", "series"):
        return {"drift_law": "linear", **_drift_law(scenario, "linear")}
    return {}


def _series(_: Scenario, text: str) -> dict[str, Any]:
    """A measured series in the place of any other drift."""
    return dict(NO_DRIFT) | ({"drift_law": "series", "drift_series": text} if text else {})


LINKED = {
    "generator_gpus": _split,
    "solve_rate_mean": _own_filter,
    "solve_rate_law": _law,
    "solve_rate_histogram": _histogram,
    "drift_law": _drift_law,
    "drift_series": _series,
    "drift_steps": lambda scenario, value: _without("drift_steps", _moves(scenario, value)),
    **{knob: (lambda scenario, value, knob=knob: _without(knob, _moves(scenario, value))) for knob in FACTORS},
}


def _without(knob: str, values: dict[str, Any]) -> dict[str, Any]:
    """The knob that was moved keeps the value it was moved to."""
    return {name: value for name, value in values.items() if name != knob}
