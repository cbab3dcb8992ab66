"""Why a host with many customers is cheaper: one run's figures and costs as more tenants like it share its GPUs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from rlqueue.cost import PARTS, cost
from rlqueue.fluid import rollout_rate
from rlqueue.operating_point import OperatingPoint
from rlqueue.rates import rates
from rlqueue.scenario import Scenario
from rlqueue.simulation import Run, lumped, simulate_tenants, unlumped
from rlqueue.simulation.summary import NEVER_WAITS

SUMS = (
    "production_per_s", "in_flight_rollouts", "queued_groups", "trained_tokens_per_s", "decode_tokens_per_s",
    "mfu_wall_clock",
)  # fmt: skip
"""Of an operating point, what the tenants' figures add up to; of the others the mean is taken, each tenant counting alike."""

UNFED = ("wait", "hold", "turn")
"""Spans in which a tenant keeps the trainer from nothing."""

IDLE = (*UNFED, "fetch")
"""Spans in which a tenant has the trainer compute nothing."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The GPUs that tenants share, over their runs (``simulate_tenants``); docs/semantics.md, section 13, defines the figures."""

    runs: tuple[Run, ...]

    @property
    def scenario(self) -> Scenario:
        """What each tenant runs, at the lengths of the long-run figures."""
        return self.runs[0].settled

    @cached_property
    def seen(self) -> tuple[OperatingPoint, ...]:
        """How each tenant sees its own run; unused slots are all those that it does not hold."""
        return tuple(run.operating_point for run in self.runs)

    @cached_property
    def window(self) -> tuple[float, float]:
        """Moments between which all tenants are past their warm-up [s]: its last end, and the first tenant's last step's."""
        warm = [run.warm_up_steps for run in self.runs]
        begins = [
            run.steps["end_s"].iloc[steps - 1] if steps else 0.0 for run, steps in zip(self.runs, warm, strict=True)
        ]
        return float(max(begins)), float(min(run.steps["end_s"].iloc[-1] for run in self.runs))

    def _share(self, idle: Sequence[str]) -> float:
        """Share of the window in which some tenant does what is not ``idle``."""
        begin, end = self.window
        busy = pd.concat([run.timeline[~run.timeline["kind"].isin(idle)] for run in self.runs]).sort_values("start_s")
        starts, ends = busy["start_s"].to_numpy().clip(begin, end), busy["end_s"].to_numpy().clip(begin, end)
        reached = np.concatenate([[begin], np.maximum.accumulate(ends)[:-1]])
        return float(np.maximum(0.0, ends - np.maximum(starts, reached)).sum() / (end - begin))

    @cached_property
    def trainer_wait_ratio(self) -> float:
        """Share of time in which no tenant trains, pauses or syncs: of one tenant, its own wait ratio."""
        return self.seen[0].trainer_wait_ratio if len(self.runs) == 1 else 1.0 - self._share(IDLE)

    @property
    def trainer_busy_ratio(self) -> float:
        """Share of time in which the trainer trains, changes of adapter included."""
        return self._share((*IDLE, "pause", "sync"))

    @property
    def turn_ratio(self) -> float:
        """Share of a tenant's time in which an update of it is ready and the trainer is another one's."""
        kept = [run.steps.iloc[run.warm_up_steps :] for run in self.runs]
        return float(np.mean([each["turn_s"].sum() / (each["end_s"] - each["start_s"]).sum() for each in kept]))

    @property
    def decode_busy_ratio(self) -> float:
        """Share of the replicas' time in which they decode."""
        run = self.runs[0]
        steps = run.rows("steps", "step")
        first = steps[run.warm_up_steps - 1] if run.warm_up_steps else np.zeros(1, steps.dtype)[0]
        replicas = int(run.world.arrays["params"]["replicas"][0])
        return float((steps[-1]["busy_s"] - first["busy_s"]) / (steps[-1]["end"] - first["end"]) / replicas)

    @property
    def decode_use_ratio(self) -> float:
        """Tokens sampled over those that the replicas would sample if their KV memory were full of mean contexts [1]."""
        record = rates(self.scenario)[0]
        most = rollout_rate(float(record["kv_slots"]), record, 1.0) * float(record["response_tokens"])
        return self.operating_point.decode_tokens_per_s / (most * self.scenario.replicas)

    @cached_property
    def operating_point(self) -> OperatingPoint:
        """The pool as one run, whose steps are those of all tenants: what ``cost`` needs to share its dollars out."""
        if len(self.runs) == 1:
            return self.seen[0]
        names = [name for name, value in asdict(self.seen[0]).items() if isinstance(value, float)]
        columns = {name: np.array([getattr(each, name) for each in self.seen]) for name in names}
        found = {name: float(values.sum() if name in SUMS else values.mean()) for name, values in columns.items()}
        step_s = float(1.0 / (1.0 / columns["step_s"]).sum())
        used = found["in_flight_rollouts"] / self.scenario.concurrency
        limits = self.seen[0].binding_constraint, self.seen[0].next_constraint
        if self._share(UNFED) > 1.0 - NEVER_WAITS:
            limits = "trainer compute", limits[0]
        return replace(
            self.seen[0], **found | {
                "step_s": step_s, "wait_s": step_s * self.trainer_wait_ratio, "trainer_wait_ratio": self.trainer_wait_ratio,
                "rollout_idle_ratio": max(0.0, 1.0 - used),
            }, binding_constraint=limits[0], next_constraint=limits[1],
        )  # fmt: skip


