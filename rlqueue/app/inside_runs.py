"""Which run the page shows: a short one while the hand moves, and the full one, in slices, when it rests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from rlqueue.operating_point import OperatingPoint
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario
from rlqueue.simulation import Run, lumped, simulate, unlumped
from rlqueue.simulation.parameters import parameters, world
from rlqueue.simulation.run import event_budget, simulate_from
from rlqueue.simulation.state import GOES_ON

FULL_STEPS = 100
SHORT_ROLLOUTS = 8_000
"""Rollouts of a short run, those that fill the slots among them: about 30 ms."""
SHORT_STEPS = (10, 40)
"""Least and most steps of a short run."""
SHORT_EVENTS = 150_000
"""Events after which a short run is left as it is: what it has not shown by then, the full run will."""
PATIENCE = 20
"""A full run is given up after this part of its event budget without one more step: about what a whole run should need."""
SLICE_EVENTS = 30_000
"""Events of the full run between two looks at the controls: about 10 ms."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A run on the page.

    Attributes:
        scenario: what was asked for; the run's own may have its tool calls lumped.
        closed: the closed form's answer to it.
        full: whether this is the full run. asked_steps: steps that it was to have.
    """

    scenario: Scenario
    run: Run
    closed: OperatingPoint
    full: bool

    @property
    def done_steps(self) -> int:
        return len(self.run.steps)

    @property
    def lumped(self) -> bool:
        return self.run.scenario is not self.scenario

    @property
    def point(self) -> OperatingPoint:
        """The run's operating point, in the scenario's own tokens."""
        found = self.run.operating_point
        return unlumped(found, self.scenario) if self.lumped else found

    @property
    def cause(self) -> str:
        """Why a full run ended early; a short one that was cut off says nothing about the scenario."""
        if not self.run.stalled:
            return ""
        cut = not self.full and self.run.events >= SHORT_EVENTS
        return "" if cut and self.done_steps else self.run.stalled


def short_steps(scenario: Scenario) -> int:
    """Steps that a slider move can pay for."""
    low, high = SHORT_STEPS
    return max(low, min(high, int((SHORT_ROLLOUTS - scenario.concurrency) / scenario.samples_per_step)))


def short(scenario: Scenario, seed: int) -> Shown:
    """The run that is shown at once."""
    run = simulate(lumped(scenario), seed=seed, steps=short_steps(scenario), rollouts=True, max_events=SHORT_EVENTS)
    return Shown(scenario=scenario, run=run, closed=solve(scenario), full=False)


def slices(scenario: Scenario, seed: int, steps: int = FULL_STEPS) -> Iterator[float | Shown]:
    """The full run, bit by bit: shares of it that are done, and at last the run, the same as ``simulate`` makes in one go."""
    there = world(scenario, parameters(scenario, steps, log_rollouts=True), seed)
    limit, seconds = event_budget(scenario, steps), 0.0
    patience, step, since = limit // PATIENCE, 0, 0
    while True:
        run = simulate_from(there, scenario, seed, min(limit, int(there.host["events"]) + SLICE_EVENTS))
        seconds += run.seconds
        if there.clock["step"] > step:
            step, since = int(there.clock["step"]), run.events
        if there.host["status"] != GOES_ON or run.events >= min(limit, since + patience):
            run = dataclasses.replace(run, seconds=seconds)
            yield Shown(scenario=scenario, run=run, closed=solve(scenario), full=True)
            return
        yield int(there.clock["step"]) / steps
