"""Groups: admission under the staleness budget, cohorts (the batch of one step), fates, the queue for the trainer."""

import math

from numba import njit

from rlqueue.simulation import draws, state
from rlqueue.simulation.memory import (
    clock,
    cohort_at,
    course_at,
    group_at,
    host,
    key,
    params,
    queue_at,
    tenants_of,
    waiting_retry_at,
    world_at,
)
from rlqueue.simulation.prompts import choose, observe, release
from rlqueue.simulation.rollout import dispatch_rollout, kill_marked, tick, tick_all


@njit
def may_admit(w):
    """Whether the budget lets one more group in; moves ``fill`` to the cohort that it would join."""
    z, p = clock(w), params(w)
    while cohort_at(w, z.fill).closed or cohort_at(w, z.fill).members >= p.cohort:
        z.fill += 1
    if p.lockstep:
        return z.fill <= z.ended
    if p.one_step:
        return z.fill <= z.started
    if p.drop:
        return True
    return z.counted < p.publish_steps * p.cohort * z.version + p.quota


@njit
def admit(w):
    """Number a new group, choose its prompt and put it into its cohort, if it is not a surplus one."""
    z, p = clock(w), params(w)
    g = group_at(w, z.groups)
    tick_all(w)
    host(w).places -= 1
    g.prompt = choose(w, z.groups)
    g.course = min(z.version * p.publish_steps, w.course_room - 1)
    asked = course_at(w, g.course)
    g.log_mean = asked.log_median
    if p.law == state.EXPONENTIAL_GROUPS:
        g.log_mean += math.log(-math.log(draws.uniform(key(w, draws.GROUP_LENGTH), g.prompt, 0, 0)))
    elif asked.sigma_between > 0.0:
        g.log_mean += asked.sigma_between * draws.normal(key(w, draws.GROUP_LENGTH), g.prompt, 0, 0)
    g.dispatched, g.finished, g.trained = z.now, math.nan, math.nan
    g.version, g.ended_version, g.finished_version, g.trained_version = state.NO_VERSION, state.NO_VERSION, -1, -1
    g.cohort, g.fate, g.step = state.NONE, state.IN_FLIGHT, -1
    if p.surplus == 0.0 or draws.uniform(key(w, draws.SURPLUS), z.groups, 0, 0) >= p.surplus:
        g.cohort, z.cohorts = z.fill, max(z.cohorts, z.fill)
        cohort_at(w, z.fill).members += 1
        z.counted += 1
    z.current, z.sent = z.groups, 0
    z.groups += 1


@njit(inline="always")
def dispatch_next(w):
    """Give a free slot to a rollout: one to be dispatched again, else of the last group, else of a new one.

    Returns what keeps the slot from being used, or NOTHING; where there is no room for a new group, ``status`` says so.
    """
    z, p = clock(w), params(w)
    if z.trainer_holds:
        return state.DRAINING
    if z.trainer == state.NOT_BEGUN:
        return state.ASLEEP
    while z.retries > 0:
        row = waiting_retry_at(w, z.retry_head)
        z.retry_head = (z.retry_head + 1) % w.retry_room
        z.retries -= 1
        if group_at(w, row.group).fate == state.IN_FLIGHT:
            dispatch_rollout(w, row.group, row.rollout, row.attempt, row.starts)
            return state.NOTHING
    if z.current == state.NONE:
        if z.groups + 1 >= w.groups_room or z.cohorts + 2 >= w.cohorts_room:
            host(w).status = state.NO_ROOM
            return state.ASLEEP
        full = p.whole_groups and host(w).places == 0
        if full or not may_admit(w):
            return state.ASLEEP if full else state.BUDGET_FULL
        admit(w)
    number, rollout = z.current, z.sent
    z.sent += 1
    if z.sent == p.group_size:
        z.current = state.NONE
    dispatch_rollout(w, number, rollout, 0, 0)
    return state.NOTHING


@njit
def dispatch(w):
    """Fill free slots, of a run without other tenants."""
    b, cause = host(w), state.NOTHING
    while b.free_slots > 0 and cause == state.NOTHING:
        cause = dispatch_next(w)
    if b.status == state.GOES_ON:
        note_cause(w, cause)


