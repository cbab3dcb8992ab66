"""What a run may be measured by: names, units and meanings, and how each is read off an answer of either solver.

One list for calibration (what is fitted to) and validation (what is compared), so that a name means one thing in both.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rlqueue.cost import cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.queueing import solve
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario
from rlqueue.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from rlqueue.simulation import Run

SOLVERS = {
    "closed form": "means of means, at once",
    "simulated": "a run, event by event; to be believed where the two differ (docs/semantics.md, section 11)",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a scenario runs: the operating point, and the run it was taken from where it was simulated."""

    scenario: Scenario
    point: OperatingPoint
    run: "Run | None" = None


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One thing that is measured. ``share``: it lies in [0, 1] and is compared by difference, all else by ratio."""

    unit: str
    meaning: str
    of: Callable[[Outcome], float]
    share: bool = False
    simulated_only: bool = False

    @property
    def better(self) -> str:
        """Whether less or more of it is a speed-up; empty where neither is, as of a share or a staleness."""
        if self.unit in {"s", "h", "$/Mtok"}:
            return "less"
        return "more" if self.unit.endswith(("/s", "/s/GPU")) else ""


def _field(name: str, unit: str, meaning: str, *, share: bool = False) -> Measure:
    return Measure(unit=unit, meaning=meaning, of=lambda outcome: float(getattr(outcome.point, name)), share=share)


def _trained_ratio(outcome: Outcome) -> float:
    """Share of a step's FLOPs that are the update and not extra forward passes: ``6 / (6 + 2 passes)``."""
    return 6.0 / (6.0 + 2.0 * outcome.scenario.logprob_passes)


def _fixed_s(outcome: Outcome) -> float:
    s = outcome.scenario
    return s.trainer_overhead_s * s.minibatches_per_update * s.updates_per_step


def _update_s(outcome: Outcome) -> float:
    fixed = _fixed_s(outcome)
    return (outcome.point.train_s - fixed) * _trained_ratio(outcome) + fixed


def _logprob_s(outcome: Outcome) -> float:
    return (outcome.point.train_s - _fixed_s(outcome)) * (1.0 - _trained_ratio(outcome))


def _start_s(outcome: Outcome) -> float:
    s, point = outcome.scenario, outcome.point
    return point.rollout_s * (1.0 - point.decoding_ratio) - s.tool_calls * s.tool_call_s - s.reward_s


def _of_run(outcome: Outcome) -> "Run":
    if outcome.run is None:
        raise ValueError("solver='closed form' gives means only: percentiles must be 'simulated'")
    return outcome.run


def _start_percentile(percent: float) -> Callable[[Outcome], float]:
    def of(outcome: Outcome) -> float:
        rollouts = _of_run(outcome).rollouts
        return float((rollouts["ready_s"] - rollouts["dispatch_s"]).quantile(percent / 100))

    return of


def _rollout_percentile(percent: float) -> Callable[[Outcome], float]:
    def of(outcome: Outcome) -> float:
        rollouts = _of_run(outcome).rollouts
        whole = rollouts[rollouts["end"] == "finished"]
        return float((whole["end_s"] - whole["dispatch_s"]).quantile(percent / 100))

    return of


def _staleness_percentile(percent: float) -> Callable[[Outcome], float]:
    def of(outcome: Outcome) -> float:
        staleness = _of_run(outcome).trained_staleness
        return float(np.percentile(staleness, percent)) if staleness.size else math.nan

    return of


def _token_staleness(outcome: Outcome) -> float:
    run = _of_run(outcome)
    return float(run.steps["token_staleness_versions"].iloc[run.warm_up_steps :].mean())


def _gpus(outcome: Outcome) -> int:
    return outcome.scenario.trainer_gpus + outcome.scenario.generator_gpus


