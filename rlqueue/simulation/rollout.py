"""One rollout in its slot: sandbox, turns, tool calls, reward, end; and its sudden end when its group is thrown away."""

import math

from numba import njit

from rlqueue.simulation import draws, state
from rlqueue.simulation.batch import (
    RANK_START,
    RANK_TOOL,
    catch_up,
    leave,
    place_of,
    reschedule,
    send,
    set_timer,
    start_waiting,
    unbind,
)
from rlqueue.simulation.heaps import heap_remove, list_append, list_remove
from rlqueue.simulation.memory import (
    clock,
    course_at,
    free_at,
    given_at,
    group_at,
    host,
    key,
    list_at,
    logged_at,
    params,
    replica_at,
    slot_at,
    tenants_of,
    timer_at,
    waiting_retry_at,
    world_at,
    world_of,
)  # fmt: skip


@njit
def unused_slots(w):
    """Slots that another group could have: those that a group holds for its last rollouts are not."""
    b, p = host(w), params(w)
    return b.places * p.group_size if p.whole_groups else b.free_slots


@njit
def tick(w):
    """Add the time since the last change to the integrals over time; to be called before each change."""
    z = clock(w)
    span = z.now - z.ticked
    if span > 0.0:
        z.flight_area += z.flight * span
        z.queue_area += (z.queue_end - z.queue_head) * span
        if z.cause == state.BUDGET_FULL:
            z.budget_area += unused_slots(w) * span
        elif z.cause == state.DRAINING:
            z.drain_area += unused_slots(w) * span
        z.ticked = z.now


@njit
def tick_all(w):
    """The same for every tenant, whose free slots are about to change."""
    for tenant in range(tenants_of(w)):
        tick(world_at(w, tenant))


@njit
def sampled_tokens(q):
    """What a rollout has sampled so far; its replica's clock must be at the present."""
    return q.length if q.turn == q.turns else (q.turn + 1) * q.segment - q.left


@njit
def log(w, i, how):
    """Note a rollout that ended, where a log is kept."""
    z, p, q = clock(w), params(w), slot_at(w, i)
    if how != state.ABORTED:
        z.rollouts_done += 1
        z.rollout_s += z.now - q.dispatched
        z.start_s += q.ready - q.dispatched
    if p.log_rollouts:
        row = logged_at(w, z.rollouts)
        z.rollouts += 1
        row.dispatch, row.ready, row.first, row.end = q.dispatched, q.ready, q.first, z.now
        row.tokens = sampled_tokens(q)
        row.mean_version = q.version + q.lag / q.length if q.version != state.NO_VERSION else -1.0
        row.group, row.rollout, row.attempt = q.group, q.rollout, q.attempt
        row.version = q.version if q.version != state.NO_VERSION else -1
        row.replica, row.turns, row.preempted, row.tries, row.end_kind = q.home, q.turn, q.preempted, q.tries, how


@njit
def grant_places(w):
    """Give free places of the account to those who wait for one."""
    b, p = host(w), params(w)
    while list_at(w, state.CAP_LIST).head >= 0 and b.sandboxes < p.sandbox_cap:
        i = list_at(w, state.CAP_LIST).head
        list_remove(w, state.CAP_LIST, i)
        take_place(world_of(w, i), i)


@njit
def take_place(w, i):
    host(w).sandboxes += 1
    slot_at(w, i).has_sandbox = 1
    create(w, i)


@njit
def create(w, i):
    """Ask the provider for a sandbox: creations begin a gap apart; some fail, some take too long."""
    z, p, q = clock(w), params(w), slot_at(w, i)
    begin = max(z.now, host(w).next_create)
    host(w).next_create = begin + p.create_gap
    takes = math.exp(p.start_mu)
    if p.start_sigma > 0.0:
        takes = math.exp(
            p.start_mu + p.start_sigma * draws.normal(key(w, draws.SANDBOX_START), q.group, q.rollout, q.starts)
        )
    q.fails = 0
    if p.start_failure > 0.0:
        q.fails = int(draws.uniform(key(w, draws.SANDBOX_FAILURE), q.group, q.rollout, q.starts) < p.start_failure)
    if takes > p.timeout_s:
        takes = p.timeout_s
        q.fails = 1
    q.state = state.STARTING
    q.tries += 1
    q.starts += 1
    z.starts += 1
    set_timer(w, RANK_START, begin + takes, i)


