"""How hard prompts are: laws of solve rates.

A prompt's solve rate p is the chance that a rollout of it is correct. A law spreads p over the prompts. Each law gives its mean,
its distribution function and quantiles, exact means of powers, and ``nodes``: few rates with weights that stand for it
where rates move one by one.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

LOGIT_STEP = 0.75
"""Widest step between the logits that stand for a law: the trapezoid rule then gives the means of powers of p and 1 - p up to
the 64th within 1e-6, and goes on so when all logits move."""

FARTHEST = 30.0
"""What lies beyond this logit is lumped there: such a prompt is solved once in 1e13 rollouts, or missed as rarely."""


def logit(p: np.ndarray) -> np.ndarray:
    """``ln p - ln(1 - p)``; endless at 0 and 1."""
    from scipy.special import logit as scipy_logit

    return scipy_logit(p)


def expit(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-x))``, the inverse of ``logit``."""
    from scipy.special import expit as scipy_expit

    return scipy_expit(x)


@dataclass(frozen=True, kw_only=True)
class Beta:
    """Beta(a, b) with ``a = mean * concentration``, ``b = (1 - mean) * concentration``; endless: all rates are the mean."""

    mean: float
    concentration: float

    @cached_property
    def _alike(self) -> bool:
        return math.isinf(self.concentration) or self.mean in (0.0, 1.0)

    @cached_property
    def _ab(self) -> tuple[float, float]:
        return self.mean * self.concentration, (1.0 - self.mean) * self.concentration

    def cdf(self, p: np.ndarray) -> np.ndarray:
        """Share of prompts whose rate is at most p."""
        from scipy.special import betainc

        return (np.asarray(p) >= self.mean).astype(float) if self._alike else betainc(*self._ab, p)

    def quantile(self, share: np.ndarray) -> np.ndarray:
        """The rate that this share of prompts is at most."""
        from scipy.special import betaincinv

        return np.full_like(np.asarray(share, float), self.mean) if self._alike else betaincinv(*self._ab, share)

    def powers(self, n: int) -> tuple[float, float]:
        """``E[p^n]`` and ``E[(1 - p)^n]``: ``B(a + n, b) / B(a, b)`` and ``B(a, b + n) / B(a, b)``."""
        if self._alike:
            return self.mean**n, (1.0 - self.mean) ** n
        from scipy.special import betaln

        a, b = self._ab
        whole = betaln(a, b)
        return math.exp(betaln(a + n, b) - whole), math.exp(betaln(a, b + n) - whole)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates and weights at even steps of logit p, whose density is ``p^a (1 - p)^b / B(a, b)``."""
        if self._alike:
            return np.array([self.mean]), np.array([1.0])
        from scipy.special import betainc, betaincinv, betaln, log_expit

        a, b = self._ab
        low = max(-FARTHEST, float(logit(betaincinv(a, b, 1e-14))))
        high = min(FARTHEST, -float(logit(betaincinv(b, a, 1e-14))))
        x = np.linspace(low, high, max(41, 2 + int((high - low) / LOGIT_STEP)))
        half = 0.5 * (x[1] - x[0])
        weights = 2.0 * half * np.exp(a * log_expit(x) + b * log_expit(-x) - betaln(a, b))
        weights[0] = betainc(a, b, expit(low + half))
        weights[-1] = betainc(b, a, expit(half - high))
        return expit(x), weights / weights.sum()


@dataclass(frozen=True, kw_only=True)
class LogitNormal:
    """``logit p = centre + sigma Z``, with the centre at which the mean of p is ``mean``."""

    mean: float
    sigma: float

    @cached_property
    def _alike(self) -> bool:
        return self.sigma < 1e-9 or self.mean in (0.0, 1.0)

    @cached_property
    def centre(self) -> float:
        """Median of logit p."""
        if self._alike:
            return float(logit(self.mean))
        from scipy.optimize import brentq

        z, weights = self._steps
        reach = abs(float(logit(self.mean))) + self.sigma**2 + 10.0
        return brentq(lambda c: float(expit(c + self.sigma * z) @ weights) - self.mean, -reach, reach, xtol=1e-13)

    @cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal numbers at even steps, and their weights."""
        z = np.linspace(-8.0, 8.0, 1 + math.ceil(16.0 * max(4.0, self.sigma / LOGIT_STEP)))
        weights = np.exp(-0.5 * z**2)
        return z, weights / weights.sum()

    def cdf(self, p: np.ndarray) -> np.ndarray:
        """Share of prompts whose rate is at most p."""
        from scipy.special import ndtr

        return (
            (np.asarray(p) >= self.mean).astype(float) if self._alike else ndtr((logit(p) - self.centre) / self.sigma)
        )

    def quantile(self, share: np.ndarray) -> np.ndarray:
        """The rate that this share of prompts is at most."""
        from scipy.special import ndtri

        return expit(self.centre + self.sigma * (0.0 if self._alike else ndtri(share)) + 0.0 * np.asarray(share, float))

    def powers(self, n: int) -> tuple[float, float]:
        """``E[p^n]`` and ``E[(1 - p)^n]``, by the nodes."""
        rates, weights = self.nodes()
        return float(weights @ rates**n), float(weights @ (1.0 - rates) ** n)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates and weights at even steps of logit p."""
        if self._alike:
            return np.array([self.mean]), np.array([1.0])
        z, weights = self._steps
        x = self.centre + self.sigma * z
        inside = np.abs(x) <= FARTHEST
        low, high = weights[x < -FARTHEST].sum(), weights[x > FARTHEST].sum()
        rates, weights = expit(x[inside]), weights[inside]
        if low or high:
            rates = np.concatenate(([expit(-FARTHEST)], rates, [expit(FARTHEST)]))
            weights = np.concatenate(([low], weights, [high]))
        return rates, weights


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Measured rates and the share of prompts that has each."""

    rates: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean rate."""
        return float(np.dot(self.rates, self.shares))

    def cdf(self, p: np.ndarray) -> np.ndarray:
        """Share of prompts whose rate is at most p."""
        below = np.concatenate(([0.0], np.cumsum(self.shares)))
        return below[np.searchsorted(self.rates, p, side="right")]

    def quantile(self, share: np.ndarray) -> np.ndarray:
        """The rate that this share of prompts is at most."""
        upper = np.cumsum(self.shares)[:-1]
        return np.asarray(self.rates)[np.searchsorted(upper, share, side="left")]

    def powers(self, n: int) -> tuple[float, float]:
        """``E[p^n]`` and ``E[(1 - p)^n]``."""
        rates = np.asarray(self.rates)
        return float(rates**n @ self.shares), float((1.0 - rates) ** n @ self.shares)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """The rates and shares themselves."""
        return np.asarray(self.rates), np.asarray(self.shares)


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """Another law after every prompt's logit has risen by ``shift``."""

    law: Beta | LogitNormal | Histogram
    shift: float

    @property
    def mean(self) -> float:
        """Mean rate."""
        return self.powers(1)[0]

    def cdf(self, p: np.ndarray) -> np.ndarray:
        """Share of prompts whose rate is at most p."""
        return self.law.cdf(expit(logit(p) - self.shift))

    def quantile(self, share: np.ndarray) -> np.ndarray:
        """The rate that this share of prompts is at most."""
        return expit(logit(self.law.quantile(share)) + self.shift)

    def powers(self, n: int) -> tuple[float, float]:
        """``E[p^n]`` and ``E[(1 - p)^n]``, by the nodes."""
        rates, weights = self.nodes()
        return float(weights @ rates**n), float(weights @ (1.0 - rates) ** n)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """The nodes of the law, moved."""
        rates, weights = self.law.nodes()
        return expit(logit(rates) + self.shift), weights