@njit
def share_out(w):
    """Fill free slots one by one: each goes to the tenant with the fewest rollouts in flight that can use it.

    Among equals it goes to the one that was served least recently.
    """
    b = host(w)
    if b.free_slots == 0:
        return
    for tenant in range(tenants_of(w)):
        clock(world_at(w, tenant)).refused = state.NOTHING
    while b.free_slots > 0:
        chosen = state.NONE
        for tenant in range(tenants_of(w)):
            z = clock(world_at(w, tenant))
            if z.refused == state.NOTHING:
                best = clock(world_at(w, max(chosen, 0)))
                if chosen == state.NONE or (z.flight, z.served) < (best.flight, best.served):
                    chosen = tenant
        if chosen == state.NONE:
            break
        own = world_at(w, chosen)
        clock(own).refused = dispatch_next(own)
        if b.status != state.GOES_ON:
            return
        if clock(own).refused == state.NOTHING:
            b.served += 1
            clock(own).served = b.served
    for tenant in range(tenants_of(w)):
        own = world_at(w, tenant)
        note_cause(own, clock(own).refused if b.free_slots > 0 else state.NOTHING)


@njit
def note_cause(w, cause):
    """What keeps free slots from being used, from now on."""
    z = clock(w)
    if cause != z.cause:
        tick(w)
        z.cause = cause


@njit
def leave_cohort(w, g):
    """A group that is not wanted makes room in its cohort, if it has one and that is still open."""
    z = clock(w)
    if g.cohort == state.NONE:
        return
    c = cohort_at(w, g.cohort)
    if not c.closed:
        c.members -= 1
        z.fill = min(z.fill, g.cohort)


@njit
def informative(w, number):
    """Whether the group's rollouts teach something: neither all nor none solved the prompt."""
    z, p, g = clock(w), params(w), group_at(w, number)
    if p.solves:
        z.all_solved += int(g.solved == p.group_size)
        return 0 < g.solved < p.group_size
    return p.filtered == 0.0 or draws.uniform(key(w, draws.FILTERED), number, 0, 0) >= p.filtered


@njit
def leave_flight(w, g):
    """A group's rollouts have ended, or end now: its place, for those that hold one, and its prompt are free."""
    tick_all(w)
    host(w).places += 1
    release(w, g.prompt)


@njit
def finish(w, number):
    """All rollouts of a group have ended: it is surplus, held back by the gate, or goes to the queue."""
    z, p, g = clock(w), params(w), group_at(w, number)
    g.finished, g.finished_version = z.now, z.version
    z.groups_done += 1
    z.group_s += z.now - g.dispatched
    if g.cohort == state.NONE:
        g.fate = state.SURPLUS
        leave_flight(w, g)
        return
    observe(w, g.prompt, g.solved)
    leave_flight(w, g)
    g.informative = int(informative(w, number))
    z.judged += 1
    z.informative += g.informative
    if p.gated and not g.informative:
        g.fate = state.FILTERED
        leave_cohort(w, g)
        z.counted -= 1
        if host(w).events >= z.step_limit:
            host(w).status = state.FRUITLESS
        return
    g.fate = state.QUEUED
    tick(w)
    queue_at(w, z.queue_end).number = number
    z.queue_end += 1
    c = cohort_at(w, g.cohort)
    c.accepted += 1
    if not c.closed and c.accepted == p.prompts:
        c.closed = 1
        z.counted += p.cohort - c.members
        if c.members > c.accepted:
            prune(w, g.cohort)


@njit
def advance_oldest(w):
    z = clock(w)
    while z.oldest < z.groups and group_at(w, z.oldest).fate != state.IN_FLIGHT:
        z.oldest += 1


@njit
def prune(w, cohort):
    """Early pruning: what is still running of a batch that is complete ends at once."""
    advance_oldest(w)
    for number in range(clock(w).oldest, clock(w).groups):
        g = group_at(w, number)
        if g.fate == state.IN_FLIGHT and g.cohort == cohort:
            g.fate = state.PRUNED
            leave_flight(w, g)
    kill_marked(w)


@njit
def drop_stale(w):
    """Throw away what is too old for the version just published, running or queued."""
    z, p = clock(w), params(w)
    advance_oldest(w)
    oldest = z.version - p.max_staleness
    running = 0
    for number in range(z.oldest, z.groups):
        g = group_at(w, number)
        if g.fate == state.IN_FLIGHT and g.version < oldest:
            g.fate = state.STALE
            leave_cohort(w, g)
            leave_flight(w, g)
            running += 1
    tick(w)
    keep = z.queue_head
    for place in range(z.queue_head, z.queue_end):
        number = queue_at(w, place).number
        g = group_at(w, number)
        if g.version < oldest:
            g.fate = state.STALE
            if not cohort_at(w, g.cohort).closed:
                cohort_at(w, g.cohort).accepted -= 1
            leave_cohort(w, g)
        else:
            queue_at(w, keep).number = number
            keep += 1
    z.queue_end = keep
    if running:
        kill_marked(w)
