"""Plans next to a plan: its neighbours by one step in one choice, and finer steps between them."""

from __future__ import annotations

import numpy as np

from rlqueue.choices import IN_STEP
from rlqueue.planning.grid import COSTLY, Grid, Space, block, row_of

FINE = 9
"""Values between the two that are next to a value, where plans are looked at more closely."""
AXES = {"split": ("generator_gpus", 1.0), "slots": ("slots", 1.1), "budget": ("max_staleness", 1.1)}
"""By choice: its column, and the least factor by which neighbours differ in it."""


def around(found: Grid, row: int) -> dict[str, tuple[float | None, float | None]]:
    """The next lower and the next higher value of each choice that a row's schedule has; None where there is none."""
    here = found.table.iloc[row]
    near = {}
    for axis, (column, factor) in AXES.items():
        values = found.values(column)
        if (axis == "split" and here["schedule"] == "colocated-sync") or (
            axis == "budget" and here["schedule"] in IN_STEP
        ):
            values = values[:0]
        lower, higher = values[values * factor < here[column]], values[values > here[column] * factor]
        near[axis] = (lower[-1] if lower.size else None, higher[0] if higher.size else None)
    return near


def with_neighbours(found: Grid, row: int) -> tuple[Grid, dict[str, int]]:
    """The grid with the plans that differ from a row in one choice by one step, and their rows by what differs."""
    here = found.table.iloc[row]
    plan, plans = found.plan(row), {}
    for axis, values in around(found, row).items():
        for step, value in zip((-1, 1), values, strict=True):
            if value is not None:
                chosen = dict(here[["generator_gpus", "slots", "max_staleness"]]) | {AXES[axis][0]: value}
                plans[f"{axis}{step:+d}"] = block(plan, here["schedule"], *chosen.values())
    found = found.joined(plans.values())
    return found, {name: row_of(found, each.iloc[0]) for name, each in plans.items()}


def finer(found: Grid, row: int, space: Space) -> Grid:
    """The grid with plans between a row and its neighbours, in all choices that the space leaves open."""
    here, near = found.table.iloc[row], around(found, row)
    ends = {axis: [here[AXES[axis][0]] if each is None else each for each in values] for axis, values in near.items()}
    replica, costly = found.scenario.gpus_per_replica, here["schedule"] in COSTLY
    splits = np.arange(ends["split"][0], ends["split"][1] + 1, replica)
    splits = _some(splits, 3 if costly else 5)
    slots = np.geomspace(*ends["slots"], FINE)
    slots = np.unique(np.append(slots.round() if slots[0] >= 2.0 * FINE else slots, here["slots"]))
    low, high = ends["budget"]
    grain = 0.25 if high <= 4.0 else 0.5 if high <= 8.0 else 1.0
    budgets = _some(np.arange(low, high + grain / 2.0, grain), 4 if costly else 9)
    budgets = np.unique(np.append(budgets, here["max_staleness"]))
    return found.joined([block(
        found.plan(row), here["schedule"], here["generator_gpus"] if space.generator_gpus else splits,
        here["slots"] if space.slots_per_replica else slots, here["max_staleness"] if space.max_staleness else budgets,
    )])  # fmt: skip


def _some(values: np.ndarray, count: int) -> np.ndarray:
    """At most so many of them, evenly, with the first and the last."""
    return values[np.unique(np.linspace(0, values.size - 1, min(values.size, count)).round().astype(int))]
