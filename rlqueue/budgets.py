"""What a staleness budget allows, compiled: how many dispatched groups may be unfinished when the trainer takes a batch."""

from numba import njit

from rlqueue.fluid import EULER, STEPS, active_for_rate, decode_s, replacements_s, rollout_rate, survival_at


@njit
def targeted_bound(shortest, longest, r, replicas, active, dispatched, busy, kept):
    """Step time [s] at which a straggler, which holds the step its group belongs to, is ready when its step comes.

    ``(straggler + busy) / ahead``: that many batches may run ahead of the trainer (less on average where weights are
    published every m steps), and they share the generator with it: it decodes among what a step of this time needs.
    """
    ahead = r.publish_steps * (1.0 + r.max_staleness) - 0.5 * (r.publish_steps - 1.0)
    alone = r.outside_s + replacements_s(r, replicas, active, kept)
    low, high = shortest, max(shortest, longest)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        crowd = max(1.0, active_for_rate(dispatched / middle / replicas, active, r, kept))
        straggler = alone + decode_s(r.batch_tokens, crowd, r.context_tokens, r, kept)
        if straggler + busy > ahead * middle:
            low = middle
        else:
            high = middle
    return high


@njit
def over_budget(step, a, r, train, after, kept, groups):
    """How far the unfinished groups exceed what the admission budget allows (in batches), at step time ``step``.

    ``a`` requests running on each replica produce just the batch that this step time needs.

    A batch worth of groups is dispatched with each step, so at a time y after the last publication
    ``sum_i S(y + i T)`` batches are unfinished. Update j of u may start at ``y_j = T - after - (1 - (j - 1) / u) train``
    if at most ``S + 1 - j / u`` batches are unfinished then (plus ``exp(-gamma) / groups`` for a batch of finite size).
    Groups that will be filtered take a place in the budget while they run; surplus ones and failed attempts take none.
    """
    token_s = a / (rollout_rate(a, r, kept) * r.response_tokens)
    budget = r.publish_steps * (r.max_staleness + 1.0) - 1.0
    weight = r.oversampling / (1.0 - r.filtered)
    worst = -1e300
    for j in range(1, int(r.updates) + 1):
        y = step - after - (1.0 - (j - 1.0) / r.updates) * train
        unfinished = 0.0
        age = y
        while age < r.outside_s + r.max_tokens * token_s:
            unfinished += survival_at((age - r.outside_s) / token_s, r.max_tokens, groups)
            if unfinished > 1e5:
                break
            age += step
        allowed = r.oversampling * (budget + 1.0) - j / r.updates + EULER / r.groups
        worst = max(worst, unfinished * weight - allowed)
    return worst


@njit
def kept_by_age(step, busy, r, token_s, groups):
    """Share of groups young enough to be trained under a drop rule: ``1 - S((S_max + 1 - busy / T) m T - T / 2)``."""
    age = (r.max_staleness + 1.0) * r.publish_steps * step - busy - 0.5 * step
    return 1.0 - survival_at((age - r.outside_s) / token_s, r.max_tokens, groups)