MEASURES: dict[str, Measure] = {
    "step_s": _field("step_s", "s", "wall-clock time of a step"),
    "wait_s": _field("wait_s", "s", "time of a step in which the trainer waits for groups or fetches them"),
    "train_s": _field("train_s", "s", "time of a step in which the trainer computes, extra forward passes included"),
    "update_s": Measure(unit="s", meaning="train_s without extra forward passes", of=_update_s),
    "logprob_s": Measure(unit="s", meaning="extra forward passes of a step (old policy, reference)", of=_logprob_s),
    "generate_s": Measure(
        unit="s",
        meaning="time the generator takes for a batch: samples of a step over production",
        of=lambda outcome: outcome.scenario.samples_per_step / outcome.point.production_per_s,
    ),
    "sync_s": Measure(
        unit="s", meaning="time of one publication of weights", of=lambda outcome: outcome.scenario.weight_sync_s
    ),
    "trainer_wait_ratio": _field("trainer_wait_ratio", "1", "wait_s over step_s", share=True),
    "rollout_idle_ratio": _field("rollout_idle_ratio", "1", "share of slot-time unused", share=True),
    "supply_ratio": Measure(
        unit="1",
        meaning="production over consumption",
        of=lambda outcome: outcome.point.production_per_s / outcome.point.consumption_per_s,
    ),
    "train_ratio": Measure(
        unit="1",
        meaning="train_s over step_s",
        of=lambda outcome: outcome.point.train_s / outcome.point.step_s,
        share=True,
    ),
    "sync_ratio": Measure(
        unit="1",
        meaning="publications of weights over step_s",
        of=lambda outcome: outcome.point.sync_s / outcome.point.step_s,
        share=True,
    ),
    "consumption_per_s": _field("consumption_per_s", "1/s", "samples the trainer takes while computing"),
    "production_per_s": _field("production_per_s", "1/s", "samples for training that the generator can deliver"),
    "trained_tokens_per_s": _field("trained_tokens_per_s", "token/s", "prompt and response tokens of trained samples"),
    "trained_tokens_per_s_per_gpu": Measure(
        unit="token/s/GPU",
        meaning="trained_tokens_per_s over all GPUs of both sides",
        of=lambda outcome: outcome.point.trained_tokens_per_s / _gpus(outcome),
    ),
    "trained_samples_per_s": Measure(
        unit="1/s",
        meaning="samples of a step over step_s",
        of=lambda outcome: outcome.scenario.samples_per_step / outcome.point.step_s,
    ),
    "run_h": Measure(
        unit="h",
        meaning="training_steps times step_s",
        of=lambda outcome: outcome.scenario.training_steps * outcome.point.step_s / SECONDS_PER_HOUR,
    ),
    "decode_tokens_per_s": _field("decode_tokens_per_s", "token/s", "tokens sampled, discarded ones included"),
    "staleness_versions": _field("staleness_versions", "version", "mean staleness of trained groups, by oldest token"),
    "token_staleness_versions": Measure(
        unit="version",
        meaning="mean staleness of trained tokens, each by its own version",
        of=_token_staleness,
        simulated_only=True,
    ),
    "staleness_p50": Measure(
        unit="version", meaning="median staleness of trained groups", of=_staleness_percentile(50), simulated_only=True
    ),
    "staleness_p95": Measure(
        unit="version", meaning="its 95th percentile", of=_staleness_percentile(95), simulated_only=True
    ),
    "staleness_p99": Measure(
        unit="version", meaning="its 99th percentile", of=_staleness_percentile(99), simulated_only=True
    ),
    "staleness_max": Measure(
        unit="version", meaning="the most of it", of=_staleness_percentile(100), simulated_only=True
    ),
    "rollout_s": _field("rollout_s", "s", "mean time of a rollout in its slot"),
    "rollout_p50_s": Measure(unit="s", meaning="median of it", of=_rollout_percentile(50), simulated_only=True),
    "rollout_p95_s": Measure(unit="s", meaning="its 95th percentile", of=_rollout_percentile(95), simulated_only=True),
    "rollout_p99_s": Measure(unit="s", meaning="its 99th percentile", of=_rollout_percentile(99), simulated_only=True),
    "decoding_ratio": _field("decoding_ratio", "1", "share of a rollout's time spent in the LLM", share=True),
    "group_s": _field("group_s", "s", "mean time of a group until its last rollout"),
    "in_flight_rollouts": _field("in_flight_rollouts", "rollout", "mean rollouts that hold a slot"),
    "active_per_replica": _field("active_per_replica", "request", "mean requests that decode on one replica"),
    "queued_groups": _field("queued_groups", "group", "mean finished groups that wait for the trainer"),
    "kv_used_ratio": _field("kv_used_ratio", "1", "share of the KV cache in use", share=True),
    "accepted_ratio": _field("accepted_ratio", "1", "trained over dispatched rollouts", share=True),
    "informative_ratio": _field("informative_ratio", "1", "share of trained groups whose rewards differ", share=True),
    "mfu_computing": _field("mfu_computing", "1", "model FLOP/s over dense bf16 peak while training", share=True),
    "mfu_wall_clock": _field("mfu_wall_clock", "1", "the same over the whole step", share=True),
    "start_s": Measure(unit="s", meaning="mean time from dispatch to a sandbox that runs", of=_start_s),
    "start_p50_s": Measure(unit="s", meaning="median of it", of=_start_percentile(50), simulated_only=True),
    "start_p95_s": Measure(unit="s", meaning="its 95th percentile", of=_start_percentile(95), simulated_only=True),
    "start_p99_s": Measure(unit="s", meaning="its 99th percentile", of=_start_percentile(99), simulated_only=True),
    "usd_per_mtok": Measure(
        unit="$/Mtok",
        meaning="cost of a trained Mtok by wall-clock",
        of=lambda outcome: cost(outcome.scenario, outcome.point).usd_per_mtok,
    ),
    "usd_per_mtok_report_method": Measure(
        unit="$/Mtok",
        meaning="the same with the mean rollout time charged once a step",
        of=lambda outcome: cost(outcome.scenario, outcome.point).usd_per_mtok_report_method,
    ),
}


