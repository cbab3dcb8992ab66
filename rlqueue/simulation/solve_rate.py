"""Whether a rollout solves its prompt, whose solve rate is a quantile of a Beta law.

The rate itself is never computed: ``u < quantile(chance)`` says the same as ``cdf(u) < chance``, and a table of the
distribution function at even steps of the rate decides nearly all of these; the rest is computed to rounding.
"""

import math

import numpy as np
from numba import njit

from rlqueue.scenario import Scenario
from rlqueue.simulation.memory import params, rate_at

CELLS = 1024
MOST_TERMS = 10_000  # enough up to an a + b of some millions; beyond, every rate is within 0.002 of the mean


def law(scenario: Scenario) -> tuple[float, float, float]:
    """Parameters a, b and log B(a, b) of the solve rates' law; (0, 0, 0): every rate is the mean."""
    mean, k = scenario.solve_rate_mean, scenario.solve_rate_concentration
    if mean in (0.0, 1.0) or math.isinf(k):
        return 0.0, 0.0, 0.0
    from scipy.special import betaln

    a, b = mean * k, (1.0 - mean) * k
    return a, b, float(betaln(a, b))


def table(scenario: Scenario) -> np.ndarray:
    """Chances that a rate is below 0, 1 / CELLS, 2 / CELLS, ..., 1."""
    a, b, _ = law(scenario)
    if a == 0.0:
        return np.zeros(CELLS + 1)
    from scipy.special import betainc

    return betainc(a, b, np.linspace(0.0, 1.0, CELLS + 1))


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


@njit
def solves(w: np.void, chance: float, u: float) -> bool:
    """Whether u is below the solve rate of a prompt, the quantile of ``chance``; both are in (0, 1)."""
    p = params(w)
    if p.solve_a == 0.0:
        return u < p.solve_mean
    cell = int(u * CELLS)
    if chance <= rate_at(w, cell).below:
        return False
    if chance > rate_at(w, cell + 1).below:
        return True
    return beta_cdf(u, p.solve_a, p.solve_b, p.solve_log_beta) < chance
