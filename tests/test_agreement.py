"""Closed form and simulation on the same scenarios, within a stated error; docs/semantics.md says which to believe where.

The grid: three published runs (four turns at most, no filter), with a trainer 0.3, 1 and 3 times as fast, over the schedules and
budgets for which the closed form claims to hold. Simulated means over 80 steps themselves err by one or two percent.
"""

import dataclasses
from itertools import product

import numpy as np
import pytest

from rlqueue import Scenario, simulate, solve

RUNS = ("prime-rl-qwen3-235b", "slime-qwen3-235b", "verl-qwen3-235b-c96")
FASTER = (0.3, 1.0, 3.0)
STEPS = 80


def variant(name, schedule, max_staleness, faster):
    scenario = Scenario.from_data(name)
    calls = min(scenario.tool_calls, 3.0)
    return dataclasses.replace(
        scenario, schedule=schedule, staleness_family="admission", max_staleness=max_staleness, filtered_fraction=0.0,
        mfu=min(1.0, scenario.mfu * faster), tool_calls=calls, tool_call_s=scenario.tool_call_s * scenario.tool_calls / calls,
    )  # fmt: skip


def both(schedules, budgets):
    scenarios = [variant(*each) for each in product(RUNS, schedules, budgets, FASTER)]
    return [(solve(each), simulate(each, steps=STEPS).operating_point) for each in scenarios]


@pytest.fixture(scope="module")
def fully_async():
    return both(("async-in-flight", "partial-rollout"), (1.0, 2.0, 4.0))


@pytest.fixture(scope="module")
def in_step():
    return both(("colocated-sync", "sync", "one-step-off"), (1.0,))


def errors(pairs, name, *, relative):
    closed, simulated = (np.array([getattr(each, name) for each in column]) for column in zip(*pairs, strict=True))
    return closed / simulated - 1 if relative else closed - simulated


def test_fully_async_the_step_time_agrees_to_a_few_percent(fully_async):
    off = np.abs(errors(fully_async, "step_s", relative=True))
    assert np.median(off) < 0.02
    assert off.max() < 0.10


def test_fully_async_the_wait_ratio_agrees_to_a_few_points(fully_async):
    off = np.abs(errors(fully_async, "trainer_wait_ratio", relative=False))
    assert np.median(off) < 0.005
    assert off.max() < 0.06


def test_fully_async_staleness_agrees_to_a_third_of_a_version(fully_async):
    assert np.abs(errors(fully_async, "staleness_versions", relative=False)).max() < 0.35


def test_fully_async_the_same_constraint_binds(fully_async):
    same = [closed.binding_constraint == simulated.binding_constraint for closed, simulated in fully_async]
    assert np.mean(same) > 0.9


def test_in_step_the_closed_form_is_a_tenth_too_fast_and_never_too_slow(in_step):
    # Its last rollouts decode at the mean context; in truth the longest have the longest contexts, and replicas are uneven
    off = errors(in_step, "step_s", relative=True)
    assert off.min() > -0.12
    assert off.max() < 0.03
    assert np.abs(errors(in_step, "trainer_wait_ratio", relative=False)).max() < 0.07


def test_the_published_runs_agree(subtests):
    for name in (*RUNS, "prime-rl-glm-5"):
        with subtests.test(name):
            scenario = Scenario.from_data(name)
            closed, simulated = solve(scenario), simulate(scenario, steps=120).operating_point
            assert closed.step_s == pytest.approx(simulated.step_s, rel=0.03)
            assert closed.trainer_wait_ratio == pytest.approx(simulated.trainer_wait_ratio, abs=0.01)
            assert closed.rollout_s == pytest.approx(simulated.rollout_s, rel=0.03)
            assert closed.in_flight_rollouts == pytest.approx(simulated.in_flight_rollouts, rel=0.03)
            assert closed.active_per_replica == pytest.approx(simulated.active_per_replica, rel=0.03)
            assert closed.kv_used_ratio == pytest.approx(simulated.kv_used_ratio, rel=0.03)
            assert closed.accepted_ratio == pytest.approx(simulated.accepted_ratio, rel=0.06)
            assert closed.decode_tokens_per_s == pytest.approx(simulated.decode_tokens_per_s, rel=0.03)
