"""What no run can be: combinations of knobs that are refused, each knob being inside its own limits."""

import math
from typing import Any

from rlqueue import curriculum, decode_curve, drift, presets
from rlqueue.choices import SINGLE_TENANT
from rlqueue.refusal import require_known


def refuse_impossible(scenario: Any) -> None:
    """Raise ValueError for a scenario that cannot be; the message names field, value and limit."""
    _refuse_split(scenario)
    _refuse_tenants(scenario)
    _refuse_batch(scenario)
    _refuse_solve_rates(scenario)
    _refuse_curriculum(scenario)
    _refuse_drift(scenario)
    _refuse_lengths(scenario)
    if scenario.decode_curve:
        decode_curve.points(scenario.decode_curve)  # refuses what is no curve
    if scenario.measured_run:
        require_known("measured_run", scenario.measured_run, presets.MEASURED_RUNS)


def _refuse_split(s: Any) -> None:
    used = s.trainer_gpus + s.generator_gpus
    if s.cluster_gpus and used > s.cluster_gpus:
        raise ValueError(
            f"trainer_gpus={s.trainer_gpus} + generator_gpus={s.generator_gpus} = {used} must be <= "
            f"cluster_gpus={s.cluster_gpus}: there are no more GPUs"
        )
    if s.generator_gpus < s.gpus_per_replica:
        raise ValueError(
            f"generator_gpus={s.generator_gpus} must be >= gpus_per_replica={s.gpus_per_replica}: "
            "the split holds no whole replica"
        )
    if s.prefill_gpus_per_replica >= s.gpus_per_replica:
        raise ValueError(
            f"prefill_gpus_per_replica={s.prefill_gpus_per_replica} must be < gpus_per_replica="
            f"{s.gpus_per_replica}: no GPU is left to decode"
        )


def _refuse_tenants(s: Any) -> None:
    if s.tenants > 1 and s.schedule in SINGLE_TENANT:
        raise ValueError(f"tenants={s.tenants} must be 1 with schedule={s.schedule!r}: {SINGLE_TENANT[s.schedule]}")


def _refuse_batch(s: Any) -> None:
    if s.prompts_per_step % s.updates_per_step:
        raise ValueError(f"updates_per_step={s.updates_per_step} must divide prompts_per_step={s.prompts_per_step}")
    rollouts = s.samples_per_step // s.updates_per_step
    if rollouts % s.minibatches_per_update:
        raise ValueError(
            f"minibatches_per_update={s.minibatches_per_update} must divide the {rollouts} rollouts of an update "
            "(prompts_per_step / updates_per_step * group_size)"
        )
    if s.slots_held_by == "group" and s.concurrency < s.group_size:
        raise ValueError(f"concurrency={s.concurrency} must be >= group_size={s.group_size} with slots_held_by='group'")


def _refuse_solve_rates(s: Any) -> None:
    law = s.solve_rate_law
    if law == "histogram":
        if not s.solve_rate_histogram:
            raise ValueError(
                "solve_rate_histogram='' must be 'rate: share, ...' with solve_rate_law='histogram': a histogram is measured"
            )
        curriculum.histogram(s.solve_rate_histogram)  # refuses what is none
        if s.solve_rate_mean:
            raise ValueError(
                f"solve_rate_mean={s.solve_rate_mean:g} must be 0 with solve_rate_law='histogram': a histogram has its own mean"
            )
    for knob, idle, owner in (
        ("solve_rate_histogram", "", "histogram"),
        ("solve_rate_concentration", math.inf, "beta"),
        ("solve_rate_logit_sigma", 0.0, "logit-normal"),
    ):
        value = getattr(s, knob)
        if value != idle and law != owner:
            raise ValueError(f"{knob}={value!r} must be {idle!r} with solve_rate_law={law!r}: it belongs to {owner!r}")
    if s.has_solve_rates and s.filtered_fraction:
        raise ValueError(
            f"filtered_fraction={s.filtered_fraction:g} must be 0 with solve_rate_mean={s.solve_rate_mean:g}: "
            "the solve rates decide what is filtered"
        )


