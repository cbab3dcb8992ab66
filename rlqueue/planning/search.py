"""Which of the finalists wins, and how sure that is: fresh seeds, the same for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlqueue.choices import SCHEDULES
from rlqueue.planning.believed import Believed
from rlqueue.planning.nearby import with_neighbours
from rlqueue.planning.refused import missed
from rlqueue.planning.rounds import CLOSER, Search
from rlqueue.planning.trials import MEASURED
from rlqueue.scenario import Scenario

FINALISTS = 4
SPARE = 0.005
"""Finalists that keep the limits with so much to spare keep them with other seeds as well."""
AGAIN = 2
"""Times that a winner may bring its own neighbours, or a search without a winner goes on."""
AS_GOOD = 0.005
"""A plan that loses less than this, and that the seeds do not tell from the best, is as good: no reason to go far."""
DECIDING_EVENTS = 40_000_000
"""Beyond so many events of deciding runs, all turns of a rollout are taken in one."""
CONFIDENCE = 0.95
SIMPLEST = list(SCHEDULES)
"""The catalogue names them by how much a framework has to do for them."""
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
        self.near: dict[int, dict[str, int]] = {}
        self._join([*self._first(), *self._neighbours(ranked[0]).values()])
        whole = self.bench.affordable(self.rows, len(seeds), DECIDING_EVENTS)
        self.fidelity = "whole" if whole else "decide"
        self.bench.progress = lambda done, of: tell(done / of)
        winner = self._winner()
        for _ in range(AGAIN):
            if winner is None:  # what was learned from the finalists says where else to look
                search.further()
                self._join(self._first())
            else:
                self._join(self._neighbours(winner).values())
            before, winner = winner, self._winner()
            if winner is not None and winner == before:
                break
        self.bench.progress = None
        self.winner = self._refuse() if winner is None else winner

    def _first(self) -> list[int]:
        """The best of the search, no two of which do the same, and as many that keep the limits with something to spare."""
        ranked = self.search.ranked()
        spare = [row for row, each in ranked.items() if self.search.limits.excess(each) <= -SPARE]
        return [
            *self._different(list(ranked)),
            *(self._different(spare)[: FINALISTS // 2] if self.search.limits.given else []),
        ]

    def _different(self, rows: list[int]) -> list[int]:
        """The two first, and then no two next to each other."""
        alike, place, chosen = self.search.grid.alike, self.search.grid.place, []
        for row in rows:
            far = len(chosen) < 2 or np.all(np.abs(place[chosen] - place[row]).sum(axis=1) > CLOSER[0])
            if len(chosen) < FINALISTS and far and alike[row] not in alike[chosen]:
                chosen.append(row)
        return chosen

    def _neighbours(self, row: int) -> dict[str, int]:
        if row not in self.near:
            self.bench.grid, self.near[row] = with_neighbours(self.bench.grid, row)
        return self.near[row]

    def _join(self, rows: Iterable[int]) -> None:
        self.rows += [row for row in dict.fromkeys(rows) if row not in self.rows]

    def _means(self) -> dict[int, dict[str, float]]:
        return self.bench.means(self.rows, self.seeds, self.fidelity)

    def simulated(self) -> dict[int, dict[str, float]]:
        """Means of every row that was simulated: of the runs that decide where there were any, else of the search's."""
        return self.search.ranked() | self._means()

    def believed(self) -> Believed:
        """The corrected closed form over the grid, and what was simulated as it was."""
        found = self.search.believed()
        for row, each in self.simulated().items():
            for name in found.keys() & each.keys():
                found[name][row] = each[name]
            found["loss"][row] = self.search.loss(each)
        return found

    def _winner(self) -> int | None:
        """The least loss of those that keep the limits. Of plans as good as it, the scenario's own or the one nearest to its
        habits: the same schedule, less staleness, the simpler schedule.
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
            row != self.own, table["schedule"][row] != own.schedule, round(means[row]["staleness_versions"], 1),
            SIMPLEST.index(table["schedule"][row]), table["max_staleness"][row], self.search.loss(means[row]),
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
        simulated = {name: np.array([each[name] for each in self.simulated().values()]) for name in MEASURED}
        raise ValueError(
            missed(simulated, self.search.limits, f"{{:,}} simulated plans on {self.search.grid.gpus} GPUs")
        )

    def options(self) -> tuple[Option, ...]:
        """The winner, then all others by loss."""
        names = {row: WORDS[name] for name, row in self._neighbours(self.winner).items()}
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
