"""A run along its way, by closed form: how it stands at some of its steps, its pool of prompts there, what it costs in all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rlqueue import drift
from rlqueue.app.state import State
from rlqueue.at_step import moment, solve_rates, without_drift, without_learning
from rlqueue.course import Course, WholeRun, course, totals
from rlqueue.curriculum import Histogram, expit, logit
from rlqueue.rates import mean_context_tokens
from rlqueue.scenario import Scenario

POINTS = 28
"""Steps at which a run is solved while the hand moves."""
BINS = 20
"""Ranges of the solve rate in which a pool is counted."""
PERCENTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99}


@dataclass(frozen=True, kw_only=True)
class Way:
    """The run of a state by closed form; ``still``: what it would be if neither lengths nor solve rates moved."""

    state: State
    course: Course
    still: Course

    @property
    def scenario(self) -> Scenario:
        return self.state.scenario

    @cached_property
    def at(self) -> dict[str, np.ndarray]:
        """The columns of the course's table, over the steps at which it was solved."""
        return {name: column.to_numpy() for name, column in self.course.table.items()}

    @cached_property
    def still_at(self) -> dict[str, np.ndarray]:
        """The same if nothing moved."""
        return {name: column.to_numpy() for name, column in self.still.table.items()}

    @property
    def steps(self) -> np.ndarray:
        """The steps at which it was solved, counted from 0."""
        return self.at["step"]

    @cached_property
    def whole(self) -> WholeRun:
        return totals(self.course)

    @cached_property
    def whole_still(self) -> WholeRun:
        return totals(self.still)

    @property
    def moves(self) -> bool:
        """Whether anything moves at all."""
        return self.scenario != self.still.scenario

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of the pool in each range of the solve rate: shape (steps, BINS); of no row without solve rates."""
        return _shares(self.course)

    @cached_property
    def slots(self) -> np.ndarray:
        """Rollouts that the KV caches of all replicas hold at each step, by the mean context."""
        s = self.scenario
        room = s.replicas * s.kv_room_bytes / s.llm.kv_bytes_per_token(s.kv_precision)
        return np.array([room / mean_context_tokens(moment(s, row)) for row in self.path])

    @cached_property
    def path(self) -> np.ndarray:
        """Lengths at each of the steps, of dtype ``drift.PATH``."""
        return drift.at(self.scenario.drift_start, self.scenario.drift, self.steps)

    def percentile(self, share: float) -> np.ndarray:
        """Response length that this share of the rollouts does not exceed, at each step [token]."""
        from scipy.special import ndtri

        sigma = np.hypot(self.path["sigma_between"], self.path["sigma_within"])
        uncut = np.exp(self.path["log_median"] + sigma * ndtri(share))
        return np.minimum(uncut, self.scenario.max_response_tokens)

    def near(self, step: int) -> int:
        """The place of the solved step nearest to a step."""
        return int(np.abs(self.steps - step).argmin())


def steady(scenario: Scenario) -> Scenario:
    """The same run if neither lengths nor solve rates moved."""
    return without_learning(without_drift(scenario))


def stands_still(scenario: Scenario) -> bool:
    """Whether a run is the same at each of its steps: then two of them say it all."""
    s = scenario
    return s.drift_law == "constant" and s.learning_logit_per_step == 0 and s.sampler == "uniform"


def way(state: State) -> Way:
    """The run of a state, from memory where it was asked for before."""
    s = state.scenario
    found = _course(s)
    return Way(state=state, course=found, still=found if stands_still(s) else _still(s))


def solved(scenario: Scenario) -> Course:
    """The course of a scenario at as many steps as a page needs."""
    return course(scenario, 2 if stands_still(scenario) else POINTS)


@lru_cache(maxsize=64)
def _still(scenario: Scenario) -> Course:
    return _course(steady(scenario))


@lru_cache(maxsize=64)
def _course(scenario: Scenario) -> Course:
    return solved(scenario)


def _shares(found: Course) -> np.ndarray:
    """The pool in the mean at each of the steps, counted.

    Prompts of one starting rate stay together, and logits keep their order: the share below a rate is the share of prompts
    that began below the rate from which one gets there.
    """
    law = solve_rates(found.scenario)
    if law is None:
        return np.zeros((0, BINS))
    first, edges, rows = found.pools[0].logits, logit(np.linspace(0.0, 1.0, BINS + 1)[1:-1]), []
    atoms = first.size < 3 or isinstance(getattr(law, "law", law), Histogram)
    for pool in found.pools:
        if atoms:
            places = np.minimum((expit(pool.logits) * BINS).astype(int), BINS - 1)
            rows.append(np.bincount(places, weights=pool.weights, minlength=BINS))
        else:
            began = edges - np.interp(edges, pool.logits, pool.logits - first)
            rows.append(np.diff(np.concatenate(([0.0], law.cdf(expit(began)), [1.0]))))
    return np.array(rows)
