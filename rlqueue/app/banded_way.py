"""Bands of a run along its way: how far its numbers at each step and in all may be off, for what its inputs are known to.

Each sample of the inputs is a run of its own by closed form, a hundredth of a second each: they are made when the hand rests,
one after the other, and the next move calls them off.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlqueue.app.banded import SAMPLES
from rlqueue.app.runs import workers
from rlqueue.app.state import State
from rlqueue.app.way import Way, solved, way
from rlqueue.course import Course, WholeRun, totals
from rlqueue.ranges import Range, default_ranges
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import LEVEL, QUANTITIES, Band, Bands, percentiles, sampled

KEPT = 64
WHOLE = ("usd", "hours", "gpu_hours", "usd_per_mtok", "hosted_ratio")
"""What of a whole run has a band: fields of WholeRun, and its cost over the hosted price of the same tokens."""
_known: OrderedDict[tuple[str, Scenario], WayBands] = OrderedDict()


PERCENTILES = percentiles(LEVEL)


@dataclass(frozen=True, kw_only=True)
class WayBands:
    """The bands of a run.

    Attributes:
        own: by column of the course, the run's own values at the steps at which it was solved.
        between: low end, median and high end of the samples there: shape (3, steps).
        whole: bands of the whole run, the quantities of ``WHOLE``.
    """

    own: Mapping[str, np.ndarray]
    between: Mapping[str, np.ndarray]
    whole: Bands

    def at(self, place: int) -> Bands:
        """The bands at one of the steps, by its place among them."""
        rows = (_band(name, self.own[name][place], values[:, place]) for name, values in self.between.items())
        return dataclasses.replace(self.whole, rows=tuple(rows))


async def banded_way(state: State) -> WayBands:
    """The bands of a state's run, from memory where they were asked for before; cancelling stops after the present sample."""
    key = (state.preset, state.scenario)
    if key not in _known:
        ranges = default_ranges(state.scenario, state.preset)
        loop = asyncio.get_running_loop()
        cases, refused = await loop.run_in_executor(workers(), sampled, state.scenario, ranges, SAMPLES)
        courses = [await loop.run_in_executor(workers(), _solved, case) for case in cases]
        _known[key] = gathered(way(state), courses, ranges, refused)
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return _known[key]


def known_way(state: State) -> WayBands | None:
    """The bands of a state's run if they were asked for before."""
    return _known.get((state.preset, state.scenario))


def _solved(scenario: Scenario) -> Course | None:
    """The course of a sample; None where its lengths become impossible on the way."""
    try:
        return solved(scenario)
    except ValueError:
        return None


def gathered(found: Way, courses: Sequence[Course | None], ranges: Sequence[Range], refused: int) -> WayBands:
    """The bands of a run from the courses of its samples; those that end before the run itself say nothing of the whole.

    Args:
        refused: samples that were impossible to begin with.
    """
    there = [each for each in courses if each is not None]
    own = {name: values for name, values in found.at.items() if name != "step" and values.dtype.kind == "f"}
    runs = [run for run in map(totals, there) if run.steps == found.whole.steps]
    answers = [_whole(run) for run in runs]
    rows = tuple(
        _band(name, value, np.percentile([each[name] for each in answers], PERCENTILES))
        for name, value in (_whole(found.whole) if answers and found.whole.steps else {}).items()
    )
    return WayBands(
        own=own,
        between={name: _between([_along(each, name, found.steps) for each in there]) for name in own},
        whole=Bands(
            rows=rows, ranges=tuple(ranges), level=LEVEL, samples=len(runs), refused=refused + len(courses) - len(runs)
        ),
    )


def _between(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Percentiles over the samples at each step; NaN where no sample has a value."""
    values = np.where(np.isfinite(samples), samples, np.nan)
    found = np.full((len(PERCENTILES), values.shape[1]), np.nan)
    some = np.isfinite(values).any(axis=0)
    found[:, some] = np.nanpercentile(values[:, some], PERCENTILES, axis=0)
    return found


def _along(found: Course, name: str, steps: np.ndarray) -> np.ndarray:
    own = found.table["step"].to_numpy(float)
    values = np.interp(steps, own, found.table[name].to_numpy(float))
    return values if found.stalled_at is None else np.where(steps <= own[-1], values, np.nan)


def _whole(run: WholeRun) -> dict[str, float]:
    found = {name: float(getattr(run, name)) for name in WHOLE[:-1]}
    return found | ({"hosted_ratio": run.usd / run.hosted_usd} if run.hosted_usd else {})


def _band(name: str, value: float, between: np.ndarray) -> Band:
    low, median, high = between.tolist()
    return Band(
        quantity=name, unit=QUANTITIES.get(name, ""), kind="closed form", value=float(value), low=low, median=median,
        high=high,
    )  # fmt: skip
