"""What the policy learns from a batch: solve rates rise when it is published.

``rlqueue.learning.shared_rise`` and ``own_rise`` are the same law for arrays.
"""

import math

from numba import njit

from rlqueue.simulation import state
from rlqueue.simulation.memory import bin_at, clock, group_at, params, prompt_at, taught_at


@njit
def freshness(p, g):
    """How much a trained group teaches at its staleness."""
    return 2.0 ** (-(g.trained_version - g.version) / p.staleness_half)


@njit
def note_taught(w, number):
    """A group has been trained on: what it adds to the rise of all prompts; its own prompt's waits for the publication."""
    z, p, g = clock(w), params(w), group_at(w, number)
    if not p.learns or not g.informative:
        return
    z.rise += p.learning * p.transfer * freshness(p, g) / p.prompts
    if p.pool > 0 and p.transfer < 1.0:
        taught_at(w, z.taught).number = number
        z.taught += 1


@njit
def learn(w):
    """The published policy has learned from what was trained since the last publication."""
    z, p = clock(w), params(w)
    z.odds *= math.exp(z.rise)
    z.rise = 0.0
    for place in range(z.taught):
        g = group_at(w, taught_at(w, place).number)
        share = g.solved / p.group_size
        q = prompt_at(w, g.prompt)
        q.shift += p.learning * (1.0 - p.transfer) * 4.0 * share * (1.0 - share) * freshness(p, g)
        q.odds = q.start_odds * math.exp(q.shift)
    z.taught = 0


@njit(error_model="numpy")
def survey(w):
    """Mean solve rate of the pool at the end of a step; counts the prompts in each of ``state.BINS`` equal ranges of it."""
    z = clock(w)
    first = z.step * state.BINS
    total = 0.0
    for prompt in range(w.prompts_room):
        rate = 1.0 / (1.0 + 1.0 / (prompt_at(w, prompt).odds * z.odds))
        total += rate
        bin_at(w, first + min(state.BINS - 1, int(rate * state.BINS))).number += 1
    return total / w.prompts_room
