"""What a group teaches, and how solve rates rise by it.

Assumed, for nobody publishes more than the shape: a policy that follows the gradient of expected reward moves the logit of a
prompt's solve rate, as fast as its signal p (1 - p) says; some of what it learns may help with all prompts; groups of old
versions teach less. ``published`` holds the law to the one series there is.
"""

from collections.abc import Callable

import numpy as np

from rlqueue.curriculum import SolveRates


def _outcomes(p: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Number of solved rollouts 0 ... n, and the chance of each for each p: shapes (n + 1,) and p.shape + (n + 1,)."""
    from scipy.stats import binom

    k = np.arange(n + 1)
    return k, binom.pmf(k, n, np.asarray(p, float)[..., None])


def outcomes(law: SolveRates, n: int) -> np.ndarray:
    """Chance that 0, 1, ..., n rollouts of a group are correct: array of n + 1."""
    rates, weights = law.nodes()
    return weights @ _outcomes(rates, n)[1]


def signal(p: np.ndarray) -> np.ndarray:
    """What a group at solve rate p teaches, 1 at one half and 0 at the ends: ``4 p (1 - p)``.

    The gradient of p in its logit is ``p (1 - p)``: a policy that follows the gradient of expected reward moves with it
    (arXiv 2504.03380; SPEED-RL, arXiv 2506.09016).
    """
    p = np.asarray(p, float)
    return 4.0 * p * (1.0 - p)


def advantage(p: np.ndarray, n: int, *, by_std: bool) -> np.ndarray:
    """Mean size of the advantage of a rollout in a group of n at solve rate p.

    With k of n correct a rollout's advantage is ``r - k/n``: in the mean ``2 (k/n)(1 - k/n)`` in size (Dr. GRPO, arXiv
    2503.20783). GRPO (arXiv 2402.03300) divides by the group's standard deviation ``sqrt((k/n)(1 - k/n))``, which leaves
    ``2 sqrt((k/n)(1 - k/n))`` and makes nearly uniform groups speak louder. Groups of equal rewards have none.
    """
    k, chances = _outcomes(p, n)
    share = k / n
    size = share * (1.0 - share)
    return chances @ (2.0 * (np.sqrt(size) if by_std else size))


def mean_over(law: SolveRates, of: Callable[[np.ndarray], np.ndarray]) -> float:
    """Mean of a function of the rate over the prompts, by the law's nodes."""
    rates, weights = law.nodes()
    return float(weights @ of(rates))


def freshness(staleness_versions: np.ndarray, half: float) -> np.ndarray:
    """How much a group of that staleness still teaches: ``2^(-staleness / half)``; an endless half discounts nothing."""
    return np.exp2(-np.asarray(staleness_versions, float) / half)


def shared_rise(speed: float, transfer: float, informative: np.ndarray, fresh: np.ndarray) -> float:
    """Rise of every prompt's logit by one step: ``speed * transfer * mean over trained groups of informative * fresh``.

    Args:
        informative: 1 for each trained group whose rewards differ, else 0. fresh: its ``freshness``.
    """
    return float(speed * transfer * np.mean(informative * fresh))


def own_rise(speed: float, transfer: float, solved_share: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Rise of the logit of the prompt of each trained group by that group: ``speed (1 - transfer) signal(k/n) fresh``."""
    return speed * (1.0 - transfer) * signal(solved_share) * fresh
