"""The trainer: updates as soon as their groups are there and fetched, pauses, holding for a publication, weight sync."""

import math

from numba import njit

from rlqueue.simulation import state
from rlqueue.simulation.batch import catch_up
from rlqueue.simulation.batches import drop_stale
from rlqueue.simulation.learning import learn, note_taught, survey
from rlqueue.simulation.memory import (
    clock,
    cohort_at,
    course_at,
    group_at,
    host,
    params,
    prompt_at,
    queue_at,
    replica_at,
    slot_at,
    span_at,
    step_at,
    tenants_of,
    world_at,
)
from rlqueue.simulation.rollout import tick
from rlqueue.simulation.whole_batches import close_lent, open_lent, prefill_all_again


@njit
def note_span(w, kind):
    """What the trainer did since its last change, in the timeline."""
    z = clock(w)
    if z.now > z.since:
        row = span_at(w, z.spans)
        z.spans += 1
        row.start, row.end, row.kind, row.step = z.since, z.now, kind, z.step


@njit
def batch_is_there(w):
    z, p = clock(w), params(w)
    need = p.prompts // p.updates
    if p.lockstep or p.one_step:
        return z.update > 0 or cohort_at(w, z.step).closed == 1
    if p.targeted:
        return cohort_at(w, z.step).accepted - cohort_at(w, z.step).taken >= need
    return z.queue_end - z.queue_head >= need


@njit
def train_on(w, number):
    """Take one group: returns its tokens."""
    z, p, g, s = clock(w), params(w), group_at(w, number), step_at(w, clock(w).step)
    g.fate, g.step, g.trained, g.trained_version = state.TRAINED, z.step, z.now, z.version
    staleness = z.version - g.version
    s.staleness += staleness
    s.max_staleness = max(s.max_staleness, staleness)
    s.in_flight_part += g.finished_version - g.version
    s.token_staleness += z.version - g.lag / g.sampled
    tokens = g.sampled + p.group_size * course_at(w, g.course).prompt_tokens
    s.tokens += tokens
    s.sampled += g.sampled
    s.cut += g.cut
    s.informative_tokens += tokens * g.informative
    if p.pool > 0:
        prompt_at(w, g.prompt).trained += 1
    note_taught(w, number)
    return tokens


@njit
def take_groups(w):
    """The groups of the next update out of the queue: returns their tokens."""
    z, p = clock(w), params(w)
    need = p.prompts // p.updates
    tick(w)
    tokens = 0.0
    if not p.targeted:
        for _ in range(need):
            tokens += train_on(w, queue_at(w, z.queue_head).number)
            z.queue_head += 1
        return tokens
    cohort_at(w, z.step).taken += need
    keep = z.queue_head
    for place in range(z.queue_head, z.queue_end):
        number = queue_at(w, place).number
        if need > 0 and group_at(w, number).cohort == z.step:
            tokens += train_on(w, number)
            need -= 1
        else:
            queue_at(w, keep).number = number
            keep += 1
    z.queue_end = keep
    return tokens


@njit
def go(w, doing, seconds):
    z = clock(w)
    z.trainer, z.since, z.trainer_at = doing, z.now, z.now + seconds


@njit
def look(w):
    """What a tenant can do now: ask for its turn at the trainer, or begin a publication that waited for the generator."""
    z, p, b = clock(w), params(w), host(w)
    if z.trainer == state.WAITING:
        if batch_is_there(w):
            note_span(w, state.SPAN_WAIT)
            step_at(w, z.step).wait += z.now - z.since
            z.trainer, z.since, z.turn = state.READY, z.now, b.next_turn
            b.next_turn += 1
            b.ready += 1
        elif p.lent > 0 and not z.lent_open:
            open_lent(w)
    elif z.trainer == state.HELD:
        if (p.drain and z.flight > 0) or (p.one_step and not cohort_at(w, z.step + 1).closed):
            return
        note_span(w, state.SPAN_HOLD)
        step_at(w, z.step).wait += z.now - z.since
        step_at(w, z.step).hold += z.now - z.since
        go(w, state.SYNCING, p.sync_s)


@njit
def serve(w):
    """The trainer, if it is free, takes the update that has been ready longest."""
    b = host(w)
    if b.ready == 0 or b.training:
        return
    first = state.NONE
    for tenant in range(tenants_of(w)):
        z = clock(world_at(w, tenant))
        if z.trainer == state.READY and (first == state.NONE or z.turn < clock(world_at(w, first)).turn):
            first = tenant
    begin_update(world_at(w, first))


@njit
def begin_update(w):
    """Train on the next groups of one tenant, after a change of adapter if another one's was trained last."""
    z, p, b = clock(w), params(w), host(w)
    note_span(w, state.SPAN_TURN)
    step_at(w, z.step).wait += z.now - z.since
    step_at(w, z.step).turn += z.now - z.since
    if z.lent_open:
        close_lent(w)
    if z.update == 0:
        z.started += 1
    seconds = take_groups(w) * p.train_s_per_token + p.train_fixed_s
    if b.loaded not in (z.tenant, state.NONE):
        seconds += p.switch_s
    b.loaded = z.tenant
    b.ready -= 1
    b.training = 1
    if p.fetch_s > 0.0:
        z.train_s = seconds
        go(w, state.FETCHING, p.fetch_s)
    else:
        go(w, state.TRAINING, seconds)


