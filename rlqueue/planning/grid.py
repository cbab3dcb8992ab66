"""All plans there are for a number of GPUs, by closed form: splits, slots, staleness budgets and schedules at once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rlqueue.choices import SCHEDULES
from rlqueue.planning.goal import LIMITED, Goal, Limits
from rlqueue.rates import rates
from rlqueue.scenario import Scenario
from rlqueue.sweep import split_grid

IN_STEP = ("colocated-sync", "sync", "one-step-off")
"""Schedules that know no staleness budget."""
COSTLY = ("lent-trainer",)
"""Schedules whose closed form takes forty times as long: every second value of each choice will do."""
BUDGETS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
SPLITS = 24
"""Splits looked at; with more, they are thinned out evenly."""
SLOTS = 14
FULL = 1.25
"""The most slots of a replica over those at which its KV cache is full."""
CHOICE = ("schedule", "trainer_gpus", "generator_gpus", "concurrency", "max_staleness")
"""Columns that say what a plan is."""
AXES = ("split", "slots", "budget")
"""Columns that count the values of each choice within a schedule: neighbours differ by one."""
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
    """Plans for ``gpus`` GPUs, one row each: the choice (schedule, generator_gpus, trainer_gpus, concurrency,
    slots_per_replica, max_staleness) and the closed form's answers to it.
    """

    scenario: Scenario
    gpus: int
    table: pd.DataFrame

    def plan(self, row: int) -> Scenario:
        """The scenario of a row."""
        chosen = self.table.iloc[row]
        return dataclasses.replace(
            self.scenario, cluster_gpus=0, schedule=chosen["schedule"], trainer_gpus=int(chosen["trainer_gpus"]),
            generator_gpus=int(chosen["generator_gpus"]), concurrency=int(chosen["concurrency"]),
            max_staleness=float(chosen["max_staleness"]),
        )  # fmt: skip

    @cached_property
    def answers(self) -> dict[str, np.ndarray]:
        """The closed form's answers as arrays over the rows."""
        return {name: self.table[name].to_numpy() for name in (*ANSWERS, "trained_tokens_per_s")}

    @cached_property
    def place(self) -> np.ndarray:
        """Where each row lies, for telling neighbours: log split, log slots, log budget; array of shape (rows, 3)."""
        t = self.table
        return np.column_stack([
            np.log(t["generator_gpus"] / t["trainer_gpus"]), np.log(t["slots_per_replica"]), np.log1p(t["max_staleness"])
        ])  # fmt: skip


def grid(scenario: Scenario, gpus: int, limits: Limits, space: Space | None = None, *, every: int = 1) -> Grid:
    """Every plan of the space, solved.

    Args:
        every: of each choice that the space leaves open, take only each so-manieth value (and the scenario's own).

    Raises:
        ValueError: the GPUs hold no replica beside the trainer.
    """
    space = space or Space()
    schedules = space.schedules or limits.schedules or tuple(SCHEDULES)
    if limits.schedules:
        schedules = tuple(each for each in schedules if each in limits.schedules)
    parts = [
        _of_schedule(scenario, gpus, limits, space, schedule=schedule, every=every * (2 if schedule in COSTLY else 1))
        for schedule in schedules
    ]
    return Grid(scenario=scenario, gpus=gpus, table=pd.concat(parts, ignore_index=True))


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


