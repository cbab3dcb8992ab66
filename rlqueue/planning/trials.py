"""Plans simulated: the same seeds for every plan, runs as long as their budgets take to fill, and what the closed form misses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlqueue.cost import cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.planning.goal import LIMITED, Goal, Limits
from rlqueue.planning.grid import Grid
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped, unlumped
from rlqueue.trials import trials

SLACK = 0.04
"""The closed form is believed to such a share where it says that a plan breaks a limit; the simulation decides."""
CHEAP_EVENTS = 30_000
"""Events that any run may take, however many steps that makes: a few ms."""
RUN_EVENTS = 300_000
"""Events that one run of the search may take, by estimate: some 40 ms."""
SURE_EVENTS = 1_000_000
"""Of one run that decides."""
STEPS = (16, 400)
"""Least and most steps of a run."""
LONG = 32
"""Least steps after a budget has filled, where events allow."""
CYCLES = 8
"""Least publications after that."""
CUT = 6.0
"""A run is cut off at so many times the events that it should take."""
MEASURED = ("step_s", "trainer_wait_ratio", "staleness_versions", "kv_used_ratio", "trained_tokens_per_s", "usd_per_mtok",
            "rollout_idle_ratio")  # fmt: skip
FIDELITIES = {
    "search": "short runs, all turns of a rollout in one",
    "decide": "longer runs, all turns of a rollout in one",
    "whole": "longer runs with every turn",
}
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
FAR = 1.5
"""How far apart two schedules count, where a factor of e in a choice counts one."""


@dataclass(kw_only=True)
class Bench:
    """Runs of a grid's plans, each simulated once.

    Attributes:
        answers: by row, seed and fidelity; None for a run that came to no end. binding: by row, the last run's constraints.
        runs, events: simulated so far.
    """

    grid: Grid
    workers: int | None = None
    progress: Callable[[int, int], None] | None = None
    answers: dict[tuple[int, int, str], dict[str, float] | None] = field(default_factory=dict)
    binding: dict[int, tuple[str, str]] = field(default_factory=dict)
    runs: int = 0
    events: int = 0

    def run(self, rows: Sequence[int], seeds: Sequence[int], fidelity: str) -> None:
        """Simulate those rows with those seeds, unless it was done before."""
        missing = [
            (row, seed) for row in dict.fromkeys(rows) for seed in seeds if (row, seed, fidelity) not in self.answers
        ]
        plans = {row: self.grid.plan(row) for row, _ in missing}
        asked = {row: plan if fidelity == "whole" else lumped(plan) for row, plan in plans.items()}
        lengths = {row: self._steps(row, asked[row], fidelity) for row in plans}
        most = max((CUT * self._events(row, asked[row], lengths[row]) for row in plans), default=1.0)
        found = trials(
            [(asked[row], seed) for row, seed in missing], [lengths[row] for row, _ in missing], workers=self.workers,
            progress=self.progress, max_events=int(most) + 100_000,
        )  # fmt: skip
        for (row, seed), each in zip(missing, found, strict=True):
            self.runs, self.events = self.runs + 1, self.events + each.events
            point = each.point if not each.stalled else None
            if point is None:
                self.answers[row, seed, fidelity] = None
                continue
            point = point if fidelity == "whole" else unlumped(point, plans[row])
            self.answers[row, seed, fidelity] = _answers(plans[row], point) | {"staleness_p95": each.staleness_p95}
            self.binding[row] = (point.binding_constraint, point.next_constraint)

    def of(self, row: int, seeds: Sequence[int], fidelity: str) -> dict[str, np.ndarray] | None:
        """A row's answers as arrays over the seeds; None where one of its runs came to no end."""
        each = [self.answers.get((row, seed, fidelity)) for seed in seeds]
        if None in each:
            return None
        return {name: np.array([one[name] for one in each]) for name in each[0]}

    def means(self, rows: Sequence[int], seeds: Sequence[int], fidelity: str) -> dict[int, dict[str, float]]:
        """Answers by row, mean over the seeds; rows with a run that came to no end are left out."""
        found = {row: self.of(row, seeds, fidelity) for row in rows}
        return {
            row: {name: float(values.mean()) for name, values in each.items()}
            for row, each in found.items() if each is not None
        }  # fmt: skip

    def affordable(self, rows: Sequence[int], seeds: int, most_events: float) -> bool:
        """Whether whole runs of those rows take no more than ``most_events`` in all."""
        plans = {row: self.grid.plan(row) for row in rows}
        each = [self._events(row, plan, self._steps(row, plan, "whole")) for row, plan in plans.items()]
        return seeds * sum(each) <= most_events

    def _steps(self, row: int, s: Scenario, fidelity: str) -> int:
        """Steps of a run: those in which its budget fills (the warm-up), and as many again, at least ``LONG`` and ``CYCLES``
        publications; fewer where they would take too many events. What is measured is whole publications.
        """
        cycle = s.steps_per_publication
        fills = 2 + 2 * cycle * math.ceil(min(s.max_staleness, 16.0))
        one = self._events(row, s, 1) - self._events(row, s, 0)
        most = int((RUN_EVENTS if fidelity == "search" else SURE_EVENTS) / one)
        low, high = STEPS
        steps = max(low, min(high, most, fills + max(fills, LONG, CYCLES * cycle, int(CHEAP_EVENTS / one))))
        return next(each for each in range(steps, steps + 4 * cycle) if _measured_steps(each, fills) % cycle == 0)

    def _events(self, row: int, s: Scenario, steps: int) -> float:
        accepted = max(0.02, float(self.grid.answers["accepted_ratio"][row]))
        return (2.0 * (s.tool_calls + 1.0) + 2.0) * (s.samples_per_step * steps / accepted + s.concurrency)


