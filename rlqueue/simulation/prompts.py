"""The pool of prompts: which one comes next, what has been observed of it.

Samplers that go through the pool in epochs give each prompt a turn, and two trees find the least: ``choice`` over the prompts
that are free and qualify, ``spare`` over all that are free. The adaptive one draws from a tree of sums over ``choice``.
"""

import math

from numba import njit

from rlqueue.simulation import draws, state
from rlqueue.simulation.heaps import sum_find, sum_set, tree_set
from rlqueue.simulation.memory import NODE, clock, key, params, prompt_at, record_at


@njit
def observed(q):
    """Share of rollouts that solved the prompt, the last group counting half and those before ever less."""
    return q.solved / q.tried if q.tried > 0.0 else math.nan


@njit
def qualifies(p, q):
    """Whether the sampler wants the prompt; one never seen is always wanted."""
    if q.tried == 0.0:
        return True
    if p.sampler == state.BAND:
        return p.band_low <= observed(q) <= p.band_high
    if p.sampler == state.RETIRE:
        return observed(q) <= p.retire_above
    return True


@njit
def weight(q):
    """Of the adaptive sampler: p (1 - p) at the mean of p that a uniform prior and what was observed give."""
    mean = (q.solved + 1.0) / (q.tried + 2.0)
    return mean * (1.0 - mean)


@njit
def place(w, prompt):
    """Put the prompt where the sampler looks for it: nowhere while one of its groups is in flight."""
    p, q = params(w), prompt_at(w, prompt)
    free = q.flight == 0
    if p.sampler == state.ADAPTIVE:
        sum_set(w.choice, w.choice_room, prompt, weight(q) if free else 0.0)
        return
    tree_set(w.choice, w.choice_room, prompt, q.turn if free and qualifies(p, q) else math.inf)
    if p.sampler != state.UNIFORM:
        tree_set(w.spare, w.spare_room, prompt, q.turn if free else math.inf)


@njit
def any_by_weight(w, u):
    """The prompt drawn by weight when all are in flight."""
    pool = params(w).pool
    total = 0.0
    for prompt in range(pool):
        total += weight(prompt_at(w, prompt))
    left = u * total
    for prompt in range(pool):
        left -= weight(prompt_at(w, prompt))
        if left < 0.0:
            return prompt
    return pool - 1


@njit
def any_by_turn(w):
    """The prompt whose turn it is when all are in flight."""
    first = 0
    for prompt in range(1, params(w).pool):
        if prompt_at(w, prompt).turn < prompt_at(w, first).turn:
            first = prompt
    return first


@njit
def choose(w, group):
    """The prompt of the next group."""
    z, p = clock(w), params(w)
    if p.pool == 0:
        return group
    if p.sampler == state.ADAPTIVE:
        u = draws.uniform(key(w, draws.CHOICE), group, 0, 0)
        if record_at(w.choice, 1, NODE).value > 0.0:
            prompt = sum_find(w.choice, w.choice_room, u)
        else:
            z.repeated += 1
            prompt = any_by_weight(w, u)
    elif record_at(w.choice, 1, NODE).value < math.inf:
        prompt = record_at(w.choice, 1, NODE).leaf
    elif p.sampler != state.UNIFORM and record_at(w.spare, 1, NODE).value < math.inf:
        z.unqualified += 1
        prompt = record_at(w.spare, 1, NODE).leaf
    else:
        z.repeated += 1
        prompt = any_by_turn(w)
    q = prompt_at(w, prompt)
    q.groups += 1
    q.flight += 1
    if p.sampler != state.ADAPTIVE:
        z.epoch = max(z.epoch, int(q.turn))
        q.turn = z.epoch + 1 + draws.uniform(key(w, draws.TURN), prompt, z.epoch + 1, 0)
    if q.flight == 1:
        place(w, prompt)
    return prompt


@njit
def release(w, prompt):
    """One of the prompt's groups is no longer in flight."""
    if params(w).pool > 0:
        q = prompt_at(w, prompt)
        q.flight -= 1
        if q.flight == 0:
            place(w, prompt)


@njit
def observe(w, prompt, solved):
    """Note what a group shows that is about to be released; the groups before it were another policy's and count half."""
    p = params(w)
    if p.pool > 0 and p.solves:
        q = prompt_at(w, prompt)
        q.solved = 0.5 * q.solved + solved
        q.tried = 0.5 * q.tried + p.group_size
