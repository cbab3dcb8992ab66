"""A scenario's hardware and LLM turned into seconds and slots, which is all that the queue knows of them.

``RATES`` is one record of numbers per scenario (or per cell of a grid); its fields are commented below.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from rlqueue import decode_curve
from rlqueue.at_step import solve_rates
from rlqueue.choices import SCHEDULES, STALENESS_FAMILIES
from rlqueue.lengths import ResponseLengths, response_lengths
from rlqueue.scenario import Scenario
from rlqueue.units import BYTES_PER_ELEMENT

SCHEDULE_CODES = {name: code for code, name in enumerate(SCHEDULES)}
FAMILY_CODES = {name: code for code, name in enumerate(STALENESS_FAMILIES)}

RATES = np.dtype(
    [
        # The split and the knobs that a grid may vary
        ("trainer_gpus", "f8"), ("generator_gpus", "f8"), ("gpus_per_replica", "f8"), ("concurrency", "f8"),
        ("max_staleness", "f8"), ("schedule", "i8"), ("family", "i8"),
        # The batch
        ("samples", "f8"), ("groups", "f8"), ("group_size", "f8"), ("updates", "f8"), ("publish_steps", "f8"),
        ("oversampling", "f8"), ("whole_groups", "f8"), ("filtered", "f8"), ("surplus", "f8"), ("failed", "f8"),
        # The trainer: GPU-seconds of compute per step, then fixed seconds per step, per publication and of pauses per step
        ("train_gpu_s", "f8"), ("train_fixed_s", "f8"), ("fetch_s", "f8"), ("sync_s", "f8"), ("pause_s", "f8"),
        # One rollout: tokens, mean context while decoding, time in the slot outside the LLM
        ("prompt_tokens", "f8"), ("response_tokens", "f8"), ("max_tokens", "f8"), ("context_tokens", "f8"),
        ("prompt_context_tokens", "f8"),
        ("group_tokens", "f8"), ("batch_tokens", "f8"), ("outside_s", "f8"), ("start_s", "f8"),
        ("creates_per_s", "f8"), ("sandbox_cap", "f8"), ("uses_sandbox", "f8"),
        # One replica: KV slots, one iteration's parts (see inference.iteration_s), prefill
        ("kv_slots", "f8"), ("overhead_s", "f8"), ("shared_s", "f8"), ("experts_s", "f8"), ("miss", "f8"),
        ("kv_s_per_token", "f8"), ("compute_s", "f8"), ("accept_length", "f8"),
        ("prefill_s", "f8"), ("prefill_apart_s", "f8"), ("reprefill_s", "f8"),
    ]
)  # fmt: skip

GRID_KNOBS = ("trainer_gpus", "generator_gpus", "concurrency", "max_staleness")
"""Knobs that a grid varies inside the compiled solver; they change nothing else in a record."""


def lengths_of(scenario: Scenario) -> ResponseLengths:
    """The scenario's distribution of response lengths."""
    return response_lengths(
        scenario.mean_response_tokens, scenario.response_sigma_between_prompts,
        scenario.response_sigma_within_group, scenario.max_response_tokens, scenario.group_size,
    )  # fmt: skip


def turns_of(scenario: Scenario) -> float:
    """Decode segments of a rollout: one more than its tool calls."""
    return scenario.tool_calls + 1.0


def prompt_context_tokens(scenario: Scenario) -> float:
    """Prompt tokens in the context of a running request, on average [token].

    They arrive in equal parts before each of n turns: ``P (n + 1) / (2 n)``.
    """
    turns = turns_of(scenario)
    return scenario.mean_prompt_tokens * (turns + 1) / (2 * turns)


def mean_context_tokens(scenario: Scenario) -> float:
    """Context of a running request at a random moment of decoding [token].

    Response tokens come one by one, and long responses are met more often: ``prompt part + E[L^2] / (2 E[L])``.
    """
    lengths = lengths_of(scenario)
    return prompt_context_tokens(scenario) + lengths.second_moment / (2 * lengths.mean_tokens)


def prefilled_tokens(scenario: Scenario) -> float:
    """Tokens prefilled for one rollout: its prompt once, or without a prefix cache the whole context at each turn.

    Without a cache turn i of n prefills ``P i / n + R (i - 1) / n``: in sum ``P (n + 1) / 2 + R (n - 1) / 2``.
    """
    if scenario.prefix_cache:
        return scenario.mean_prompt_tokens
    turns = turns_of(scenario)
    return scenario.mean_prompt_tokens * (turns + 1) / 2 + scenario.mean_response_tokens * (turns - 1) / 2


