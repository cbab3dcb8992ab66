"""Solve rates of prompts: the rate at which the loop's decision turns, against the Beta law's quantile."""

import dataclasses

import numpy as np
import pytest
from scipy.special import betainc, betaincinv, betaln
from simulation_toys import PRIME

from rlqueue.simulation import parameters
from rlqueue.simulation.solve_rate import below_quantile, beta_cdf

CHANCES = [
    *(0.5**n for n in (53, 30, 20, 14, 12, 10, 8, 6, 4, 2)),
    0.00025, 0.000455, 0.1, 0.3, 0.5, 0.57, 0.8, 0.9, 0.99, 0.999, 0.999815, 1 - 1e-6, 1 - 1e-9, 1 - 2.0**-53,
]  # fmt: skip
LAWS = [
    (mean, k) for mean in (0.001, 0.1, 0.3151, 0.5, 0.5649, 0.9, 0.999) for k in (0.01, 0.3, 1.0, 2.0, 9.77, 200.0, 1e6)
]


def turning_point(scenario, chance):
    """The u from which on a rollout no longer solves: the solve rate that the loop means, by bisection."""
    world = parameters.world(scenario, parameters.parameters(scenario, 1, log_rollouts=False), 0)
    w = world.addresses[0]
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below_quantile(w, chance, middle) else (low, middle)
    return low


@pytest.mark.parametrize(("mean", "k"), LAWS)
def test_solve_rates_are_the_quantiles_of_the_beta_law_to_the_ends_of_its_tails(mean, k):
    scenario = dataclasses.replace(PRIME, filtered_fraction=0.0, solve_rate_mean=mean, solve_rate_concentration=k)
    rounding = 1e-13 + 1e-15 * k  # of the chance: where the law is flat, as at 1 - 1e-16, it leaves room for many rates
    for chance in CHANCES:
        bounds = chance * (1 - rounding), min(1.0, chance * (1 + rounding))
        low, high = betaincinv(mean * k, (1 - mean) * k, bounds)
        assert low - 1e-9 <= turning_point(scenario, chance) <= high + 1e-9, chance


@pytest.mark.parametrize(("mean", "k"), LAWS)
def test_the_distribution_function_is_scipys(mean, k):
    a, b = mean * k, (1 - mean) * k
    points = np.concatenate([np.logspace(-15, -1, 57), np.linspace(0.1, 0.9, 41), 1 - np.logspace(-15, -1, 57)])
    found = [beta_cdf(x, a, b, betaln(a, b)) for x in points]
    right = np.where(points < 0.5, betainc(a, b, points), 1 - betainc(b, a, 1 - points))  # scipy's loses digits near 1
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-14 + 1e-15 * k)


@pytest.mark.parametrize("mean", [0.3, 1.0])
def test_without_spread_every_rate_is_the_mean(mean):
    scenario = dataclasses.replace(PRIME, filtered_fraction=0.0, solve_rate_mean=mean)
    for chance in CHANCES:
        assert turning_point(scenario, chance) == pytest.approx(mean, abs=1e-11)
