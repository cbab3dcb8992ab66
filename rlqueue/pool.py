"""A pool of prompts while a run goes on, in the mean: which are tried, which groups teach, and how solve rates rise.

The prompts are a few classes of equal starting solve rate (the law's nodes) with weights. Within a class one number moves, the
logit of p, and for samplers that look at results the share of the class that was observed at 0, 1/n, ..., 1. Chance enters only
by its mean, as for a pool of very many prompts; the simulation has prompts one by one.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from rlqueue.curriculum import SolveRates, logit
from rlqueue.learning import freshness
from rlqueue.stamp import source_stamp

SMOOTH = 0.25
"""Logits move by at most about so much between two evaluations of what moves them."""

OFTEN = 0.5
"""A prompt is tried about so often between two looks at which prompts are tried."""

MOST_MOVES = 15
"""Evaluations between two moments that are asked for."""

NOTHING = 1e-300


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a run treats its pool; the words and numbers of the scenario's knobs.

    Attributes:
        groups: trained in a step. in_flight_groups: that are being generated.
        prompts: in the pool, 0 = endless. speed: rise of the logit per step (``learning_logit_per_step``).
    """

    group_size: int
    groups: float
    in_flight_groups: float
    prompts: int
    gate: str
    sampler: str
    band_low: float
    band_high: float
    retire_above: float
    speed: float
    transfer: float
    staleness_half: float


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The pool at a moment.

    Attributes:
        logits: logit of the solve rate of each class, shape (c,). weights: its share of the prompts, shape (c,).
        seen: share of the class by observed solve rate, shape (c, n + 2): 0, 1/n, ..., 1, and never observed; of no column
            where the sampler does not look. A new group counts as much as all before it.
    """

    logits: np.ndarray
    weights: np.ndarray
    seen: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is seen of a pool at a moment; shares in [0, 1].

    Attributes:
        solve_rate: mean over all prompts. tried_solve_rate: over the groups that are generated.
        informative: share of finished groups whose rewards differ. all_solved, none_solved: the rest, by which end.
        signal: mean of ``4 (k/n) (1 - k/n)`` over finished groups.
        idle: share of prompts that the sampler leaves alone.
    """

    solve_rate: float
    tried_solve_rate: float
    informative: float
    all_solved: float
    none_solved: float
    signal: float
    idle: float


def opened(law: SolveRates, rules: Rules) -> Pool:
    """The pool at the start: nothing has been tried."""
    rates, weights = law.nodes()
    seen = np.zeros((rates.size, 0 if rules.sampler == "uniform" else rules.group_size + 2))
    seen[:, -1:] = 1.0
    return Pool(logits=logit(rates), weights=weights, seen=seen)


@lru_cache(maxsize=64)
def appeal(rules: Rules) -> np.ndarray:
    """How gladly the sampler takes a prompt observed at 0, 1/n, ..., 1, and one never observed: shape (n + 2,)."""
    n = rules.group_size
    observed = np.arange(n + 1) / n
    if rules.sampler == "adaptive":
        guessed = (2.0 * n * observed + 1.0) / (2.0 * n + 2.0)  # a uniform prior and two groups' worth of rollouts
        return np.append(guessed * (1.0 - guessed), 0.25)
    if rules.sampler == "difficulty-band":
        return np.append((observed >= rules.band_low) & (observed <= rules.band_high), True).astype(float)
    if rules.sampler == "retire-solved":
        return np.append(observed <= rules.retire_above, True).astype(float)
    return np.ones(n + 2)


def read(pool: Pool, rules: Rules) -> Reading:
    """What is seen of the pool now."""
    values = _read(pool.logits, pool.weights, pool.seen, appeal(rules), _numbers(rules), np.empty_like(pool.logits))
    return Reading(**dict(zip(Reading.__dataclass_fields__, values[:7], strict=True)))


def after(pool: Pool, rules: Rules, steps: float, staleness: float = 0.0) -> Pool:
    """The pool that many steps later.

    Args:
        staleness: mean of trained groups [version]. That groups scatter about it is left out: fresh ones gain more than old ones
            lose. A run three versions stale with a spread of one really learns a quarter faster with a half of one version,
            a fifteenth with two, a fiftieth with four.
    """
    if steps <= 0 or (rules.speed == 0.0 and not pool.seen.size):
        return pool
    logits, seen = pool.logits.copy(), pool.seen.copy()
    fresh = float(freshness(staleness, rules.staleness_half))
    choose = np.array([math.comb(rules.group_size, k) for k in range(rules.group_size + 1)], float)
    _advance(logits, pool.weights, seen, appeal(rules), choose, _numbers(rules), steps, fresh)
    return Pool(logits=logits, weights=pool.weights, seen=seen)


def _numbers(r: Rules) -> tuple[float, ...]:
    """Group size, whether the gate drops, groups trained and in flight, prompts, speed, transfer: for the compiled code."""
    dropping = float(r.gate == "zero-advantage")
    return (float(r.group_size), dropping, r.groups, r.in_flight_groups, float(r.prompts), r.speed, r.transfer)


@njit
def power(p, n):
    """``p^n`` for a whole n by squaring."""
    result, left = 1.0, int(n)
    while left:
        if left & 1:
            result *= p
        p *= p
        left >>= 1
    return result


@njit
def _finished(informative, numbers):
    """Groups that finish in a step and are not surplus."""
    _, dropping, groups, _, _, _, _ = numbers
    return groups / max(informative, 1e-9) if dropping > 0.0 else groups


