"""A simulated run and what it shows: tidy tables, a timeline, the operating point."""

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rlqueue.operating_point import OperatingPoint
from rlqueue.scenario import Scenario
from rlqueue.simulation import parameters, state
from rlqueue.simulation.memory import World

EVENTS_PER_EXPECTED = 20
"""A run may take this many times the events that its accepted rollouts need, before it is called stalled."""

STALLED = {
    "nothing": "nothing can happen any more",
    "filtered": "event budget used up: nearly every group is filtered",
    "failed": "event budget used up: nearly every rollout fails with its sandbox",
    "stale": "event budget used up: nearly every group gets too old before it is trained",
    "events": "event budget used up",
}


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
    def steps(self) -> pd.DataFrame:
        """One row per step: its times [s], means over it, and what was trained in it."""
        s = self._rows("steps", "step")
        length = np.maximum(s["end"] - s["start"], 1e-300)
        groups = self.scenario.prompts_per_step
        mean = {name: np.diff(s[name], prepend=0.0) / length for name in ("flight_area", "queue_area", "k_area")}
        return pd.DataFrame(
            {
                "step": np.arange(s.size),
                "start_s": s["start"],
                "end_s": s["end"],
                "wait_s": s["wait"],
                "train_s": s["train"],
                "pause_s": s["pause"],
                "sync_s": s["sync"],
                "hold_s": s["hold"],
                "version": s["version"],
                "in_flight_rollouts": mean["flight_area"],
                "queued_groups": mean["queue_area"],
                "queued_groups_at_end": s["queued"],
                "active_requests": mean["k_area"],
                "trained_tokens": s["tokens"],
                "sampled_tokens": np.diff(s["decoded_tokens"], prepend=0.0),
                "staleness_versions": s["staleness"] / groups,
                "staleness_in_flight": s["in_flight_part"] / groups,
                "staleness_in_queue": (s["staleness"] - s["in_flight_part"]) / groups,
                "token_staleness_versions": s["token_staleness"] / groups,
                "max_staleness_versions": s["max_staleness"],
            }
        )

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row per group admitted: its moments [s], versions, tokens and fate."""
        g = self._rows("groups", "groups")
        n, trained = self.scenario.group_size, g["fate"] == state.TRAINED
        begun = g["version"] < state.NO_VERSION
        return pd.DataFrame(
            {
                "group": np.arange(g.size),
                "batch": g["cohort"],
                "dispatch_s": g["dispatched"],
                "finish_s": g["finished"],
                "trained_s": g["trained"],
                "step": g["step"],
                "version": np.where(begun, g["version"], -1),
                "staleness_versions": np.where(trained, g["trained_version"] - g["version"], np.nan),
                "staleness_in_flight": np.where(trained, g["finished_version"] - g["version"], np.nan),
                "tokens": np.where(g["ended"] == n, g["sampled"] + n * self.scenario.mean_prompt_tokens, np.nan),
                "longest_response_tokens": g["longest"],
                "sampled_tokens": g["sampled"] + g["lost"],
                "ended_rollouts": g["ended"],
                "solved_rollouts": g["solved"],
                "fate": pd.Categorical.from_codes(g["fate"], list(state.FATES)),
            }
        )

    @cached_property
    def rollouts(self) -> pd.DataFrame:
        """One row per attempt of a rollout that ended; only with ``simulate(..., rollouts=True)``."""
        if not self.world.arrays["params"]["log_rollouts"][0]:
            raise ValueError("rollouts: not kept; ask for simulate(..., rollouts=True)")
        r = self._rows("rollouts", "rollouts")
        return pd.DataFrame(
            {
                "group": r["group"],
                "rollout": r["rollout"],
                "attempt": r["attempt"],
                "replica": r["replica"],
                "dispatch_s": r["dispatch"],
                "ready_s": r["ready"],
                "first_token_s": r["first"],
                "end_s": r["end"],
                "response_tokens": r["tokens"],
                "turns": r["turns"],
                "version": r["version"],
                "mean_version": r["mean_version"],
                "preemptions": r["preempted"],
                "sandbox_tries": r["tries"],
                "end": pd.Categorical.from_codes(r["end_kind"], list(state.ENDS)),
            }
        )

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """What the trainer did: one row per span of wait, train, pause, hold (waiting to publish) or sync [s]."""
        spans = self._rows("spans", "spans")
        return pd.DataFrame(
            {
                "start_s": spans["start"],
                "end_s": spans["end"],
                "kind": pd.Categorical.from_codes(spans["kind"], list(state.SPANS)),
                "step": spans["step"],
            }
        )

    @cached_property
    def series(self) -> pd.DataFrame:
        """Rollouts in flight, queued groups and requests in a batch over time; thinned to at most 4,096 moments."""
        points = self._rows("series", "series")
        return pd.DataFrame(
            {
                "time_s": points["time"],
                "in_flight_rollouts": points["flight"],
                "queued_groups": points["queued"],
                "active_requests": points["running"],
                "version": points["version"].astype(np.int64),
            }
        )

    @cached_property
    def warm_up_steps(self) -> int:
        """Steps left out of the long-run figures: a fifth, or those in which the budget fills, at most half of the run."""
        s, done = self.scenario, int(self.world.clock["step"])
        fills = 2 + 2 * s.steps_per_publication * math.ceil(min(s.max_staleness, 16.0))
        return min(done // 2, max(math.ceil(done / 5), fills))

    @cached_property
    def trained_staleness(self) -> np.ndarray:
        """Staleness of each group trained after the warm-up [version]."""
        g = self._rows("groups", "groups")
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

    def _rows(self, name: str, count: str) -> np.ndarray:
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
        ValueError: steps < 1, a seed that is no whole number >= 0, or max_events < 1.
    """
    _require_whole("seed", seed, 0)
    _require_whole("steps", steps, 1)
    params = parameters.parameters(scenario, steps, log_rollouts=rollouts)
    limit = event_budget(scenario, steps) if max_events is None else max_events
    _require_whole("max_events", limit, 1)
    return simulate_from(parameters.world(scenario, params, seed), scenario, seed, limit)


