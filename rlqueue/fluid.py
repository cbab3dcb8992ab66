"""The generator as a fluid of rollouts, compiled: how fast it flows, and how long a batch of them takes from first to last.

``r`` is one record of dtype rates.RATES throughout, and ``kept`` the share of generator time that is not lost to prefilling
aborted rollouts again.
"""

import math

import numpy as np
from numba import njit

from rlqueue.inference import iteration_s

STEPS = 36
"""Halvings of a bracket: 2**-36 of it is left, far below what any input is known to."""

ROUNDS = 64
"""Rounds of replacements that are added up one by one; later ones are taken together."""

EULER = 0.5614594835668851
"""exp(-Euler's constant): of n exponential times, the mean maximum is where ``exp(-gamma) / n`` of a curve is left."""


@njit(inline="always")
def used_share(r):
    """Share of the rollouts dispatched that is neither filtered, nor surplus, nor failed."""
    return (1.0 - r.filtered) * (1.0 - r.surplus) * (1.0 - r.failed)


@njit
def rollout_rate(a, r, kept):
    """Rollouts per second of a replica with ``a`` running requests: ``a / (R t(a) / accept + a p)``.

    R response tokens at iteration time t, prefill time p of the replica per rollout; ``kept`` is the share of its time
    that is not lost to prefilling aborted rollouts again. On average less than one request runs one at a time.
    """
    t = iteration_s(
        max(a, 1.0), r.context_tokens, r.overhead_s, r.shared_s, r.experts_s, r.miss, r.kv_s_per_token, r.compute_s
    )
    return kept * a / (r.response_tokens * t / r.accept_length + a * r.prefill_s)


@njit(inline="always")
def decode_s(tokens, active, context_tokens, r, kept):
    """Time [s] in which each of ``active`` requests of mean context ``context_tokens`` samples ``tokens``."""
    t = iteration_s(
        active, context_tokens, r.overhead_s, r.shared_s, r.experts_s, r.miss, r.kv_s_per_token, r.compute_s
    )
    return tokens / r.accept_length / kept * t


@njit
def active_for_slots(slots, r, kept):
    """Running requests of a replica whose rollouts fill ``slots`` slots, those outside the LLM included; at most KV slots."""
    low, high = 0.0, min(r.kv_slots, slots)
    if high + rollout_rate(high, r, kept) * r.outside_s <= slots:
        return high
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if middle + rollout_rate(middle, r, kept) * r.outside_s > slots:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


@njit
def active_for_rate(rate, high, r, kept):
    """The fewest running requests of a replica that finish ``rate`` rollouts per second; at most ``high``."""
    low = 0.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if rollout_rate(middle, r, kept) < rate:
            low = middle
        else:
            high = middle
    return high


@njit
def survival_at(tokens, max_tokens, table):
    """P(longer than ``tokens``) from an even table over 0 .. max_tokens, linear between its points."""
    if tokens <= 0.0:
        return 1.0
    place = tokens / max_tokens * (table.size - 1)
    i = int(place)
    if i >= table.size - 1:
        return 0.0
    return table[i] + (place - i) * (table[i + 1] - table[i])


@njit
def replacements_s(r, replicas, active, kept):
    """Time [s] by which a batch takes longer because filtered groups are replaced, and their replacements again.

    A replacement begins when the filtered group has ended: of P groups the slowest takes ``sum_i 1 - (1 - filtered^i)^P``
    more in a row, each as long as a group alone with the few others that are left.
    """
    if r.filtered == 0.0 or r.oversampling * (1.0 - r.filtered) >= 1.0:
        return 0.0
    total, left, rounds = 0.0, r.filtered, 0.0
    for _ in range(ROUNDS):
        expected = 1.0 - (1.0 - left) ** r.groups
        alive = min(active, max(1.0, left * r.samples / replicas))
        total += expected * (r.outside_s + decode_s(r.group_tokens, alive, r.context_tokens, r, kept))
        rounds += expected
        left *= r.filtered
    # The sum is about (ln P + gamma) / -ln(filtered) - 1/2; what is left of it, one group at a time
    rest = max(0.0, -math.log(EULER / r.groups) / -math.log(r.filtered) - 0.5 - rounds) if left > 1e-9 else 0.0
    return total + rest * (r.outside_s + decode_s(r.group_tokens, min(active, 1.0), r.context_tokens, r, kept))


@njit
def narrowest(r, replicas):
    """Rollouts per second that sandbox creation and separate prefill let through; endless where there is neither."""
    through = r.creates_per_s if r.uses_sandbox > 0.0 else np.inf
    return min(through, replicas / r.prefill_apart_s) if r.prefill_apart_s > 0.0 else through


@njit
def at_once(r, replicas, active, dispatched, kept, rollouts):
    """Time [s] from dispatching that many rollouts together to the end of the last, and the mean time of one.

    Rollouts beyond the slots follow as slots become free. The last wave shrinks as rollouts end, and each decodes faster for
    it: ``integral of t(k survival(y), c + y) dy`` up to the mean longest response of the batch, all of the wave being at token
    y together.
    """
    slots = active + rollout_rate(active, r, kept) * r.outside_s
    wave = min(dispatched / replicas, slots)
    cell = r.max_tokens / (rollouts.size - 1)
    longest, mean = 0.0, 0.0
    for i in range(rollouts.size - 1):
        part = min(1.0, max(0.0, r.batch_tokens / cell - i))
        if part == 0.0:
            break
        alive = max(1.0, wave * 0.5 * (rollouts[i] + rollouts[i + 1]))
        t = decode_s(cell, alive, r.prompt_context_tokens + (i + 0.5) * cell, r, kept)
        longest += part * t
        mean += 0.5 * (rollouts[i] + rollouts[i + 1]) * t
    free = replicas * rollout_rate(active, r, kept)
    share = wave * replicas / dispatched
    in_last_wave = r.outside_s + wave * r.prefill_s + mean
    whole = (1.0 - share) * dispatched / free + r.outside_s + wave * r.prefill_s + longest
    # Where creating sandboxes or prefill apart is the narrowest, the last rollout begins that late, and then is nearly alone
    alone = r.outside_s + decode_s(r.response_tokens, 1.0, r.context_tokens, r, kept)
    whole = max(whole, dispatched / narrowest(r, replicas) + alone)
    return whole, share * in_last_wave + (1.0 - share) * slots * replicas / free


@njit
def drain_s(r, active, kept, rollouts):
    """Time [s] until the last of the rollouts in flight has ended when none is dispatched any more.

    The remaining length of a running rollout has the survival ``integral_y S / E[L]``; they end up to the mean longest
    response of a batch.
    """
    cell = r.max_tokens / (rollouts.size - 1)
    left = r.response_tokens
    total = 0.0
    for i in range(rollouts.size - 1):
        if i * cell > r.batch_tokens:
            break
        alive = max(1.0, active * max(0.0, left) / r.response_tokens)
        total += decode_s(cell, alive, r.context_tokens, r, kept)
        left -= cell * 0.5 * (rollouts[i] + rollouts[i + 1])
    return total
