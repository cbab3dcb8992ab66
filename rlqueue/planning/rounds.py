"""Which plans are simulated: rounds of search, each chosen by what the rounds before say of the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rlqueue.choices import IN_STEP
from rlqueue.planning.believed import SLACK, Believed, corrected, frontier_rows, promising
from rlqueue.planning.goal import Goal, Limits
from rlqueue.planning.grid import CHOICE, Grid, Space
from rlqueue.planning.nearby import finer
from rlqueue.planning.refused import FAR
from rlqueue.planning.trials import Bench

HOPELESS = 3.0
"""Schedules whose best plan loses so many times as much by closed form are not simulated."""
ROUNDS = 3
CLOSER = (0.12, 0.06)
"""Rounds of finer plans, and how far apart those of one round are."""
RIVAL = 0.15
"""Schedules whose best simulated plan loses so much more than the best are looked at more closely as well."""
DOUBT = 0.2
"""A round tries each schedule that is believed to lose no more than so much: little is known of it so far."""
PER_ROUND = 4
ALONG = 8
"""Plans of the frontier that are simulated."""
TWICE = 2
"""Passes along the frontier: what the first one finds moves it."""


class Search:
    """Rounds of simulated plans, each chosen by what the rounds before say of the closed form."""

    def __init__(self, bench: Bench, goal: Goal, limits: Limits, space: Space, seeds: tuple[int, ...]) -> None:
        self.bench, self.goal, self.limits, self.space, self.seeds = bench, goal, limits, space, seeds
        self.rows: list[int] = []

    @property
    def grid(self) -> Grid:
        """All plans so far: looking closer adds some."""
        return self.bench.grid

    def first(self, own: int | None) -> None:
        """The best plans of each schedule that is not hopeless, with little and with much trust in what the closed form says of
        limits, and the scenario's own.
        """
        losses = np.array(self.goal.loss(self.goal.value(self.grid.answers)), float)
        hopeful: list[int] = []
        for slack in (SLACK, FAR) if self.limits.given else (SLACK,):
            kept = np.where(self.limits.kept(self.grid.answers, slack), losses, np.inf)
            best = [int(rows[np.argmin(kept[rows])]) for rows in self.grid.table.groupby("schedule").indices.values()]
            hopeful += [row for row in best if kept[row] < HOPELESS * kept.min()]
        self._simulate([*hopeful, *([] if own is None else [own])])

    def further(self) -> bool:
        """One more round: the best of all, and the best of each schedule that may still come near. False where there is nothing
        new to try.
        """
        believed = self.believed()
        more = promising(self.grid, believed, self.limits, done=self.rows, count=PER_ROUND)
        enough = believed["loss"][more].min() * (1.0 + DOUBT) if more else np.inf
        for schedule, rows in self.grid.table.groupby("schedule").indices.items():
            if schedule in IN_STEP or not np.any(believed["loss"][rows] <= enough):
                continue
            others = np.setdiff1d(np.arange(len(self.grid.table)), rows)
            more += promising(self.grid, believed, self.limits, done=[*self.rows, *more, *others], count=1)
        self._simulate(more)
        return bool(more)

    def closer(self) -> None:
        """Rounds of plans between the best ones and their neighbours, of each schedule that comes near; half of a round is to
        keep the limits with something to spare.
        """
        for apart in CLOSER:
            for row in self._rivals():
                self.bench.grid = finer(self.grid, row, self.space)
            for slack in (0.0, -0.5 * SLACK if self.limits.given else 0.0):
                believed, count = self.believed(), PER_ROUND
                self._simulate(promising(
                    self.grid, believed, self.limits, done=self.rows, count=count, apart=apart, slack=slack
                ))  # fmt: skip

    def _rivals(self) -> list[int]:
        """The best simulated plan, the best of those that hardly miss a limit, and those of other schedules that lose little more
        than it.
        """
        ranked = self.ranked()
        first, *_ = ranked
        excess = {row: float(self.limits.excess(each)) for row, each in ranked.items()}
        near = [row for row in ranked if excess[row] <= max(SLACK, excess[first])]
        best: dict[str, int] = {}
        for row in sorted(near, key=lambda row: self.loss(ranked[row])):
            best.setdefault(self.grid.table["schedule"][row], row)
        enough = self.loss(ranked[first]) * (1.0 + RIVAL)
        return list(dict.fromkeys([first, *(row for row in best.values() if self.loss(ranked[row]) <= enough)]))

    def along_frontier(self) -> None:
        """Some plans of the frontier of staleness, so that it rests on runs."""
        for _ in range(TWICE):
            rows = frontier_rows(self.believed(), self.limits)
            self._simulate(rows[np.linspace(0, rows.size - 1, min(rows.size, ALONG)).round().astype(int)].tolist())

    def believed(self) -> Believed:
        """The closed form over the grid as corrected so far."""
        return corrected(self.grid, self.bench, self.rows, self.seeds, self.goal)

    def _simulate(self, rows: list[int]) -> None:
        self.bench.run(rows, self.seeds, "search")
        self.rows += [row for row in dict.fromkeys(rows) if row not in self.rows]

    def loss(self, answers: dict[str, Any]) -> Any:
        """Loss of simulated answers, a number or one per seed."""
        return self.goal.loss(self.goal.value(answers))

    def ranked(self) -> dict[int, dict[str, float]]:
        """Answers of the rows simulated, those that keep the limits first (or miss them least), the least loss first."""
        means = self.bench.means(self.rows, self.seeds, "search")
        excess = {row: max(0.0, float(self.limits.excess(each))) for row, each in means.items()}
        return dict(sorted(means.items(), key=lambda each: (excess[each[0]], self.loss(each[1]))))

    def kept(self, answers: dict[str, float]) -> bool:
        """Whether simulated answers keep the limits."""
        return bool(self.limits.kept(answers))

    def table(self) -> pd.DataFrame:
        """Every plan simulated: its choice, its staleness and its objective."""
        found = self.ranked()
        chosen = self.grid.table.iloc[list(found)][list(CHOICE)]
        return chosen.reset_index(drop=True).assign(
            staleness_versions=[each["staleness_versions"] for each in found.values()],
            objective=[float(self.goal.value(each)) for each in found.values()],
            kept=[self.kept(each) for each in found.values()],
        )
