"""Requests on replicas: joining and leaving the continuous batch, prefill, KV memory, preemption.

Every function takes the world ``w`` and numbers of slots ``i`` and replicas ``ri``; the moment is ``clock(w).now``. What
belongs to one rollout takes its own tenant's world; what concerns replicas may have anyone's.
"""

import math

from numba import njit

from rlqueue.simulation import draws, state
from rlqueue.simulation.heaps import (
    heap_push,
    heap_remove,
    list_append,
    list_prepend,
    list_remove,
    tree_set,
)
from rlqueue.simulation.memory import (
    changed_at,
    clock,
    group_at,
    heap_of,
    host,
    key,
    list_at,
    loads_at,
    params,
    replica_at,
    request_at,
    slot_at,
    world_of,
)
from rlqueue.simulation.replica import bring_to, time_for
from rlqueue.simulation.solve_rate import solves

RANK_START, RANK_PREFILL, RANK_TOOL = range(3)


@njit
def set_timer(w, kind, time, i):
    """Ring at ``time`` for slot i; equal times ring in order of kind, then of setting."""
    b = host(w)
    b.next_timer += 1
    heap_push(w.timers, b.timers, time, (kind << 56) + b.next_timer, i)
    b.timers += 1


@njit
def catch_up(w, ri):
    """Bring a replica's token clock to the present."""
    bring_to(w, replica_at(w, ri), clock(w).now)


@njit
def reschedule(w, ri):
    """Note that what comes next on a replica must be found anew; done once after all that happens at this moment."""
    r, b = replica_at(w, ri), host(w)
    if not r.changed:
        r.changed = 1
        changed_at(w, b.changed).number = ri
        b.changed += 1


@njit
def plan(w):
    """Find what comes next on the replicas on which something has changed."""
    b = host(w)
    for n in range(b.changed):
        ri = changed_at(w, n).number
        replica_at(w, ri).changed = 0
        find_next(w, ri)
    b.changed = 0


@njit
def find_next(w, ri):
    """When the replica's next segment ends or its KV memory is full."""
    r, p = replica_at(w, ri), params(w)
    if r.k == 0:
        r.due = math.inf
    else:
        r.due_clock = request_at(w, ri, 0).at
        tokens = r.due_clock - r.clock
        r.overflow = 0
        if r.k > 1 and r.context + r.k * tokens > p.kv_tokens:
            tokens = (p.kv_tokens - r.context) / r.k
            r.due_clock = r.clock + tokens
            r.overflow = 1
        r.due = r.last  # a segment that ends at this very token does not wait for a prefill that has just begun
        if tokens > 0.0:
            r.due = max(r.last, r.frozen) + time_for(w, tokens, r.k, r.context)
    tree_set(w.ends, w.ends_room, ri, r.due)


@njit
def change_load(w, ri, by):
    """Count rollouts bound to a replica; one that is closed looks endlessly loaded."""
    r = replica_at(w, ri)
    r.bound += by
    tree_set(w.loads, w.loads_room, ri, float(r.bound) if r.open else math.inf)


@njit
def bind(w, i):
    """Choose the open replica with the fewest bound rollouts."""
    ri = loads_at(w, 1).leaf
    slot_at(w, i).replica = ri
    slot_at(w, i).home = ri
    change_load(w, ri, 1)


@njit
def unbind(w, i):
    q = slot_at(w, i)
    if q.replica != state.NONE:
        change_load(w, q.replica, -1)
        q.replica = state.NONE


@njit
def note_version(w, q):
    """A rollout's version is the one that its first request meets, which solves the prompt or not; a group's its oldest's."""
    if q.version == state.NO_VERSION:
        z, g = clock(w), group_at(w, q.group)
        q.version = z.version
        q.first = z.now
        g.version = min(g.version, z.version)
        if params(w).solves:
            q.solved = int(solves(w, g.prompt, draws.uniform(key(w, draws.SOLVE), q.group, q.rollout, 0)))


