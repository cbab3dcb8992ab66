"""How far a number of the closed form may be off for what a run's inputs are known to."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from rlqueue.cost import cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.queueing import solve
from rlqueue.ranges import default_ranges
from rlqueue.report.assumptions import Assumptions
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import LEVEL, percentiles, sampled

SAMPLES = 64
"""Samples of a run's inputs."""


@lru_cache(maxsize=16)
def _samples(scenario: Scenario, name: str) -> tuple[tuple[Scenario, OperatingPoint], ...]:
    """The run with inputs from the ranges of what its source does not print, solved."""
    found, _ = sampled(scenario, default_ranges(scenario, name), SAMPLES)
    return tuple((each, solve(each)) for each in found)


def band(assumptions: Assumptions, name: str, of: Callable[[Scenario, OperatingPoint], float]) -> tuple[float, float]:
    """Ends between which a number of the closed form lies for ``LEVEL`` of the samples."""
    answers = [of(*each) for each in _samples(assumptions.scenario(name), name)]
    low, _, high = np.percentile(answers, percentiles(LEVEL)).tolist()
    return low, high


def of_point(quantity: str) -> Callable[[Scenario, OperatingPoint], float]:
    return lambda _, point: getattr(point, quantity)


def usd_per_mtok(scenario: Scenario, point: OperatingPoint) -> float:
    return cost(scenario, point).usd_per_mtok


def consumption_over_production(_: Scenario, point: OperatingPoint) -> float:
    return point.consumption_per_s / point.production_per_s
