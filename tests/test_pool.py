"""A pool of prompts in the mean: exact courses of learning, samplers that keep their accounts, and what each is good for."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue.choices import GATES, SAMPLERS
from rlqueue.curriculum import Beta, expit
from rlqueue.pool import Pool, Rules, after, appeal, opened, read

RULES = Rules(
    group_size=16, groups=32.0, in_flight_groups=64.0, prompts=2000, gate="zero-advantage", sampler="uniform", band_low=0.2,
    band_high=0.8, retire_above=0.9, speed=0.01, transfer=1.0, staleness_half=math.inf,
)  # fmt: skip
LAW = Beta(mean=0.3, concentration=2.0)


def rules(**knobs):
    return dataclasses.replace(RULES, **knobs)


def run(law, rule, steps, parts=20):
    pool = opened(law, rule)
    for _ in range(parts):
        pool = after(pool, rule, steps / parts)
    return pool


def test_at_the_start_the_pool_is_the_law():
    reading = read(opened(LAW, RULES), RULES)
    all_solved, none_solved = LAW.powers(16)
    assert reading.solve_rate == reading.tried_solve_rate == pytest.approx(0.3, abs=1e-6)
    assert (reading.all_solved, reading.none_solved) == pytest.approx((all_solved, none_solved), abs=1e-6)
    assert reading.informative == pytest.approx(1 - all_solved - none_solved, abs=1e-6)


def test_behind_the_gate_a_fully_shared_rise_is_the_speed_times_the_steps():
    pool = run(LAW, RULES, 300)
    assert pool.logits - opened(LAW, RULES).logits == pytest.approx(3.0, rel=1e-9)


def test_at_the_staleness_of_half_the_rise_is_half():
    rule = rules(staleness_half=4.0)
    pool = after(opened(LAW, rule), rule, 100, staleness=4.0)
    assert pool.logits - opened(LAW, rule).logits == pytest.approx(0.5, rel=1e-9)


def test_without_the_gate_prompts_rise_by_the_share_that_teaches():
    rule = rules(gate="none")
    short = after(opened(LAW, rule), rule, 1e-3)
    informative = read(opened(LAW, rule), rule).informative
    assert (short.logits - opened(LAW, rule).logits) / 1e-3 == pytest.approx(0.01 * informative, rel=1e-4)


def test_a_prompt_that_learns_from_its_own_groups_follows_its_closed_form():
    # dx/dt = c 4 p (1 - p) with p = expit(x) has 2 x + 2 sinh x = 4 c t + the same at 0: 1 / (p (1 - p)) = 2 + 2 cosh x
    rule = rules(gate="none", transfer=0.0, speed=2.0)
    pool = run(Beta(mean=0.1, concentration=math.inf), rule, 2000, parts=40)
    x0, x1 = math.log(0.1 / 0.9), float(pool.logits[0])
    per_step = 2.0 * 32 / 2000 * (1 - 1 / 16)
    assert 2 * (x1 - x0) + 2 * (math.sinh(x1) - math.sinh(x0)) == pytest.approx(4 * per_step * 2000, rel=0.01)


def test_in_an_endless_pool_what_a_prompt_learns_from_itself_is_lost():
    rule = rules(prompts=0, transfer=0.25)
    assert run(LAW, rule, 100).logits - opened(LAW, rule).logits == pytest.approx(0.25, rel=1e-9)


def test_without_learning_nothing_moves():
    rule = rules(speed=0.0)
    assert np.array_equal(run(LAW, rule, 1000).logits, opened(LAW, rule).logits)


@given(
    sampler=st.sampled_from(list(SAMPLERS)), gate=st.sampled_from(list(GATES)), mean=st.floats(0.02, 0.98),
    k=st.floats(0.2, 100.0), speed=st.floats(0.0, 0.2), transfer=st.floats(0.0, 1.0), prompts=st.integers(32, 10**5),
    steps=st.floats(1.0, 3000.0),
)  # fmt: skip
def test_no_prompt_is_lost_and_no_share_leaves_its_limits(**drawn):
    mean, k, steps = drawn.pop("mean"), drawn.pop("k"), drawn.pop("steps")
    rule = rules(**drawn)
    pool = opened(Beta(mean=mean, concentration=k), rule)
    before = read(pool, rule).solve_rate
    for _ in range(3):
        pool = after(pool, rule, steps)
        reading = read(pool, rule)
        if pool.seen.size:
            assert pool.seen.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
            assert pool.seen.min() >= 0.0
        assert reading.informative + reading.all_solved + reading.none_solved == pytest.approx(1.0, abs=1e-6)
        assert -1e-9 <= reading.idle <= 1 + 1e-9
        assert reading.solve_rate >= before - 1e-9
        before = reading.solve_rate


def test_prompts_are_observed_at_the_rate_at_which_they_are_tried():
    # Taken alike, with 32 trained groups a step of 2,000 prompts, all informative in effect: e^{-steps x rate} never tried
    rule = rules(sampler="retire-solved", retire_above=1.0, gate="none", speed=0.0)
    pool = run(LAW, rule, 50)
    assert pool.weights @ pool.seen[:, -1] == pytest.approx(math.exp(-50 * 32 / 2000), rel=1e-6)


def test_what_is_observed_is_about_the_solve_rate():
    rule = rules(sampler="retire-solved", retire_above=1.0, gate="none", speed=0.0)
    pool = run(LAW, rule, 2000)
    observed = pool.seen[:, :-1] @ np.linspace(0, 1, 17) / pool.seen[:, :-1].sum(axis=1)
    assert observed == pytest.approx(expit(pool.logits), abs=1e-3)
    # Weights 1/2, 1/4, ... of groups of 16: a third of a group's variance; halves between bins add a little
    middle = np.argmin(np.abs(pool.logits))
    p = expit(pool.logits[middle])
    variance = pool.seen[middle, :-1] @ (np.linspace(0, 1, 17) - p) ** 2
    assert variance == pytest.approx(p * (1 - p) / 16 / 3, rel=0.25)


@pytest.mark.parametrize(("sampler", "more"), [("difficulty-band", 1.7), ("adaptive", 1.4), ("retire-solved", 1.5)])
def test_a_sampler_that_looks_makes_more_groups_teach_in_a_pool_of_many_solved_prompts(sampler, more):
    law = Beta(mean=0.75, concentration=1.0)
    looks = rules(sampler=sampler, speed=0.0, in_flight_groups=20.0)
    uniform = read(opened(law, RULES), RULES).informative
    assert read(run(law, looks, 200), looks).informative > more * uniform


def test_what_is_never_wanted_is_taken_where_nothing_else_is_left():
    # All prompts are solved and known to be: the band is empty, groups are drawn from the whole pool
    rule = rules(sampler="difficulty-band", speed=0.0)
    pool = run(Beta(mean=0.99999, concentration=math.inf), rule, 500)
    reading = read(pool, rule)
    assert reading.idle == pytest.approx(1.0, abs=1e-3)
    assert reading.tried_solve_rate == pytest.approx(0.99999)


def test_the_appeal_of_what_was_observed():
    assert list(appeal(rules(group_size=4, sampler="difficulty-band", band_low=0.25, band_high=0.75))) == [
        0,
        1,
        1,
        1,
        0,
        1,
    ]
    assert list(appeal(rules(group_size=4, sampler="retire-solved", retire_above=0.75))) == [1, 1, 1, 1, 0, 1]
    adaptive = appeal(rules(group_size=4, sampler="adaptive"))
    assert adaptive == pytest.approx([0.09, 0.21, 0.25, 0.21, 0.09, 0.25])


def test_moments_asked_for_in_between_change_little():
    rule = rules(sampler="adaptive", transfer=0.0, speed=0.5)
    coarse, fine = (read(run(LAW, rule, 400, parts), rule) for parts in (10, 200))
    assert coarse.solve_rate == pytest.approx(fine.solve_rate, abs=0.005)
    assert coarse.informative == pytest.approx(fine.informative, abs=0.01)
    assert isinstance(opened(LAW, rule), Pool)
