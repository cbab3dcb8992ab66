"""The closed form, compiled: the long-run cycle of generator, budget and trainer in seconds and slots.

The generator is a fluid of rollouts in slots (Little's law); the batch cycle is periodic with step time T; a staleness
budget is a condition on how many dispatched groups may still be unfinished when the trainer takes a batch. All formulas
stand in the functions' docstrings; ``queueing`` names their results, ``fluid`` has the generator.
"""

import math

import numpy as np
from numba import njit

from rlqueue.budgets import kept_by_age, over_budget, targeted_bound
from rlqueue.fluid import (
    STEPS,
    active_for_rate,
    active_for_slots,
    at_once,
    drain_s,
    replacements_s,
    rollout_rate,
    used_share,
)
from rlqueue.stamp import source_stamp

# Codes of rates.SCHEDULE_CODES and FAMILY_CODES, as constants that the compiler folds.
COLOCATED, SYNC, ONE_STEP_OFF, DRAIN, IN_FLIGHT, PARTIAL, LENT = range(7)
ADMISSION, DROP, TARGETED = range(3)
# Codes of operating_point.CONSTRAINTS, in its order.
(TRAINER, WEIGHT_SYNC, DECODE, KV, CONCURRENCY, SANDBOX_START, SANDBOX_CAP, BUDGET, TAIL, FILTER, PREFILL, FETCH) = (
    range(12)
)

SATURATED = 0.2
"""Decoding counts as saturated when 1 % more running requests would sample less than 0.2 % more tokens per second."""

DROPPED_MUCH = 0.9
"""A drop rule binds when it lets less than this share of the groups through."""

TAIL_MATTERS = 1.05
"""A batch has a long tail when its longest response is longer than the mean by more than this factor."""

POINT = np.dtype(
    [(name, "f8") for name in (
        "step_s", "wait_s", "train_s", "sync_s", "consumption_per_s", "production_per_s", "trainer_wait_ratio",
        "rollout_idle_ratio", "staleness_versions", "in_flight_rollouts", "queued_groups", "rollout_s", "group_s",
        "decoding_ratio", "accepted_ratio", "kv_used_ratio", "active_per_replica", "decode_tokens_per_s",
    )] + [("binding", "i8")]
)  # fmt: skip


@njit
def used_of_held(r, replicas, slots, kept):
    """Share of the slots in use where a group keeps its slots until its last rollout ends: time of a rollout over its group's.

    The rollouts in use set the time of a token, and that the share: a few rounds bring the two together.
    """
    share = 1.0
    for _ in range(8 if r.whole_groups > 0.0 else 0):
        active = active_for_slots(share * slots / replicas, r, kept)
        token_s = active / (rollout_rate(active, r, kept) * r.response_tokens)
        longest = max(r.group_tokens, r.response_tokens)
        share = (r.outside_s + r.response_tokens * token_s) / (r.outside_s + longest * token_s)
    return share


