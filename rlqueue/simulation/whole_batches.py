"""What happens to whole batches: all prefilled again with new weights, replicas lent by the trainer and taken back."""

import numpy as np
from numba import njit

from rlqueue.simulation import state
from rlqueue.simulation.batch import (
    again,
    catch_up,
    change_load,
    leave,
    place_of,
    reschedule,
    send,
    start_waiting,
    to_prefill_server,
    unbind,
)
from rlqueue.simulation.heaps import list_remove
from rlqueue.simulation.memory import clock, list_at, params, replica_at, request_at, slot_at, tenants_of


@njit
def running_in_order(w, ri):
    """The slots of a replica's running requests, in order of joining."""
    k = replica_at(w, ri).k
    slots, joined = np.empty(k, np.int64), np.empty(k, np.int64)
    for place in range(k):
        slots[place], joined[place] = request_at(w, ri, place).slot, request_at(w, ri, place).order
    return slots[np.argsort(joined)]


@njit
def own_context(w, ri):
    """The tokens that the tenant's requests hold on a replica, whose clock is at the present."""
    r = replica_at(w, ri)
    if tenants_of(w) == 1:
        return r.context
    tokens = 0.0
    for place in range(r.k):
        q = slot_at(w, request_at(w, ri, place).slot)
        if q.tenant == clock(w).tenant:
            tokens += q.context + r.clock
    return tokens


@njit
def prefill_all_again(w, ri):
    """Abort and resume all requests of the tenant in a batch: their contexts are prefilled again with its new weights."""
    p, z, r = params(w), clock(w), replica_at(w, ri)
    if p.apart:
        for i in running_in_order(w, ri):
            if slot_at(w, i).tenant == z.tenant:
                leave(w, i, place_of(w, i))
                again(w, slot_at(w, i))
                to_prefill_server(w, i)
        start_waiting(w, ri)
    elif r.k > 0:
        tokens = own_context(w, ri)
        r.frozen = max(r.frozen, z.now) + tokens * p.prefill_s
        r.prefill_s += tokens * p.prefill_s
        z.prefilled_tokens += tokens
        z.again_tokens += tokens
    reschedule(w, ri)


@njit
def open_lent(w):
    p = params(w)
    for ri in range(p.replicas, p.replicas + p.lent):
        replica_at(w, ri).open = 1
        change_load(w, ri, 0)
    clock(w).lent_open = 1


@njit
def close_lent(w):
    """Take the lent replicas back: their requests go elsewhere and are prefilled there from the start."""
    p = params(w)
    clock(w).lent_open = 0
    for ri in range(p.replicas, p.replicas + p.lent):
        replica_at(w, ri).open = 0
        change_load(w, ri, 0)
    for i in range(w.slots_room):
        q = slot_at(w, i)
        if q.state != state.FREE and q.replica >= p.replicas:
            q.moved = 1
            if q.state == state.TOOL:
                unbind(w, i)
    for ri in range(p.replicas, p.replicas + p.lent):
        catch_up(w, ri)
        for i in running_in_order(w, ri):
            leave(w, i, place_of(w, i))
            send(w, i)
        while list_at(w, state.WAIT_LISTS + ri).head >= 0:
            i = list_at(w, state.WAIT_LISTS + ri).head
            list_remove(w, state.WAIT_LISTS + ri, i)
            send(w, i)
        r = replica_at(w, ri)
        r.prefill_s -= max(0.0, r.frozen - r.last)
        r.frozen = min(r.frozen, r.last)
        reschedule(w, ri)