def prefill_s_per_token(scenario: Scenario) -> float:
    """Time of a replica, or of its prefill GPUs where they are apart, to prefill one token [s]."""
    s = scenario
    gpus = s.prefill_gpus_per_replica or s.gpus_per_replica
    peak = s.generator_gpu.peak_flops_per_s(s.generator_weights_precision)
    return 2.0 * s.llm.active_params / (gpus * peak * s.prefill_mfu)


def train_flops(scenario: Scenario) -> float:
    """FLOPs of one step: 6 per active parameter and token, and 2 more for each extra forward pass."""
    per_token = (6.0 + 2.0 * scenario.logprob_passes) * scenario.llm.active_params
    return per_token * scenario.trained_tokens_per_step


@lru_cache(maxsize=512)
def rates(scenario: Scenario) -> np.ndarray:
    """The record of one scenario: array of shape (1,) and dtype ``RATES``, read-only."""
    record = record_of(scenario, filtered_fraction(scenario))
    record.flags.writeable = False
    return record


def record_of(scenario: Scenario, filtered: float) -> np.ndarray:
    """The same, a new one, with that share of finished groups filtered."""
    values = _values(scenario, filtered)
    return np.array([tuple(values[name] for name in RATES.names)], RATES)


def rates_grid(scenario: Scenario, axes: Mapping[str, np.ndarray]) -> np.ndarray:
    """Records of a grid: dtype ``RATES``, the shape that the arrays of ``axes`` broadcast to.

    Args:
        axes: values of ``GRID_KNOBS`` by name, shapes that broadcast together.
    """
    shape = np.broadcast_shapes(*(np.shape(values) for values in axes.values()))
    grid = np.broadcast_to(rates(scenario), shape).copy()
    for name, values in axes.items():
        grid[name] = values
    return grid


def _values(s: Scenario, filtered: float) -> dict[str, float]:
    lengths = lengths_of(s)
    peak = s.trainer_gpu.dense_bf16_flops_per_s
    return {
        "trainer_gpus": s.trainer_gpus,
        "generator_gpus": s.generator_gpus,
        "gpus_per_replica": s.gpus_per_replica,
        "concurrency": s.concurrency,
        "max_staleness": s.max_staleness,
        "schedule": SCHEDULE_CODES[s.schedule],
        "family": FAMILY_CODES[s.staleness_family],
        "samples": s.samples_per_step,
        "groups": s.prompts_per_step,
        "group_size": s.group_size,
        "updates": s.updates_per_step,
        "publish_steps": s.steps_per_publication,
        "oversampling": s.oversampling_factor,
        "whole_groups": s.slots_held_by == "group",
        "filtered": min(filtered, 1.0 - 1e-9),  # 1 would ask for a division by zero
        "surplus": s.surplus_fraction,
        "failed": min(_failed_fraction(s), 1.0 - 1e-9),  # likewise: every start may come too late
        "train_gpu_s": train_flops(s) / (s.mfu * peak),
        "train_fixed_s": s.trainer_overhead_s * s.minibatches_per_update * s.updates_per_step,
        "fetch_s": s.batch_fetch_s,
        "sync_s": s.weight_sync_s,
        "pause_s": _per_step(s.evaluation_s, s.evaluate_every_steps)
        + _per_step(s.checkpoint_s, s.checkpoint_every_steps),
        "prompt_tokens": s.mean_prompt_tokens,
        "response_tokens": s.mean_response_tokens,
        "max_tokens": s.max_response_tokens,
        "context_tokens": mean_context_tokens(s),
        "prompt_context_tokens": prompt_context_tokens(s),
        "group_tokens": lengths.mean_group_tokens,
        "batch_tokens": lengths.mean_of_longest_tokens(s.prompts_per_step),
        **_outside(s),
        **_replica(s),
    }


def zero_advantage_fraction(scenario: Scenario) -> float:
    """Share of finished groups whose rewards are all equal: as given, or ``E[p^n + (1 - p)^n]`` of the solve rates' law."""
    law = solve_rates(scenario)
    return scenario.filtered_fraction if law is None else sum(law.powers(scenario.group_size))


def filtered_fraction(scenario: Scenario) -> float:
    """Share of finished groups that the gate drops: those of no advantage, or none."""
    return zero_advantage_fraction(scenario) if scenario.gate == "zero-advantage" else 0.0