def _slots(scenario: Scenario, space: Space, every: int) -> np.ndarray:
    """Slots of a replica: every factor alike from one (or a part of a batch's share) to beyond a full KV cache, and its own."""
    if space.slots_per_replica:
        return np.array(space.slots_per_replica, float)
    most = max(4.0, FULL * float(rates(scenario)["kv_slots"][0]))
    low = max(1.0, min(scenario.concurrency / scenario.replicas, most) / 16.0)
    even = np.geomspace(low, most, SLOTS // every).round()
    unit = 10.0 ** np.maximum(0.0, np.floor(np.log10(even)) - 1.0)  # two digits: a slot count to set, not a measurement
    return np.unique(np.append((even / unit).round() * unit, scenario.concurrency / scenario.replicas))


def _of_schedule(
    scenario: Scenario, gpus: int, limits: Limits, space: Space, *, schedule: str, every: int
) -> pd.DataFrame:
    base = dataclasses.replace(scenario, schedule=schedule, cluster_gpus=0)
    colocated = schedule == "colocated-sync"
    generator = _splits(scenario, gpus, limits, space, every)
    if colocated:  # all GPUs do both: the split says nothing
        generator = generator[len(generator) // 2 :][:1]
    trainer = gpus - generator
    replicas = (np.full_like(generator, gpus) if colocated else generator) // scenario.gpus_per_replica
    slots = np.maximum(1.0, (replicas[:, None] * _slots(scenario, space, every)).round())
    budgets = np.array(space.max_staleness or np.unique(np.append(BUDGETS[::every], scenario.max_staleness)))
    if schedule in IN_STEP:
        budgets = np.array([scenario.max_staleness])
    axes = {
        "generator_gpus": generator[:, None, None], "trainer_gpus": trainer[:, None, None],
        "concurrency": slots[:, :, None], "max_staleness": budgets[None, None, :],
    }  # fmt: skip
    found = split_grid(base, **axes)
    shape = (*slots.shape, budgets.size)
    columns = {name: np.broadcast_to(values, shape).ravel() for name, values in axes.items()}
    columns |= dict(zip(AXES, (each.ravel() for each in np.indices(shape)), strict=True))
    columns["slots_per_replica"] = np.broadcast_to((slots / replicas[:, None])[:, :, None], shape).ravel()
    columns |= {name: np.broadcast_to(found[name], shape).ravel() for name in ANSWERS}
    columns["trained_tokens_per_s"] = scenario.trained_tokens_per_step / columns["step_s"]
    return pd.DataFrame({"schedule": schedule, **columns})


def neighbours(found: Grid, row: int) -> dict[str, int]:
    """Rows that differ from a row in one choice by one step, by what differs."""
    table, here = found.table, found.table.iloc[row]
    same = table["schedule"] == here["schedule"]
    near = {}
    for axis in AXES:
        others = [each for each in AXES if each != axis]
        line = same & (table[others] == here[others].astype(int)).all(axis=1)
        for step in (-1, 1):
            there = np.flatnonzero(line & (table[axis] == here[axis] + step))
            if there.size:
                near[f"{axis}{step:+d}"] = int(there[0])
    return near


def own_row(found: Grid) -> int | None:
    """The row of the scenario itself; None where it is not among the plans (other GPUs, or a schedule left out)."""
    table, s = found.table, found.scenario
    same = (table["schedule"] == s.schedule) & (table["concurrency"] == s.concurrency)
    if s.schedule != "colocated-sync":
        same &= (table["generator_gpus"] == s.generator_gpus) & (table["trainer_gpus"] == s.trainer_gpus)
    same &= table["max_staleness"] == s.max_staleness
    rows = np.flatnonzero(same & (found.gpus == s.trainer_gpus + s.generator_gpus))
    return int(rows[0]) if rows.size else None


def refuse_impossible(found: Grid, limits: Limits, slack: float) -> None:
    """Raise ValueError if no plan keeps the limits: which one excludes everything, and by how much."""
    if limits.kept(found.answers, slack).any():
        return
    rows = len(found.table)
    alone, together = [], []
    for name, limit in limits.given.items():
        measure = limits.measure(name, found.answers)
        if measure.min() > limit:
            alone.append(_missed(name, limit, float(measure.min()), f"the best of {rows:,} plans on {found.gpus} GPUs"))
        others = dataclasses.replace(limits, **{name: None}).kept(found.answers)
        if others.any():
            best = float(measure[others].min())
            together.append(_missed(name, limit, best, "the best plan that keeps the other limits"))
    if alone:
        raise ValueError("no plan: " + "; ".join(alone))
    raise ValueError(
        "no plan keeps all limits at once: "
        + ("; or ".join(together) or "no one of them can be lifted alone to get one")
    )


def _missed(name: str, limit: float, best: float, who: str) -> str:
    return f"{name}={limit:g} must be >= {_up(best):g}: {LIMITED[name]} of {who} is {best:.3g}, {best - limit:.3g} too much"


def _up(value: float) -> float:
    """Three digits, upwards: a limit that can be kept."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 2) if value > 0 else 1.0
    return float(np.ceil(value / unit) * unit)


def best_by_gpus(scenario: Scenario, gpus: int, goal: Goal, limits: Limits, space: Space) -> pd.DataFrame:
    """The best plan of fewer and of more GPUs, by closed form: one row per number of GPUs."""
    replica = scenario.gpus_per_replica
    factors = (0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 2.0)
    least = replica + limits.min_trainer_gpus
    sizes = {max(least, round(gpus * factor / replica) * replica) for factor in factors} | {
        gpus - replica,
        gpus + replica,
    }
    rows = []
    for size in sorted((sizes | {gpus}) - {each for each in sizes if each < least}):
        there = grid(scenario, size, limits, dataclasses.replace(space, generator_gpus=()))
        kept = limits.kept(there.answers)
        if kept.any():
            losses = np.where(kept, goal.loss(goal.value(there.answers)), np.inf)
            row = int(np.argmin(losses))
            rows.append(
                {"gpus": size, "objective": float(goal.value(there.answers)[row])} | there.table.iloc[row].to_dict()
            )
    return pd.DataFrame(rows)
