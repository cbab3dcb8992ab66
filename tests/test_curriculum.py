"""Solve rates: exact shares of groups that teach, laws that agree with each other, and what a group teaches."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from rlqueue import curriculum, learning
from rlqueue.curriculum import Beta, Histogram, LogitNormal, Shifted, informative_fraction

UNIFORM = Beta(mean=0.5, concentration=2.0)
LAWS = st.one_of(
    st.builds(Beta, mean=st.floats(0.02, 0.98), concentration=st.floats(0.2, 1e4)),
    st.builds(LogitNormal, mean=st.floats(0.02, 0.98), sigma=st.floats(0.0, 8.0)),
)


@pytest.mark.parametrize("n", [2, 3, 8, 16, 64, 512])
def test_under_a_uniform_law_all_but_two_of_n_plus_one_outcomes_teach(n):
    assert informative_fraction(UNIFORM, n) == pytest.approx(1 - 2 / (n + 1), rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("n", [2, 16])
def test_prompts_that_are_always_or_never_solved_teach_nothing(p, n):
    assert informative_fraction(Histogram(rates=(p,), shares=(1.0,)), n) == 0.0
    assert informative_fraction(Beta(mean=p, concentration=3.0), n) == 0.0
    assert learning.advantage(np.array(p), n, by_std=True) == 0.0


@given(st.floats(0.0, 1.0), st.integers(2, 64))
def test_prompts_that_are_all_alike_teach_unless_all_or_none_of_a_group_is_right(p, n):
    expected = 1 - p**n - (1 - p) ** n
    for law in (Beta(mean=p, concentration=math.inf), Histogram(rates=(p,), shares=(1.0,))):
        assert informative_fraction(law, n) == pytest.approx(expected, abs=1e-12)


@given(LAWS, st.integers(2, 64))
def test_more_rollouts_in_a_group_never_make_fewer_groups_teach(law, n):
    assert informative_fraction(law, n + 1) >= informative_fraction(law, n) - 1e-9


@given(LAWS)
def test_few_rates_with_weights_have_the_law_s_mean_and_powers(law):
    rates, weights = law.nodes()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    # What lies beyond logits of 30 is lumped: at most some 1e-5 where a law has that much in its tails
    assert weights @ rates == pytest.approx(law.mean, abs=2e-5)
    for n in (2, 16):
        assert weights @ rates**n == pytest.approx(law.powers(n)[0], abs=2e-5)
        assert weights @ (1 - rates) ** n == pytest.approx(law.powers(n)[1], abs=2e-5)


@given(LAWS, st.floats(0.01, 0.99))
def test_the_quantile_of_a_share_has_that_share_below_it(law, share):
    at = float(curriculum.logit(law.quantile(np.array(share))))
    if abs(at) < 25:  # a rate nearer to 1 is a double's last digits
        below, above = law.cdf(curriculum.expit(np.array([at - 1e-4, at + 1e-4])))
        assert below <= share <= above


def test_logit_normal_powers_are_the_integrals_of_their_law():
    law = LogitNormal(mean=0.3, sigma=2.0)

    def density(z):
        return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    def rate(z):
        return 1 / (1 + math.exp(-(law.centre + law.sigma * z)))

    assert quad(lambda z: rate(z) * density(z), -9, 9)[0] == pytest.approx(0.3, abs=1e-9)
    assert quad(lambda z: rate(z) ** 16 * density(z), -9, 9)[0] == pytest.approx(law.powers(16)[0], abs=1e-9)


@given(st.floats(0.1, 0.9), st.floats(0.5, 20.0))
def test_a_histogram_of_many_bins_is_the_beta_law_it_was_cut_from(mean, concentration):
    law = Beta(mean=mean, concentration=concentration)
    edges = np.linspace(0.0, 1.0, 2001)
    shares = np.maximum(np.diff(law.cdf(edges)), 0.0)
    text = ", ".join(f"{p:.6f}: {share:.12g}" for p, share in zip(0.5 * (edges[1:] + edges[:-1]), shares, strict=True))
    binned = curriculum.histogram(text)
    # A bin is 1/2000 wide: powers differ by at most the slope n times half of it, and much less on average
    assert binned.mean == pytest.approx(law.mean, abs=3e-4)
    assert informative_fraction(binned, 16) == pytest.approx(informative_fraction(law, 16), abs=16 / 4000)


@given(LAWS, st.floats(-4.0, 4.0))
def test_a_rise_of_all_logits_moves_every_quantile_by_it(law, shift):
    moved = Shifted(law=law, shift=shift)
    shares = np.array([0.2, 0.5, 0.8])
    before, after = curriculum.logit(law.quantile(shares)), curriculum.logit(moved.quantile(shares))
    inside = np.abs(before) < 25  # beyond, a rate near 1 is a double's last digits
    assert after[inside] - before[inside] == pytest.approx(shift, abs=1e-3)
    assert (moved.mean - law.mean) * shift >= -1e-5


def test_what_is_never_solved_stays_so():
    moved = Shifted(law=Histogram(rates=(0.0, 0.5, 1.0), shares=(0.3, 0.3, 0.4)), shift=30.0)
    assert moved.powers(16)[1] == pytest.approx(0.3, abs=1e-9)
    assert moved.mean == pytest.approx(0.7, abs=1e-9)


def test_a_uniform_law_makes_every_outcome_of_a_group_equally_likely():
    assert learning.outcomes(UNIFORM, 7) == pytest.approx(np.full(8, 1 / 8), abs=1e-6)


@pytest.mark.parametrize(
    "law",
    [
        UNIFORM,
        Beta(mean=0.3, concentration=0.7),
        LogitNormal(mean=0.6, sigma=3.0),
        Histogram(rates=(0.1, 1.0), shares=(0.6, 0.4)),
    ],
)
def test_drawn_groups_teach_as_often_as_computed(law):
    rng = np.random.default_rng(0)
    groups = 200_000
    solved = rng.binomial(16, law.quantile(rng.random(groups)))
    share = np.mean((solved > 0) & (solved < 16))
    exact = informative_fraction(law, 16)
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / groups)
    assert np.bincount(solved, minlength=17) / groups == pytest.approx(learning.outcomes(law, 16), abs=0.005)


def test_the_advantage_of_two_rollouts_by_hand():
    # One of two is right with chance 1/2; then each is off the mean by 1/2, and by one standard deviation
    assert learning.advantage(np.array(0.5), 2, by_std=False) == pytest.approx(0.25)
    assert learning.advantage(np.array(0.5), 2, by_std=True) == pytest.approx(0.5)


@given(st.floats(0.05, 0.95))
def test_in_large_groups_the_advantage_is_that_of_the_rate(p):
    assert learning.advantage(np.array(p), 4000, by_std=False) == pytest.approx(2 * p * (1 - p), rel=1e-3)
    assert learning.advantage(np.array(p), 4000, by_std=True) == pytest.approx(2 * math.sqrt(p * (1 - p)), rel=1e-2)


def test_dividing_by_the_deviation_makes_nearly_uniform_groups_speak_louder():
    easy, even = np.array(0.97), np.array(0.5)
    shares = [
        learning.advantage(easy, 16, by_std=by_std) / learning.advantage(even, 16, by_std=by_std)
        for by_std in (False, True)
    ]
    assert shares[1] > 1.5 * shares[0]


@given(st.floats(0.0, 1.0))
def test_the_signal_is_largest_at_one_half_and_even_about_it(p):
    assert learning.signal(p) <= learning.signal(0.5) == 1.0
    assert learning.signal(p) == pytest.approx(learning.signal(1 - p), abs=1e-12)
    assert learning.mean_over(Beta(mean=p, concentration=math.inf), learning.signal) == pytest.approx(
        learning.signal(p)
    )


def test_a_group_of_half_life_s_staleness_teaches_half_as_much():
    assert learning.freshness(np.array([0.0, 4.0, 8.0]), 4.0) == pytest.approx([1.0, 0.5, 0.25])
    assert learning.freshness(np.array([0.0, 100.0]), math.inf) == pytest.approx([1.0, 1.0])


def test_what_a_step_teaches_by_hand():
    informative, fresh = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.5, 1.0, 1.0])
    assert learning.shared_rise(0.2, 0.25, informative, fresh) == pytest.approx(0.2 * 0.25 * 1.5 / 4)
    own = learning.own_rise(0.2, 0.25, np.array([0.5, 0.25, 0.0, 1.0]), fresh)
    assert own == pytest.approx([0.15, 0.15 * 0.75 * 0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5", r"'0.5' must be 'rate: share'"),
        ("0.5: x", r"must be 'rate: share'"),
        ("1.5: 1", r"the rate in \[0, 1\]"),
        ("0.5: -1, 0.6: 2", r"the share >= 0"),
        ("0.5: 0.5, 0.5: 0.5", r"must go up in rates: 0.5 comes after 0.5"),
        ("0.2: 0.5, 0.5: 0.4", r"the shares sum to 0.9, must be 1"),
        ("", r"must be 'rate: share'"),
    ],
)
def test_text_that_is_no_histogram_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        curriculum.histogram(text)
