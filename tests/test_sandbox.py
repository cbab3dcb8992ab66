"""Measured starts of sandbox providers, put into a scenario and met again in its simulated starts."""

import dataclasses

import numpy as np
import pytest
from simulation_toys import run, toy

from rlqueue.provenance import table
from rlqueue.sandbox import sandbox_keys, sandbox_knobs


def test_every_measurement_makes_a_scenario_and_an_unknown_one_is_refused():
    for key in sandbox_keys():
        dataclasses.replace(toy(), **sandbox_knobs(key))
    with pytest.raises(ValueError, match="sandbox='burst/nobody'"):
        sandbox_knobs("burst/nobody")


@pytest.mark.parametrize("key", ["burst/modal", "burst/runloop", "sequential/daytona"])
def test_simulated_starts_have_the_measured_percentiles(key):
    measured = next(row for row in table("sandbox_start") if row["key"] == key)
    scenario = toy(**sandbox_knobs(key), prompts_per_step=100, concurrency=200)
    rollouts = run(scenario, 50).rollouts
    starts = rollouts["ready_s"] - rollouts["dispatch_s"]
    assert starts.mean() == pytest.approx(float(measured["mean_s"]), rel=0.05)
    # A hundred measured starts are not quite log-normal: to the distribution the data file fitted, not to each of them
    assert np.log(starts).std() == pytest.approx(float(measured["lognormal_sigma_ln_s"]), rel=0.05)
    assert starts.median() == pytest.approx(float(measured["p50_s"]), rel=0.25)