@njit
def cycle(r, replicas, trainer_gpus, groups, rollouts, kept):
    """Step time of one scenario and what sets it.

    Returns (step, train, after, active, rate, generation, kept_share, limit, mean_rollout_s, sync_like): seconds of a
    step, of its fetching and compute, of sync and pauses; running requests of a replica and rollouts per second at the slot
    limit; seconds a batch takes to generate; share of groups kept by the age limit; constraint code of the generating side.
    """
    train = r.fetch_s + r.train_gpu_s / trainer_gpus + r.train_fixed_s
    after = r.sync_s / r.publish_steps + r.pause_s
    busy = train + after
    slots = min(r.concurrency, r.sandbox_cap)
    slots *= used_of_held(r, replicas, slots, kept)
    active = active_for_slots(slots / replicas, r, kept)
    rate = replicas * rollout_rate(active, r, kept)
    # Which limit holds the rollouts in flight
    more = min(active * 1.01, r.kv_slots) if active < r.kv_slots else active * 1.01
    gain = rollout_rate(more, r, kept) / rollout_rate(active, r, kept) - 1.0
    if gain < SATURATED * 0.01:
        limit = DECODE
    elif active >= r.kv_slots * (1.0 - 1e-9):
        limit = KV
    else:
        limit = SANDBOX_CAP if r.sandbox_cap < r.concurrency else CONCURRENCY
    if r.prefill_apart_s > 0.0 and rate > replicas / r.prefill_apart_s:
        rate, limit = replicas / r.prefill_apart_s, PREFILL
    if r.uses_sandbox > 0.0 and rate > r.creates_per_s:
        rate, limit = r.creates_per_s, SANDBOX_START
    slots_active = active
    if limit in (PREFILL, SANDBOX_START):
        active = active_for_rate(rate / replicas, active, r, kept)
    dispatched = r.samples * r.oversampling / used_share(r)
    lag_free = r.schedule in (COLOCATED, SYNC, ONE_STEP_OFF)
    first = r.samples * r.oversampling / ((1.0 - r.surplus) * (1.0 - r.failed))
    whole, mean_s = at_once(r, replicas, slots_active, first, kept, rollouts)
    whole = max(whole + replacements_s(r, replicas, active, kept), dispatched / rate)
    if not lag_free and r.max_staleness == 0.0:
        lag_free = True
    share = 1.0
    if lag_free:
        free = replicas * rollout_rate(slots_active, r, kept)
        one_wave = rate >= free and dispatched <= replicas * slots_active + free * r.outside_s
        tail = one_wave and r.batch_tokens > TAIL_MATTERS * r.response_tokens
        sync = r.sync_s / r.publish_steps
        step = max(whole, busy - sync) + sync if r.schedule == ONE_STEP_OFF else whole + busy
        return step, train, after, active, rate, whole, share, TAIL if tail else limit, mean_s, True

    generation = dispatched / rate
    if r.schedule == DRAIN:
        # Nothing is dispatched until the last rollout has ended and the weights are there: what a publication's steps need is
        # dispatched after one publication and has ended before the next
        drain = drain_s(r, active, kept, rollouts)
        generation += max(0.0, drain - active * replicas / rate) / r.publish_steps
        between, _ = at_once(r, replicas, slots_active, dispatched * r.publish_steps, kept, rollouts)
        generation = max(generation, between / r.publish_steps) + r.sync_s / r.publish_steps
        generation = min(generation, whole + busy)  # in lockstep there is nothing to drain
    step = max(busy, generation)
    if r.filtered >= 0.5:
        limit = FILTER
    if r.family == TARGETED:
        bound = targeted_bound(step, whole + busy, r, replicas, active, dispatched, busy, kept)
        if bound > step * (1.0 + 1e-9):
            step, limit = bound, BUDGET
    elif r.family == ADMISSION:
        most = active_for_rate(dispatched / step / replicas, active, r, kept)
        if over_budget(step, most, r, train, after, kept, groups) > 0.0:
            # Fewer requests running, a longer step; never longer than in step with the trainer
            longest = max(step, whole + busy)
            fewest = active_for_rate(dispatched / longest / replicas, most, r, kept)
            low, high, found = fewest, most, longest
            for _ in range(STEPS):
                middle = 0.5 * (low + high)
                takes = dispatched / (replicas * rollout_rate(middle, r, kept))
                if over_budget(takes, middle, r, train, after, kept, groups) > 0.0:
                    high = middle
                else:
                    low, found = middle, takes
            if found > step * (1.0 + 1e-9):
                step, limit = found, BUDGET
    else:
        token_s = active * replicas / (rate * r.response_tokens)
        share = kept_by_age(step, busy, r, token_s, groups)
        if generation > share * step:
            # Never slower than in step with the trainer, where nothing gets old
            low, high = step, max(step, whole + busy)
            for _ in range(STEPS):
                middle = 0.5 * (low + high)
                if middle * kept_by_age(middle, busy, r, token_s, groups) < generation:
                    low = middle
                else:
                    high = middle
            step = high
            share = min(1.0, generation / step)
            if share < DROPPED_MUCH:
                limit = BUDGET
    return step, train, after, active, rate, generation, share, limit, mean_s, False


@njit
def lost_to_reprefill(r, replicas, trainer_gpus, groups, rollouts):
    """Share of generator time kept when every publication aborts the running rollouts and prefills them again."""
    if r.reprefill_s == 0.0:
        return 1.0
    step, _, _, active, _, _, _, _, _, _ = cycle(r, replicas, trainer_gpus, groups, rollouts, 1.0)
    return max(0.05, 1.0 - active * r.reprefill_s / (step * r.publish_steps))


