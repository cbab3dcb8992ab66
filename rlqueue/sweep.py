"""Many scenarios, one tidy table: each row a scenario's changed knobs, its operating point and its bill."""

import dataclasses
from itertools import product
from typing import Any

import pandas as pd

from rlqueue.cost import PARTS, cost, parts_usd_per_mtok
from rlqueue.queueing import solve, solve_grid
from rlqueue.scenario import Scenario


def sweep(scenario: Scenario, **axes: Any) -> pd.DataFrame:
    """Solve the scenario for every combination of the knobs' values.

    Args:
        scenario: what stays the same. axes: lists of values by knob, e.g. ``concurrency=[96, 256, 360]``.

    Returns:
        One row per combination, in the order of ``itertools.product``: the knobs, the fields of OperatingPoint, and those of
        Bill.

    Raises:
        ValueError: an unknown knob or an impossible value.
    """
    rows = []
    for values in product(*axes.values()):
        changed = dict(zip(axes, values, strict=True))
        each = dataclasses.replace(scenario, **changed)
        point = solve(each)
        rows.append(changed | dataclasses.asdict(point) | dataclasses.asdict(cost(each, point)))
    return pd.DataFrame(rows)


def split_grid(scenario: Scenario, **axes: Any) -> dict[str, Any]:
    """Closed form and cost over a grid of splits, concurrencies and budgets, as arrays.

    Args:
        axes: arrays as for ``queueing.solve_grid``.

    Returns:
        The arrays of ``solve_grid``, the parts of the bill and their sum ``usd_per_mtok``.
    """
    answers = solve_grid(scenario, **axes)
    trainer = axes.get("trainer_gpus", scenario.trainer_gpus)
    generator = axes.get("generator_gpus", scenario.generator_gpus)
    parts = parts_usd_per_mtok(scenario, answers, trainer, generator)
    return answers | parts | {"usd_per_mtok": sum(parts[part] for part in PARTS)}
