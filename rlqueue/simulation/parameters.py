"""A scenario in the loop's own terms, and the empty world in which its run begins."""

import math
from functools import lru_cache

import numpy as np

from rlqueue import decode_curve
from rlqueue.at_step import drift_path
from rlqueue.inference import touched_ratio
from rlqueue.rates import prefill_s_per_token, rates
from rlqueue.scenario import Scenario
from rlqueue.simulation import draws, solve_rate, state
from rlqueue.simulation.memory import ADDRESSES, ALONE, World

SERIES_POINTS = 4096  # of the series over time; thinned to half whenever it is full
FRUITLESS_EVENTS_PER_EXPECTED = 100
"""A run that learns ends when one step has taken this many times the events of its rollouts: hardly a group is informative."""
UNSEEN_WEIGHT = 0.25
"""Of a prompt never seen in the adaptive sampler: p (1 - p) at one half."""
NO_LIMIT = 2**62


def parameters(scenario: Scenario, steps: int, *, log_rollouts: bool) -> np.ndarray:
    """The record of one scenario: array of shape (1,) and dtype ``state.PARAMS``."""
    s, record, known = scenario, np.zeros(1, state.PARAMS), rates(scenario)[0]
    lockstep = s.schedule in ("colocated-sync", "sync") or (s.max_staleness == 0 and s.schedule != "one-step-off")
    budgeted = not lockstep and s.schedule != "one-step-off"
    colocated = s.schedule == "colocated-sync"
    gpus = s.trainer_gpus + s.generator_gpus if colocated else s.trainer_gpus
    replicas = gpus // s.gpus_per_replica if colocated else s.replicas
    cohort = math.ceil(s.oversampling_factor * s.prompts_per_step - 1e-9)
    sandboxes = s.sandbox_start_s > 0
    rate = s.sandbox_creates_per_s
    values = {
        "steps": steps,
        "prompts": s.prompts_per_step,
        "group_size": s.group_size,
        "updates": s.updates_per_step,
        "publish_steps": s.steps_per_publication,
        "cohort": cohort,
        "lockstep": lockstep,
        "one_step": s.schedule == "one-step-off",
        "drop": budgeted and s.staleness_family == "drop",
        "targeted": budgeted and s.staleness_family == "targeted",
        "drain": budgeted and s.schedule == "async-drain",
        "partial": budgeted and s.schedule == "partial-rollout",
        "lent": s.trainer_gpus // s.gpus_per_replica if budgeted and s.schedule == "lent-trainer" else 0,
        "concurrency": s.concurrency,
        "whole_groups": s.slots_held_by == "group",
        "replicas": replicas,
        "heap_room": (s.concurrency - 1) // replicas + 1,
        "quota": math.floor((s.max_staleness + 1.0) * s.steps_per_publication * cohort + 1e-9),
        "max_staleness": s.max_staleness,
        # Replicas
        "kv_tokens": s.kv_room_bytes / s.llm.kv_bytes_per_token(s.kv_precision),
        "accept": known["accept_length"],
        "kv_s": 0.0 if s.decode_curve else known["kv_s_per_token"],
        "prefill_s": prefill_s_per_token(s),
        "apart": s.prefill_gpus_per_replica > 0,
        "prefix_cache": s.prefix_cache,
        # Rollouts
        "max_tokens": s.max_response_tokens,
        "tool_s": s.tool_call_s,
        "tool_mu": math.log(s.tool_call_s) - s.tool_call_sigma**2 / 2 if s.tool_call_s > 0 else 0.0,
        "tool_sigma": s.tool_call_sigma if s.tool_call_s > 0 else 0.0,
        "reward_s": s.reward_s,
        # Sandboxes
        "uses_sandbox": sandboxes,
        "start_mu": math.log(s.sandbox_start_s) - s.sandbox_start_sigma**2 / 2 if sandboxes else 0.0,
        "start_sigma": s.sandbox_start_sigma,
        "create_gap": 0.0 if math.isinf(rate) else 1.0 / rate,
        "sandbox_cap": s.sandbox_cap,
        "tries": 1 + s.sandbox_retries,
        "start_failure": s.sandbox_failure_ratio,
        "death": s.sandbox_run_failure_ratio,
        "timeout_s": s.sandbox_timeout_s,
        # Fates
        "solves": s.has_solve_rates,
        **solve_rate.law(s),
        "filtered": s.filtered_fraction,
        "gated": s.gate == "zero-advantage",
        "surplus": s.surplus_fraction,
        # Prompts and what is learned from them
        "pool": s.pool_prompts,
        "sampler": state.SAMPLERS.index(s.sampler),
        "band_low": s.band_low,
        "band_high": s.band_high,
        "retire_above": s.retire_above,
        "learns": s.learning_logit_per_step > 0,
        "learning": s.learning_logit_per_step,
        "transfer": s.learning_transfer,
        "staleness_half": s.learning_staleness_half,
        "step_events": s.tenants * step_events(s, steps),
        # The trainer
        "train_s_per_token": known["train_gpu_s"] / s.trained_tokens_per_step / gpus,
        "train_fixed_s": s.trainer_overhead_s * s.minibatches_per_update,
        "fetch_s": s.batch_fetch_s / s.updates_per_step,
        "switch_s": s.adapter_switch_s,
        "sync_s": s.weight_sync_s,
        "evaluate_every": s.evaluate_every_steps,
        "evaluation_s": s.evaluation_s,
        "checkpoint_every": s.checkpoint_every_steps,
        "checkpoint_s": s.checkpoint_s,
        "log_rollouts": log_rollouts,
    }
    for name, value in values.items():
        record[name] = value
    return record


