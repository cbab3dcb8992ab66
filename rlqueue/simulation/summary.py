"""The long-run figures of a simulated run, each with the meaning that the closed form gives it."""

import math

import numpy as np

from rlqueue.choices import IN_STEP
from rlqueue.operating_point import OperatingPoint
from rlqueue.rates import rates
from rlqueue.scenario import Scenario
from rlqueue.simulation import state
from rlqueue.simulation.run import Run

NEVER_WAITS = 0.01
"""The trainer counts as the bottleneck if it waits for groups for less than this share of the time."""

WITHHELD = 0.05
"""A budget binds when it leaves more than this share of the slots unused; a queue, when it takes that share of a rollout."""

THROWN_AWAY = 0.1
"""A drop rule binds when it throws away more than this share of the groups."""

KV_FULL = 0.85
"""Mean use of the KV memory above which it counts as full: it cannot be filled to the brim by whole requests."""


def operating_point(run: Run) -> OperatingPoint:
    """The means over the steps after the warm-up."""
    clock = run.world.clock
    done, warm = int(clock["step"]), run.warm_up_steps
    if done == 0:
        raise ValueError(f"steps={run.asked_steps}: no step was completed ({run.stalled})")
    scenario, p = run.settled, run.world.arrays["params"][0]
    steps = run.world.arrays["steps"][:done]
    kept = steps[warm:]
    begin = steps[warm - 1] if warm else np.zeros(1, state.STEP)[0]
    end = steps[-1]
    count, span = kept.size, float(end["end"] - begin["end"])

    def gained(name: str) -> float:
        return float(end[name] - begin[name])

    def per(total: float, what: float) -> float:
        return total / what if what else 0.0

    train_s, wait_s = float(kept["train"].mean()), float(kept["wait"].mean())
    sync_s = float((kept["sync"] + kept["pause"]).mean())
    wait_ratio = float(kept["wait"].sum()) / span
    unfed_s = float((kept["wait"] - kept["fetch"]).mean())
    unfed = unfed_s * count / span
    in_flight = gained("flight_area") / span
    used = in_flight / scenario.concurrency
    rollout_s = per(gained("rollout_s"), gained("rollouts"))
    start_s = per(gained("start_s"), gained("rollouts"))
    outside_s = start_s + scenario.tool_calls * scenario.tool_call_s + scenario.reward_s
    trained = count * scenario.samples_per_step
    replicas = int(p["replicas"]) + int(p["lent"]) * unfed
    active = gained("k_area") / span / replicas
    kv_used = min(1.0, gained("context_area") / span / replicas / float(p["kv_tokens"]))
    accepted = min(1.0, per(trained, gained("dispatched")))
    colocated = scenario.schedule == "colocated-sync"
    gpus = scenario.trainer_gpus + (scenario.generator_gpus if colocated else 0)
    tokens = float(kept["tokens"].sum())
    flops = 6.0 * scenario.llm.active_params * tokens
    peak = gpus * scenario.trainer_gpu.dense_bf16_flops_per_s
    measured = {
        "unfed": unfed, "train_s": train_s, "sync_s": per(float(kept["sync"].sum()), count),
        "fetch_s": wait_s - unfed_s,
        "withheld": gained("budget_area") / span / scenario.concurrency, "active": active, "kv_used": kv_used,
        "start_wait": per(start_s - float(rates(scenario)[0]["start_s"]), rollout_s),
        "stale": _share_of(run, state.STALE),
        "filtered": (1.0 - per(gained("informative"), gained("judged"))) * float(p["gated"]),
    }  # fmt: skip
    limits = constraints(scenario, measured)
    return OperatingPoint(
        kind="simulated",
        step_s=span / count,
        wait_s=wait_s,
        train_s=train_s,
        sync_s=sync_s,
        consumption_per_s=scenario.samples_per_step / train_s,
        production_per_s=_production(run, step_s=span / count, unfed_s=unfed_s, sync_s=sync_s, used=used),
        trainer_wait_ratio=wait_ratio,
        rollout_idle_ratio=max(0.0, 1.0 - used),
        staleness_versions=float(kept["staleness"].sum()) / (count * scenario.prompts_per_step),
        in_flight_rollouts=in_flight,
        queued_groups=gained("queue_area") / span,
        rollout_s=rollout_s,
        group_s=per(gained("group_s"), gained("groups")),
        decoding_ratio=max(0.0, 1.0 - per(outside_s, rollout_s)),
        accepted_ratio=accepted,
        discarded_ratio=1.0 - accepted,
        kv_used_ratio=kv_used,
        active_per_replica=active,
        trained_tokens_per_s=tokens / span,
        informative_ratio=float(kept["informative_tokens"].sum()) / tokens,
        decode_tokens_per_s=gained("decoded_tokens") / span,
        mfu_computing=flops / (float(kept["train"].sum()) * peak),
        mfu_wall_clock=flops / (span * peak),
        binding_constraint=limits[0],
        next_constraint=limits[1],
    )