SolveRates = Beta | LogitNormal | Histogram | Shifted


@lru_cache(maxsize=64)
def histogram(text: str) -> Histogram:
    """A histogram from its text ``"rate: share, ..."``.

    Raises:
        ValueError: no such text; rates outside [0, 1] or not going up; shares that do not sum to 1 (within 0.001).
    """
    pairs: list[tuple[float, float]] = []
    for part in text.split(","):
        left, colon, right = part.partition(":")
        try:
            rate, share = float(left), float(right)
        except ValueError:
            rate, share = math.nan, math.nan
        if not colon or not (0 <= rate <= 1 and 0 <= share < math.inf):
            raise ValueError(
                f"solve_rate_histogram: {part.strip()!r} must be 'rate: share', the rate in [0, 1] and the share >= 0"
            )
        if pairs and rate <= pairs[-1][0]:
            raise ValueError(f"solve_rate_histogram must go up in rates: {rate:g} comes after {pairs[-1][0]:g}")
        pairs.append((rate, share))
    whole = sum(share for _, share in pairs)
    if abs(whole - 1.0) > 1e-3:
        raise ValueError(f"solve_rate_histogram: the shares sum to {whole:g}, must be 1 (within 0.001)")
    return Histogram(
        rates=tuple(rate for rate, share in pairs if share), shares=tuple(share / whole for _, share in pairs if share)
    )


def informative_fraction(law: SolveRates, n: int) -> float:
    """Share of groups of n whose rewards are not all equal: ``1 - E[p^n] - E[(1 - p)^n]``."""
    all_solved, none_solved = law.powers(n)
    return max(0.0, 1.0 - all_solved - none_solved)
