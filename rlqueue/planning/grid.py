"""All plans there are for a number of GPUs, by closed form: splits, slots, staleness budgets and schedules at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rlqueue.choices import IN_STEP, SCHEDULES
from rlqueue.planning.goal import Limits
from rlqueue.rates import rates
from rlqueue.scenario import Scenario
from rlqueue.sweep import split_grid

COSTLY = ("lent-trainer",)
"""Schedules whose closed form takes forty times as long: every second split and budget will do."""
BUDGETS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
SPLITS = 24
"""Splits looked at; with more, they are thinned out evenly."""
SLOTS = 20
"""Numbers of slots looked at: a third more from one to the next."""
FULL = 1.25
"""The most slots of a replica over those at which its KV cache is full."""
SPARE = 0.99
"""A budget of such a share of a limit keeps it in every run: the mean staleness may lie a hair above its budget."""
CHOICE = ("schedule", "trainer_gpus", "generator_gpus", "concurrency", "max_staleness")
"""Columns that say what a plan is."""
SAME = ("schedule", "generator_gpus", "concurrency", "max_staleness")
"""Columns in which no two rows of a grid are the same."""
ANSWERS = (
    "step_s", "trainer_wait_ratio", "rollout_idle_ratio", "staleness_versions", "kv_used_ratio", "accepted_ratio",
    "usd_per_mtok",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Space:
    """What a plan may choose from; empty = what is sensible for the scenario.

    Attributes:
        generator_gpus: splits, as GPUs of the generator. slots_per_replica: concurrency over replicas.
        max_staleness: budgets [version]. schedules: names.
    """

    generator_gpus: tuple[int, ...] = ()
    slots_per_replica: tuple[float, ...] = ()
    max_staleness: tuple[float, ...] = ()
    schedules: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Plans for ``gpus`` GPUs, one row each: the choice (schedule, generator_gpus, trainer_gpus, concurrency, slots of a
    replica, max_staleness) and the closed form's answers to it.

    Attributes:
        even: so many rows at the beginning are all combinations of each schedule's values; others were added one by one.
    """

    scenario: Scenario
    gpus: int
    table: pd.DataFrame
    even: int

    def plan(self, row: int) -> Scenario:
        """The scenario of a row."""
        chosen = self.table.iloc[row]
        return dataclasses.replace(
            self.scenario, cluster_gpus=0, schedule=chosen["schedule"], trainer_gpus=int(chosen["trainer_gpus"]),
            generator_gpus=int(chosen["generator_gpus"]), concurrency=int(chosen["concurrency"]),
            max_staleness=float(chosen["max_staleness"]),
        )  # fmt: skip

    def values(self, column: str) -> np.ndarray:
        """All values of a choice that were looked at evenly, rising."""
        return np.unique(self.table[column][: self.even])

    def joined(self, blocks: Iterable[pd.DataFrame]) -> Grid:
        """The grid with more plans at its end, those that it has left out: all rows keep their numbers."""
        table = pd.concat([self.table, *blocks], ignore_index=True)
        table = table.drop_duplicates(list(SAME), ignore_index=True)
        return dataclasses.replace(self, table=table)

    @cached_property
    def answers(self) -> dict[str, np.ndarray]:
        """The closed form's answers as arrays over the rows."""
        return {name: self.table[name].to_numpy() for name in (*ANSWERS, "trained_tokens_per_s")}

    @cached_property
    def alike(self) -> np.ndarray:
        """For each row, the first that the closed form answers the same for: slots that a budget keeps empty change nothing."""
        _, codes = np.unique(self.table["schedule"], return_inverse=True)
        told = np.column_stack([codes, *(self.answers[name] for name in ANSWERS)])
        _, first, which = np.unique(told.round(9), axis=0, return_index=True, return_inverse=True)
        return first[which.ravel()]

    @cached_property
    def place(self) -> np.ndarray:
        """Where each row lies, for telling how far apart plans are: log split, log slots, log budget; shape (rows, 3)."""
        t = self.table
        return np.column_stack([
            np.log(t["generator_gpus"] / t["trainer_gpus"]), np.log(t["slots"]), np.log1p(t["max_staleness"])
        ])  # fmt: skip


def grid(scenario: Scenario, gpus: int, limits: Limits, space: Space | None = None) -> Grid:
    """Every plan of the space, solved.

    Raises:
        ValueError: the GPUs hold no replica beside the trainer.
    """
    space = space or Space()
    schedules = space.schedules or limits.schedules or tuple(SCHEDULES)
    if limits.schedules:
        schedules = tuple(each for each in schedules if each in limits.schedules)
    parts = [
        _of_schedule(scenario, gpus, limits, space, schedule=schedule, every=2 if schedule in COSTLY else 1)
        for schedule in schedules
    ]
    table = pd.concat(parts, ignore_index=True).drop_duplicates(list(SAME), ignore_index=True)
    found = Grid(scenario=scenario, gpus=gpus, table=table, even=len(table))
    # A generator with GPUs to spare is no split in whole replicas, but still what the plan is to be better than
    own = space == Space() and scenario.schedule in schedules and scenario.trainer_gpus >= limits.min_trainer_gpus
    if own and gpus == scenario.trainer_gpus + scenario.generator_gpus and own_row(found) is None:
        found = found.joined([single(scenario)])
    return found


def single(plan: Scenario) -> pd.DataFrame:
    """The block of one plan."""
    slots = plan.concurrency / _replicas(plan, plan.schedule, plan.generator_gpus)
    return block(plan, plan.schedule, plan.generator_gpus, slots, plan.max_staleness)


