"""What a simulated run costs in all, beside the closed form of the same run."""

import dataclasses
import math

import numpy as np
import pytest
from simulation_schools import schooled

from rlqueue import Scenario, cost, simulate
from rlqueue.course import course, whole_run
from rlqueue.simulated_cost import simulated_whole_run

GLM = Scenario.from_data("prime-rl-glm-5")
# A run of tens of thousands of rollouts without tool calls, so that it is simulated in a second
LEARNING = dataclasses.replace(
    GLM, training_steps=200, group_size=8, prompts_per_step=32, concurrency=768, tool_calls=0.0, sandbox_start_s=0.0,
    filtered_fraction=0.0, solve_rate_mean=0.4, solve_rate_concentration=2.0, pool_prompts=1500, learning_logit_per_step=0.015,
)  # fmt: skip


def test_a_run_that_drifts_takes_the_hours_of_its_simulation():
    scenario = dataclasses.replace(LEARNING, drift_law="linear", drift_steps=199, drift_length_factor=1.5)
    run, table = simulate(scenario, seed=1, steps=200), course(scenario).table
    # The steps at which a group was admitted lie some versions back, and twenty steps are 5,000 responses of spread .9
    for step in (60, 120, 185):
        mean = float(run.steps["mean_response_tokens"].to_numpy()[step - 10 : step + 10].mean())
        assert mean == pytest.approx(float(np.interp(step, table["step"], table["mean_response_tokens"])), rel=0.1)
    assert simulated_whole_run(run).hours == pytest.approx(whole_run(scenario).hours, rel=0.1)


def test_a_simulated_whole_run_costs_what_its_steps_do():
    scenario = dataclasses.replace(GLM, training_steps=80)
    run = simulate(scenario, seed=1, steps=80)
    whole, closed = simulated_whole_run(run), whole_run(scenario)
    assert whole.steps == 80
    assert whole.gpu_hours == pytest.approx(256 * run.steps["end_s"].iloc[-1] / 3600)
    usd_per_gpu_hour = cost(scenario, run.operating_point).usd_per_gpu_hour
    assert whole.usd == pytest.approx(whole.gpu_hours * usd_per_gpu_hour)
    assert whole.trained_tokens == pytest.approx(run.steps["trained_tokens"].sum())
    assert whole.informative_tokens == whole.trained_tokens
    assert math.isnan(whole.solve_rate_end)
    # The start, where the first batch waits for its longest group, is in the simulated run only
    assert whole.hours == pytest.approx(closed.hours, rel=0.1)
    assert whole.hosted_usd == pytest.approx(closed.hosted_usd, rel=0.05)


def test_without_the_gate_some_simulated_tokens_teach_nothing():
    scenario = dataclasses.replace(LEARNING, gate="none", learning_logit_per_step=0.0, training_steps=60)
    whole, closed = simulated_whole_run(simulate(scenario, seed=2, steps=60)), whole_run(scenario)
    shares = [each.informative_tokens / each.trained_tokens for each in (whole, closed)]
    assert shares[0] == pytest.approx(shares[1], abs=0.05)
    assert whole.usd_per_informative_mtok == pytest.approx(whole.usd_per_mtok / shares[0])


def test_a_run_that_has_learned_even_the_hardest_prompts_of_a_broad_law_still_has_a_bill():
    broad = schooled(
        solve_rate_law="logit-normal", solve_rate_concentration=math.inf, solve_rate_logit_sigma=20.0,
        solve_rate_logit_shift=20.0, learning_logit_per_step=10.0, gate="none", pool_prompts=200,
        schedule="async-in-flight", staleness_family="admission",
    )  # fmt: skip
    run = simulate(broad, seed=1, steps=100)
    assert run.settled.solve_rate_logit_shift > 40
    assert cost(run.settled, run.operating_point).usd_per_mtok > 0