def _measured_steps(steps: int, fills: int) -> int:
    """Steps of a run that its long-run figures are of (see ``Run.warm_up_steps``)."""
    return steps - min(steps // 2, max(math.ceil(steps / 5), fills))


def _answers(plan: Scenario, point: OperatingPoint) -> dict[str, float]:
    """What is compared."""
    both = vars(point) | vars(cost(plan, point))
    return {name: float(both[name]) for name in MEASURED}


def corrected(grid: Grid, bench: Bench, rows: Sequence[int], seeds: Sequence[int], goal: Goal) -> Believed:
    """The closed form's answers over the grid, moved to meet what was simulated: each by what it missed nearby.

    Losses, costs and staleness by factors, ratios by differences; smoothed over plans (radial basis functions), and far from
    every simulated plan by the mean. Plans whose runs came to no end lose endlessly.
    """
    from scipy.interpolate import RBFInterpolator

    answers = grid.answers
    found = {name: answers[name].astype(float) for name in (*LIMITED.values(), "step_s")}
    found["loss"] = np.array(goal.loss(goal.value(answers)), float)
    means = bench.means(rows, seeds, "search")
    found["loss"][np.array([row for row in rows if row not in means], int)] = np.inf
    if not means:
        return found
    known = list(means)
    names, codes = np.unique(grid.table["schedule"], return_inverse=True)
    place = np.column_stack([grid.place, FAR * np.eye(len(names))[codes]])
    simulated = {name: np.array([means[row][name] for row in known]) for name in LIMITED.values()}
    simulated["loss"] = np.array([goal.loss(goal.value(means[row])) for row in known])
    for name, values in simulated.items():
        more = CLOSE if name == "staleness_versions" else 0.0
        ratio = name in {"trainer_wait_ratio", "kv_used_ratio"}
        closed = found[name][known] + more
        missed = values - closed if ratio else np.log((values + more) / closed)
        move = RBFInterpolator(place[known], missed, kernel="gaussian", epsilon=1.0, smoothing=0.05, degree=0)(place)
        there = found[name] + move if ratio else (found[name] + more) * np.exp(move) - more
        found[name] = np.clip(there, 0.0, 1.0 if ratio else np.inf)
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
    known, chosen = set(done), []
    for row in order:
        if row in known:
            continue
        away = np.abs(grid.place[chosen] - grid.place[row]).sum(axis=1) if chosen else np.array([np.inf])
        if np.all((away > apart) | (codes[chosen] != codes[row]) if chosen else True):
            chosen.append(int(row))
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
