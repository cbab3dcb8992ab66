"""A measured decode curve in place of the roofline: read, refused, and met by both solvers."""

import dataclasses

import numpy as np
import pytest
from simulation_toys import run, toy

from rlqueue import Scenario, simulate, solve
from rlqueue.decode_curve import line, measured, points, token_s

CURVE = "1: 100, 10: 500, 20: 800"


def test_the_time_per_token_is_linear_between_the_points_and_goes_on_after_the_last():
    assert points(CURVE) == ((1.0, 0.01), (10.0, 0.02), (20.0, 0.025))
    assert token_s(CURVE, np.array([0, 1, 5.5, 10, 15, 20, 40])) == pytest.approx(
        [0.01, 0.01, 0.015, 0.02, 0.0225, 0.025, 0.035]
    )
    assert token_s("4: 100", np.array([1, 100])) == pytest.approx([0.04, 0.04])


def test_the_nearest_line_of_a_line_is_itself():
    assert line("1: 50, 11: 275", 11) == pytest.approx((0.018, 0.002))


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        ("fast", "not 'fast'"),
        ("1: 100, 1: 200", "1 comes after 1"),
        ("0: 100", "requests >= 1"),
        ("1: -5", "tokens/s > 0"),
        ("1: nan", "tokens/s > 0"),
        ("1: 100,", "not ''"),
    ],
)
def test_what_is_no_curve_is_refused_by_name_and_value(curve, words):
    with pytest.raises(ValueError, match=words) as refusal:
        toy(decode_curve=curve)
    assert str(refusal.value).startswith("decode_curve='")


def test_two_requests_decode_at_the_measured_rate_and_the_last_alone_faster():
    # Two at 0.02 s a token each for 100 tokens, then one at 0.01 s for 100 more; speculation is in the measurement already
    result = run(toy(decode_curve="1: 100, 2: 100", accept_length=3.0), 1, (100, 200))
    assert result.rollouts["end_s"].tolist() == pytest.approx([2.0, 3.0], rel=1e-6)


def test_both_solvers_agree_on_a_curve_that_was_measured():
    curve = measured("Qwen/Qwen3-235B-A22B-Instruct-2507", "B200", "TP8", prompt_tokens=600.0)
    scenario = dataclasses.replace(Scenario.from_data("slime-qwen3-235b"), decode_curve=curve)
    closed, simulated = solve(scenario), simulate(scenario, steps=100).operating_point
    assert closed.step_s == pytest.approx(simulated.step_s, rel=0.04)
    assert closed.rollout_s == pytest.approx(simulated.rollout_s, rel=0.03)


def test_a_server_that_was_not_measured_is_refused():
    with pytest.raises(ValueError, match="no usable row"):
        measured("no-such-llm", "H200", "TP8", prompt_tokens=600.0)
