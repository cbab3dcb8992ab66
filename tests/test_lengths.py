"""Response lengths: the cut mean is the mean asked for, and the tables agree with drawing at random."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue.lengths import clipped_mean, response_lengths


def drawn(lengths, groups, seed=0):
    rng = np.random.default_rng(seed)
    between = lengths.sigma_between_prompts * rng.standard_normal((groups, 1))
    within = lengths.sigma_within_group * rng.standard_normal((groups, lengths.group_size))
    return np.minimum(np.exp(lengths.log_median + between + within), lengths.max_tokens)


@given(st.floats(10.0, 25000.0), st.floats(0.0, 1.5), st.floats(0.0, 0.6))
def test_the_mean_after_the_cut_is_the_mean_asked_for(mean, between, within):
    lengths = response_lengths(mean, between, within, 27000.0, 16)
    assert clipped_mean(lengths.log_median, lengths.sigma, 27000.0) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize(("between", "within"), [(0.5, 0.25), (0.9, 0.25), (0.0, 0.3), (0.9, 0.0)])
def test_moments_and_group_maxima_agree_with_drawing_at_random(between, within):
    lengths = response_lengths(8000.0, between, within, 30000.0, 8)
    sample = drawn(lengths, 100_000)
    # 100,000 groups: 4 standard errors, and the table's even steps of 59 tokens
    for computed, values in (
        (lengths.mean_tokens, sample.mean(axis=1)),
        (lengths.mean_group_tokens, sample.max(axis=1)),
        (lengths.mean_of_longest_tokens(32), sample.max(axis=1)[: 32 * 3125].reshape(-1, 32).max(axis=1)),
    ):
        error = values.std() / math.sqrt(values.size)
        assert abs(computed - values.mean()) < 4 * error + 30
    assert lengths.second_moment == pytest.approx((sample**2).mean(), rel=0.02)
    assert lengths.truncated_fraction == pytest.approx((sample == lengths.max_tokens).mean(), abs=0.003)


def test_survival_tables_fall_from_one_to_zero():
    lengths = response_lengths(8000.0, 0.9, 0.25, 30000.0, 8)
    for table in (lengths.rollout_survival, lengths.group_survival):
        assert table[0] == 1.0
        assert table[-1] == 0.0
        assert np.all(np.diff(table) <= 0)
    assert np.all(lengths.group_survival >= lengths.rollout_survival)


def test_without_spread_every_response_has_the_mean_length():
    lengths = response_lengths(8000.0, 0.0, 0.0, 30000.0, 8)
    assert lengths.mean_group_tokens == lengths.mean_of_longest_tokens(1000) == 8000.0
    assert lengths.truncated_fraction == 0.0
    assert lengths.second_moment == 8000.0**2


def test_a_mean_close_to_the_cut_is_reached():
    lengths = response_lengths(26999.0, 0.9, 0.3, 27000.0, 4)
    assert lengths.truncated_fraction > 0.99
