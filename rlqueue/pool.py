"""A pool of prompts while a run goes on, in the mean: which are tried, which groups teach, and how solve rates rise.

The prompts are a few classes of equal starting solve rate (the law's nodes) with weights. Within a class one number moves, the
logit of p, and for samplers that look at results the share of the class whose last group had 0, 1, ..., n correct. Chance
enters only by its mean, as for a pool of very many prompts; the simulation has prompts one by one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from rlqueue.curriculum import SolveRates, freshness, logit
from rlqueue.stamp import source_stamp

SMOOTH = 0.25
"""Logits move by at most about so much between two evaluations of what moves them."""

OFTEN = 1.0
"""A prompt is tried about so often between two looks at which prompts are tried."""

MOST_MOVES = 50
"""Evaluations between two moments that are asked for."""

NOTHING = 1e-300


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a run treats its pool; the words and numbers of the scenario's knobs.

    Attributes:
        groups: trained in a step. finished_per_accepted: finished groups for each that the gate accepts (surplus ones too).
        prompts: in the pool, 0 = endless. speed: rise of the logit per step (``learning_logit_per_step``).
    """

    group_size: int
    groups: float
    finished_per_accepted: float
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
        last: share of the class by its last group, shape (c, n + 2): 0, ..., n correct, and never tried; of no column where
            the sampler does not look.
    """

    logits: np.ndarray
    weights: np.ndarray
    last: np.ndarray


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
    last = np.zeros((rates.size, 0 if rules.sampler == "uniform" else rules.group_size + 2))
    last[:, -1:] = 1.0
    return Pool(logits=logit(rates), weights=weights, last=last)


def appeal(rules: Rules) -> np.ndarray:
    """How gladly the sampler takes a prompt whose last group had 0, ..., n correct, and one never tried: shape (n + 2,)."""
    n = rules.group_size
    share = np.arange(n + 1) / n
    if rules.sampler == "adaptive":
        smoothed = (np.arange(n + 1) + 1.0) / (n + 2.0)
        return np.append(smoothed * (1.0 - smoothed), 0.25)
    if rules.sampler == "difficulty-band":
        return np.append((share >= rules.band_low) & (share <= rules.band_high), True).astype(float)
    if rules.sampler == "retire-solved":
        return np.append(share < rules.retire_above, True).astype(float)
    return np.ones(n + 2)


def read(pool: Pool, rules: Rules) -> Reading:
    """What is seen of the pool now."""
    values = _read(pool.logits, pool.weights, pool.last, appeal(rules), _numbers(rules), np.empty_like(pool.logits))
    return Reading(**dict(zip(Reading.__dataclass_fields__, values[:7], strict=True)))


def after(pool: Pool, rules: Rules, steps: float, staleness: float = 0.0) -> Pool:
    """The pool that many steps later; ``staleness`` of trained groups [version]."""
    if steps <= 0 or (rules.speed == 0.0 and not pool.last.size):
        return pool
    logits, last = pool.logits.copy(), pool.last.copy()
    fresh = float(freshness(staleness, rules.staleness_half))
    choose = np.array([math.comb(rules.group_size, k) for k in range(rules.group_size + 1)], float)
    _advance(logits, pool.weights, last, appeal(rules), choose, _numbers(rules), steps, fresh)
    return Pool(logits=logits, weights=pool.weights, last=last)


def _numbers(r: Rules) -> tuple[float, ...]:
    """Group size, whether the gate drops, trained and finished groups, prompts, speed, transfer: what the compiled code takes."""
    dropping = float(r.gate == "zero-advantage")
    return (float(r.group_size), dropping, r.groups, r.finished_per_accepted, float(r.prompts), r.speed, r.transfer)


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
    """Groups finished in a step for the trained ones, the surplus left out."""
    _, dropping, groups, _, _, _, _ = numbers
    return groups / max(informative, 1e-9) if dropping > 0.0 else groups


@njit
def _sums(p, weights, last, glad):
    """Over the pool: how gladly its prompts are taken in sum, the share that is taken at all, the informative part of the sum."""
    whole, wanted, teaching = 0.0, 0.0, 0.0
    n = last.shape[1] - 2
    for i in range(p.size):
        mine, some = 0.0, 0.0
        for k in range(n + 2):
            mine += last[i, k] * glad[k]
            some += last[i, k] * (1.0 if glad[k] > 0.0 else 0.0)
        whole += weights[i] * mine
        wanted += weights[i] * some
        teaching += weights[i] * mine * (1.0 - p[i] ** n - (1.0 - p[i]) ** n)
    return whole, wanted, teaching


@njit
def _read(logits, weights, last, glad, numbers, tried):
    """Fill ``tried`` with the share of finished groups by class; returns the fields of Reading, then enough and whole.

    Where fewer prompts are wanted than groups finish in a step, the wanted ones are tried once a step each, and the rest
    (1 - enough) is taken from the whole pool.
    """
    n, _, _, per_accepted, prompts, _, _ = numbers
    p = 1.0 / (1.0 + np.exp(-logits))
    enough, whole, wanted = 1.0, 1.0, 1.0
    if last.shape[1] > 0:
        whole, wanted, teaching = _sums(p, weights, last, glad)
        needed = per_accepted * _finished(teaching / max(whole, NOTHING), numbers)
        enough = min(1.0, prompts * wanted / needed)
    solve, tried_solve, all_solved, none_solved, signal = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(p.size):
        share = 1.0
        if last.shape[1] > 0:
            mine = 0.0
            for k in range(last.shape[1]):
                mine += last[i, k] * glad[k]
            share = enough * mine / max(whole, NOTHING) + (1.0 - enough)
        tried[i] = weights[i] * share
        solve += weights[i] * p[i]
        tried_solve += tried[i] * p[i]
        all_solved += tried[i] * power(p[i], n)
        none_solved += tried[i] * power(1.0 - p[i], n)
        signal += tried[i] * 4.0 * p[i] * (1.0 - p[i]) * (1.0 - 1.0 / n)
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
def _try_again(logits, last, glad, choose, rate_each, rate_glad, steps):
    """Shares of each class by its last group, some steps later, in place.

    A prompt is tried at a rate r_k that depends on its last group, and then has k correct with the binomial chance b_k:
    ``dx_k/dt = -r_k x_k + b_k sum_j r_j x_j``, one implicit Euler step, which keeps the sum at 1 and bears any rate.
    """
    n = last.shape[1] - 2
    chance, stay = np.zeros(n + 2), np.empty(n + 2)
    for k in range(n + 2):
        stay[k] = 1.0 / (1.0 + steps * (rate_glad * glad[k] + rate_each))
    for i in range(logits.size):
        p = 1.0 / (1.0 + math.exp(-logits[i]))
        power = 1.0
        for k in range(n + 1):
            chance[k] = power * choose[k]
            power *= p
        power = 1.0
        for k in range(n, -1, -1):
            chance[k] *= power
            power *= 1.0 - p
        leaving, back = 0.0, 0.0
        for k in range(n + 2):
            leaving += last[i, k] * (1.0 - stay[k])
            back += chance[k] * (1.0 - stay[k])
        flow = leaving / (1.0 - back)
        for k in range(n + 2):
            last[i, k] = (last[i, k] + flow * chance[k]) * stay[k]


def _compiled(stamp):
    @njit(cache=True)
    def advance(logits, weights, last, glad, choose, numbers, steps, fresh):
        """Move logits and last groups on by some steps, in place: Heun's method, moves of about ``SMOOTH``."""
        _, _, _, per_accepted, prompts, _, _ = numbers
        tried, rise, again = np.empty_like(logits), np.empty_like(logits), np.empty_like(logits)
        left = steps if stamp else 0.0
        least = steps / MOST_MOVES
        while left > 1e-12 * steps:
            found = _read(logits, weights, last, glad, numbers, tried)
            informative, enough, whole = found[2], found[7], found[8]
            _rise(logits, weights, tried, informative, numbers, fresh, rise)
            move = min(steps, SMOOTH / max(rise.max(), NOTHING))
            if last.shape[1] > 0:
                each = per_accepted * _finished(informative, numbers) / prompts
                gladly = each * enough / max(whole, NOTHING)
                each *= 1.0 - enough
                move = min(0.2 * steps, move, OFTEN / (each + gladly * glad.max()))
            move = min(left, max(least, move))
            ahead = logits + move * rise
            informative = _read(ahead, weights, last, glad, numbers, tried)[2]
            _rise(ahead, weights, tried, informative, numbers, fresh, again)
            if last.shape[1] > 0:
                _try_again(logits, last, glad, choose, each, gladly, move)
            logits += 0.5 * move * (rise + again)
            left -= move

    return advance


_advance = _compiled(source_stamp("pool.py"))
