"""What lies around a plan, by the closed form as corrected by simulated plans: frontier, map, schedules, prices of limits."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from rlqueue.planning.believed import Believed, frontier_rows
from rlqueue.planning.goal import Goal, Limits
from rlqueue.planning.grid import CHOICE, Grid
from rlqueue.planning.search import Option

FLAT = 0.02
"""Plans within such a share of the best count as the same on a flat optimum."""


def flat_splits(found: Grid, believed: Believed, limits: Limits, options: Iterable[Option]) -> tuple[int, int]:
    """Least and most generator GPUs of plans within ``FLAT`` of the best, whatever else they choose: as believed over the
    grid, and of the options those that the seeds do not tell to lose more.
    """
    losses = np.where(limits.kept(believed), believed["loss"], np.inf)
    near = set(found.table["generator_gpus"][np.isfinite(losses) & (losses <= losses.min() * (1.0 + FLAT))].astype(int))
    decided: dict[int, float] = {}
    for each in options:  # by loss: the first of a split is its best
        if each.kept:
            decided.setdefault(each.scenario.generator_gpus, each.difference_low)
    near = {each for each in near if each not in decided} | {each for each, loss in decided.items() if loss <= FLAT}
    return min(near), max(near)


def prices(believed: Believed, limits: Limits) -> dict[str, float]:
    """By limit: how much less the plan would lose without it."""
    kept = limits.kept(believed)
    here = believed["loss"][kept].min() if kept.any() else np.inf
    free = {name: dataclasses.replace(limits, **{name: None}).kept(believed) for name in limits.given}
    return {name: float(max(0.0, 1.0 - believed["loss"][each].min() / here)) for name, each in free.items()}


def frontier(found: Grid, believed: Believed, goal: Goal, limits: Limits, simulated: Sequence[int]) -> pd.DataFrame:
    """Of the simulated plans those that none of less staleness beats, whatever the limit on staleness, the least stale first."""
    some = np.array(simulated)
    rows = some[frontier_rows({name: values[some] for name, values in believed.items()}, limits)]
    chosen = found.table.iloc[rows][list(CHOICE)]
    return chosen.reset_index(drop=True).assign(
        staleness_versions=believed["staleness_versions"][rows], objective=goal.loss(believed["loss"][rows])
    )


def heat(found: Grid, believed: Believed, goal: Goal, limits: Limits, schedule: str) -> pd.DataFrame:
    """The best objective of each split (columns, generator GPUs) and staleness budget (rows), other choices free; not a number
    where no plan keeps the limits.
    """
    rows = (found.table["schedule"] == schedule).to_numpy() & (np.arange(len(found.table)) < found.even)
    losses = np.where(limits.kept(believed) & np.isfinite(believed["loss"]), believed["loss"], np.nan)[rows]
    table = found.table[rows].assign(loss=losses)
    cells = table.pivot_table(
        index="max_staleness", columns="generator_gpus", values="loss", aggfunc="min", dropna=False
    )
    return goal.loss(cells)


def by_schedule(found: Grid, believed: Believed, goal: Goal, limits: Limits) -> pd.DataFrame:
    """The best plan of each schedule, the best schedule first; schedules without one that keeps the limits are left out."""
    losses = np.where(limits.kept(believed), believed["loss"], np.inf)
    best = [int(rows[np.argmin(losses[rows])]) for rows in found.table.groupby("schedule").indices.values()]
    best = sorted((row for row in best if np.isfinite(losses[row])), key=lambda row: losses[row])
    return found.table.iloc[best][list(CHOICE)].reset_index(drop=True).assign(
        staleness_versions=believed["staleness_versions"][best],
        trainer_wait_ratio=believed["trainer_wait_ratio"][best], objective=goal.loss(losses[best]),
    )  # fmt: skip
