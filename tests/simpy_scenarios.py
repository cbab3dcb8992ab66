"""Scenarios for the two simulators: one whose times can be worked out by hand, and many random ones."""

import dataclasses
import math

import numpy as np

from rlqueue import Scenario
from rlqueue.choices import SAMPLERS as SAMPLER_WORDS
from rlqueue.choices import SINGLE_TENANT
from rlqueue.scenario import SCHEDULES, STALENESS_FAMILIES

PRIME = Scenario.from_data("prime-rl-qwen3-235b")
SAMPLERS = list(SAMPLER_WORDS)


def by_hand(*, kv_tokens=1e6, **knobs):
    """One replica that decodes 100 tokens/s a request however many there are and prefills 1,000 tokens/s; a trainer of 1,000
    tokens/s; one group of 2 a step, no prompt tokens; ``kv_tokens`` of KV memory. Memory and compute take about 1e-9 of a second.
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
        "max_response_tokens": 10_000.0, "tool_calls": 0.0, "sandbox_start_s": 0.0, "concurrency": 2,
        "decode_efficiency": 1.0, "decode_overhead_s": 0.01, "prefill_mfu": 2e-6, "mfu": 6e-6, "schedule": "sync",
        "staleness_family": "admission", "max_staleness": 1.0, "surplus_fraction": 0.0,
    }  # fmt: skip
    return dataclasses.replace(PRIME, **(values | knobs))


def random_scenarios(count, seed):
    """Small runs that go through all schedules and families in turn, each with some of the other knobs at work."""
    rng = np.random.default_rng(seed)
    pairs = [(schedule, family) for schedule in SCHEDULES for family in STALENESS_FAMILIES]
    plain = [random_scenario(rng, *pairs[i % len(pairs)]) for i in range(count)]
    fetched = [fetching(each, 3.0 + i % 7) if i % 4 == 1 else each for i, each in enumerate(plain)]
    return [holding(each) if i % 5 == 2 else each for i, each in enumerate(fetched)]


def holding(scenario):
    """The same where a group keeps its slots until its last rollout has ended; room for one at least."""
    slots = max(scenario.concurrency, scenario.group_size)
    return dataclasses.replace(scenario, slots_held_by="group", concurrency=slots)


def fetching(scenario, seconds):
    """The same with batches that take so long to fetch, and an optimizer step for each rollout of a group."""
    return dataclasses.replace(scenario, batch_fetch_s=seconds, minibatches_per_update=scenario.group_size)


def random_scenario(rng, schedule, family):
    def some(chance, value, otherwise):
        return value if rng.random() < chance else otherwise

    def between(low, high):
        return float(rng.uniform(low, high))

    u = int(rng.choice((1, 1, 2)))
    response, group_size = between(500, 4000), int(rng.integers(2, 6))
    prompts = u * int(rng.integers(1, 5))
    # A trainer from three times faster to three times slower than the generator of 6 seconds to a thousand tokens, roughly
    concurrency = int(prompts * group_size * between(0.5, 4)) + 1
    mfu = 10 ** between(-2.5, -1.0)
    scenario = dataclasses.replace(
        PRIME, name=f"{schedule} {family}", schedule=schedule, staleness_family=family, trainer_gpus=8 * int(rng.integers(1, 4)),
        generator_gpus=8 * int(rng.integers(1, 4)), prompts_per_step=prompts, group_size=group_size, updates_per_step=u,
        steps_per_publication=int(rng.choice((1, 1, 1, 2, 3))), max_staleness=float(rng.choice((0.5, 1, 1, 2, 3, 5))),
        mean_response_tokens=response, max_response_tokens=response * between(2, 6), mean_prompt_tokens=between(0, 3000),
        response_sigma_between_prompts=between(0, 0.8), response_sigma_within_group=between(0.1, 0.5),
        tool_calls=some(0.5, between(0, 4), 0.0), tool_call_s=between(0, 10), tool_call_sigma=some(0.5, between(0, 1), 0.0),
        reward_s=some(0.5, between(0, 10), 0.0), sandbox_start_s=some(0.5, between(1, 20), 0.0),
        sandbox_start_sigma=some(0.7, between(0, 1), 0.0), sandbox_creates_per_s=some(0.3, between(0.2, 3), math.inf),
        sandbox_cap=float(some(0.3, math.ceil(concurrency * between(0.3, 1)), math.inf)),
        sandbox_failure_ratio=some(0.3, between(0, 0.4), 0.0), sandbox_run_failure_ratio=some(0.3, between(0, 0.2), 0.0),
        sandbox_retries=int(rng.integers(0, 4)), sandbox_timeout_s=some(0.3, between(20, 40), math.inf),
        concurrency=concurrency, accept_length=some(0.3, between(1, 4), 1.0), prefix_cache=bool(rng.random() < 0.7),
        prefill_gpus_per_replica=some(0.3, 2, 0), mfu=mfu, trainer_overhead_s=some(0.5, between(0, 3), 0.0),
        weight_sync_s=between(0, 10), evaluate_every_steps=some(0.3, 3, 0), evaluation_s=between(0, 20),
        checkpoint_every_steps=some(0.3, 4, 0), checkpoint_s=between(0, 10),
        oversampling_factor=some(0.4, between(1, 2), 1.0), surplus_fraction=some(0.3, between(0, 0.4), 0.0),
        filtered_fraction=0.0, prefill_mfu=between(0.05, 0.4),
    )  # fmt: skip
    how = rng.random()
    if how < 0.3:
        scenario = dataclasses.replace(scenario, filtered_fraction=between(0, 0.5))
    elif how < 0.6:
        scenario = dataclasses.replace(
            scenario, solve_rate_mean=between(0.3, 0.7), solve_rate_concentration=some(0.8, between(1, 10), math.inf)
        )
    return with_kv_for(scenario, between(1.05, 5.0)) if rng.random() < 0.4 else scenario


def with_kv_for(scenario, sequences):
    """So little KV memory that a replica holds so many of the longest sequences."""
    s = scenario
    longest = s.mean_prompt_tokens + s.max_response_tokens
    room = sequences * longest * s.llm.kv_bytes_per_token(s.kv_precision)
    per_gpu = (room + s.llm.weights_bytes(s.generator_weights_precision)) / (
        s.gpus_per_replica - s.prefill_gpus_per_replica
    )
    return dataclasses.replace(s, memory_fraction=(per_gpu + s.activation_bytes_per_gpu) / s.generator_gpu.hbm_bytes)


def hard_scenarios(count, seed):
    """Corners that a random scenario seldom meets, in turn: prefill apart and no memory left; prefill as long as decoding, on
    replicas lent and taken back; failures that find the dispatch closed for a drain, and the age limit after it.
    """
    rng = np.random.default_rng(seed)
    corners = (
        ("partial-rollout", {"prefill_gpus_per_replica": 2}, 2.1),
        (
            "lent-trainer",
            {
                "prefill_mfu": 0.004,
                "mfu": 0.6,
                "weight_sync_s": 0.0,
                "trainer_overhead_s": 0.0,
                "updates_per_step": 1,
                "tool_calls": 2.5,
                "tool_call_s": 20.0,
            },
            8.0,
        ),
        (
            "async-drain",
            {"sandbox_start_s": 5.0, "sandbox_run_failure_ratio": 0.5, "group_size": 2, "max_staleness": 0.5},
            8.0,
        ),
    )
    for i in range(count):
        schedule, knobs, sequences = corners[i % len(corners)]
        family = "drop" if schedule == "async-drain" else str(rng.choice(list(STALENESS_FAMILIES)))
        scenario = dataclasses.replace(random_scenario(rng, schedule, family), **knobs, memory_fraction=0.9)
        concurrency = 2 * scenario.concurrency if schedule == "partial-rollout" else scenario.concurrency
        yield with_kv_for(dataclasses.replace(scenario, concurrency=concurrency), sequences)


def moving_scenarios(count, seed):
    """Runs in which prompts come again, solve rates rise and lengths drift: samplers, gates and laws in turn."""
    rng = np.random.default_rng(seed)
    pairs = [(schedule, family) for schedule in SCHEDULES for family in STALENESS_FAMILIES]
    for i in range(count):
        scenario = random_scenario(rng, *pairs[i % len(pairs)])
        sampler, gate, law = (
            SAMPLERS[i % 4],
            ("zero-advantage", "none")[i % 3 == 2],
            ("beta", "logit-normal", "histogram")[i % 5 % 3],
        )
        prompts = scenario.prompts_per_step * int(rng.choice((1, 2, 4, 10)))
        endless = sampler == "uniform" and rng.random() < 0.5
        low = float(rng.uniform(0.0, 0.4))
        scenario = dataclasses.replace(
            scenario, name=f"{scenario.name} {sampler} {gate} {law}", filtered_fraction=0.0, solve_rate_law=law,
            solve_rate_mean=0.0 if law == "histogram" else float(rng.uniform(0.2, 0.7)),
            solve_rate_concentration=float(rng.uniform(0.5, 10)) if law == "beta" else math.inf,
            solve_rate_logit_sigma=float(rng.uniform(0, 3)) if law == "logit-normal" else 0.0,
            solve_rate_histogram="0: 0.2, 0.31: 0.4, 0.77: 0.3, 1: 0.1" if law == "histogram" else "",
            solve_rate_logit_shift=float(rng.choice((0, -1, 0.5))), pool_prompts=0 if endless else prompts, gate=gate,
            sampler=sampler, band_low=low, band_high=low + 0.4, retire_above=float(rng.uniform(0.5, 0.95)),
            learning_logit_per_step=float(rng.choice((0, 0.05, 0.2))), learning_transfer=float(rng.choice((0, 0.5, 1))),
            learning_staleness_half=float(rng.choice((0.5, 2, math.inf))),
        )  # fmt: skip
        yield drifting(rng, scenario, i)


def drifting(rng, scenario, i):
    """The scenario with its lengths on the move."""
    law = ("linear", "exponential", "constant", "logistic", "series")[i % 5]
    response = scenario.mean_response_tokens
    if law == "constant":
        return scenario
    if law == "series":
        longest = 0.9 * scenario.max_response_tokens
        points = [(0, response), (4, min(longest, 2 * response)), (7, 0.6 * response)]
        prompt = scenario.mean_prompt_tokens
        text = ", ".join(f"{step}: {tokens:g} / {step / 3:g} / {prompt / (1 + step):g}" for step, tokens in points)
        return dataclasses.replace(scenario, drift_law=law, drift_series=text)
    return dataclasses.replace(
        scenario, drift_law=law, drift_steps=int(rng.integers(1, 15)), drift_length_factor=float(rng.uniform(0.4, 3)),
        drift_tool_calls_factor=float(rng.uniform(0, 3)), drift_prompt_factor=float(rng.uniform(0.2, 1)),
        drift_sigma_factor=float(rng.uniform(0.5, 1.5)),
    )  # fmt: skip


def shared_scenarios(count, seed):
    """Two to four tenants, in each schedule and family in turn that lets them share; every third learns and drifts."""
    rng = np.random.default_rng(seed)
    pairs = [
        (schedule, family) for schedule in SCHEDULES if schedule not in SINGLE_TENANT for family in STALENESS_FAMILIES
    ]
    moving = moving_scenarios(count * len(SCHEDULES), seed)
    for i in range(count):
        scenario = random_scenario(rng, *pairs[i % len(pairs)])
        if i % 3 == 2:
            scenario = next(each for each in moving if each.schedule not in SINGLE_TENANT)
        tenants = int(rng.integers(2, 5))
        yield dataclasses.replace(
            scenario, tenants=tenants, concurrency=int(scenario.concurrency * rng.uniform(1, tenants)),
            tenant_start_gap_s=float(rng.choice((0.0, 5.0, 30.0))), adapter_switch_s=float(rng.choice((0.0, 1.5))),
        )  # fmt: skip