def last_part(run: Run) -> dict[str, float | None]:
    """What the run asked of its prompts and got, over the same steps as ``operating_point``; None for what is not known there."""
    kept = run.steps.iloc[run.warm_up_steps :]
    values = {name: float(kept[name].mean()) for name in ("mean_response_tokens", "truncated_fraction")}
    if run.scenario.has_solve_rates:
        first, last = run.solve_rate_means[0], run.solve_rate_means[-1]
        shares = ("informative_fraction", "all_solved_fraction", "none_solved_fraction")
        values |= {"first_mean_solve_rate": first, "last_mean_solve_rate": last}
        values |= {name: float(kept[name].mean()) for name in shares}  # steps in which none finished are left out
    if run.scenario.pool_prompts:
        values |= {name: float(run.steps[name].sum()) for name in ("unqualified_groups", "repeated_groups")}
    return {name: None if math.isnan(value) else float(value) for name, value in values.items()}


def _production(run: Run, *, step_s: float, unfed_s: float, sync_s: float, used: float) -> float:
    """Samples for training that the generator could deliver per second.

    In step with the trainer it works while that waits for groups (``unfed_s`` of a step); one step off, while it computes
    and waits. Otherwise it delivers what is trained, and where a trainer that never waits holds it back, more by the slots
    left unused.
    """
    samples, p = run.scenario.samples_per_step, run.world.arrays["params"][0]
    if p["lockstep"]:
        return samples / max(unfed_s, 1e-300)
    if p["one_step"]:
        return samples / (step_s - sync_s)
    if unfed_s < NEVER_WAITS * step_s:
        return samples / step_s / max(used, 1e-3)
    return samples / step_s


def _share_of(run: Run, fate: int) -> float:
    fates = run.world.arrays["groups"]["fate"][: int(run.world.clock["groups"])]
    return float(np.mean(fates == fate)) if fates.size else 0.0


def constraints(scenario: Scenario, measured: dict[str, float]) -> list[str]:
    """What binds, and what is behind it, from what was measured: names of ``operating_point.CONSTRAINTS``."""
    from rlqueue.steady import SATURATED, rollout_rate

    record = rates(scenario)[0]
    busy = {"trainer compute": "train_s", "weight sync": "sync_s", "batch fetch": "fetch_s"}
    trainer = max(busy, key=lambda name: measured[busy[name]])
    lockstep = scenario.schedule in IN_STEP or scenario.max_staleness == 0
    groups = scenario.samples_per_step * scenario.oversampling_factor
    active = max(measured["active"], 1e-9)
    gain = rollout_rate(active * 1.01, record, 1.0) / rollout_rate(active, record, 1.0) - 1.0
    capped = scenario.sandbox_start_s > 0 and scenario.sandbox_cap < scenario.concurrency
    found = [
        (trainer, measured["unfed"] < NEVER_WAITS),
        ("filter", measured["filtered"] >= 0.5),
        ("long tail", lockstep and groups <= scenario.concurrency),
        ("staleness budget", not lockstep and (measured["withheld"] > WITHHELD or measured["stale"] > THROWN_AWAY)),
        ("sandbox cap", capped and measured["start_wait"] > WITHHELD),
        ("sandbox start", not capped and measured["start_wait"] > WITHHELD),
        ("KV memory", measured["kv_used"] > KV_FULL),
        ("decode bandwidth", gain < SATURATED * 0.01),
        ("concurrency cap", True),
        (trainer, True),
    ]
    return [name for name, binds in found if binds][:2]