def iterations(scenario: Scenario) -> np.ndarray:
    """Time of an iteration of k requests, k from 0 to all slots, without reading KV cache [s]: reading weights, computing."""
    r = rates(scenario)[0]
    k = np.arange(scenario.concurrency + 1)
    table = np.zeros(k.size, state.ITERATION)
    if scenario.decode_curve:
        table["read_s"] = decode_curve.token_s(scenario.decode_curve, k)
        return table
    table["read_s"] = r["overhead_s"] + r["shared_s"] + r["experts_s"] * touched_ratio.py_func(k, r["miss"])
    table["compute_s"] = r["overhead_s"] + k * r["compute_s"]
    return table


@lru_cache(maxsize=256)
def course(scenario: Scenario, steps: int) -> np.ndarray:
    """What is asked of the rollouts of a group, by the step at which it is admitted: dtype ``state.COURSE``, read-only."""
    path = drift_path(scenario, steps)
    rows = np.zeros(path.size, state.COURSE)
    for name in ("log_median", "sigma_between", "sigma_within", "prompt_tokens"):
        rows[name] = path[name]
    rows["tool_floor"] = np.floor(path["tool_calls"])
    rows["tool_fraction"] = path["tool_calls"] - rows["tool_floor"]
    rows.flags.writeable = False
    return rows


def events_per_rollout(scenario: Scenario, steps: int) -> float:
    """Events of one rollout that has no sandbox to wait for, with the most tool calls that the course of the run asks for."""
    calls = (
        course(scenario, steps)["tool_floor"].max() + 1.0 if scenario.drift_law != "constant" else scenario.tool_calls
    )
    return 2.0 * (calls + 1.0) + 2.0


def step_events(scenario: Scenario, steps: int) -> int:
    """Events that one step of a run may take in which something is learned: a hundred times what its own rollouts need."""
    rollouts = scenario.samples_per_step * scenario.oversampling_factor + 2 * scenario.concurrency
    return int(1e5 + FRUITLESS_EVENTS_PER_EXPECTED * events_per_rollout(scenario, steps) * rollouts)


def _prompts(scenario: Scenario, seed: int, tenant: int) -> np.ndarray:
    """The pool at the start; where it is endless and learning has an effect, prompts that stand for it."""
    if not scenario.pool_prompts and not scenario.learning_logit_per_step:
        return np.zeros(0, state.PROMPT)
    odds = solve_rate.pool(scenario, seed, tenant)
    prompts = np.zeros(odds.size, state.PROMPT)
    prompts["odds"] = prompts["start_odds"] = odds
    prompts["turn"] = np.arange(odds.size) / odds.size
    return prompts


def _tree(values: np.ndarray, *, of_sums: bool = False) -> np.ndarray:
    """The tree of the least over ``values``, or of their sums (see ``heaps``); free leaves are endless, or 0."""
    size = max(1, 1 << (values.size - 1).bit_length()) if values.size else 1
    tree = np.zeros(2 * size, state.NODE)
    tree["value"] = 0.0 if of_sums else math.inf
    tree["value"][size : size + values.size] = values
    tree["leaf"][size:] = np.arange(size)
    while size > 1:
        left, right = tree[size : 2 * size : 2], tree[size + 1 : 2 * size : 2]
        size //= 2
        if of_sums:
            tree["value"][size : 2 * size] = left["value"] + right["value"]
        else:
            right_is_less = right["value"] < left["value"]
            for name in ("value", "leaf"):
                tree[name][size : 2 * size] = np.where(right_is_less, right[name], left[name])
    return tree


