"""A simulated run and what it shows: tidy tables, a timeline, the operating point."""

import math
import time
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from rlqueue.at_step import at_step
from rlqueue.operating_point import OperatingPoint
from rlqueue.rates import filtered_fraction, rates
from rlqueue.scenario import Scenario
from rlqueue.simulation import parameters, state
from rlqueue.simulation.memory import World

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 10_000_000
"""Slots, replicas or groups of a run may be so many: each takes some hundred bytes."""

EVENTS_PER_EXPECTED = 20
"""A run may take this many times the events that its accepted rollouts need, before it is called stalled."""

STALLED = {
    "nothing": "nothing can happen any more",
    "filtered": "event budget used up: nearly every group is filtered",
    "failed": "event budget used up: nearly every rollout fails with its sandbox",
    "stale": "event budget used up: nearly every group gets too old before it is trained",
    "events": "event budget used up",
    "fruitless": "hardly a group teaches anything any more: one step took a hundred times the events that its batch needs",
}


def _tables() -> ModuleType:
    """Imported on first use: a run that only wants its figures need not load pandas."""
    from rlqueue.simulation import tables

    return tables


@dataclass(frozen=True, kw_only=True)
class Run:
    """One simulated run; ``docs/semantics.md`` defines what happened in it.

    Attributes:
        scenario: what was run. seed: of the draws. asked_steps: steps that were asked for.
        events: how many were simulated. seconds: what that took.
        stalled: why the run ended before its last step; empty where it did not.
        world: the arrays the tables are made of.
    """

    scenario: Scenario
    seed: int
    asked_steps: int
    events: int
    seconds: float
    stalled: str
    world: World

    @cached_property
    def steps(self) -> "pd.DataFrame":
        """One row per step: its times [s], means over it, and what was trained in it."""
        return _tables().steps(self)

    @cached_property
    def groups(self) -> "pd.DataFrame":
        """One row per group admitted: its moments [s], versions, tokens and fate; surplus groups are of batch -1."""
        return _tables().groups(self)

    @cached_property
    def rollouts(self) -> "pd.DataFrame":
        """One row per attempt of a rollout that ended; only with ``simulate(..., rollouts=True)``, else ValueError."""
        return _tables().rollouts(self)

    @cached_property
    def timeline(self) -> "pd.DataFrame":
        """What the trainer did: one row per span of wait, train, pause, hold (waiting to publish) or sync [s]."""
        return _tables().timeline(self)

    @cached_property
    def series(self) -> "pd.DataFrame":
        """Rollouts in flight, queued groups and requests in a batch over time; thinned to at most 4,096 moments."""
        return _tables().series(self)

    @cached_property
    def gpu_seconds(self) -> "pd.DataFrame":
        """Where each GPU-second went: one row per side and kind of work; each side's sum is its GPUs times the run."""
        return _tables().gpu_seconds(self)

    @cached_property
    def tokens(self) -> "pd.DataFrame":
        """Where each token went: sampled ones by the fate of their group, prefilled ones by whether it was the first time."""
        return _tables().tokens(self)

    @cached_property
    def prompts(self) -> "pd.DataFrame":
        """One row per prompt of the pool: solve rate at the start and at the end, groups, what was observed, whether retired."""
        return _tables().prompts(self)

    @cached_property
    def solve_rate_shares(self) -> np.ndarray:
        """Share of the prompts in each of 20 equal ranges of the solve rate: at the start, then at the end of each step.

        Shape (steps + 1, 20); NaN without solve rates.
        """
        return _tables().solve_rate_shares(self)

    @cached_property
    def solve_rate_means(self) -> np.ndarray:
        """Mean solve rate of the pool at the start, then at the end of each step; NaN without solve rates."""
        return _tables().solve_rate_means(self)

    @cached_property
    def last_part(self) -> dict[str, float | None]:
        """Lengths, solve rates and shares of the groups over the steps of the long-run figures; None for what is not known."""
        from rlqueue.simulation.summary import last_part

        return last_part(self)

    @cached_property
    def moves(self) -> bool:
        """Whether solve rates or lengths move while the run goes on."""
        course = self.world.arrays["course"]
        return bool(self.world.arrays["params"]["learns"][0] or (course != course[0]).any())

    @cached_property
    def warm_up_steps(self) -> int:
        """Steps left out of the long-run figures: a fifth, or those in which the budget fills, at most half of the run.

        Of a run that moves all but its last fifth: what came before was another run.
        """
        s, done = self.scenario, int(self.world.clock["step"])
        if self.moves:
            return done - math.ceil(done / 5)
        fills = 2 + 2 * s.steps_per_publication * math.ceil(min(s.max_staleness, 16.0))
        return min(done // 2, max(math.ceil(done / 5), fills))

    @cached_property
    def settled(self) -> Scenario:
        """The scenario that would stay as this run was in the middle of the steps of its long-run figures; itself, if none moves.

        Its solve rates are the first ones after what all prompts have learned together.
        """
        if not self.moves:
            return self.scenario
        middle = 0.5 * (self.warm_up_steps + int(self.world.clock["step"]) - 1)
        learned = math.log(float(self.world.clock["odds"])) - self.scenario.solve_rate_logit_shift
        return at_step(self.scenario, middle, learned)

    @cached_property
    def trained_staleness(self) -> np.ndarray:
        """Staleness of each group trained after the warm-up [version]."""
        g = self.rows("groups", "groups")
        g = g[(g["fate"] == state.TRAINED) & (g["step"] >= self.warm_up_steps)]
        return g["trained_version"] - g["version"]

    @property
    def staleness_p95(self) -> float:
        """95th percentile of the staleness of trained groups [version]."""
        return float(np.percentile(self.trained_staleness, 95)) if self.trained_staleness.size else math.nan

    @cached_property
    def operating_point(self) -> OperatingPoint:
        """The long-run behaviour, in the same terms as the closed form's. Raises ValueError for a run without a step."""
        from rlqueue.simulation.summary import operating_point

        return operating_point(self)

    def rows(self, name: str, count: str) -> np.ndarray:
        """The used rows of one of the world's arrays; ``count`` is the clock's field that says how many."""
        return self.world.arrays[name][: int(self.world.clock[count])]


def simulate(
    scenario: Scenario, seed: int = 0, steps: int = 200, *, rollouts: bool = False, max_events: int | None = None
) -> Run:
    """Simulate a whole training run, event by event.

    Args:
        scenario: the run. seed: of the draws; one seed gives every scenario the same prompts.
        steps: training steps. rollouts: whether to keep a row per rollout.
        max_events: events after which the run counts as stalled; by default twenty times what it should need.

    Raises:
        ValueError: steps < 1, a seed that is no whole number >= 0, max_events < 1, or a run that would not fit in memory.
    """
    if scenario.tenants > 1:
        raise ValueError(
            f"tenants={scenario.tenants} must be 1 for a single run: simulate_tenants makes one run of each"
        )
    return simulate_tenants(scenario, seed, steps, rollouts=rollouts, max_events=max_events)[0]


def simulate_tenants(
    scenario: Scenario, seed: int = 0, steps: int = 200, *, rollouts: bool = False, max_events: int | None = None
) -> tuple[Run, ...]:
    """The run of each of the scenario's tenants on the GPUs that they share; those of one tenant are ``simulate``'s.

    Args:
        scenario: what each tenant runs. seed: of the draws; those of the first tenant are the single run's.
        steps: that each tenant makes at least. rollouts, max_events: as in ``simulate``, the events those of all.

    Raises:
        ValueError: as ``simulate``.
    """
    _require_whole("seed", seed, 0)
    _require_whole("steps", steps, 1)
    _require_possible(scenario, steps)
    params = parameters.parameters(scenario, steps, log_rollouts=rollouts)
    limit = scenario.tenants * event_budget(scenario, steps) if max_events is None else max_events
    _require_whole("max_events", limit, 1)
    return go_on(parameters.worlds(scenario, params, seed), scenario, seed, limit)


def simulate_from(world: World, scenario: Scenario, seed: int, max_events: int) -> Run:
    """The same from an empty world, whose parameters and draws a test may have changed."""
    return go_on([world], scenario, seed, max_events)[0]


def go_on(worlds: list[World], scenario: Scenario, seed: int, max_events: int) -> tuple[Run, ...]:
    """The runs of tenants from their worlds; one may stop at ``max_events`` and go on from there."""
    from rlqueue.simulation.loop import advance

    begin = time.perf_counter()
    while (status := advance(worlds[0].addresses[0], max_events)) == state.NO_ROOM:
        for world in worlds:
            world.make_room()
    seconds = time.perf_counter() - begin
    return tuple(
        Run(
            scenario=scenario, seed=seed, asked_steps=int(world.arrays["params"]["steps"][0]),
            events=int(world.host["events"]), seconds=seconds, stalled=_cause(world, status), world=world,
        ) for world in worlds
    )  # fmt: skip


def event_budget(scenario: Scenario, steps: int) -> int:
    """Events a run may take: twenty times what its accepted rollouts need, and a million; more where learning changes that."""
    s = scenario
    per_rollout = parameters.events_per_rollout(s, steps) + s.sandbox_retries * (s.sandbox_failure_ratio > 0)
    accepted = 0.01 if s.learning_logit_per_step else max(0.01, 1.0 - filtered_fraction(s))
    wasted = (1.0 - s.surplus_fraction) * accepted * (1.0 - float(rates(s)[0]["failed"]))
    groups = s.prompts_per_step * s.oversampling_factor * steps / max(1e-3, wasted)
    return int(1e6 + EVENTS_PER_EXPECTED * per_rollout * (groups * s.group_size + 2 * s.concurrency))


def _cause(world: World, status: int) -> str:
    if status == state.DONE:
        return ""
    if status in (state.STUCK, state.FRUITLESS):
        return STALLED["nothing" if status == state.STUCK else "fruitless"]
    clock, fates = world.clock, world.arrays["groups"]["fate"][: int(world.clock["groups"])]
    if clock["failed"] > 0.9 * clock["dispatched"]:
        return STALLED["failed"]
    for name, fate in (("filtered", state.FILTERED), ("stale", state.STALE)):
        if fates.size and np.mean(fates == fate) > 0.9:
            return STALLED[name]
    return STALLED["events"]


def _require_possible(s: Scenario, steps: int) -> None:
    replicas = (s.trainer_gpus + s.generator_gpus) // s.gpus_per_replica
    for name, value in (
        ("concurrency", s.concurrency), ("pool_prompts", s.pool_prompts), ("replicas of trainer and generator GPUs", replicas),
        ("steps * prompts_per_step", steps * s.prompts_per_step), ("steps * updates_per_step", steps * s.updates_per_step),
    ):  # fmt: skip
        if value > LARGEST:
            raise ValueError(f"{name}={value} must be <= {LARGEST} to be simulated: it would not fit in memory")


def _require_whole(name: str, value: int, low: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name}={value!r} must be a whole number >= {low}")
