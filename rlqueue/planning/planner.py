"""How to split the GPUs: the best split, concurrency, staleness budget and schedule for a goal, within limits.

The closed form answers every plan there is; simulated runs with common seeds correct it where it looks best, and fresh seeds,
the same for all, decide among the finalists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from rlqueue.at_step import without_drift, without_learning
from rlqueue.planning.believed import missed
from rlqueue.planning.fewer import best_by_gpus, row_of_table
from rlqueue.planning.goal import Goal, Limits
from rlqueue.planning.grid import CHOICE, Space, grid, own_row
from rlqueue.planning.map import by_schedule, flat_splits, frontier, heat, prices
from rlqueue.planning.refused import refuse_impossible
from rlqueue.planning.rounds import ROUNDS, Search
from rlqueue.planning.search import Final, Option
from rlqueue.planning.trials import Bench
from rlqueue.scenario import Scenario

SEARCH_SEEDS = (0, 1)
DECIDING_SEEDS = (2, 3, 4, 5, 6, 7)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The best plan found, what is next to it, and what it hangs on.

    Attributes:
        options: the plan itself first, then its neighbours, the scenario's own and other finalists, by loss.
        binding, next_constraint: what holds the plan's run back, simulated. prices: by limit, the share of the objective that
            it costs (closed form, corrected); 0 where it does not bind.
        flat_splits: least and most generator GPUs within ``map.FLAT`` of the best, other choices free.
        frontier: least objective by staleness. heat: objective by split and budget, other choices free, same schedule.
        by_gpus: the best plan of fewer and more GPUs, by a few runs of each. by_schedule: the best of each schedule, by closed
            form, corrected where it was simulated.
        simulated: every plan that the search simulated: staleness and objective.
        with_turns: the plan's objective in two long runs with every turn, where the deciding ones took them in one.
        lumped: whether deciding runs took all turns of a rollout in one. runs, events: simulated.
    """

    scenario: Scenario
    goal: Goal
    limits: Limits
    gpus: int
    options: tuple[Option, ...]
    binding: str
    next_constraint: str
    prices: dict[str, float]
    flat_splits: tuple[int, int]
    frontier: pd.DataFrame
    heat: pd.DataFrame
    by_gpus: pd.DataFrame
    by_schedule: pd.DataFrame
    simulated: pd.DataFrame
    with_turns: float | None
    seeds: tuple[int, ...]
    lumped: bool
    runs: int
    events: int

    @property
    def best(self) -> Option:
        return self.options[0]

    @property
    def runner_up(self) -> Option | None:
        """The least loss of those that keep the limits and differ from the plan by more than the budget on paper."""
        best = self.best.scenario
        return next(
            (each for each in self.options[1:] if each.kept and
             (each.scenario.schedule, each.scenario.generator_gpus, each.scenario.concurrency)
             != (best.schedule, best.generator_gpus, best.concurrency)), None,
        )  # fmt: skip

    @property
    def own(self) -> Option | None:
        """The scenario as it is; None where it is no plan for these GPUs and limits' schedules."""
        found = [each for each in self.options if each.role == "as it is"]
        if not found and all(getattr(self.best.scenario, name) == getattr(self.scenario, name) for name in CHOICE):
            return self.best
        return found[0] if found else None


def _of_run(scenario: Scenario, plan: Scenario) -> Scenario:
    """The scenario, moving as it does, with what the plan chooses."""
    return replace(scenario, cluster_gpus=0, **{name: getattr(plan, name) for name in CHOICE})


def _rising(progress: Callable[[float, str], Any] | None) -> Callable[[float, str], None]:
    """Tells no share below one that was told before: a round may bring more runs."""
    most = 0.0

    def tell(share: float, what: str) -> None:
        nonlocal most
        most = max(most, share)
        if progress:
            progress(most, what)

    return tell


