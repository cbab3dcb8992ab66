"""Runs so small that a person can work them out, and random ones, for the tests of the simulation."""

import dataclasses

import numpy as np

from rlqueue import Scenario
from rlqueue.simulation import draws, parameters, state
from rlqueue.simulation.run import go_on, simulate_from

PRIME = Scenario.from_data("prime-rl-qwen3-235b")
TOY = 1e-6  # the toy's memory and compute take about 1e-9 s where a token takes 0.01 s; the hand leaves them out


def toy(*, kv_tokens=1e6, **knobs):
    """One replica that samples 100 tokens/s a request however many there are and prefills 1,000 tokens/s; a trainer of 1,000
    tokens/s; one group of two rollouts a step, 100 sampled and no prompt tokens each; room for ``kv_tokens``.
    """
    gpu = dataclasses.replace(
        PRIME.generator_gpu, hbm_bytes=3e9 + kv_tokens * 2e3, hbm_bytes_per_s=1e18, dense_bf16_flops_per_s=1e18
    )
    llm = dataclasses.replace(
        PRIME.llm, total_params=1e9, active_params=1e9, experts=1, experts_per_token=1, kv_bytes_per_token_bf16=2e3
    )
    values = {
        "llm": llm, "generator_gpu": gpu, "trainer_gpu": gpu, "trainer_gpus": 1, "generator_gpus": 1, "gpus_per_replica": 1,
        "generator_weights_precision": "bf16", "memory_fraction": 1.0, "activation_bytes_per_gpu": 1e9,
        "prompts_per_step": 1, "group_size": 2, "mean_prompt_tokens": 0.0, "mean_response_tokens": 100.0,
        "response_sigma_between_prompts": 0.0, "response_sigma_within_group": 0.0,
        "max_response_tokens": 10_000.0, "tool_calls": 0.0, "sandbox_start_s": 0.0, "concurrency": 2,
        "decode_efficiency": 1.0, "decode_overhead_s": 0.01, "prefill_mfu": 2e-6, "mfu": 6e-6, "weight_sync_s": 0.0,
        "schedule": "sync", "staleness_family": "admission", "max_staleness": 1.0, "surplus_fraction": 0.0,
    }  # fmt: skip
    return dataclasses.replace(PRIME, **(values | knobs))


def run(scenario, steps, *lengths, law=state.LOG_NORMAL, seed=0, max_events=10_000_000):
    """Simulate with given lengths by group (then the same again from the first), or another law of lengths; keeps rollouts."""
    params = parameters.parameters(scenario, steps, log_rollouts=True)
    params["law"] = state.GIVEN if lengths else law
    world = parameters.world(scenario, params, seed)
    if lengths:
        given = np.zeros(len(lengths) * scenario.group_size, state.NUMBER)
        given["number"] = np.ravel(lengths)
        world.put("given", given)
    return simulate_from(world, scenario, seed, max_events)


def run_tenants(scenario, steps, *lengths, seed=0, seeds=(), max_events=10_000_000):
    """A run of each tenant, with given lengths of each (by group, as above), or the draws of ``seeds``; keeps rollouts."""
    params = parameters.parameters(scenario, steps, log_rollouts=True)
    params["law"] = state.GIVEN if lengths else state.LOG_NORMAL
    worlds = parameters.worlds(scenario, params, seed)
    for world, own in zip(worlds, lengths, strict=bool(lengths)):
        given = np.zeros(len(own) * scenario.group_size, state.NUMBER)
        given["number"] = np.ravel(own)
        world.put("given", given)
    for world, own in zip(worlds, seeds, strict=bool(seeds)):
        world.put("keys", draws.keys(own).view(state.KEY))
    return go_on(worlds, scenario, seed, max_events)