def shared(scenario: Scenario, tenants: int, start_gap_s: float = 0.0) -> Scenario:
    """That many tenants on the scenario's GPUs. Each brings what its own run has: its slots, and its account for sandboxes.

    Raises:
        ValueError: a schedule in which nobody shares, or adapters that leave no memory.
    """
    return replace(
        scenario, tenants=tenants, concurrency=tenants * scenario.concurrency, sandbox_cap=tenants * scenario.sandbox_cap,
        sandbox_creates_per_s=tenants * scenario.sandbox_creates_per_s, tenant_start_gap_s=start_gap_s,
    )  # fmt: skip


def simulate_pool(scenario: Scenario, seed: int = 0, steps: int = 200) -> Pool:
    """The pool of the scenario's tenants, simulated.

    Raises:
        ValueError: as ``simulate_tenants``, or a tenant without a single step.
    """
    pool = Pool(runs=simulate_tenants(scenario, seed, steps))
    _ = pool.seen  # refuses a run without a step
    return pool


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """What sharing does at one number of tenants, whatever it costs.

    Attributes:
        trainer_wait_ratio, trainer_busy_ratio: of the trainer that all share.
        tenant_wait_ratio, tenant_turn_ratio, tenant_step_s: as a tenant sees its own run, in the mean over tenants.
        decode_busy_ratio, decode_use_ratio: of the replicas, see ``Pool``.
        point: the operating point of the pool, its steps being those of all tenants.
    """

    tenants: int
    trainer_wait_ratio: float
    trainer_busy_ratio: float
    tenant_wait_ratio: float
    tenant_turn_ratio: float
    tenant_step_s: float
    decode_busy_ratio: float
    decode_use_ratio: float
    point: OperatingPoint


def sharings(
    scenario: Scenario, tenants: Iterable[int], *, seed: int = 0, steps: int = 48, lump: bool = False
) -> Iterator[Sharing]:
    """Sharing at each number of tenants, who start evenly over the single run's mean step; arguments as of ``tenancy``."""
    alone = lumped(scenario) if lump else scenario
    step_s = simulate_pool(shared(alone, 1), seed, steps).seen[0].step_s
    for count in tenants:
        pool = simulate_pool(shared(alone, count, step_s / count), seed, steps)
        point = pool.operating_point
        yield Sharing(
            tenants=count, trainer_wait_ratio=pool.trainer_wait_ratio, trainer_busy_ratio=pool.trainer_busy_ratio,
            tenant_wait_ratio=float(np.mean([each.trainer_wait_ratio for each in pool.seen])),
            tenant_turn_ratio=pool.turn_ratio, tenant_step_s=float(np.mean([each.step_s for each in pool.seen])),
            decode_busy_ratio=pool.decode_busy_ratio, decode_use_ratio=pool.decode_use_ratio,
            point=unlumped(point, scenario) if lump else point,
        )  # fmt: skip


def tenancy(
    scenario: Scenario, tenants: Iterable[int] = range(1, 9), *, seed: int = 0, steps: int = 48, lump: bool = False
) -> pd.DataFrame:
    """What sharing buys, and what a trained token then costs.

    Args:
        scenario: the run of each, alone on its GPUs. tenants: how many. seed: of all. steps: of each tenant at least.
        lump: simulate the single-turn equivalent (``simulation.lumped``), many times faster where there are many tool calls.

    Returns:
        A row for each number of tenants: the fields of ``Sharing``, of its operating point the staleness, the trained tokens
        (of all and of a tenant), the use of slots and memory and the binding constraint; the bill's parts, sum and hosted price.

    Raises:
        ValueError: as ``shared`` and ``simulate_pool``; a scenario that moves while it runs, and so has no long-run costs.
    """
    if scenario.learning_logit_per_step or scenario.drift_law != "constant":
        raise ValueError(
            "drift_law, learning_logit_per_step: must be off for a cost by number of tenants, which is long-run"
        )
    return pd.DataFrame(
        [_row(scenario, each) for each in sharings(scenario, tenants, seed=seed, steps=steps, lump=lump)]
    )


def _row(scenario: Scenario, sharing: Sharing) -> dict[str, object]:
    point, bill = sharing.point, cost(scenario, sharing.point)
    return {name: value for name, value in vars(sharing).items() if name != "point"} | {
        "staleness_versions": point.staleness_versions,
        "trained_tokens_per_s": point.trained_tokens_per_s,
        "tenant_trained_tokens_per_s": point.trained_tokens_per_s / sharing.tenants,
        "slot_use_ratio": 1.0 - point.rollout_idle_ratio,
        "active_per_replica": point.active_per_replica,
        "kv_used_ratio": point.kv_used_ratio,
        "binding_constraint": point.binding_constraint,
        "usd_per_mtok": bill.usd_per_mtok,
        **{f"{part}_usd_per_mtok": getattr(bill, f"{part}_usd_per_mtok") for part in PARTS},
        "hosted_usd_per_mtok": bill.hosted_usd_per_mtok,
    }