def plan(
    scenario: Scenario, goal: Goal | str | None = None, limits: Limits | Mapping[str, Any] | None = None, *,
    gpus: int | None = None,
    space: Space | None = None, seed: int = 0, workers: int | None = None,
    progress: Callable[[float, str], Any] | None = None,
) -> Plan:  # fmt: skip
    """The best plan for the goal that keeps the limits, for lengths and solve rates as they are at the start of the run.

    Args:
        goal: what is to be best, a ``Goal`` or one of ``OBJECTIVES`` (hours: of the scenario's own steps); by default $/Mtok.
        limits: a ``Limits`` or a mapping of its fields; by default none. gpus: trainer and generator together; by default
            the scenario's. space: what to choose from; by default all that is sensible.
        seed: first of the seeds; the plan is a function of it. workers: threads; all cores.
        progress: is told the share that is done, and of what.

    Raises:
        ValueError: no plan keeps the limits; the message says which one excludes everything and by how much.
    """
    goal = goal if isinstance(goal, Goal) else Goal.of(scenario, goal or "usd-per-mtok")
    limits, space = limits if isinstance(limits, Limits) else Limits.of(limits or {}), space or Space()
    gpus = scenario.trainer_gpus + scenario.generator_gpus if gpus is None else gpus
    for name, value, least in (("gpus", gpus, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name}={value!r} must be a whole number >= {least}")
    tell = _rising(progress)
    tell(0.0, "all plans, closed form")
    found = grid(without_learning(without_drift(scenario)), gpus, limits, space)
    refuse_impossible(found, limits)
    bench = Bench(grid=found, workers=workers)
    own = own_row(found)
    search = Search(bench, goal, limits, space, tuple(seed + each for each in SEARCH_SEEDS))
    search.first(own)
    for turn in range(ROUNDS):
        tell(0.1 + 0.1 * turn, "promising plans, simulated")
        if not search.further():
            break
    tell(0.1 + 0.1 * ROUNDS, "finer steps")
    search.closer()
    search.along_frontier()
    deciding = tuple(seed + each for each in DECIDING_SEEDS)
    final = Final(search, deciding, own, lambda done: tell(0.5 + 0.4 * done, "finalists, with fresh seeds"))
    options = tuple(replace(each, scenario=_of_run(scenario, each.scenario)) for each in final.options())
    tell(0.9, "fewer and more GPUs")
    found, believed = search.grid, final.believed()
    best = options[0].scenario
    near = Space(
        schedules=(best.schedule,), max_staleness=tuple(best.max_staleness * factor for factor in (0.5, 1.0, 2.0)),
        slots_per_replica=tuple(found.table["slots"][final.winner] * factor for factor in (0.5, 0.7, 1.0, 1.4)),
    )  # fmt: skip
    here = row_of_table(gpus, {name: getattr(best, name) for name in CHOICE}, options[0].answers, goal)
    by_gpus = best_by_gpus(search, missed(bench, search.rows, search.seeds, goal), near, here)
    tell(1.0, "done")
    binding, behind = bench.binds(final.winner, deciding, final.fidelity)
    with_turns = None
    if final.fidelity != "whole":
        bench.run([final.winner], deciding[:2], "told")
        means = bench.means([final.winner], deciding[:2], "told")
        with_turns = float(goal.value(means[final.winner])) if means else None
    return Plan(
        scenario=scenario, goal=goal, limits=limits, gpus=gpus, options=options, binding=binding, next_constraint=behind,
        prices=prices(believed, limits), flat_splits=flat_splits(found, believed, limits, options),
        frontier=frontier(found, believed, goal, limits, list(final.simulated())),
        heat=heat(found, believed, goal, limits, options[0].scenario.schedule),
        by_gpus=by_gpus, by_schedule=by_schedule(found, believed, goal, limits), simulated=search.table(),
        with_turns=with_turns, seeds=deciding, lumped=final.fidelity != "whole", runs=bench.runs, events=bench.events,
    )  # fmt: skip
