"""What is simulated of a scenario while the hand moves.

There is time for a handful of short runs: the present point, and a few splits that stay the same ones. They have one seed, so
that a move shows the lever and not the noise, and the tool calls lumped.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rlqueue.app.bending import Curve, bent
from rlqueue.app.runs import Fidelity, Outcome, affordable, expected_events, outcome, workers
from rlqueue.app.state import Frame, State, frame, with_value
from rlqueue.cost import Bill, cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped

QUICK_EVENTS = 60_000
"""Events that one run may take while dragging: about 8 ms. Where they are used up before the last step, it has fewer steps."""
GIVEN_UP = 1.5
"""A run is cut off at so many times its share of events."""
QUICK_STEPS = (24, 20, 16, 12, 8)
LONG_EVENTS = 30_000
QUICK_SPLITS = (3, 2)
"""Splits that are simulated while dragging, besides the present one: of short runs, and of those above ``LONG_EVENTS``."""
KEPT = 512
"""Short runs that are kept."""
_quick: OrderedDict[tuple[Scenario, Fidelity], Outcome] = OrderedDict()


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """All that was simulated around one scenario.

    Attributes:
        fidelity, points, point, bill: of the scenario itself; one point per seed, and their mean: None without a step.
        stalled: why a run ended early, empty where it did not. cut: it was given up because it takes too long.
        curve_fidelity, curve: over the splits.
    """

    fidelity: Fidelity
    points: Sequence[OperatingPoint]
    point: OperatingPoint | None
    bill: Bill | None
    stalled: str
    cut: bool
    curve_fidelity: Fidelity
    curve: Curve

    def spread(self, field: str) -> tuple[float, float] | None:
        """Lowest and highest value of the seeds; None with one."""
        values = [getattr(each, field) for each in self.points]
        return (min(values), max(values)) if len(values) > 1 else None


def quick_fidelity(state: State) -> Fidelity:
    """As many steps as there is time for. Split, budget and concurrency have no say, lest a move change more than its lever."""
    return _quick_fidelity(frame(state.scenario).corner, state.start.concurrency)


@lru_cache(maxsize=256)
def _quick_fidelity(corner: Scenario, concurrency: int) -> Fidelity:
    short = dataclasses.replace(lumped(corner), concurrency=concurrency)
    return Fidelity(steps=affordable(short, QUICK_STEPS, QUICK_EVENTS), lumped=corner.tool_calls > 0)


@lru_cache(maxsize=256)
def _quick_events(corner: Scenario, concurrency: int, fidelity: Fidelity) -> float:
    return expected_events(dataclasses.replace(lumped(corner), concurrency=concurrency), fidelity.steps)


def some_splits(around: Frame, most: int) -> np.ndarray:
    """A few of the splits, evenly apart; the ends, where runs are long and nobody wants to be, are left out."""
    count = len(around.splits)
    every = np.floor((np.arange(most) + 0.5) * count / most).astype(int) if count > most else np.arange(count)
    return around.splits[every]


def quick_outcomes(asked: Sequence[Scenario], fidelity: Fidelity) -> list[Outcome]:
    """The short runs of some scenarios, or that they were given up; from memory where they were asked for before.

    The first that is not known runs here, since a thread takes its time to begin, and the others on threads meanwhile.
    """
    unknown = [each for each in dict.fromkeys(asked) if (each, fidelity) not in _quick]
    others = [workers().submit(quick_outcome, each, fidelity) for each in unknown[1:]]
    for each in unknown[:1]:
        _quick[each, fidelity] = quick_outcome(each, fidelity)
    for each, other in zip(unknown[1:], others, strict=True):
        _quick[each, fidelity] = other.result()
    found = [_quick[each, fidelity] for each in asked]
    while len(_quick) > KEPT:
        _quick.popitem(last=False)
    return found


def quick_outcome(scenario: Scenario, fidelity: Fidelity) -> Outcome:
    """One short run."""
    return outcome(scenario, fidelity, 0, GIVEN_UP * QUICK_EVENTS)


def quick(state: State, closed: Mapping[str, Any]) -> Simulated:
    """What can be simulated between two moves of a slider.

    Args:
        closed: the closed form over ``frame.splits``, as ``sweep.split_grid`` gives it.
    """
    scenario, around, fidelity = state.scenario, frame(state.scenario), quick_fidelity(state)
    most = QUICK_SPLITS[_quick_events(around.corner, state.start.concurrency, fidelity) > LONG_EVENTS]
    others = [int(each) for each in some_splits(around, most) if each != scenario.generator_gpus]
    found = quick_outcomes([scenario, *(at_split(scenario, each) for each in others)], fidelity)
    return gathered(
        state, closed, fidelity=fidelity, outcomes=found[:1], curve_fidelity=fidelity,
        along={split: [each] for split, each in zip([scenario.generator_gpus, *others], found, strict=True)},
    )  # fmt: skip


@lru_cache(maxsize=1024)
def at_split(scenario: Scenario, generator_gpus: int) -> Scenario:
    """The scenario at another split. Kept, so that what was simulated there is found again."""
    return with_value(dataclasses.replace(scenario, cluster_gpus=0), "generator_gpus", generator_gpus)


def gathered(
    state: State,
    closed: Mapping[str, Any],
    *,
    fidelity: Fidelity,
    outcomes: Sequence[Outcome],
    curve_fidelity: Fidelity,
    along: Mapping[int, Sequence[Outcome]],
) -> Simulated:
    """What was simulated so far, as the page shows it.

    Args:
        outcomes: of the scenario itself, one per seed. along: by split, one per seed.
    """
    points = [each.point for each in outcomes if each.point is not None]
    point = mean_point(points) if points else None
    return Simulated(
        fidelity=dataclasses.replace(fidelity, seeds=max(1, len(outcomes)), cut=any(each.cut for each in outcomes)),
        points=points,
        point=point,
        bill=None if point is None else cost(state.scenario, point),
        stalled=next((each.stalled for each in outcomes if each.stalled), ""),
        cut=point is None and any(each.cut for each in outcomes),
        curve_fidelity=dataclasses.replace(
            curve_fidelity,
            seeds=min(len(each) for each in along.values()),
            cut=any(each.cut for found in along.values() for each in found),
        ),
        curve=bent(
            state, closed, {split: [each.point for each in found if each.point] for split, found in along.items()}
        ),
    )


def mean_point(points: Sequence[OperatingPoint]) -> OperatingPoint:
    """The mean of every number; what binds is what binds with the first seed."""
    names = [
        each.name for each in dataclasses.fields(OperatingPoint) if isinstance(getattr(points[0], each.name), float)
    ]
    means = {name: sum(getattr(each, name) for each in points) / len(points) for name in names}
    return dataclasses.replace(points[0], **means)