def worlds(scenario: Scenario, params: np.ndarray, seed: int) -> list[World]:
    """The empty worlds of all tenants at time 0, with what they share in common."""
    shared = _shared(scenario, params)
    table = np.zeros(scenario.tenants, ADDRESSES if scenario.tenants > 1 else ALONE)
    return [World(shared | _own(scenario, params, seed, tenant), table, tenant) for tenant in range(scenario.tenants)]


def world(scenario: Scenario, params: np.ndarray, seed: int) -> World:
    """The same of a run that has no other tenants."""
    (only,) = worlds(scenario, params, seed)
    return only


def _shared(scenario: Scenario, params: np.ndarray) -> dict[str, np.ndarray]:
    p = params[0]
    slots, standing, everyone = int(p["concurrency"]), int(p["replicas"]), int(p["replicas"] + p["lent"])
    host = np.zeros(1, state.HOST)
    host["free_slots"], host["unfinished"], host["loaded"] = slots, scenario.tenants, state.NONE
    host["places"] = slots // scenario.group_size
    replicas = np.zeros(everyone, state.REPLICA)
    replicas["open"][:standing] = 1
    replicas["due"] = math.inf
    free = np.zeros(slots, state.NUMBER)
    free["number"] = np.arange(slots)[::-1]
    lists = np.zeros(state.WAIT_LISTS + everyone, state.LIST)
    lists["head"] = lists["tail"] = state.NONE
    return {
        "params": params,
        "host": host,
        "solve_rates": solve_rate.table(scenario).view(state.RATE),
        "iterations": iterations(scenario),
        "course": course(scenario, int(p["steps"])),
        "slots": np.zeros(slots, state.SLOT),
        "free": free,
        "replicas": replicas,
        "heap": np.zeros(everyone * int(p["heap_room"]), state.ENTRY),
        "ends": _tree(np.full(everyone, math.inf)),
        "loads": _tree(np.where(replicas["open"] == 1, 0.0, math.inf)),
        "lists": lists,
        "timers": np.zeros(slots + 1, state.ENTRY),
        "changed": np.zeros(everyone, state.NUMBER),
    }


def _own(scenario: Scenario, params: np.ndarray, seed: int, tenant: int) -> dict[str, np.ndarray]:
    p = params[0]
    slots, steps, begins_s = int(p["concurrency"]), int(p["steps"]) + 2, tenant * scenario.tenant_start_gap_s
    clock = np.zeros(1, state.CLOCK)
    clock["tenant"], clock["current"], clock["stride"], clock["series"] = tenant, state.NONE, 1, 1
    clock["trainer"], clock["trainer_at"] = state.WAITING, math.inf
    if begins_s > 0.0:
        clock["trainer"], clock["trainer_at"] = state.NOT_BEGUN, begins_s
    groups = int(1.25 * p["steps"] * p["prompts"] + 4 * slots / p["group_size"]) + 64
    prompts, adaptive = _prompts(scenario, seed, tenant), scenario.sampler == "adaptive"
    pool = prompts[: scenario.pool_prompts]
    clock["odds"] = math.exp(scenario.solve_rate_logit_shift)
    clock["step_limit"] = p["step_events"] if p["learns"] and begins_s == 0.0 else NO_LIMIT
    return {
        "clock": clock,
        "keys": draws.keys(seed, tenant).view(state.KEY),
        "given": np.zeros(1, state.NUMBER),
        "retry": np.zeros(slots + 1, state.RETRY),
        "groups": np.zeros(groups, state.GROUP),
        "queue": np.zeros(groups, state.NUMBER),
        "cohorts": np.zeros(max(groups // int(p["prompts"]), int(p["steps"])) + 4, state.COHORT),
        "steps": np.zeros(steps, state.STEP),
        "spans": np.zeros(int(p["steps"] * (2 * p["updates"] + 3)) + 8, state.SPAN),
        "rollouts": np.zeros(2 * slots + 64 if p["log_rollouts"] else 0, state.ROLLOUT),
        "series": np.zeros(SERIES_POINTS, state.SERIES),
        "prompts": prompts,
        "choice": _tree(np.full(pool.size, UNSEEN_WEIGHT), of_sums=True) if adaptive else _tree(pool["turn"]),
        "spare": _tree(pool["turn"][: 0 if scenario.sampler in ("uniform", "adaptive") else None]),
        "taught": np.zeros(int(p["publish_steps"] * p["prompts"]) if p["learns"] and pool.size else 0, state.NUMBER),
        "bins": np.zeros(steps * state.BINS if p["learns"] else 0, state.NUMBER),
    }
