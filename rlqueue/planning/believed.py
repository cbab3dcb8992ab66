"""What is believed of plans that were not simulated: the closed form, moved by what it misses of those that were."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlqueue.choices import SCHEDULES
from rlqueue.planning.goal import LIMITED, Goal, Limits
from rlqueue.planning.grid import Grid
from rlqueue.planning.trials import Bench

SLACK = 0.04
"""The closed form is believed to such a share where it says that a plan breaks a limit; the simulation decides."""
CLOSE = 0.25
"""Versions added to a staleness before it is corrected by a factor: none at all has no factor."""
AHEAD = 0.005
"""A plan is on the frontier when it loses so much less than every plan of less staleness."""
OFF = 5.0
"""Plans that lose so many times as much as the best are no choice."""
NEAR = 0.08
"""Two plans of the frontier are so far apart in versions, as a share of one more than their staleness."""
APART = 0.35
"""Two plans that are simulated in one round are so far apart; a factor of e in one choice counts one."""
Believed = dict[str, np.ndarray]
"""What ``corrected`` returns: arrays over the grid's rows."""
ELSE = 1.5
"""How far apart two schedules count, where a factor of e in a choice counts one."""


@dataclass(frozen=True, kw_only=True)
class Missed:
    """What the closed form misses: at simulated plans' places, shape (plans, 3 + schedules), by quantity.

    Losses, costs and staleness by factors (as logarithms), ratios by differences.
    """

    place: np.ndarray
    by: dict[str, np.ndarray]


def _place(grid: Grid) -> np.ndarray:
    codes = grid.table["schedule"].map({name: place for place, name in enumerate(SCHEDULES)})
    return np.column_stack([grid.place, ELSE * np.eye(len(SCHEDULES))[codes]])


def _closed(grid: Grid, goal: Goal) -> Believed:
    found = {name: grid.answers[name].astype(float) for name in (*LIMITED.values(), "step_s")}
    return found | {"loss": np.array(goal.loss(goal.value(grid.answers)), float)}


def missed(bench: Bench, rows: Sequence[int], seeds: Sequence[int], goal: Goal) -> Missed:
    """What the closed form misses of those rows' search runs; rows with a run that came to no end are left out."""
    means = bench.means(rows, seeds, "search")
    known, closed = list(means), _closed(bench.grid, goal)
    simulated = {name: np.array([means[row][name] for row in known]) for name in LIMITED.values()}
    simulated["loss"] = np.array([goal.loss(goal.value(means[row])) for row in known])
    by = {}
    for name, values in simulated.items():
        more = _more(name)
        there = closed[name][known]
        by[name] = values - there if name.endswith("ratio") else np.log((values + more) / (there + more))
    return Missed(place=_place(bench.grid)[known], by=by)


def _more(name: str) -> float:
    return CLOSE if name == "staleness_versions" else 0.0


def believed(grid: Grid, goal: Goal, what: Missed) -> Believed:
    """The closed form's answers over a grid (of any number of GPUs), moved to meet what was simulated: each by what was missed
    nearby, smoothed over plans (radial basis functions), and far from every simulated plan by the mean.
    """
    from scipy.interpolate import RBFInterpolator

    found = _closed(grid, goal)
    if not len(what.place):
        return found
    place = _place(grid)
    for name, missed_there in what.by.items():
        move = RBFInterpolator(what.place, missed_there, kernel="gaussian", epsilon=1.0, smoothing=0.05, degree=0)(
            place
        )
        ratio, more = name.endswith("ratio"), _more(name)
        there = found[name] + move if ratio else (found[name] + more) * np.exp(move) - more
        found[name] = np.clip(there, 0.0, 1.0 if ratio else np.inf)
    return found


def corrected(grid: Grid, bench: Bench, rows: Sequence[int], seeds: Sequence[int], goal: Goal) -> Believed:
    """The grid of those rows as believed; plans whose runs came to no end lose endlessly."""
    found = believed(grid, goal, missed(bench, rows, seeds, goal))
    means = bench.means(rows, seeds, "search")
    found["loss"][np.array([row for row in rows if row not in means], int)] = np.inf
    return found


def promising(
    grid: Grid,
    believed: Believed,
    limits: Limits,
    *,
    done: Sequence[int],
    count: int,
    apart: float = APART,
    slack: float = SLACK,
) -> list[int]:
    """Rows to simulate next: the least believed losses that keep the limits, no two of them next to each other.

    Where none is believed to keep them, those that miss them least.
    """
    ended = np.isfinite(believed["loss"])
    excess = limits.excess(believed)
    order = np.flatnonzero(ended & (excess <= slack))
    order = order[np.argsort(believed["loss"][order], kind="stable")]
    if not order.size:
        order = np.flatnonzero(ended)
        order = order[np.lexsort((believed["loss"][order], excess[order]))]
    codes = np.unique(grid.table["schedule"], return_inverse=True)[1]
    known, chosen = set(grid.alike[np.array(done, int)]), []
    for row in order:
        if grid.alike[row] in known:
            continue
        away = np.abs(grid.place[chosen] - grid.place[row]).sum(axis=1) if chosen else np.array([np.inf])
        if np.all((away > apart) | (codes[chosen] != codes[row]) if chosen else True):
            chosen.append(int(row))
            known.add(grid.alike[row])
        if len(chosen) == count:
            break
    return chosen


def frontier_rows(believed: Believed, limits: Limits) -> np.ndarray:
    """Rows that nothing of less staleness beats, whatever the limit on staleness, the least stale first."""
    free = dataclasses.replace(limits, max_staleness_versions=None)
    rows = np.flatnonzero(free.kept(believed) & np.isfinite(believed["loss"]))
    if not rows.size:
        return rows
    rows = rows[np.lexsort((believed["loss"][rows], believed["staleness_versions"][rows].round(2)))]
    losses = believed["loss"][rows]
    before = np.concatenate([[np.inf], np.minimum.accumulate(losses)[:-1]])
    rows = rows[(losses < before * (1.0 - AHEAD)) & (losses < OFF * losses.min())]
    kept: list[int] = []
    for row in rows[::-1]:  # of plans of nearly the same staleness, the best
        stale = believed["staleness_versions"][[row, *kept[-1:]]]
        if not kept or stale[1] - stale[0] > NEAR * (1.0 + stale[0]):
            kept.append(row)
    return np.array(kept[::-1], int)