def _refuse_curriculum(s: Any) -> None:
    if not s.has_solve_rates:
        for knob in ("learning_logit_per_step", "solve_rate_logit_shift"):
            if getattr(s, knob):
                raise ValueError(
                    f"{knob}={getattr(s, knob):g} must be 0 without solve rates: set solve_rate_mean or solve_rate_histogram"
                )
        if s.sampler != "uniform":
            raise ValueError(f"sampler={s.sampler!r} must be 'uniform' without solve rates: it chooses by them")
    if s.sampler != "uniform" and not s.pool_prompts:
        raise ValueError(
            f"pool_prompts=0 must be > 0 with sampler={s.sampler!r}: in an endless pool no prompt comes twice, so none is known"
        )
    if s.pool_prompts and s.pool_prompts < s.prompts_per_step:
        raise ValueError(
            f"pool_prompts={s.pool_prompts} must be >= prompts_per_step={s.prompts_per_step} (or 0, endless): a batch holds a "
            "prompt once"
        )
    if s.band_low >= s.band_high:
        raise ValueError(f"band_low={s.band_low:g} must be < band_high={s.band_high:g}: the band would be empty")


DRIFT_FACTORS = ("drift_length_factor", "drift_tool_calls_factor", "drift_prompt_factor", "drift_sigma_factor")


def _refuse_drift(s: Any) -> None:
    moves = [knob for knob in DRIFT_FACTORS if getattr(s, knob) != 1.0]
    if s.drift_law in ("constant", "series"):
        for knob in (*moves, *(["drift_steps"] if s.drift_steps else [])):
            idle = 0 if knob == "drift_steps" else 1
            raise ValueError(
                f"{knob}={getattr(s, knob):g} must be {idle} with drift_law={s.drift_law!r}: it would be ignored"
            )
    elif not s.drift_steps:
        raise ValueError(f"drift_steps=0 must be >= 1 with drift_law={s.drift_law!r}: over how many steps?")
    if (s.drift_law == "series") != bool(s.drift_series):
        raise ValueError(
            f"drift_series={s.drift_series!r} and drift_law={s.drift_law!r} must come together: a series needs "
            "drift_law='series', and it needs a series"
        )


def _refuse_grown(s: Any, knob: str, reached: float) -> None:
    """A drift may not lead out of the limits of the knob that it moves."""
    highest = s.__dataclass_fields__[knob].metadata["high"]
    if reached > highest:
        raise ValueError(f"{knob}={reached:g}, grown by the drift, must be <= {highest:g}")


def _refuse_lengths(s: Any) -> None:
    response, prompt = s.mean_response_tokens, s.mean_prompt_tokens
    _refuse_mean("mean_response_tokens", response, s)
    if s.drift_law == "series":
        _, measured, tools, prompts = drift.series(s.drift_series)
        _refuse_mean("drift_series: response tokens", float(measured.max()), s)
        prompt = prompt if prompts is None else float(prompts.max())
        _refuse_grown(s, "tool_calls", 0.0 if tools is None else float(tools.max()))
    elif s.drift_law != "constant":
        end = drift.at(s.drift_start, s.drift, [s.drift_steps])[0]
        _refuse_grown(s, "tool_calls", float(end["tool_calls"]))
        _refuse_grown(s, "response_sigma_between_prompts", float(end["sigma_between"]))
        _refuse_grown(s, "response_sigma_within_group", float(end["sigma_within"]))
        if end["mean_response_tokens"] >= (1.0 - 1e-9) * s.max_response_tokens:
            raise ValueError(
                f"drift_length_factor={s.drift_length_factor:g} must leave responses below max_response_tokens="
                f"{s.max_response_tokens:g}: at the end all would be cut"
            )
        prompt = max(prompt, float(end["prompt_tokens"]))
    grown = "" if prompt == s.mean_prompt_tokens else ", grown by the drift,"
    longest = prompt + s.max_response_tokens
    if longest > s.llm.max_context_tokens:
        raise ValueError(
            f"mean_prompt_tokens={prompt:g}{grown} + max_response_tokens={s.max_response_tokens:g} = "
            f"{longest:g} must be <= {s.llm.max_context_tokens}, the longest context of {s.llm.key}"
        )
    needed = longest * s.llm.kv_bytes_per_token(s.kv_precision)
    if s.kv_room_bytes < needed:
        weights = s.llm.weights_bytes(s.generator_weights_precision)
        raise ValueError(
            f"gpus_per_replica={s.gpus_per_replica} leaves {s.kv_room_bytes / 1e9:.1f} GB for the KV cache of "
            f"a replica, must be >= {needed / 1e9:.1f} GB: one sequence of {longest:g} tokens does not fit "
            f"(memory_fraction={s.memory_fraction:g}, weights {weights / 1e9:.0f} GB)"
        )


def _refuse_mean(name: str, tokens: float, s: Any) -> None:
    if tokens >= s.max_response_tokens:
        raise ValueError(
            f"{name}={tokens:g} must be < max_response_tokens={s.max_response_tokens:g}: no response is longer than the cut"
        )
