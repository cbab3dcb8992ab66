"""What is simulated once the hand rests: the present point and the curves with several seeds, then the map cell by cell.

A ``Refinement`` is a list of runs and what came of them so far; ``refine`` lets them happen, on threads beside the page's own,
and shows the outcome now and then. Cancelling it stops every run at its next slice, some 20 ms later.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from rlqueue.app.answers import Answer, MapSoFar
from rlqueue.app.runs import WORKERS, Fidelity, Outcome, affordable, expected_events, outcome, workers
from rlqueue.app.simulated import at_split, gathered, some_splits
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped

SHOW_S = 0.4
"""Between two drawings of what was simulated so far."""
SEEDS = 8
STEPS = (60, 40, 30, 20)
"""Of a run, as many as are affordable."""
POINT_EVENTS = 1_000_000
"""Events of one run of the present point, by estimate: some 0.15 s. Turns are lumped where not even 20 steps fit."""
CURVE_EVENTS = 150_000
CURVE_SPLITS = 7
MAP_STEPS = (20, 16, 12)
MAP_EVENTS = 80_000
PATIENCE = 4_000_000
"""A run without a step after so many events counts as stalled; the engine itself would wait for hundreds of millions."""
CELL_MARGIN = 3.0
"""The same as ``MARGIN`` for a cell: many slots take long to fill, and a run cut off before that shows the filling."""
MARGIN = 1.3
"""A run is cut off when it takes so many times the events that are its share."""
KEPT = 4096


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: of the ``point`` itself, of a ``split`` or of a ``cell`` of the map (row, column)."""

    scenario: Scenario
    fidelity: Fidelity
    seed: int
    most_events: float = math.inf
    patience: float = 0.0
    split: int | None = None
    cell: tuple[int, int] | None = None

    @property
    def events(self) -> float:
        expected = expected_events(
            lumped(self.scenario) if self.fidelity.lumped else self.scenario, self.fidelity.steps
        )
        return min(expected, self.most_events)


_known: OrderedDict[tuple, Outcome] = OrderedDict()
_maps: OrderedDict[tuple, np.ndarray] = OrderedDict()


def point_fidelity(scenario: Scenario) -> Fidelity:
    """Full turns where 20 steps of them are affordable."""
    whole = affordable(scenario, STEPS, POINT_EVENTS)
    if not scenario.tool_calls or expected_events(scenario, whole) <= POINT_EVENTS:
        return Fidelity(steps=whole, lumped=False)
    return Fidelity(steps=affordable(lumped(scenario), STEPS, POINT_EVENTS), lumped=True)