def _replicas(scenario: Scenario, schedule: str, generator_gpus: Any) -> Any:
    """Replicas that generate: with a colocated schedule those of all GPUs."""
    gpus = scenario.trainer_gpus + scenario.generator_gpus if schedule == "colocated-sync" else generator_gpus
    return gpus // scenario.gpus_per_replica


def _own_slots(scenario: Scenario) -> float:
    return scenario.concurrency / _replicas(scenario, scenario.schedule, scenario.generator_gpus)


def _splits(scenario: Scenario, gpus: int, limits: Limits, space: Space, every: int) -> np.ndarray:
    replica = scenario.gpus_per_replica
    most = (gpus - limits.min_trainer_gpus) // replica
    if most < 1:
        raise ValueError(
            f"gpus={gpus} must be >= {replica + limits.min_trainer_gpus}: one replica of {replica} GPUs and "
            f"{limits.min_trainer_gpus} for the trainer"
        )
    if space.generator_gpus:
        return np.array([each for each in space.generator_gpus if replica <= each <= gpus - limits.min_trainer_gpus])
    counts = np.unique(np.linspace(1, most, min(most, SPLITS // every)).round().astype(int))
    own = scenario.replicas if scenario.trainer_gpus + scenario.generator_gpus == gpus else 1
    return replica * np.unique(np.append(counts, own if own <= most else 1))


def _slots(scenario: Scenario, space: Space) -> np.ndarray:
    """Slots of a replica: every factor alike from one (or a part of a batch's share) to beyond a full KV cache, and its own."""
    if space.slots_per_replica:
        return np.array(space.slots_per_replica, float)
    own = _own_slots(scenario)
    most = max(4.0, FULL * float(rates(scenario)["kv_slots"][0]))
    low = max(1.0, min(own, most) / 16.0)
    return np.unique(np.append(_two_digits(np.geomspace(low, most, SLOTS)), own))


def _two_digits(values: np.ndarray) -> np.ndarray:
    """A slot count to set, not a measurement."""
    unit = 10.0 ** np.maximum(0.0, np.floor(np.log10(values)) - 1.0)
    return np.maximum(1.0, (values / unit).round() * unit)


def _budgets(scenario: Scenario, limits: Limits, space: Space, every: int) -> np.ndarray:
    """The usual budgets, the scenario's own, and those with which staleness comes up to its limit, and surely not beyond."""
    own = [scenario.max_staleness]
    if limits.max_staleness_versions:
        own += [limits.max_staleness_versions, round(SPARE * limits.max_staleness_versions, 2)]
    return np.array(space.max_staleness or np.unique([*BUDGETS[::every], *own]), float)


def _of_schedule(
    scenario: Scenario, gpus: int, limits: Limits, space: Space, *, schedule: str, every: int
) -> pd.DataFrame:
    generator = _splits(scenario, gpus, limits, space, every)
    if schedule == "colocated-sync":  # all GPUs do both: the split says nothing
        own = scenario.generator_gpus if scenario.trainer_gpus + scenario.generator_gpus == gpus else 0
        generator = np.array([own if own in generator else generator[len(generator) // 2]])
    budgets = _budgets(scenario, limits, space, every)
    if schedule in IN_STEP:
        budgets = np.array([scenario.max_staleness])
    there = dataclasses.replace(
        scenario, cluster_gpus=0, generator_gpus=int(generator[0]), trainer_gpus=int(gpus - generator[0])
    )
    return block(there, schedule, generator, _slots(scenario, space), budgets)


def block(scenario: Scenario, schedule: str, generator: Any, slots: Any, budgets: Any) -> pd.DataFrame:
    """All combinations of those splits, slots of a replica and budgets on the scenario's GPUs, solved."""
    generator, slots, budgets = (np.atleast_1d(each) for each in (generator, slots, budgets))
    base = dataclasses.replace(scenario, schedule=schedule, cluster_gpus=0)
    replicas = np.broadcast_to(_replicas(base, schedule, generator), generator.shape)
    concurrency = np.maximum(float(base.fewest_slots), (replicas[:, None] * slots).round())
    axes = {
        "generator_gpus": generator[:, None, None],
        "trainer_gpus": (base.trainer_gpus + base.generator_gpus - generator)[:, None, None],
        "concurrency": concurrency[:, :, None], "max_staleness": budgets[None, None, :].astype(float),
    }  # fmt: skip
    found = split_grid(base, **axes)
    shape = (*concurrency.shape, budgets.size)
    columns = {name: np.broadcast_to(values, shape).ravel() for name, values in axes.items()}
    columns["slots"] = np.broadcast_to(slots[None, :, None].astype(float), shape).ravel()
    columns |= {name: np.broadcast_to(found[name], shape).ravel() for name in ANSWERS}
    columns["trained_tokens_per_s"] = scenario.trained_tokens_per_step / columns["step_s"]
    return pd.DataFrame({"schedule": schedule, **columns})


def row_of(found: Grid, chosen: pd.Series) -> int | None:
    """The row of a plan, chosen as a row of another table; None where it is not among the plans."""
    rows = np.flatnonzero(np.all([found.table[name] == chosen[name] for name in SAME], axis=0))
    return int(rows[0]) if rows.size else None


def own_row(found: Grid) -> int | None:
    """The row of the scenario itself; None where it is not among the plans (other GPUs, or a schedule left out)."""
    s = found.scenario
    if found.gpus != s.trainer_gpus + s.generator_gpus:
        return None
    return row_of(found, pd.Series({name: getattr(s, name) for name in CHOICE}))
