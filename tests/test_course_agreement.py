"""A run that learns, by closed form and by simulation: the mean field over the pool against its prompts one by one.

The closed form follows the mean of the pool; what is left is the chance of a thousand prompts, the order in which they come and,
with samplers that narrow the pool, how long it takes until a prompt is seen to be outside.
"""

import dataclasses
from itertools import product

import numpy as np
import pytest

from rlqueue import Scenario, simulate
from rlqueue.choices import GATES, SAMPLERS
from rlqueue.course import course

STEPS = 200
LEARNER = dataclasses.replace(
    Scenario.from_data("prime-rl-qwen3-235b"), tool_calls=0.0, sandbox_start_s=0.0, surplus_fraction=0.0,
    filtered_fraction=0.0, concurrency=1024, solve_rate_mean=0.4, solve_rate_concentration=2.0, pool_prompts=1000,
    training_steps=STEPS, band_low=0.1, band_high=0.9, retire_above=0.9,
)  # fmt: skip


@pytest.mark.parametrize(("sampler", "gate", "transfer"), list(product(SAMPLERS, GATES, (1.0, 0.0))))
def test_the_pool_rises_as_the_mean_field_says_within_a_few_hundredths(sampler, gate, transfer):
    speed = 0.02 if transfer else 0.3
    scenario = dataclasses.replace(
        LEARNER, sampler=sampler, gate=gate, learning_transfer=transfer, learning_logit_per_step=speed
    )
    closed, run = course(scenario).table, simulate(scenario, steps=STEPS)
    moments = closed["step"].to_numpy()
    assert len(run.steps) == STEPS
    risen = run.solve_rate_means - run.solve_rate_means[0]  # the thousand prompts begin off their law by chance
    expected = closed["solve_rate"].to_numpy() - closed["solve_rate"].iloc[0]
    assert risen[-1] > 0.1
    np.testing.assert_allclose(risen[moments], expected, atol=0.025)
    informative = run.steps["informative_fraction"].mean()
    assert informative == pytest.approx(
        np.interp(np.arange(STEPS), moments, closed["informative_fraction"]).mean(), abs=0.06
    )
    assert run.steps["end_s"].iloc[-1] / 3600 == pytest.approx(closed["hours"].iloc[-1], rel=0.08)
