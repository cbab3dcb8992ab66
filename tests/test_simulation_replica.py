"""The token clock of a replica against the roofline, integrated numerically token by token."""

import dataclasses

import numpy as np
import pytest
from simulation_toys import PRIME

from rlqueue.inference import iteration_s
from rlqueue.rates import rates
from rlqueue.simulation import parameters
from rlqueue.simulation.replica import time_for, tokens_in

READ = dataclasses.replace(PRIME, accept_length=2.5, concurrency=3000)
# Memory so fast that computing takes longer, until the contexts have grown
BOUND_BY_COMPUTE = dataclasses.replace(
    READ, generator_gpu=dataclasses.replace(PRIME.generator_gpu, hbm_bytes_per_s=3e14), decode_efficiency=0.5
)
CASES = [
    (READ, 1, 500.0),
    (READ, 40, 2e5),
    (READ, 300, 6e6),
    (BOUND_BY_COMPUTE, 2000, 1e7),
    (BOUND_BY_COMPUTE, 2000, 9e7),
]


def integrated(scenario, tokens, k, context, cells=20_000):
    """Seconds for ``tokens`` of each of k requests whose contexts sum to ``context`` at first: the midpoint rule."""
    r = rates(scenario)[0]
    sampled = (np.arange(cells) + 0.5) * tokens / cells
    parts = [r[name] for name in ("overhead_s", "shared_s", "experts_s", "miss", "kv_s_per_token", "compute_s")]
    times = [iteration_s(float(k), context / k + each, *parts) for each in sampled]
    return sum(times) * tokens / cells / scenario.accept_length


@pytest.mark.parametrize(("scenario", "k", "context"), CASES)
@pytest.mark.parametrize("tokens", [3.0, 800.0, 40_000.0])
def test_time_for_tokens_is_the_integral_of_the_iteration_time_and_tokens_in_a_time_its_inverse(
    scenario, k, context, tokens
):
    world = parameters.world(scenario, parameters.parameters(scenario, 1, log_rollouts=False), 0)
    w = world.addresses[0]
    seconds = time_for(w, tokens, k, context)
    assert seconds == pytest.approx(integrated(scenario, tokens, k, context), rel=1e-6)
    assert tokens_in(w, seconds, k, context) == pytest.approx(tokens, rel=1e-9)


def test_the_cases_meet_all_three_branches():
    r = rates(BOUND_BY_COMPUTE)[0]
    computing = 2000 * r["compute_s"]
    reading = [
        r["shared_s"] + r["experts_s"] + r["kv_s_per_token"] * context for context in (1e7, 1e7 + 2000 * 40_000, 9e7)
    ]
    assert reading[0] < computing < reading[1]
    assert computing < reading[2]