class Refinement:
    """The runs that an answer still needs, in order, and what came of them."""

    def __init__(self, found: Answer) -> None:
        self.found = found
        scenario = found.state.scenario
        self.fidelity = point_fidelity(scenario)
        short = lumped(scenario)
        turns = scenario.tool_calls > 0
        self.curve_fidelity = Fidelity(steps=affordable(short, STEPS, CURVE_EVENTS), lumped=turns)
        self.map_fidelity = Fidelity(steps=affordable(short, MAP_STEPS, MAP_EVENTS), lumped=turns)
        self._outcomes: list[Outcome] = []
        self._along: dict[int, list[Outcome]] = defaultdict(list)
        self.cells = self._kept_map()
        self.jobs = [*self._point_jobs(), *self._map_jobs()]
        self._total = sum(job.events for job in self.jobs) or 1.0
        self._done = 0.0

    def _point_jobs(self) -> Iterator[Job]:
        scenario, around = self.found.state.scenario, self.found.frame
        others = [int(each) for each in some_splits(around, CURVE_SPLITS) if each != scenario.generator_gpus]
        for seed in range(SEEDS):
            # The first one may take longer: it shows whether the run comes to any step at all.
            yield Job(
                scenario=scenario, fidelity=self.fidelity, seed=seed, most_events=MARGIN * POINT_EVENTS,
                patience=0.0 if seed else PATIENCE,
            )  # fmt: skip
            for split in others:
                yield Job(
                    scenario=at_split(scenario, split), fidelity=self.curve_fidelity, seed=seed, split=split,
                    most_events=MARGIN * CURVE_EVENTS,
                )  # fmt: skip

    def _map_jobs(self) -> Iterator[Job]:
        """The cells that are not known yet, those next to the present point first."""
        state, field = self.found.state, self.found.wait_map
        scenario = state.scenario
        rows, columns = np.nonzero(np.isnan(self.cells))
        if not rows.size:
            return
        away = np.hypot(
            (field.generator_gpus[columns] - scenario.generator_gpus) / self.found.frame.gpus,
            np.log(field.concurrency[rows] / scenario.concurrency)
            / math.log(field.concurrency[-1] / field.concurrency[0]),
        )
        for place in np.argsort(away, kind="stable"):
            row, column = int(rows[place]), int(columns[place])
            moved = dataclasses.replace(
                at_split(scenario, int(field.generator_gpus[column])),
                concurrency=int(field.concurrency[row].round()),
            )
            yield Job(
                scenario=moved,
                fidelity=self.map_fidelity,
                seed=0,
                cell=(row, column),
                most_events=CELL_MARGIN * MAP_EVENTS,
            )

    def _kept_map(self) -> np.ndarray:
        """The cells simulated so far: they stay while neither the budget nor a knob of the second group moves."""
        key = (self.found.frame.corner, self.found.state.scenario.max_staleness, self.map_fidelity)
        if key not in _maps:
            _maps[key] = np.full(self.found.wait_map.trainer_wait_ratio.shape, np.nan)
            while len(_maps) > 8:
                _maps.popitem(last=False)
        _maps.move_to_end(key)
        return _maps[key]

    @property
    def stalled(self) -> bool:
        """Whether the scenario's own run ended early: then there is nothing more to find out."""
        return any(each.stalled for each in self._outcomes)

    @property
    def progress(self) -> float:
        """Share of the work that is done."""
        return min(1.0, self._done / self._total)

    def take(self, job: Job, came: Outcome) -> None:
        """Note what came of a run."""
        self._done += job.events
        if job.cell is not None:
            self.cells[job.cell] = came.point.trainer_wait_ratio if came.point else math.inf
        elif job.split is not None:
            self._along[job.split].append(came)
        else:
            self._outcomes.append(came)

    @property
    def answer(self) -> Answer:
        """The answer with what was simulated so far in the place of the short runs."""
        found, here = self.found, self.found.state.scenario.generator_gpus
        simulated = found.simulated
        if self._outcomes:
            simulated = gathered(
                found.state, found.by_split, fidelity=self.fidelity, outcomes=self._outcomes,
                curve_fidelity=self.curve_fidelity, along={here: self._outcomes, **self._along},
            )  # fmt: skip
        return dataclasses.replace(
            found, simulated=simulated, map_so_far=MapSoFar(fidelity=self.map_fidelity, cells=self.cells.copy())
        )


def known_map(found: Answer) -> MapSoFar | None:
    """The cells of the answer's map that were simulated before; None where none was."""
    scenario = found.state.scenario
    short = Fidelity(steps=affordable(lumped(scenario), MAP_STEPS, MAP_EVENTS), lumped=scenario.tool_calls > 0)
    cells = _maps.get((found.frame.corner, scenario.max_staleness, short))
    if cells is None or np.isnan(cells).all():
        return None
    return MapSoFar(fidelity=short, cells=cells.copy())


def run(job: Job, wanted: Callable[[], bool]) -> Outcome | None:
    """What comes of a run, from memory where it was done before; None if it was cancelled."""
    key = (job.scenario, job.fidelity, job.seed, job.most_events)
    came = _known.get(key)
    if came is None:
        came = outcome(job.scenario, job.fidelity, job.seed, job.most_events, wanted, patience=job.patience)
        if came is not None:
            _known[key] = came
            while len(_known) > KEPT:
                _known.popitem(last=False)
    return came


async def refine(found: Answer, show: Callable[[Answer, float], Any]) -> None:
    """Simulate all that the page shows, and show it as it comes.

    Args:
        show: gets the answer so far and the share that is done; 1 is the last time.
    """
    work = Refinement(found)
    stop = Event()
    loop = asyncio.get_running_loop()
    left = iter(work.jobs)
    running: dict[asyncio.Future, Job] = {}
    shown = time.monotonic()

    def wanted() -> bool:
        return not stop.is_set()

    try:
        while True:
            while len(running) < WORKERS and (job := next(left, None)) is not None:
                running[loop.run_in_executor(workers(), run, job, wanted)] = job
            if not running:
                break
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                came = future.result()
                job = running.pop(future)
                if came is not None:
                    work.take(job, came)
            if work.stalled:
                left = iter(())
            if time.monotonic() - shown > SHOW_S and running:
                show(work.answer, work.progress)
                shown = time.monotonic()
                await asyncio.sleep(0)
        show(work.answer, 1.0)
    finally:
        stop.set()