LEAST_STEPS = 20
LEAST_GROUPS = 8000
"""A simulated run is at least so long: the mean length of 8,000 groups still wanders by a percent."""


def enough_steps(scenario: Scenario) -> int:
    """Steps of a run with groups enough for its means, whose second half is past its warm-up (docs/semantics.md, section 9)."""
    fills = 2 + 2 * scenario.steps_per_publication * math.ceil(min(scenario.max_staleness, 16.0))
    return max(LEAST_STEPS, 2 * fills, math.ceil(LEAST_GROUPS / scenario.prompts_per_step))


def outcome(scenario: Scenario, solver: str, *, seed: int = 0, rollouts: bool = False) -> Outcome:
    """Run a scenario by closed form or by simulation."""
    require_known("solver", solver, SOLVERS)
    if solver == "closed form":
        return Outcome(scenario=scenario, point=solve(scenario))
    from rlqueue.simulation import simulate

    run = simulate(scenario, seed, enough_steps(scenario), rollouts=rollouts)
    return Outcome(scenario=scenario, point=run.operating_point, run=run)


def read(found: Outcome, name: str) -> float:
    """The value of one measure. Raises ValueError for an unknown name, and for a percentile of the closed form."""
    require_known("measured", name, MEASURES)
    return MEASURES[name].of(found)


def checked_value(name: str, value: object, where: str) -> float:
    """A measured value as a number inside its limits, or ValueError."""
    require_known(f"{where} quantity", name, MEASURES)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number:
        raise ValueError(f"{where}: {name}={value!r} must be a finite number: {MEASURES[name].meaning}")
    if MEASURES[name].share and not 0 <= value <= 1:
        raise ValueError(f"{where}: {name}={value:g} must be in [0, 1]: {MEASURES[name].meaning}")
    if not MEASURES[name].share and value < 0:
        raise ValueError(f"{where}: {name}={value:g} must be >= 0: {MEASURES[name].meaning}")
    return float(value)


@cache
def knob_fields() -> dict[str, dataclasses.Field]:
    """The knobs of a scenario that are numbers and so can be fitted, by name."""
    return {each.name: each for each in dataclasses.fields(Scenario) if each.type in (int, float)}