@njit
def join(w, i):
    """Put a request into the batch of its replica, whose clock is at the present; prefill first, where it shares the GPUs."""
    z, p, q = clock(w), params(w), slot_at(w, i)
    r = replica_at(w, q.replica)
    note_version(w, q)
    if q.pending > 0.0:
        work = q.pending * p.prefill_s
        r.frozen = max(r.frozen, z.now) + work
        r.prefill_s += work
        z.prefilled_tokens += q.pending
        q.pending = 0.0
    q.state = state.RUNNING
    q.end = r.clock + q.left
    r.context += q.context
    q.context -= r.clock
    b = host(w)
    b.joined += 1
    q.joined = b.joined
    heap_push(heap_of(w, q.replica), r.k, q.end, q.joined, i)
    r.k += 1
    b.running += 1


@njit
def leave(w, i, place):
    """Take the request at ``place`` of its replica's heap out of the batch, its clock being at the present."""
    q = slot_at(w, i)
    r = replica_at(w, q.replica)
    heap_remove(heap_of(w, q.replica), r.k, place)
    q.context += r.clock
    q.left = max(0.0, q.end - r.clock)
    r.k -= 1
    r.context = r.context - q.context if r.k > 0 else 0.0
    host(w).running -= 1


@njit
def place_of(w, i):
    """Where a running request is in its replica's heap."""
    ri, place = slot_at(w, i).replica, 0
    while request_at(w, ri, place).slot != i:
        place += 1
    return place


@njit
def fits(w, r, tokens):
    return r.k == 0 or r.context + tokens <= state.HEADROOM * params(w).kv_tokens


@njit
def start_waiting(w, ri):
    """Let waiting requests start, as long as the first of them fits."""
    r = replica_at(w, ri)
    while True:
        i = list_at(w, state.WAIT_LISTS + ri).head
        if i < 0 or not fits(w, r, slot_at(w, i).context):
            return
        list_remove(w, state.WAIT_LISTS + ri, i)
        join(world_of(w, i), i)


@njit
def arrive(w, i):
    """A request comes to its replica: it starts if nobody waits and it fits, else it waits."""
    q = slot_at(w, i)
    ri = q.replica
    catch_up(w, ri)
    if list_at(w, state.WAIT_LISTS + ri).head < 0 and fits(w, replica_at(w, ri), q.context):
        join(w, i)
        reschedule(w, ri)
    else:
        q.state = state.KV_WAIT
        list_append(w, state.WAIT_LISTS + ri, i)


@njit
def to_prefill_server(w, i):
    """Prefill apart from decoding, first come first served; the request comes to its replica afterwards."""
    z, q = clock(w), slot_at(w, i)
    r = replica_at(w, q.replica)
    work = q.pending * params(w).prefill_s
    r.prefill_free = max(r.prefill_free, z.now) + work
    r.prefill_s += work
    z.prefilled_tokens += q.pending
    q.pending = 0.0
    q.state = state.PREFILLING
    note_version(w, q)
    set_timer(w, RANK_PREFILL, r.prefill_free, i)


@njit
def send(w, i):
    """Send a request with its pending prefill to its replica, or to a new one if its own was taken away."""
    q = slot_at(w, i)
    if q.moved:
        q.moved = 0
        unbind(w, i)
        again(w, q)
    if q.replica == state.NONE:
        bind(w, i)
    if params(w).apart:
        to_prefill_server(w, i)
    else:
        arrive(w, i)


@njit
def again(w, q):
    """The whole context must be prefilled once more."""
    q.pending = q.context
    clock(w).again_tokens += q.context


@njit
def preempt(w, ri):
    """The KV memory is full: the request that joined last leaves, and waits to be prefilled again."""
    r = replica_at(w, ri)
    youngest = 0
    for place in range(1, r.k):
        if request_at(w, ri, place).order > request_at(w, ri, youngest).order:
            youngest = place
    i = request_at(w, ri, youngest).slot
    q, own = slot_at(w, i), world_of(w, i)
    leave(w, i, youngest)
    again(own, q)
    q.preempted += 1
    clock(own).preempted += 1
    if params(w).apart:
        to_prefill_server(own, i)
    else:
        q.state = state.KV_WAIT
        list_prepend(w, state.WAIT_LISTS + ri, i)
    reschedule(w, ri)
