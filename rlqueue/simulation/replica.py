"""One replica's continuous batch as a token clock: all running requests advance equally, so only the next end is needed.

The time of an iteration is ``overhead + max(k compute, shared + experts touched(k) + kv C)`` with C the sum of the running
contexts, which grows by k for each token that each request samples: within one batch it is linear in the token clock, and
both the time for x tokens and the tokens in a time have closed forms. ``iterations`` is a table over k of the two branches
without ``kv C``.
"""

import math

from numba import njit

from rlqueue.simulation.memory import iteration_at, params


@njit(error_model="numpy")
def time_for(w, tokens, k, context):
    """Seconds in which each of the k requests samples ``tokens``: the integral of the iteration time over the token clock."""
    kv_s, accept = params(w).kv_s, params(w).accept
    compute_s = iteration_at(w, k).compute_s
    first = iteration_at(w, k).read_s + kv_s * context
    spare = compute_s - first
    if spare <= 0.0:
        return (first + 0.5 * kv_s * k * tokens) * tokens / accept
    # Bound by compute until the contexts have grown so far that reading them takes as long
    until = spare / (kv_s * k) if kv_s > 0.0 else math.inf
    if tokens <= until:
        return compute_s * tokens / accept
    rest = tokens - until
    return (compute_s * until + (compute_s + 0.5 * kv_s * k * rest) * rest) / accept


@njit(error_model="numpy")
def tokens_in(w, seconds, k, context):
    """Tokens that each of the k requests samples in that time: the inverse of ``time_for``."""
    kv_s, accept = params(w).kv_s, params(w).accept
    work = seconds * accept
    compute_s = iteration_at(w, k).compute_s
    first = iteration_at(w, k).read_s + kv_s * context
    spare = compute_s - first
    if spare <= 0.0:
        return 2.0 * work / (first + math.sqrt(first * first + 2.0 * kv_s * k * work))
    until = spare / (kv_s * k) if kv_s > 0.0 else math.inf
    if work <= compute_s * until:
        return work / compute_s
    rest = work - compute_s * until
    return until + 2.0 * rest / (compute_s + math.sqrt(compute_s * compute_s + 2.0 * kv_s * k * rest))


@njit(error_model="numpy")
def bring_to(w, r, now):
    """Let the replica's clock advance to the moment ``now``; it stands still until ``frozen``, while prefill has the GPUs.

    At the planned moment it has the planned value exactly, whoever asks: what is due then must not lack 1e-13 of a token.
    """
    if r.k == 0:
        r.last = now
        return
    begin, reached = max(r.last, r.frozen), r.clock
    if now > begin:
        r.busy_s += now - begin
    if now >= r.due:
        reached = r.due_clock
    elif now > begin:
        reached = min(r.due_clock, r.clock + tokens_in(w, now - begin, r.k, r.context))
    grown = r.context + r.k * (reached - r.clock)
    r.k_area += r.k * (now - r.last)
    r.context_area += 0.5 * (r.context + grown) * (now - r.last)
    r.clock, r.context, r.last = reached, grown, now