@njit
def due(every, done):
    return every > 0 and done % every == 0


@njit
def after_step(w):
    """All updates and pauses of a step are over: publish, or go on."""
    z, p = clock(w), params(w)
    if due(p.publish_steps, z.step + 1):
        z.trainer, z.since, z.trainer_at = state.HELD, z.now, math.inf
        z.trainer_holds = p.drain
    else:
        end_step(w)


@njit
def ring(w):
    """A tenant's own event at the trainer: its batch is fetched, an update, a pause or a sync is over, or its run begins."""
    z, p, s = clock(w), params(w), step_at(w, clock(w).step)
    if z.trainer == state.NOT_BEGUN:
        z.trainer, z.since, z.trainer_at = state.WAITING, z.now, math.inf
        z.step_start = z.now
        if p.learns:
            z.step_limit = host(w).events + p.step_events
    elif z.trainer == state.FETCHING:
        note_span(w, state.SPAN_FETCH)
        s.wait += z.now - z.since
        s.fetch += z.now - z.since
        go(w, state.TRAINING, z.train_s)
    elif z.trainer == state.TRAINING:
        host(w).training = 0
        note_span(w, state.SPAN_TRAIN)
        s.train += z.now - z.since
        z.update += 1
        if z.update < p.updates:
            z.trainer, z.since, z.trainer_at = state.WAITING, z.now, math.inf
            return
        z.update = 0
        pause = 0.0
        if due(p.evaluate_every, z.step + 1):
            pause += p.evaluation_s
        if due(p.checkpoint_every, z.step + 1):
            pause += p.checkpoint_s
        if pause > 0.0:
            go(w, state.PAUSING, pause)
        else:
            after_step(w)
    elif z.trainer == state.PAUSING:
        note_span(w, state.SPAN_PAUSE)
        s.pause += z.now - z.since
        after_step(w)
    else:
        note_span(w, state.SPAN_SYNC)
        s.sync += z.now - z.since
        publish(w)
        end_step(w)


@njit
def publish(w):
    """A new version: what is being sampled goes on with it, and what has become too old is dropped."""
    z, p = clock(w), params(w)
    z.version += 1
    z.trainer_holds = 0
    if p.learns:
        learn(w)
    everyone = p.replicas + p.lent
    for ri in range(everyone):
        catch_up(w, ri)
    for i in range(w.slots_room):
        q = slot_at(w, i)
        if q.state != state.FREE and q.tenant == z.tenant and q.version != state.NO_VERSION:
            left = q.left
            if q.state == state.RUNNING:
                left = q.end - replica_at(w, q.replica).clock
            q.lag += (q.turns - q.turn - 1) * q.segment + left
    if p.drop and not p.lockstep:
        drop_stale(w)
    if p.partial:
        for ri in range(everyone):
            prefill_all_again(w, ri)


@njit
def end_step(w):
    """Note the step, with the running totals at its end."""
    z, p, b, s = clock(w), params(w), host(w), step_at(w, clock(w).step)
    tick(w)
    s.start, s.end = z.step_start, z.now
    s.k_area, s.context_area, s.busy_s, s.prefill_s = 0.0, 0.0, 0.0, 0.0
    for ri in range(p.replicas + p.lent):
        catch_up(w, ri)
        r = replica_at(w, ri)
        s.k_area += r.k_area
        s.context_area += r.context_area
        s.busy_s += r.busy_s
        s.prefill_s += r.prefill_s
    s.flight_area, s.queue_area, s.budget_area, s.drain_area = z.flight_area, z.queue_area, z.budget_area, z.drain_area
    s.decoded_tokens, s.rollout_s, s.group_s, s.start_s = z.decoded_tokens, z.rollout_s, z.group_s, z.start_s
    s.again_tokens, s.version, s.queued, s.flight = z.again_tokens, z.version, z.queue_end - z.queue_head, z.flight
    s.rollouts, s.groups, s.dispatched, s.events = z.rollouts_done, z.groups_done, z.dispatched, b.events
    s.judged, s.informative, s.all_solved = z.judged, z.informative, z.all_solved
    s.unqualified, s.repeated = z.unqualified, z.repeated
    if p.learns:
        s.solve_rate = survey(w)
        z.step_limit = b.events + p.step_events
    z.step_start = z.now
    z.step += 1
    z.ended += 1
    if z.step == p.steps:
        b.unfinished -= 1
    if b.unfinished == 0:
        z.trainer, z.trainer_at = state.OVER, math.inf
    else:
        z.trainer, z.since, z.trainer_at = state.WAITING, z.now, math.inf