@njit
def steady(r, groups, rollouts, out):
    """Fill the record ``out`` (dtype POINT) with the operating point of the record ``r`` (dtype rates.RATES)."""
    trainer_gpus = r.trainer_gpus
    replicas = math.floor(r.generator_gpus / r.gpus_per_replica)
    if r.schedule == COLOCATED:
        trainer_gpus = r.trainer_gpus + r.generator_gpus
        replicas = math.floor(trainer_gpus / r.gpus_per_replica)
    if r.schedule == LENT:
        # The trainer lends its GPUs for the share w of its time that it waits: w = 1 - busy / step(w).
        low, high = 0.0, 1.0
        lent = r.trainer_gpus / r.gpus_per_replica
        for _ in range(40):
            w = 0.5 * (low + high)
            found = cycle(r, replicas + w * lent, trainer_gpus, groups, rollouts, 1.0)
            if 1.0 - (found[1] + found[2]) / found[0] > w:
                low = w
            else:
                high = w
        replicas = replicas + low * lent
    kept = lost_to_reprefill(r, replicas, trainer_gpus, groups, rollouts)
    step, train, after, active, rate, generation, share, limit, mean_s, lag_free = cycle(
        r, replicas, trainer_gpus, groups, rollouts, kept
    )
    busy = train + after
    compute = train - r.fetch_s
    unfed = max(0.0, step - busy)  # without a batch to fetch
    dispatched = r.samples * r.oversampling / (used_share(r) * share)
    most = replicas * (active + rollout_rate(active, r, kept) * r.outside_s)
    slots = min(r.concurrency, r.sandbox_cap)
    held = used_of_held(r, replicas, slots, kept)
    trainer_bound = unfed <= 1e-12 * step
    flows = dispatched / step
    if r.family == DROP and not lag_free:
        flows = rate  # nothing holds dispatch back: what is too old is thrown away
        dispatched = rate * step
    if lag_free:
        a = active
        rollout_s = mean_s
        in_flight = min(dispatched * mean_s / step, r.concurrency, r.sandbox_cap)
        group_s = mean_s * r.group_tokens / r.response_tokens
        running = min(in_flight, most)
        staleness = 1.0 / r.publish_steps if r.schedule == ONE_STEP_OFF else 0.0
        queued = 0.0
        a = running / replicas
    else:
        if flows < rate * (1.0 - 1e-12):
            a = active_for_rate(flows / replicas, active, r, kept)
            in_flight = replicas * (a + rollout_rate(a, r, kept) * r.outside_s)
            running = in_flight
        else:
            a = active
            running = most
            in_flight = max(most, held * slots)
        rollout_s = in_flight / flows
        token_s = a * replicas / (flows * r.response_tokens)
        group_s = rollout_s + (r.group_tokens - r.response_tokens) * token_s
        natural = (group_s / step + busy / step) / r.publish_steps
        staleness = min(natural, r.max_staleness)
        queued = 0.5 * r.groups
        if trainer_bound:
            staleness = r.max_staleness
            queued = r.groups * max(0.5, r.max_staleness * r.publish_steps - group_s / step)
    out.step_s = step
    out.wait_s = unfed + r.fetch_s
    out.train_s = compute
    out.sync_s = after
    out.consumption_per_s = r.samples / compute
    out.production_per_s = r.samples / generation * (share if not lag_free else 1.0)
    if limit == BUDGET:
        out.production_per_s = r.samples / step
    out.trainer_wait_ratio = out.wait_s / step
    out.rollout_idle_ratio = max(0.0, 1.0 - held * running / max(most, 1e-300))
    out.staleness_versions = staleness
    out.in_flight_rollouts = in_flight
    out.queued_groups = queued
    out.rollout_s = rollout_s
    out.group_s = group_s
    out.decoding_ratio = max(0.0, 1.0 - r.outside_s / rollout_s)
    out.accepted_ratio = r.samples / dispatched
    out.kv_used_ratio = min(1.0, a / r.kv_slots)
    out.active_per_replica = a
    out.decode_tokens_per_s = flows * r.response_tokens
    if trainer_bound:
        sync = r.sync_s / r.publish_steps
        limit = TRAINER
        if r.fetch_s > max(compute, sync):
            limit = FETCH
        elif sync > compute:
            limit = WEIGHT_SYNC
    out.binding = limit


def _compiled(stamp):
    @njit(cache=True)
    def steady_all(rates, groups, rollouts):
        """Operating points of many records: 1-D array of dtype POINT from a 1-D array of dtype rates.RATES."""
        points = np.zeros(rates.size, POINT)
        for i in range(rates.size if stamp else 0):
            steady(rates[i], groups, rollouts, points[i])
        return points

    return steady_all


steady_all = _compiled(source_stamp("inference.py", "fluid.py", "budgets.py", "steady.py"))
