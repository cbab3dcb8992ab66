"""One simulated run for a page: how long, how well, and in slices, so that it ends when nobody wants it any more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from rlqueue.operating_point import OperatingPoint
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped, parameters, unlumped
from rlqueue.simulation.run import event_budget, simulate_from
from rlqueue.simulation.state import GOES_ON

WORKERS = 2
"""Threads that simulate; the compiled loop lets the page's own go on meanwhile."""
SLICE_EVENTS = 150_000
"""Events between two looks at whether somebody still wants to know: 15 to 30 ms."""
LEAST_STEPS = 4
"""A run cut off before so many steps says nothing."""


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """How well something was simulated; ``cut``: some of the runs have fewer steps, since they took too many events."""

    steps: int
    lumped: bool
    seeds: int = 1
    cut: bool = False

    @property
    def words(self) -> str:
        seeds = "seed 0" if self.seeds == 1 else f"{self.seeds} seeds"
        turns = ", tool calls lumped" if self.lumped else ""
        return f"{seeds}, {'up to ' if self.cut else ''}{self.steps} steps{turns}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one run: an operating point, or why there is none: the cause of a stall, or ``cut``: it takes too long."""

    point: OperatingPoint | None
    stalled: str = ""
    cut: bool = False


def expected_events(scenario: Scenario, steps: int) -> float:
    """About how many events a run takes."""
    s = scenario
    per_rollout = 2.0 * (s.tool_calls + 1.0) + 2.0
    kept = (1.0 - s.surplus_fraction) * (1.0 - s.filtered_fraction)
    return per_rollout * (s.samples_per_step * s.oversampling_factor * steps / kept + s.concurrency)


def outcome(
    scenario: Scenario,
    fidelity: Fidelity,
    seed: int,
    most_events: float = math.inf,
    wanted: Callable[[], bool] | None = None,
    *,
    patience: float = 0.0,
) -> Outcome | None:
    """Run a scenario once, in slices: None as soon as ``wanted`` says that nobody wants to know any more.

    A run that has used up ``most_events`` ends there, with the steps that it has by then; with too few of them it goes on up to
    ``patience``, and without any it counts as stalled there.
    """
    run_as = lumped(scenario) if fidelity.lumped else scenario
    world = parameters.world(run_as, parameters.parameters(run_as, fidelity.steps, log_rollouts=False), seed)
    limit = event_budget(run_as, fidelity.steps)
    while True:
        run = simulate_from(world, run_as, seed, int(min(limit, most_events, world.host["events"] + SLICE_EVENTS)))
        going_on, steps = world.host["status"] == GOES_ON, int(world.clock["step"])
        if not going_on or run.events >= limit:
            break
        if run.events >= most_events:
            if steps >= LEAST_STEPS or run.events >= patience:
                break
            most_events = min(patience, run.events + SLICE_EVENTS)
        if wanted is not None and not wanted():
            return None
    cut = bool(going_on and run.events < limit)
    if steps == 0 and cut and patience:
        why = run.stalled.rpartition(": ")[2]
        return Outcome(point=None, stalled=f"no step ended within {run.events:,} events ({why})")
    if steps == 0 or (cut and steps < LEAST_STEPS):
        return Outcome(point=None, stalled="" if cut else run.stalled, cut=cut)
    point = run.operating_point
    return Outcome(
        point=unlumped(point, scenario) if fidelity.lumped else point, stalled="" if cut else run.stalled, cut=cut
    )


def affordable(scenario: Scenario, ladder: Sequence[int], events: float) -> int:
    """The most steps of a ladder that take no more than so many events; the fewest where none does."""
    return next((each for each in ladder if expected_events(scenario, each) <= events), ladder[-1])


@cache
def workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="simulate")
