"""Which plans are simulated, and which of them wins: rounds of search, then fresh seeds for the finalists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rlqueue.planning.goal import Goal, Limits
from rlqueue.planning.grid import CHOICE, neighbours
from rlqueue.planning.trials import SLACK, Bench, corrected, frontier_rows, promising
from rlqueue.scenario import Scenario

HOPELESS = 3.0
"""Schedules whose best plan loses so many times as much by closed form are not simulated."""
PER_ROUND = 6
FINALISTS = 4
ALONG = 8
"""Plans of the frontier that are simulated."""
AGAIN = 2
"""Times that a winner may bring its own neighbours, or a search without a winner goes on."""
AS_GOOD = 0.005
"""A plan that loses less than this, and that the seeds do not tell from the best, is as good: no reason to go far."""
DECIDING_EVENTS = 40_000_000
"""Beyond so many events of deciding runs, all turns of a rollout are taken in one."""
CONFIDENCE = 0.95
WORDS = {
    "split-1": "smaller generator", "split+1": "larger generator", "slots-1": "fewer slots", "slots+1": "more slots",
    "budget-1": "smaller staleness budget", "budget+1": "larger staleness budget",
}  # fmt: skip
"""How a neighbour differs from the plan."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One plan that was decided on.

    Attributes:
        role: what it is: ``plan``, how it differs from it, ``runner-up``, or ``as it is`` (the scenario's own).
        scenario: the plan. closed: its objective by closed form. value: simulated, mean over the deciding seeds.
        low, high: of that mean, with a confidence of 95 %. answers: means of what else was simulated.
        difference, difference_low, difference_high: relative loss against the plan, paired by seed; negative is better.
        kept: whether it keeps the limits.
    """

    role: str
    scenario: Scenario
    closed: float
    value: float
    low: float
    high: float
    answers: dict[str, float]
    difference: float
    difference_low: float
    difference_high: float
    kept: bool

    @property
    def distinguishable(self) -> bool:
        """Whether the seeds tell it from the plan."""
        return not self.difference_low <= 0.0 <= self.difference_high


class Search:
    """Rounds of simulated plans, each chosen by what the rounds before say of the closed form."""

    def __init__(self, bench: Bench, goal: Goal, limits: Limits, seeds: tuple[int, ...]) -> None:
        self.grid, self.bench, self.goal, self.limits, self.seeds = bench.grid, bench, goal, limits, seeds
        self.rows: list[int] = []

    def first(self, own: int | None) -> None:
        """The best plan of each schedule that is not hopeless, and the scenario's own."""
        losses = np.where(
            self.limits.kept(self.grid.answers, SLACK), self.goal.loss(self.goal.value(self.grid.answers)), np.inf
        )
        best = [int(rows[np.argmin(losses[rows])]) for rows in self.grid.table.groupby("schedule").indices.values()]
        hopeful = [row for row in best if losses[row] < HOPELESS * losses.min()]
        self._simulate([*hopeful, *([] if own is None else [own])])

    def further(self) -> bool:
        """One more round; false where there is nothing new to try."""
        more = promising(self.grid, self.believed(), self.limits, done=self.rows, count=PER_ROUND)
        self._simulate(more)
        return bool(more)

    def along_frontier(self) -> None:
        """Some plans of the frontier of staleness, so that it rests on runs."""
        rows = frontier_rows(self.believed(), self.limits)
        self._simulate(rows[np.linspace(0, rows.size - 1, min(rows.size, ALONG)).round().astype(int)].tolist())

    def believed(self) -> dict[str, np.ndarray]:
        """The closed form over the grid as corrected so far."""
        return corrected(self.grid, self.bench, self.rows, self.seeds, self.goal)

    def _simulate(self, rows: list[int]) -> None:
        self.bench.run(rows, self.seeds, "search")
        self.rows += [row for row in dict.fromkeys(rows) if row not in self.rows]

    def loss(self, answers: dict[str, Any]) -> Any:
        """Loss of simulated answers, a number or one per seed."""
        return self.goal.loss(self.goal.value(answers))

    def ranked(self) -> dict[int, dict[str, float]]:
        """Answers of the rows simulated, those that keep the limits first, the least loss first."""
        means = self.bench.means(self.rows, self.seeds, "search")
        return dict(sorted(means.items(), key=lambda each: (not self.kept(each[1]), self.loss(each[1]))))

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


class Final:
    """The finalists and their neighbours with fresh seeds: the winner, and how sure that is."""

    def __init__(self, search: Search, seeds: tuple[int, ...], own: int | None, tell: Callable[[float], Any]) -> None:
        self.search, self.bench, self.seeds, self.own = search, search.bench, seeds, own
        ranked = list(search.ranked())
        if not ranked:
            raise ValueError(
                "no plan: none of the simulated runs came to its end; fewer slots or a larger budget may help"
            )
        self.rows = [] if own is None else [own]
        self._join([*ranked[:FINALISTS], *neighbours(search.grid, ranked[0]).values()])
        whole = self.bench.affordable(self.rows, len(seeds), DECIDING_EVENTS)
        self.fidelity = "whole" if whole else "decide"
        self.bench.progress = lambda done, of: tell(done / of)
        winner = self._winner()
        for _ in range(AGAIN):
            if winner is None:  # what was learned from the finalists says where else to look
                search.further()
                self._join(list(search.ranked())[:FINALISTS])
            else:
                self._join(neighbours(search.grid, winner).values())
            before, winner = winner, self._winner()
            if winner is not None and winner == before:
                break
        self.bench.progress = None
        self.winner = self._refuse() if winner is None else winner

    def _join(self, rows: Iterable[int]) -> None:
        self.rows += [row for row in dict.fromkeys(rows) if row not in self.rows]

    def _means(self) -> dict[int, dict[str, float]]:
        return self.bench.means(self.rows, self.seeds, self.fidelity)

    def _winner(self) -> int | None:
        """The least loss of those that keep the limits. Of plans as good as it, the scenario's own or the one nearest to its
        habits: the same schedule, less staleness.
        """
        self.bench.run(self.rows, self.seeds, self.fidelity)
        means = self._means()
        good = sorted(
            (row for row, each in means.items() if self.search.kept(each)), key=lambda row: self.search.loss(means[row])
        )
        best = next((row for row in good if self._keeps_whole(row)), None)
        if best is None:
            return None
        same = [row for row in good if self._as_good(row, best) and self._keeps_whole(row)]
        table, own = self.search.grid.table, self.search.grid.scenario
        return min(same, key=lambda row: (
            row != self.own, table["schedule"][row] != own.schedule, round(means[row]["staleness_versions"], 2),
            table["max_staleness"][row], self.search.loss(means[row]),
        ))  # fmt: skip

    def _keeps_whole(self, row: int) -> bool:
        """Where runs with every turn are too long to decide by, a few of them still have to keep the limits."""
        if self.fidelity == "whole" or not self.search.limits.given:
            return True
        self.bench.run([row], self.seeds[:2], "whole")
        found = self.bench.means([row], self.seeds[:2], "whole")
        return row in found and self.search.kept(found[row])

    def _as_good(self, row: int, best: int) -> bool:
        differences = self._differences(row, best)
        return row == best or (abs(differences.mean()) <= AS_GOOD and interval(differences)[0] <= 0.0)

    def _kept(self, row: int, answers: dict[str, float]) -> bool:
        """Whether a row keeps the limits in the runs that decide, and in whole ones where there were any."""
        whole = {} if self.fidelity == "whole" else self.bench.means([row], self.seeds[:2], "whole")
        return self.search.kept(answers) and all(self.search.kept(each) for each in whole.values())

    def _differences(self, row: int, other: int) -> np.ndarray:
        """Relative loss against another row, seed by seed."""
        losses = [np.asarray(self.search.loss(self.bench.of(each, self.seeds, self.fidelity))) for each in (row, other)]
        return losses[0] / losses[1] - 1.0

    def _refuse(self) -> int:
        limits, means = self.search.limits, self._means()
        missed = {name: min(float(limits.measure(name, each)) for each in means.values()) for name in limits.given}
        words = "; ".join(f"{name}={limits.given[name]:g}, reached {value:.3g}" for name, value in missed.items())
        raise ValueError(
            f"no plan: by closed form some keep the limits, but none of the {len(means)} finalists does when simulated "
            f"({words})"
        )

    def options(self) -> tuple[Option, ...]:
        """The winner, then all others by loss."""
        names = {row: WORDS[name] for name, row in neighbours(self.search.grid, self.winner).items()}
        if self.own is not None:
            names[self.own] = "as it is"
        names[self.winner] = "plan"
        means = self._means()
        order = sorted(means, key=lambda row: (row != self.winner, self.search.loss(means[row])))
        return tuple(self._option(row, names.get(row, "finalist"), means[row]) for row in order)

    def _option(self, row: int, role: str, answers: dict[str, float]) -> Option:
        goal = self.search.goal
        values = np.asarray(goal.value(self.bench.of(row, self.seeds, self.fidelity)))
        differences = self._differences(row, self.winner)
        low, high = interval(values)
        difference_low, difference_high = interval(differences)
        closed = {name: found[row] for name, found in self.search.grid.answers.items()}
        return Option(
            role=role, scenario=self.search.grid.plan(row), closed=float(goal.value(closed)), value=float(values.mean()),
            low=low, high=high, answers=answers, difference=float(differences.mean()), difference_low=difference_low,
            difference_high=difference_high, kept=self._kept(row, answers),
        )  # fmt: skip


def interval(values: np.ndarray) -> tuple[float, float]:
    """Ends between which the mean of such values lies with a confidence of 95 % (Student's law)."""
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return float(values.mean()), float(values.mean())
    from scipy.stats import ttest_1samp

    found = ttest_1samp(values, 0.0).confidence_interval(CONFIDENCE)
    return float(found.low), float(found.high)