@njit
def dispatch_rollout(w, group, rollout, attempt, starts):
    """Give a rollout a free slot and begin it."""
    z, p, b = clock(w), params(w), host(w)
    tick_all(w)
    b.free_slots -= 1
    i = free_at(w, b.free_slots).number
    z.flight += 1
    z.dispatched += 1
    q, g = slot_at(w, i), group_at(w, group)
    asked = course_at(w, g.course)
    q.tenant, q.group, q.rollout, q.attempt, q.starts = z.tenant, group, rollout, attempt, starts
    q.dispatched, q.ready, q.first = z.now, z.now, math.nan
    q.replica, q.home = state.NONE, state.NONE
    q.version, q.lag = state.NO_VERSION, 0.0
    q.turn, q.tries, q.preempted, q.has_sandbox, q.dies, q.moved = 0, 0, 0, 0, 0, 0
    q.context, q.pending = 0.0, 0.0
    if p.law == state.GIVEN:
        q.length = float(given_at(w, (group * p.group_size + rollout) % w.given_room).number)
    elif p.law == state.EXPONENTIAL_ROLLOUTS:
        q.length = -math.exp(asked.log_median) * math.log(
            draws.uniform(key(w, draws.ROLLOUT_LENGTH), group, rollout, 0)
        )
    else:
        log_length = g.log_mean
        if asked.sigma_within > 0.0:
            log_length += asked.sigma_within * draws.normal(key(w, draws.ROLLOUT_LENGTH), group, rollout, 0)
        q.length = math.exp(log_length)
    q.length = min(p.max_tokens, q.length)
    q.turns = 1 + int(asked.tool_floor)
    if asked.tool_fraction > 0.0:
        q.turns += int(draws.uniform(key(w, draws.TOOL_CALLS), group, rollout, 0) < asked.tool_fraction)
    q.segment = q.length / q.turns
    q.left = q.segment
    if p.uses_sandbox:
        if p.death > 0.0 and draws.uniform(key(w, draws.SANDBOX_DEATH), group, rollout, attempt) < p.death:
            q.dies = 1 + int(draws.uniform(key(w, draws.DEATH_TURN), group, rollout, attempt) * q.turns)
        if list_at(w, state.CAP_LIST).head < 0 and b.sandboxes < p.sandbox_cap:
            take_place(w, i)
        else:
            q.state = state.CAP_WAIT
            list_append(w, state.CAP_LIST, i)
    else:
        begin_turn(w, i)


@njit
def begin_turn(w, i):
    """The turn's prompt tokens join the context and are prefilled, with all that was before where nothing is cached."""
    q = slot_at(w, i)
    new = course_at(w, group_at(w, q.group).course).prompt_tokens / q.turns
    q.context += new
    q.pending = new if params(w).prefix_cache else q.context
    send(w, i)


@njit
def vacate(w, i):
    """Give back the slot."""
    z, b, q = clock(w), host(w), slot_at(w, i)
    tick_all(w)
    q.state = state.FREE
    free_at(w, b.free_slots).number = i
    b.free_slots += 1
    z.flight -= 1
    if q.has_sandbox:
        b.sandboxes -= 1


@njit
def forget_version(w, i):
    """A failed attempt no longer counts for the version of its group."""
    z, q = clock(w), slot_at(w, i)
    g = group_at(w, q.group)
    if q.version > g.version:
        return
    g.version = g.ended_version
    for other in range(w.slots_room):
        mate = slot_at(w, other)
        if other != i and mate.state != state.FREE and mate.group == q.group and mate.tenant == z.tenant:
            g.version = min(g.version, mate.version)


@njit
def fail(w, i):
    """The rollout's sandbox did not start or died: it is to be dispatched again."""
    z, q = clock(w), slot_at(w, i)
    z.failed += 1
    forget_version(w, i)
    group_at(w, q.group).lost += q.turn * q.segment
    log(w, i, state.FAILED)
    unbind(w, i)
    row = waiting_retry_at(w, (z.retry_head + z.retries) % w.retry_room)
    z.retries += 1
    row.group, row.rollout, row.attempt, row.starts = q.group, q.rollout, q.attempt + 1, q.starts
    vacate(w, i)
    grant_places(w)


@njit
def kill(w, i):
    """End a rollout whose group is thrown away, whatever it is doing."""
    z, q = clock(w), slot_at(w, i)
    if q.state == state.RUNNING:
        catch_up(w, q.replica)
        leave(w, i, place_of(w, i))
        replica_at(w, q.replica).freed = 1
    elif q.state == state.KV_WAIT:
        list_remove(w, state.WAIT_LISTS + q.replica, i)
    elif q.state == state.CAP_WAIT:
        list_remove(w, state.CAP_LIST, i)
    elif q.state == state.REWARD:
        list_remove(w, state.REWARD_LIST, i)
    elif q.state == state.TOOL and params(w).tool_sigma == 0.0:
        list_remove(w, state.TOOL_LIST, i)
    elif q.state in (state.TOOL, state.STARTING, state.PREFILLING):
        place, b = 0, host(w)
        while timer_at(w, place).slot != i:
            place += 1
        heap_remove(w.timers, b.timers, place)
        b.timers -= 1
    if q.turn < q.turns:
        z.decoded_tokens += q.segment - q.left
    group_at(w, q.group).lost += sampled_tokens(q)
    z.aborted += 1
    log(w, i, state.ABORTED)
    unbind(w, i)
    vacate(w, i)


@njit
def kill_marked(w):
    """End all rollouts whose group is no longer wanted; places and memory they held go to those who wait."""
    z, p = clock(w), params(w)
    for i in range(w.slots_room):
        q = slot_at(w, i)
        if q.state != state.FREE and q.tenant == z.tenant and group_at(w, q.group).fate != state.IN_FLIGHT:
            kill(w, i)
    if z.current != state.NONE and group_at(w, z.current).fate != state.IN_FLIGHT:
        z.current = state.NONE
    grant_places(w)
    for ri in range(p.replicas + p.lent):
        r = replica_at(w, ri)
        if r.freed:
            r.freed = 0
            start_waiting(w, ri)
            reschedule(w, ri)


@njit
def begin_tool_call(w, i):
    z, p, q = clock(w), params(w), slot_at(w, i)
    q.state = state.TOOL
    if p.tool_sigma > 0.0:
        takes = math.exp(
            p.tool_mu + p.tool_sigma * draws.normal(key(w, draws.TOOL_TIME), q.group, q.rollout, q.turn - 1)
        )
        set_timer(w, RANK_TOOL, z.now + takes, i)
    else:
        q.at = z.now + p.tool_s
        list_append(w, state.TOOL_LIST, i)