def informative_fraction(scenario: Scenario) -> float:
    """Share of *trained* groups whose rewards differ: all of them behind the zero-advantage gate."""
    return 1.0 if scenario.gate == "zero-advantage" else 1.0 - zero_advantage_fraction(scenario)


def _per_step(seconds: float, every_steps: int) -> float:
    return seconds / every_steps if every_steps else 0.0


def _start_failure(s: Scenario) -> float:
    """Chance that one try to start a sandbox fails: by itself, or for taking longer than the time-out."""
    if s.sandbox_start_s == 0:
        return 0.0
    late = 0.0
    if s.sandbox_timeout_s < np.inf:
        if s.sandbox_start_sigma > 0:
            from scipy.special import ndtr

            median = np.log(s.sandbox_start_s) - s.sandbox_start_sigma**2 / 2
            late = 1.0 - float(ndtr((np.log(s.sandbox_timeout_s) - median) / s.sandbox_start_sigma))
        else:
            late = float(s.sandbox_start_s > s.sandbox_timeout_s)
    return 1.0 - (1.0 - s.sandbox_failure_ratio) * (1.0 - late)


def _failed_fraction(s: Scenario) -> float:
    """Share of rollouts that yield nothing: all start tries failed, or the sandbox died on the way."""
    if s.sandbox_start_s == 0:
        return 0.0
    return 1.0 - (1.0 - _start_failure(s) ** (s.sandbox_retries + 1)) * (1.0 - s.sandbox_run_failure_ratio)


def _outside(s: Scenario) -> dict[str, float]:
    """Time of a rollout in its slot outside the LLM: starting the sandbox (with retries), tool calls, scoring."""
    failure = _start_failure(s)
    tries = (1.0 - failure ** (s.sandbox_retries + 1)) / (1.0 - failure) if failure < 1 else s.sandbox_retries + 1.0
    start = min(s.sandbox_start_s, s.sandbox_timeout_s) * tries
    return {
        "outside_s": start + s.tool_calls * s.tool_call_s + s.reward_s,
        "start_s": start,
        "creates_per_s": s.sandbox_creates_per_s / tries,
        "sandbox_cap": s.sandbox_cap if s.sandbox_start_s > 0 else np.inf,
        "uses_sandbox": float(s.sandbox_start_s > 0),
    }


def _replica(s: Scenario) -> dict[str, float]:
    gpu, llm = s.generator_gpu, s.llm
    decode_gpus = s.gpus_per_replica - s.prefill_gpus_per_replica
    bandwidth = decode_gpus * gpu.hbm_bytes_per_s * s.decode_efficiency
    peak = gpu.peak_flops_per_s(s.generator_weights_precision)
    experts = llm.expert_params * BYTES_PER_ELEMENT[s.generator_weights_precision]
    kv_token = llm.kv_bytes_per_token(s.kv_precision)
    forward_flops = 2.0 * llm.active_params
    apart = s.prefill_gpus_per_replica > 0
    prefill = prefilled_tokens(s) * prefill_s_per_token(s)
    values = {
        "kv_slots": s.kv_room_bytes / (kv_token * mean_context_tokens(s)),
        "overhead_s": s.decode_overhead_s,
        "shared_s": (llm.weights_bytes(s.generator_weights_precision) - experts) / bandwidth,
        "experts_s": experts / bandwidth,
        "miss": 1.0 - llm.experts_per_token / llm.experts,
        "kv_s_per_token": kv_token / bandwidth,
        "compute_s": forward_flops / (decode_gpus * peak * s.decode_efficiency),
        "accept_length": s.accept_length,
        "prefill_s": 0.0 if apart else prefill,
        "prefill_apart_s": prefill if apart else 0.0,
        "reprefill_s": mean_context_tokens(s) * prefill_s_per_token(s) if s.schedule == "partial-rollout" else 0.0,
    }
    return values | (_on_a_curve(s, values["kv_slots"]) if s.decode_curve else {})


def _on_a_curve(s: Scenario, kv_slots: float) -> dict[str, float]:
    """Parts of an iteration from a measured curve: its nearest straight line, since the closed form has no table of it."""
    most = min(kv_slots, s.concurrency / s.replicas)
    base_s, per_request_s = decode_curve.line(s.decode_curve, most)
    parts = {"overhead_s": base_s, "shared_s": 0.0, "experts_s": 0.0, "compute_s": 0.0, "accept_length": 1.0}
    return parts | {"kv_s_per_token": per_request_s / mean_context_tokens(s)}
