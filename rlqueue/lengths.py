"""How long responses are: a log-normal on two levels, cut at the maximum length.

A response of prompt i is ``L_ij = min(max, m * exp(s_b Z_i + s_w Z_ij))`` with standard normal Z: ``s_b`` is the spread
between prompts (about 0.9 to 1.0 in public runs), ``s_w`` the spread within a group (0.2 to 0.3). ``m`` is chosen so that
the mean *after* the cut is the mean that was asked for, since that is the mean a run reports.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

POINTS = 513  # of the survival tables; linear between them, so that a table look-up is one index

STANDARD_POINTS = 1601  # of a law in units of its spread, a cubic between them

MOST_ROUNDS = 200  # of the solve for a median; a mean within a millionth of the cut takes about thirty

_REACH = 8.0
"""Standard deviations beyond which a normal law's tail (6e-16) is nothing."""
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(48)


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(x)


def _power(x: np.ndarray, n: int) -> np.ndarray:
    """``x**n`` by squaring: a fifth of the time of the general power."""
    found = np.ones_like(x)
    while n:
        if n % 2:
            found = found * x
        x, n = x * x, n // 2
    return found


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def clipped_mean(log_median: float, sigma: float, max_tokens: float) -> float:
    """Mean of min(max_tokens, X) for log-normal X: ``exp(mu + s^2/2) Phi((ln M - mu - s^2)/s) + M (1 - Phi((ln M - mu)/s))``."""
    if sigma == 0:
        return min(math.exp(log_median), max_tokens)
    reach = (math.log(max_tokens) - log_median) / sigma
    return math.exp(log_median + sigma**2 / 2) * _phi(reach - sigma) + max_tokens * _phi(-reach)


def clipped_means(log_median: np.ndarray, sigma: np.ndarray | float, max_tokens: float) -> np.ndarray:
    """``clipped_mean`` for arrays that broadcast."""
    log_median, sigma = np.broadcast_arrays(np.asarray(log_median, float), np.asarray(sigma, float))
    below, above = _parts(log_median, sigma, max_tokens)
    return below + above


def log_medians(mean_tokens: np.ndarray, sigma: np.ndarray | float, max_tokens: float) -> np.ndarray:
    """Location [ln(token)] of uncut log-normals whose means after the cut are ``mean_tokens``; arrays that broadcast.

    Newton's method on ``ln E[min(M, X)] - ln mean``, which rises and is concave in the location (its slope is the share of the
    mean that the uncut responses bring). From the location without a cut, which is never too high, it comes up to the root
    without passing it.

    Raises:
        ValueError: a mean that is not below the cut.
    """
    mean, sigma = np.broadcast_arrays(np.asarray(mean_tokens, float), np.asarray(sigma, float))
    if mean.size and not (mean.min() > 0 and mean.max() < max_tokens):
        raise ValueError(f"mean_tokens must be above 0 and below the cut at {max_tokens:g}: no response is longer")
    wanted = np.log(mean)
    location = wanted - sigma**2 / 2
    for _ in range(MOST_ROUNDS):
        below, above = _parts(location, sigma, max_tokens)
        move = (wanted - np.log(below + above)) * (below + above) / below
        location = location + move
        if np.abs(move).max(initial=0.0) < 1e-13 * max(1.0, math.log(max_tokens)):
            break
    return location


def truncated_fractions(log_median: np.ndarray, sigma: np.ndarray | float, max_tokens: float) -> np.ndarray:
    """Share of responses cut at the maximum: ``Phi((mu - ln M) / s)``; arrays that broadcast."""
    log_median, sigma = np.broadcast_arrays(np.asarray(log_median, float), np.asarray(sigma, float))
    over = log_median - math.log(max_tokens)
    with np.errstate(all="ignore"):
        return np.where(sigma > 0, _normal_cdf(over / sigma), (over >= 0).astype(float))


def _parts(log_median: np.ndarray, sigma: np.ndarray, max_tokens: float) -> tuple[np.ndarray, np.ndarray]:
    """What uncut and what cut responses bring to the mean [token]."""
    room = math.log(max_tokens) - log_median
    with np.errstate(all="ignore"):
        reach = np.where(sigma > 0, room / sigma, np.where(room >= 0, np.inf, -np.inf))
    return np.exp(log_median + sigma**2 / 2) * _normal_cdf(reach - sigma), max_tokens * _normal_cdf(-reach)


