"""The event loop: the next event, then the trainer, then dispatch; stops and goes on wherever it is told to."""

import math

from numba import njit

from rlqueue.simulation import state
from rlqueue.simulation.batch import (
    RANK_PREFILL,
    RANK_START,
    arrive,
    catch_up,
    leave,
    plan,
    preempt,
    reschedule,
    send,
    start_waiting,
    unbind,
)
from rlqueue.simulation.batches import dispatch, finish, share_out
from rlqueue.simulation.heaps import heap_remove, list_append, list_remove
from rlqueue.simulation.memory import (
    clock,
    ends_at,
    group_at,
    host,
    list_at,
    params,
    point_at,
    replica_at,
    request_at,
    slot_at,
    tenants_of,
    timer_at,
    world_at,
    world_of,
)
from rlqueue.simulation.rollout import begin_tool_call, begin_turn, create, fail, grant_places, log, vacate
from rlqueue.simulation.trainer import look, ring, serve
from rlqueue.stamp import source_stamp


@njit
def end_rollout(w, i):
    """A rollout is done and scored."""
    z, p, q = clock(w), params(w), slot_at(w, i)
    number = q.group
    g = group_at(w, number)
    log(w, i, state.FINISHED)
    g.ended += 1
    g.sampled += q.length
    g.longest = max(g.longest, q.length)
    g.ended_version = min(g.ended_version, q.version)
    g.lag += q.version * q.length + q.lag
    g.solved += q.solved
    if q.length >= p.max_tokens:
        g.cut += 1
        z.truncated += 1
    vacate(w, i)
    if g.ended == p.group_size:
        finish(w, number)
    if p.uses_sandbox:
        grant_places(w)


@njit
def replica_event(w, ri):
    """A segment ends on a replica, or its KV memory is full."""
    r = replica_at(w, ri)
    catch_up(w, ri)
    if r.overflow:
        preempt(w, ri)
        return
    i = request_at(w, ri, 0).slot
    leave(w, i, 0)
    start_waiting(w, ri)
    reschedule(w, ri)
    end_segment(world_of(w, i), i)


@njit
def end_segment(w, i):
    """A rollout has sampled its turn."""
    z, p, q = clock(w), params(w), slot_at(w, i)
    z.decoded_tokens += q.segment
    q.turn += 1
    q.left = q.segment
    if q.turn == q.dies:
        fail(w, i)
    elif q.turn < q.turns:
        begin_tool_call(w, i)
    else:
        unbind(w, i)
        if p.reward_s > 0.0:
            q.state = state.REWARD
            q.at = z.now + p.reward_s
            list_append(w, state.REWARD_LIST, i)
        else:
            end_rollout(w, i)


@njit
def timer_event(w):
    """A sandbox has started or failed, a prefill server is done, or a tool call of random length has ended."""
    b = host(w)
    i, kind = timer_at(w, 0).slot, timer_at(w, 0).order >> 56
    heap_remove(w.timers, b.timers, 0)
    b.timers -= 1
    timer_rings(world_of(w, i), i, kind)


@njit
def timer_rings(w, i, kind):
    """The same, for the rollout in slot i."""
    z, p, q = clock(w), params(w), slot_at(w, i)
    if kind == RANK_START:
        if not q.fails:
            q.ready = z.now
            begin_turn(w, i)
        elif q.tries < p.tries:
            create(w, i)
        else:
            q.ready = z.now
            fail(w, i)
    elif kind == RANK_PREFILL:
        if q.moved:
            send(w, i)
        else:
            arrive(w, i)
    else:
        begin_turn(w, i)


@njit
def settle(w):
    """After each event: the trainer first, then dispatch; then what comes next on each replica."""
    if tenants_of(w) == 1:
        look(w)
        serve(w)
        dispatch(w)
    else:
        for tenant in range(tenants_of(w)):
            look(world_at(w, tenant))
        serve(w)
        share_out(w)
    plan(w)


@njit
def halts(w, log_rollouts):
    """Whether the loop must come back before the next event: no room for what that may note."""
    z = clock(w)
    if z.spans + 2 >= w.spans_room or z.step + 1 >= w.steps_room:
        return state.NO_ROOM
    if log_rollouts and z.rollouts + w.slots_room >= w.rollouts_room:
        return state.NO_ROOM
    return state.GOES_ON


@njit
def sample(w):
    """A point of the series over time; when the room is full every other point goes and the stride doubles."""
    z = clock(w)
    if z.series == w.series_room:
        for place in range(z.series // 2):
            row, kept = point_at(w, place), point_at(w, 2 * place)
            row.time, row.flight, row.queued = kept.time, kept.flight, kept.queued
            row.running, row.version = kept.running, kept.version
        z.series //= 2
        z.stride *= 2
    if host(w).events & (z.stride - 1) == 0:
        row = point_at(w, z.series)
        row.time, row.flight, row.queued = z.now, z.flight, z.queue_end - z.queue_head
        row.running, row.version = host(w).running, z.version
        z.series += 1


def compiled(stamp):
    """The loop, kept on disk under the stamp of all its sources: numba itself looks at the age of one file only."""

    @njit(cache=True, nogil=True)
    def advance(w, limit):
        """Let events happen until the run is over, ``limit`` of them have happened in all, room runs out, or none is left."""
        z, b, tenants, log_rollouts = clock(w), host(w), tenants_of(w), params(w).log_rollouts != 0
        b.status, b.sources = state.GOES_ON, stamp
        settle(w)
        while b.status == state.GOES_ON:
            if b.unfinished == 0:
                b.status = state.DONE
                break
            for tenant in range(tenants):
                b.status = max(b.status, halts(world_at(w, tenant), log_rollouts))
            if b.status != state.GOES_ON or b.events >= limit:
                break
            # Ties: trainer by tenant, replicas by number, timers by kind, tool calls, rewards
            time, what, who = z.trainer_at, 0, 0
            for tenant in range(1, tenants):
                if clock(world_at(w, tenant)).trainer_at < time:
                    time, who = clock(world_at(w, tenant)).trainer_at, tenant
            ends = ends_at(w, 1)
            if ends.value < time:
                time, what = ends.value, 1
            if b.timers > 0 and timer_at(w, 0).at < time:
                time, what = timer_at(w, 0).at, 2
            tool, reward = list_at(w, state.TOOL_LIST).head, list_at(w, state.REWARD_LIST).head
            if tool >= 0 and slot_at(w, tool).at < time:
                time, what = slot_at(w, tool).at, 3
            if reward >= 0 and slot_at(w, reward).at < time:
                time, what = slot_at(w, reward).at, 4
            if time == math.inf:
                b.status = state.STUCK
                break
            for tenant in range(tenants):
                clock(world_at(w, tenant)).now = time
            b.events += 1
            if what == 1:
                replica_event(w, ends.leaf)
            elif what == 3:
                list_remove(w, state.TOOL_LIST, tool)
                begin_turn(world_of(w, tool), tool)
            elif what == 0:
                ring(world_at(w, who))
            elif what == 2:
                timer_event(w)
            else:
                list_remove(w, state.REWARD_LIST, reward)
                end_rollout(world_of(w, reward), reward)
            if b.unfinished > 0:
                settle(w)
            if b.events & (z.stride - 1) == 0:
                for tenant in range(tenants):
                    sample(world_at(w, tenant))
        return b.status

    return advance


advance = compiled(source_stamp("inference.py", "simulation/*.py"))
