"""Plans simulated: the same seeds for every plan, and runs as long as their budgets take to fill."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlqueue.cost import cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.planning.grid import Grid
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped, unlumped
from rlqueue.trials import trials

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
EVENTS = {"search": RUN_EVENTS, "decide": SURE_EVENTS, "whole": SURE_EVENTS, "told": 3 * SURE_EVENTS}
EVERY_TURN = ("whole", "told")
FIDELITIES = {
    "search": "short runs, all turns of a rollout in one",
    "decide": "longer runs, all turns of a rollout in one",
    "whole": "longer runs with every turn",
    "told": "still longer ones, of what is told to be the plan",
}


@dataclass(kw_only=True)
class Bench:
    """Runs of a grid's plans, each simulated once.

    Attributes:
        answers: by row, seed and fidelity; None for a run that came to no end. binding: likewise what held each run back, and
            what would have next.
        runs, events: simulated so far.
    """

    grid: Grid
    workers: int | None = None
    progress: Callable[[int, int], None] | None = None
    answers: dict[tuple[int, int, str], dict[str, float] | None] = field(default_factory=dict)
    binding: dict[tuple[int, int, str], tuple[str, str]] = field(default_factory=dict)
    runs: int = 0
    events: int = 0

    def run(self, rows: Sequence[int], seeds: Sequence[int], fidelity: str) -> None:
        """Simulate those rows with those seeds, unless it was done before."""
        missing = [
            (row, seed) for row in dict.fromkeys(rows) for seed in seeds if (row, seed, fidelity) not in self.answers
        ]
        plans = {row: self.grid.plan(row) for row, _ in missing}
        asked = {row: plan if fidelity in EVERY_TURN else lumped(plan) for row, plan in plans.items()}
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
            point = point if fidelity in EVERY_TURN else unlumped(point, plans[row])
            self.answers[row, seed, fidelity] = _answers(plans[row], point) | {"staleness_p95": each.staleness_p95}
            self.binding[row, seed, fidelity] = (point.binding_constraint, point.next_constraint)

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

    def binds(self, row: int, seeds: Sequence[int], fidelity: str) -> tuple[str, str]:
        """What holds a row's runs back, and what would next: of most seeds."""
        return Counter(self.binding[row, seed, fidelity] for seed in seeds).most_common(1)[0][0]

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
        most = int(EVENTS[fidelity] / one)
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
    """What is compared.

    Where nothing is dropped or pruned, steps train the scenario's tokens in the long run: what a short run's steps train more or
    less is its noise, and a step is as long as those tokens take.
    """
    both = vars(point) | vars(cost(plan, point))
    answers = {name: float(both[name]) for name in MEASURED}
    if plan.staleness_family != "drop" and plan.oversampling_factor == 1.0:
        answers["step_s"] = plan.trained_tokens_per_step / point.trained_tokens_per_s
    return answers