@dataclass(frozen=True, kw_only=True)
class ResponseLengths:
    """The distribution of response lengths of one scenario.

    Attributes:
        mean_tokens: mean after the cut. sigma_between_prompts, sigma_within_group: spreads of the logarithm.
        max_tokens: where a response is cut. group_size: rollouts of one prompt.
    """

    mean_tokens: float
    sigma_between_prompts: float
    sigma_within_group: float
    max_tokens: float
    group_size: int

    @cached_property
    def sigma(self) -> float:
        """Spread of the logarithm of one response."""
        return math.hypot(self.sigma_between_prompts, self.sigma_within_group)

    @cached_property
    def log_median(self) -> float:
        """Location of the uncut log-normal whose cut mean is ``mean_tokens``."""
        if self.sigma == 0:
            return math.log(self.mean_tokens)
        wanted = math.log(self.mean_tokens)
        location = wanted - self.sigma**2 / 2
        for _ in range(MOST_ROUNDS):  # as log_medians does, which takes ten times as long for a single one
            uncut = math.exp(location + self.sigma**2 / 2)
            uncut *= _phi((math.log(self.max_tokens) - location) / self.sigma - self.sigma)
            mean = uncut + self.max_tokens * _phi((location - math.log(self.max_tokens)) / self.sigma)
            move = (wanted - math.log(mean)) * mean / uncut
            location += move
            if abs(move) < 1e-13 * max(1.0, abs(location)):
                break
        return location

    @cached_property
    def truncated_fraction(self) -> float:
        """Share of responses cut at the maximum."""
        if self.sigma == 0:
            return 0.0
        return float(_normal_cdf((self.log_median - math.log(self.max_tokens)) / self.sigma))

    @cached_property
    def second_moment(self) -> float:
        """E[L^2] [token^2], which weighs the context that a running request holds at a random moment."""
        if self.sigma == 0:
            return self.mean_tokens**2
        reach = (math.log(self.max_tokens) - self.log_median) / self.sigma
        below = math.exp(2 * self.log_median + 2 * self.sigma**2) * float(_normal_cdf(reach - 2 * self.sigma))
        return below + self.max_tokens**2 * float(_normal_cdf(-reach))

    @cached_property
    def rollout_survival(self) -> np.ndarray:
        """P(L > y) on ``POINTS`` even steps of y from 0 to ``max_tokens``; zero at the last."""
        return self._survival(1)

    @cached_property
    def group_survival(self) -> np.ndarray:
        """P(longest of the group > y) on the same steps: ``1 - E_z[Phi((ln y - mu - s_b z) / s_w)^n]``."""
        return self._survival(self.group_size)

    def _survival(self, n: int) -> np.ndarray:
        x = _log_steps(self.max_tokens) - self.log_median
        if self.sigma:
            law = _standard_law(self.sigma_between_prompts / self.sigma, self.sigma_within_group / self.sigma, n)
            with np.errstate(over="ignore"):  # a spread next to nothing
                survival = 1.0 - law(np.clip(x / self.sigma, -_REACH, _REACH))
        else:
            survival = (x < 0).astype(float)
        survival[0], survival[-1] = 1.0, 0.0
        return np.clip(np.minimum.accumulate(survival), 0.0, 1.0)

    @cached_property
    def mean_group_tokens(self) -> float:
        """Mean of the longest response of a group [token]: the integral of its survival."""
        return self.mean_of_longest_tokens(1)

    def mean_of_longest_tokens(self, groups: int) -> float:
        """E[longest response of ``groups`` groups] [token] = integral of ``1 - (1 - survival)^groups``."""
        if self.sigma == 0:
            return self.mean_tokens
        alive = 1.0 - (1.0 - self.group_survival) ** groups
        return float(alive.sum() - 0.5 * (alive[0] + alive[-1])) * self.max_tokens / (POINTS - 1)  # the trapezoid rule


@lru_cache(maxsize=64)
def _log_steps(max_tokens: float) -> np.ndarray:
    with np.errstate(divide="ignore"):  # the logarithm of no token is where the law wants it
        return np.log(np.linspace(0.0, max_tokens, POINTS))


@lru_cache(maxsize=64)
def _standard_law(between: float, within: float, n: int) -> Callable[[np.ndarray], np.ndarray]:
    """P(n responses of a group are all below x), x in spreads of one response's logarithm above its median.

    A cubic spline through a table: the same law serves every median and every total spread, within 1e-7.
    """
    from scipy.interpolate import CubicSpline

    x = np.linspace(-_REACH, _REACH, STANDARD_POINTS)
    return CubicSpline(x, _all_below(x, between, within, n))


def _all_below(x: np.ndarray, between: float, within: float, n: int) -> np.ndarray:
    """P(the logarithms of n responses of a group over the median are all below ``x``), by Gauss-Legendre over z.

    The n-th power of a normal law in t = (x - s_b z) / s_w goes from 0 to 1 between t = -6 and 7: only that part of z
    is summed up, and all z below it count in full. Within 1e-6 of a sum over a thousand times the points.
    """
    if n == 1 or 0.0 in (between, within):
        return _normal_cdf(x / math.hypot(between, within)) ** (n if within else 1)
    with np.errstate(over="ignore"):  # a spread next to nothing
        low = np.clip((x - 7.0 * within) / between, -_REACH, _REACH)
        half = 0.5 * (np.clip((x + 6.0 * within) / between, -_REACH, _REACH) - low)
        z = low[:, None] + half[:, None] * (1.0 + _NODE)
        t = (x[:, None] - between * z) / within
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    return _normal_cdf(low) + half * ((density * _power(_normal_cdf(t), n)) @ _WEIGHT)


@lru_cache(maxsize=256)
def response_lengths(
    mean_tokens: float, sigma_between_prompts: float, sigma_within_group: float, max_tokens: float, group_size: int
) -> ResponseLengths:
    """The distribution of those parameters, kept so that moving other knobs does not rebuild its tables."""
    return ResponseLengths(
        mean_tokens=mean_tokens, sigma_between_prompts=sigma_between_prompts,
        sigma_within_group=sigma_within_group, max_tokens=max_tokens, group_size=group_size,
    )  # fmt: skip
