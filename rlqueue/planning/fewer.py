"""The same goal with fewer and with more GPUs: the best plan of each number, simulated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rlqueue.planning.believed import Missed, believed, promising
from rlqueue.planning.goal import Goal
from rlqueue.planning.grid import CHOICE, Space, grid
from rlqueue.planning.rounds import CLOSER, Search
from rlqueue.planning.trials import Bench

FACTORS = (0.5, 0.625, 0.75, 0.875, 1.125, 1.25, 1.5, 2.0)
TRIED = 3
"""Plans of each number that are simulated."""


def best_by_gpus(search: Search, what: Missed, space: Space, here: dict[str, float | str]) -> pd.DataFrame:
    """The best plan of fewer and of more GPUs, by a few runs of what the closed form as corrected thinks best: one row per number
    of GPUs, numbers without a plan left out.

    Args:
        search: the plan's, with its seeds. space: what the plans may choose from. here: the row of the plan itself.
    """
    scenario, limits, gpus = search.grid.scenario, search.limits, search.grid.gpus
    replica = scenario.gpus_per_replica
    sizes = {round(gpus * factor / replica) * replica for factor in FACTORS} | {gpus - replica, gpus + replica}
    rows = [here]
    for size in sizes - {gpus}:
        if size >= replica + limits.min_trainer_gpus:
            rows += _best(search, Bench(grid=grid(scenario, size, limits, space), workers=search.bench.workers), what)
    return pd.DataFrame(rows).sort_values("gpus", ignore_index=True)


def _best(search: Search, bench: Bench, what: Missed) -> list[dict[str, float | str]]:
    found, goal, limits = believed(bench.grid, search.goal, what), search.goal, search.limits
    chosen = promising(bench.grid, found, limits, done=(), count=TRIED, apart=CLOSER[0], slack=0.0)
    bench.run(chosen, search.seeds, "search")
    search.bench.runs, search.bench.events = search.bench.runs + bench.runs, search.bench.events + bench.events
    means = bench.means(chosen, search.seeds, "search")
    kept = [row for row, each in means.items() if limits.kept(each)]
    if not kept:
        return []
    best = min(kept, key=lambda row: search.loss(means[row]))
    return [row_of_table(bench.grid.gpus, bench.grid.table.iloc[best][list(CHOICE)].to_dict(), means[best], goal)]


def row_of_table(
    gpus: int, chosen: dict[str, float | str], answers: dict[str, float], goal: Goal
) -> dict[str, float | str]:
    """One row: the number of GPUs, the objective, what is chosen, and what was simulated."""
    return {"gpus": gpus, "objective": float(np.asarray(goal.value(answers)))} | chosen | answers
