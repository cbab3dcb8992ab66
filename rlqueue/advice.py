"""The verdict in words: which side waits, what binds, and what the best single move would buy."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from rlqueue.choices import IN_STEP
from rlqueue.cost import Bill, cost
from rlqueue.operating_point import CONSTRAINTS, OperatingPoint
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario
from rlqueue.sweep import split_grid

STALENESS_RANGE = 32
"""Budgets beyond this many versions are not looked at."""
WORTH_IT = 0.005
"""A move counts when it changes $/Mtok by more than this share of it."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """One knob set to its best value, the others left alone.

    Attributes:
        knob: ``split``, ``concurrency`` or ``max_staleness``.
        words: the move as a phrase. scenario: after the move. point, bill: what it gives.
        wait_change, usd_per_mtok_change: difference to before [1], [$/Mtok].
    """

    knob: str
    words: str
    scenario: Scenario
    point: OperatingPoint
    bill: Bill
    wait_change: float
    usd_per_mtok_change: float


def splits(scenario: Scenario) -> np.ndarray:
    """Generator GPUs of every split of the scenario's GPUs in whole replicas that leaves the trainer at least one GPU."""
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    most = (gpus - 1) // scenario.gpus_per_replica
    return scenario.gpus_per_replica * np.arange(1, most + 1)


def concurrencies(scenario: Scenario, points: int = 40) -> np.ndarray:
    """Slot counts worth a look: the present one; from one a replica (or one group) to where this split's KV cache is full."""
    from rlqueue.rates import rates

    full = scenario.replicas * float(rates(scenario)["kv_slots"][0])
    fewest = max(scenario.fewest_slots, scenario.replicas)
    most = max(full * 1.25, scenario.concurrency * 1.25, 8.0, fewest)
    grid = np.geomspace(fewest, most, points).round().astype(int)
    return np.unique(np.append(grid, scenario.concurrency))


def moves(scenario: Scenario, point: OperatingPoint | None = None) -> list[Move]:
    """The best value of each main knob alone, by $/Mtok (closed form), best move first.

    Among values within ``WORTH_IT`` of the best the one nearest to the present is taken: a flat optimum is no reason to go
    far. Knobs with nothing to gain are left out.
    """
    point = point or solve(scenario)
    before = cost(scenario, point)
    generator = splits(scenario)
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    slots = concurrencies(scenario)
    budgets = np.unique(np.append(np.arange(STALENESS_RANGE + 1.0), scenario.max_staleness))
    axes = {
        "split": {"generator_gpus": generator, "trainer_gpus": gpus - generator},
        "concurrency": {"concurrency": slots},
        "max_staleness": {"max_staleness": budgets},
    }
    if scenario.schedule in IN_STEP:
        del axes["max_staleness"]
    found = []
    for knob, axis in axes.items():
        usd = split_grid(scenario, **axis)["usd_per_mtok"]
        good = np.flatnonzero(usd <= usd.min() * (1 + WORTH_IT))
        name, values = next(iter(axis.items()))
        at = good[np.argmin(np.abs(values[good] - getattr(scenario, name)))]
        changed = dataclasses.replace(
            scenario, cluster_gpus=0, **{each: values[at].item() for each, values in axis.items()}
        )
        after_point = solve(changed)
        after = cost(changed, after_point)
        if after.usd_per_mtok < before.usd_per_mtok * (1 - WORTH_IT):
            found.append(
                Move(
                    knob=knob,
                    words=_words(knob, scenario, changed),
                    scenario=changed,
                    point=after_point,
                    bill=after,
                    wait_change=after_point.trainer_wait_ratio - point.trainer_wait_ratio,
                    usd_per_mtok_change=after.usd_per_mtok - before.usd_per_mtok,
                )
            )
    return sorted(found, key=lambda move: move.usd_per_mtok_change)


def _words(knob: str, before: Scenario, after: Scenario) -> str:
    if knob == "split":
        return (
            f"split {after.trainer_gpus} trainer : {after.generator_gpus} generator GPUs "
            f"instead of {before.trainer_gpus} : {before.generator_gpus}"
        )
    if knob == "concurrency":
        return f"concurrency {after.concurrency:,} instead of {before.concurrency:,}"
    return f"a staleness budget of {after.max_staleness:g} instead of {before.max_staleness:g} versions"


def verdict(point: OperatingPoint, found: list[Move], bill: Bill) -> str:
    """One to three sentences: who waits, what binds and what is behind it, and what the best single move buys."""
    wait, idle = point.trainer_wait_ratio, point.rollout_idle_ratio
    if wait >= 0.005:
        who = f"The trainer waits {wait:.0%} of the time for rollouts"
    elif idle >= 0.005:
        who = f"The trainer never waits; {idle:.0%} of the rollout slots stay unused"
    else:
        who = "Trainer and generator are in balance"
    binds = (
        f"{who}: {point.binding_constraint} binds ({CONSTRAINTS[point.binding_constraint]}), "
        f"and {point.next_constraint} is next."
    )
    if not found:
        return f"{binds} No single move of split, concurrency or staleness budget lowers $/Mtok by more than {WORTH_IT:.1%}."
    best = found[0]
    return (
        f"{binds} Best single move: {best.words}: wait {wait:.0%} → {best.point.trainer_wait_ratio:.0%}, "
        f"${bill.usd_per_mtok:.2f} → ${best.bill.usd_per_mtok:.2f} per trained Mtok."
    )


def break_even_usd_per_gpu_hour(bill: Bill) -> float | None:
    """GPU-hour price at which self-built costs what the hosted service charges [$/GPU-h]; None without a hosted price."""
    if bill.hosted_usd_per_mtok is None:
        return None
    gpu_part = bill.usd_per_mtok - bill.sandbox_usd_per_mtok
    left = bill.hosted_usd_per_mtok - bill.sandbox_usd_per_mtok
    return max(0.0, left) / gpu_part * bill.usd_per_gpu_hour if gpu_part > 0 else math.inf