@njit
def _read(logits, weights, seen, glad, numbers, tried):
    """Fill ``tried`` with the share of finished groups by class; returns the fields of Reading, then enough and whole.

    Where fewer prompts are wanted than groups are in flight, all wanted ones are in flight, and the rest (1 - enough) is taken
    from the whole pool. ``whole`` is how gladly the pool's prompts are taken in sum.
    """
    n, _, _, in_flight, prompts, _, _ = numbers
    looks = seen.shape[1] > 0
    enough, whole, wanted = 1.0, 1.0, 1.0
    if looks:
        whole, wanted = 0.0, 0.0
        for i in range(logits.size):
            mine = 0.0
            for k in range(seen.shape[1]):
                mine += seen[i, k] * glad[k]
                if glad[k] > 0.0:
                    wanted += weights[i] * seen[i, k]
            tried[i] = mine
            whole += weights[i] * mine
        enough = min(1.0, prompts * wanted / in_flight)
    solve, tried_solve, all_solved, none_solved, signal = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(logits.size):
        p = 1.0 / (1.0 + math.exp(-logits[i]))
        share = enough * tried[i] / max(whole, NOTHING) + (1.0 - enough) if looks else 1.0
        tried[i] = weights[i] * share
        solve += weights[i] * p
        tried_solve += tried[i] * p
        all_solved += tried[i] * power(p, n)
        none_solved += tried[i] * power(1.0 - p, n)
        signal += tried[i] * 4.0 * p * (1.0 - p) * (1.0 - 1.0 / n)
    informative = max(0.0, 1.0 - all_solved - none_solved)
    return solve, tried_solve, informative, all_solved, none_solved, signal, 1.0 - wanted, enough, whole


@njit
def _rise(logits, weights, tried, informative, numbers, fresh, rise):
    """Fill ``rise`` with the rise of the logit of each class in a step.

    The shared part is ``speed * transfer * informative share of trained groups * freshness``; a prompt's own is
    ``speed (1 - transfer) 4 p (1 - p) (1 - 1/n) freshness`` for each of its groups (those of equal rewards add nothing to
    that mean, trained or not).
    """
    n, dropping, _, _, prompts, speed, transfer = numbers
    trained_informative = 1.0 if dropping > 0.0 else informative
    finished = _finished(informative, numbers)
    for i in range(logits.size):
        rise[i] = speed * transfer * trained_informative * fresh
        if prompts > 0.0 and transfer < 1.0:
            p = 1.0 / (1.0 + math.exp(-logits[i]))
            visits = finished * tried[i] / max(weights[i] * prompts, NOTHING)
            rise[i] += speed * (1.0 - transfer) * fresh * visits * 4.0 * p * (1.0 - p) * (1.0 - 1.0 / n)


@njit
def _observe(logits, seen, glad, choose, each, gladly, steps):
    """Shares of each class by observed solve rate, some steps later, in place.

    A prompt seen at j/n is tried at a rate ``each + gladly * glad_j`` and then has k correct with the binomial chance: it is seen
    at the mean of both, (j + k) / 2n (half of it on either side where that is no whole number), or at k/n for the first time.
    """
    n = seen.shape[1] - 2
    chance, leaves, came = np.zeros(n + 1), np.empty(n + 2), np.empty(2 * n + 1)
    for k in range(n + 2):
        leaves[k] = 1.0 - math.exp(-steps * (each + gladly * glad[k]))
    for i in range(logits.size):
        p = 1.0 / (1.0 + math.exp(-logits[i]))
        part = 1.0
        for k in range(n + 1):
            chance[k] = part * choose[k]
            part *= p
        part = 1.0
        for k in range(n, -1, -1):
            chance[k] *= part
            part *= 1.0 - p
        came[:] = 0.0
        for j in range(n + 1):
            gone = seen[i, j] * leaves[j]
            seen[i, j] -= gone
            if gone > 1e-12:
                for k in range(n + 1):
                    came[j + k] += gone * chance[k]
        first = seen[i, n + 1] * leaves[n + 1]
        seen[i, n + 1] -= first
        for k in range(n + 1):
            seen[i, k] += first * chance[k] + came[2 * k]
        for k in range(n):
            seen[i, k] += 0.5 * came[2 * k + 1]
            seen[i, k + 1] += 0.5 * came[2 * k + 1]


def _compiled(stamp):
    @njit(cache=True)
    def advance(logits, weights, seen, glad, choose, numbers, steps, fresh):
        """Move logits and what is observed on by some steps, in place: Heun's method, moves of about ``SMOOTH``."""
        prompts = numbers[4]
        tried, rise, again = np.empty_like(logits), np.empty_like(logits), np.empty_like(logits)
        left = steps if stamp else 0.0
        least = steps / MOST_MOVES
        while left > 1e-12 * steps:
            found = _read(logits, weights, seen, glad, numbers, tried)
            informative, enough, whole = found[2], found[7], found[8]
            _rise(logits, weights, tried, informative, numbers, fresh, rise)
            move = min(steps, SMOOTH / max(rise.max(), NOTHING))
            each, gladly = 0.0, 0.0
            if seen.shape[1] > 0:
                finished = _finished(informative, numbers) / prompts
                each, gladly = finished * (1.0 - enough), finished * enough / max(whole, NOTHING)
                move = min(0.5 * steps, move, OFTEN / (each + gladly * glad.max()))
            move = min(left, max(least, move))
            ahead = logits + move * rise
            informative = _read(ahead, weights, seen, glad, numbers, tried)[2]
            _rise(ahead, weights, tried, informative, numbers, fresh, again)
            if seen.shape[1] > 0:
                _observe(logits, seen, glad, choose, each, gladly, move)
            logits += 0.5 * move * (rise + again)
            left -= move

    return advance


_advance = _compiled(source_stamp("pool.py"))
