"""Whether a rollout solves its prompt: whether its draw u is below the prompt's solve rate.

In an endless pool the rate, a quantile of the law, is never computed: for a Beta law ``u < quantile(chance)`` says the same as
``cdf(u) < chance``, and a table of the distribution function at even steps of the rate decides nearly all of these; the
rest is computed to rounding. A rise of all logits by s is met by lowering the logit of u by s.
"""

import math
from functools import lru_cache

import numpy as np
from numba import njit

from rlqueue import curriculum
from rlqueue.at_step import solve_rates
from rlqueue.scenario import Scenario
from rlqueue.simulation import draws, state
from rlqueue.simulation.memory import clock, key, params, prompt_at, rate_at

CELLS = 1024
MOST_TERMS = 10_000  # enough up to an a + b of some millions; beyond, every rate is within 0.002 of the mean
STAND_INS = 1000
"""Rates at even chances that stand for an endless pool where its mean is asked for."""


def _measured(scenario: Scenario) -> curriculum.Beta | curriculum.LogitNormal | curriculum.Histogram | None:
    """The law, without the shift since it was measured, which the loop treats as learned."""
    law = solve_rates(scenario)
    return law.law if isinstance(law, curriculum.Shifted) else law


def law(scenario: Scenario) -> dict[str, float]:
    """The law of the solve rates in the loop's terms, by fields of ``state.PARAMS``; none without solve rates."""
    found = _measured(scenario)
    if found is None:
        return {}
    if isinstance(found, curriculum.Histogram):
        return {"solve_law": state.HISTOGRAM}
    alike = {"solve_law": state.ALL_ALIKE, "solve_mean": found.mean}
    if found.mean in (0.0, 1.0):
        return alike
    if isinstance(found, curriculum.LogitNormal):
        centre = {"solve_law": state.LOGIT_NORMAL, "solve_a": found.centre, "solve_b": found.sigma}
        return centre if found.sigma > 0.0 else alike
    if math.isinf(found.concentration):
        return alike
    from scipy.special import betaln

    a, b = found.mean * found.concentration, (1.0 - found.mean) * found.concentration
    return {"solve_law": state.BETA, "solve_a": a, "solve_b": b, "solve_log_beta": float(betaln(a, b))}


def table(scenario: Scenario) -> np.ndarray:
    """Of a Beta law: chances that a rate is below 0, 1 / CELLS, ..., 1. Of a histogram: the chance to be at most each rate,
    then the rates.
    """
    found = _measured(scenario)
    if isinstance(found, curriculum.Histogram):
        return np.concatenate([np.cumsum(found.shares)[:-1], [1.0], found.rates])
    if law(scenario).get("solve_law") == state.BETA:
        return found.cdf(np.linspace(0.0, 1.0, CELLS + 1))
    return np.zeros(CELLS + 1)


def pool(scenario: Scenario, seed: int, tenant: int = 0) -> np.ndarray:
    """Odds of solving each prompt of the pool, or of those that stand for an endless one; NaN without solve rates; read-only."""
    return _pool(_measured(scenario), seed, tenant, scenario.pool_prompts)


@lru_cache(maxsize=16)
def _pool(law: curriculum.SolveRates | None, seed: int, tenant: int, prompts: int) -> np.ndarray:
    if law is None:
        return np.full(max(1, prompts), np.nan)
    if prompts == 0:
        chances = (np.arange(STAND_INS) + 0.5) / STAND_INS
    else:
        chances = draws.uniforms(draws.keys(seed, tenant)[draws.SOLVE_RATE], prompts)
    rates = law.quantile(chances)
    with np.errstate(divide="ignore"):
        odds = rates / (1.0 - rates)
    odds.flags.writeable = False
    return odds


@njit(error_model="numpy")
def beta_cdf(x: float, a: float, b: float, log_beta: float) -> float:
    """Chance that a number of law Beta(a, b) is below x: about 1e-15, and 1e-16 (a + b) where that is more.

    Source: the continued fraction of DLMF 8.17.22, from the side on which it converges fast, by the modified Lentz method.
    """
    mirrored = x > (a + 1.0) / (a + b + 2.0)
    if mirrored:
        x, a, b = 1.0 - x, b, a
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    tiny = 1e-300
    top, low = 1.0, 1.0 / max(tiny, 1.0 - (a + b) * x / (a + 1.0))
    value = low
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        change = 1.0
        for term in (even, odd):
            low = 1.0 + term * low
            top = 1.0 + term / top
            low = 1.0 / (low if abs(low) > tiny else tiny)
            top = top if abs(top) > tiny else tiny
            change = low * top
            value *= change
        if abs(change - 1.0) < 1e-15:
            break
    return 1.0 - front * value if mirrored else front * value


@njit(error_model="numpy")
def below_quantile(w: np.void, chance: float, u: float) -> bool:
    """Whether u is below the rate that this share of prompts is at most at the start; both are in (0, 1)."""
    p = params(w)
    if p.solve_law == state.BETA:
        cell = min(CELLS - 1, int(u * CELLS))
        if chance <= rate_at(w, cell).below:
            return False
        if chance > rate_at(w, cell + 1).below:
            return True
        return beta_cdf(u, p.solve_a, p.solve_b, p.solve_log_beta) < chance
    if p.solve_law == state.LOGIT_NORMAL:
        return math.log(u / (1.0 - u)) < p.solve_a + p.solve_b * draws.normal_quantile(chance)
    if p.solve_law == state.HISTOGRAM:
        rates, place = w.solve_rates_room // 2, 0
        while place < rates - 1 and chance > rate_at(w, place).below:
            place += 1
        return u < rate_at(w, rates + place).below
    return u < p.solve_mean


@njit(error_model="numpy")
def solves(w: np.void, prompt: int, u: float) -> bool:
    """Whether a rollout whose draw is u solves the prompt with the policy of the moment."""
    odds = clock(w).odds
    if params(w).pool > 0:
        return u < 1.0 / (1.0 + 1.0 / (prompt_at(w, prompt).odds * odds))
    if odds != 1.0:
        u /= u + (1.0 - u) * odds
    return below_quantile(w, draws.uniform(key(w, draws.SOLVE_RATE), prompt, 0, 0), u)