def simulate_from(world: World, scenario: Scenario, seed: int, max_events: int) -> Run:
    """The same from an empty world, whose parameters and draws a test may have changed."""
    from rlqueue.simulation.loop import advance

    begin = time.perf_counter()
    while (status := advance(world.addresses[0], max_events)) == state.NO_ROOM:
        world.double(parameters.GROWING)
    return Run(
        scenario=scenario, seed=seed, asked_steps=int(world.arrays["params"]["steps"][0]), events=int(world.clock["events"]),
        seconds=time.perf_counter() - begin, stalled=_cause(world, status), world=world,
    )  # fmt: skip


def event_budget(scenario: Scenario, steps: int) -> int:
    """Events a run may take: twenty times what its accepted rollouts need, and a million."""
    s = scenario
    per_rollout = 2.0 * (s.tool_calls + 1.0) + 2.0 + s.sandbox_retries * (s.sandbox_failure_ratio > 0)
    groups = s.prompts_per_step * s.oversampling_factor * steps / (1.0 - s.surplus_fraction)
    return int(1e6 + EVENTS_PER_EXPECTED * per_rollout * (groups * s.group_size + 2 * s.concurrency))


def _cause(world: World, status: int) -> str:
    if status == state.DONE:
        return ""
    if status == state.STUCK:
        return STALLED["nothing"]
    clock, fates = world.clock, world.arrays["groups"]["fate"][: int(world.clock["groups"])]
    if clock["failed"] > 0.9 * clock["dispatched"]:
        return STALLED["failed"]
    for name, fate in (("filtered", state.FILTERED), ("stale", state.STALE)):
        if fates.size and np.mean(fates == fate) > 0.9:
            return STALLED[name]
    return STALLED["events"]


def _require_whole(name: str, value: int, low: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name}={value!r} must be a whole number >= {low}")
