"""A second simulator, written from docs/semantics.md alone: plain and slow, so that it can be read beside that page.

Rollouts and the trainer are generators that yield what they wait for, run on at once when it comes (``Host.go``, ``look``).
"""

import math
from collections import Counter, deque
from functools import partial
from itertools import count

from simpy_draws import Draws
from simpy_host import Host
from simpy_prompts import Prompts
from simpy_records import Cohort, Group, Result, Rollout

from rlqueue.at_step import drift_path


def run(scenario, seed=0, steps=20, *, draws=None, max_events=10_000_000):
    """Simulate ``steps`` steps of a scenario; ``draws`` replaces what chance decides (see ``simpy_draws``)."""
    (result,) = run_tenants(scenario, steps, draws=[draws or Draws(scenario, seed)], max_events=max_events)
    return result


def run_tenants(scenario, steps, *, draws, max_events=10_000_000):
    """The same of each tenant, whose draws are given."""
    host = Host(scenario, steps)
    host.tenants = [Tenant(host, number, own) for number, own in enumerate(draws)]
    cause, seconds = host.run(max_events)
    return [tenant.result(cause, seconds) for tenant in host.tenants]


def rule_of(s):
    """Which budget of section 6 holds."""
    if s.schedule == "one-step-off":
        return "one-step-off"
    if s.schedule in {"colocated-sync", "sync"} or s.max_staleness == 0:
        return "lockstep"
    return s.staleness_family


class Tenant:
    """One run on a host; without other tenants the only one."""

    def __init__(self, host, number, draws):
        s, self.scenario, self.draws, self.steps = host.scenario, host.scenario, draws, host.steps
        self.host, self.env, self.replicas, self.lent, self.number = host, host.env, host.replicas, host.lent, number
        self.rule = rule_of(s)
        self.schedule = "sync" if self.rule == "lockstep" else s.schedule
        self.full = math.ceil(s.oversampling_factor * s.prompts_per_step)
        flops_per_token = (6.0 + 2.0 * s.logprob_passes) * s.llm.active_params
        train_gpus = s.trainer_gpus + s.generator_gpus if s.schedule == "colocated-sync" else s.trainer_gpus
        self.train_per_token = flops_per_token / (s.mfu * s.trainer_gpu.dense_bf16_flops_per_s * train_gpus)

        self.version = self.steps_begun = self.steps_ended = self.counted = self.dispatched = 0
        self.draining = self.has_begun = False
        self.last_given = 0
        self.cohorts, self.groups, self.running = [], [], {}
        self.first_open = 0
        self.undispatched = deque()  # rollouts of the group admitted last
        self.again = deque()  # failed rollouts
        self.queue = []  # accepted groups in order of completion
        self.in_flight, self.area, self.area_at = 0, 0.0, 0.0
        self.fates, self.left = Counter(), []  # left: moment, time in the slot, whether aborted
        self.rows, self.marks = [], []
        self.prompts, self.path, self.judged = Prompts(s, draws), drift_path(s, self.steps), []
        self.trainer, self.trainer_waits_for = self.training(), None

    def look(self):
        """The trainer goes on if what it waits for is there."""
        while self.trainer_waits_for and self.trainer_waits_for():
            self.resume_trainer()

    def resume_trainer(self):
        wish, self.trainer_waits_for = next(self.trainer, None), None
        if callable(wish):
            self.trainer_waits_for = wish
        elif wish is not None:
            self.host.after(wish, self.number, self.resume_trainer)

    def result(self, cause, seconds):
        self.count_in_flight()
        for group in self.running:
            self.fates["in flight"] += group.out
        self.fates["queued"] = len(self.queue) * self.scenario.group_size
        result = Result(steps=self.rows, groups=self.groups, fates=self.fates, dispatched=self.dispatched, cause=cause)
        self.measure(result)
        result.events, result.seconds = self.host.events, seconds
        return result

    # Section 2: admission, dispatch
    def cohort(self, number):
        while len(self.cohorts) <= number:
            self.cohorts.append(Cohort(number=len(self.cohorts)))
        return self.cohorts[number]

    def next_cohort(self):
        """The lowest-numbered open cohort that has room."""
        while self.cohort(self.first_open).closed:
            self.first_open += 1
        number = self.first_open
        while self.cohort(number).closed or not self.has_room(self.cohort(number)):
            number += 1
        return self.cohort(number)

    def has_room(self, cohort):
        return len(cohort.running) + cohort.accepted < self.full

    def admits(self, cohort):
        """Section 6."""
        s = self.scenario
        if self.rule == "lockstep":
            return cohort.number <= self.steps_ended
        if self.rule == "one-step-off":
            return cohort.number < self.steps_begun + 1
        if self.rule == "drop":
            return True
        publication = s.steps_per_publication * self.full
        return self.counted < publication * self.version + math.floor((s.max_staleness + 1) * publication)

    def can_dispatch(self):
        if self.draining or not self.has_begun:
            return False
        return bool(self.again or self.undispatched) or (self.host.has_place() and self.admits(self.next_cohort()))

    def dispatch_one(self):
        if self.again:
            rollout = self.again.popleft()
        else:
            if not self.undispatched:
                self.admit(self.next_cohort())
            rollout = self.undispatched.popleft()
            rollout.group.rollouts.append(rollout)
        self.count_in_flight(+1)
        self.dispatched += 1
        rollout.group.out += 1
        rollout.begin(self.life(rollout), self.env.now)
        self.host.go(rollout)

    def admit(self, cohort):
        """The next group, into this cohort; one that is surplus comes instead, into none, and does not count."""
        surplus = self.draws.surplus(len(self.groups))
        number, step = len(self.groups), self.version * self.scenario.steps_per_publication
        group = Group(
            tenant=self, number=number, cohort=None if surplus else cohort, dispatch_s=self.env.now,
            prompt=self.prompts.choose(number), asked=self.path[min(step, len(self.path) - 1)],
        )  # fmt: skip
        self.groups.append(group)
        self.running[group] = None
        if not surplus:
            cohort.running.add(group)
            self.counted += 1
        for j in range(self.scenario.group_size):
            tokens = self.draws.length(number, j, group.prompt, group.asked)
            turns = 1 + self.draws.tool_calls(number, j, group.asked)
            self.undispatched.append(Rollout(group=group, number=j, tokens=tokens, turns=turns))

    def count_in_flight(self, change=0):
        self.area += self.in_flight * (self.env.now - self.area_at)
        self.area_at = self.env.now
        self.in_flight += change

    # Section 3: one rollout
    def life(self, rollout):
        s, g, j = self.scenario, rollout.group.number, rollout.number
        dies_after = 0
        if s.sandbox_start_s > 0:
            if not (yield from self.start_sandbox(rollout)):
                self.fail(rollout)
                return
            dies_after = self.draws.dies_after(g, j, rollout.attempt, rollout.turns)
        for turn in range(rollout.turns):
            self.request(rollout)
            yield None
            if turn + 1 == dies_after:
                self.fail(rollout)
                return
            if turn + 1 < rollout.turns:
                rollout.stage = "tool call"
                yield self.host.TOOL, self.draws.tool_call_s(g, j, turn)
        self.unbind(rollout)
        if s.reward_s > 0:
            yield self.host.REWARD, s.reward_s
        self.leave_slot(rollout)
        rollout.ended = True
        if sum(each.ended for each in rollout.group.rollouts) == s.group_size:
            self.finish(rollout.group)
        self.host.hand_over_places()  # to one that is there still when its cohort has closed

    def start_sandbox(self, rollout):
        s, g, j = self.scenario, rollout.group.number, rollout.number
        rollout.stage = "place"
        self.host.place_line.append(rollout)
        self.host.hand_over_places(asking=rollout)
        if not rollout.has_place:
            yield None
        rollout.stage = "start"
        for _ in range(1 + s.sandbox_retries):
            begins = self.host.creation_begins()
            start_s = self.draws.sandbox_start_s(g, j, rollout.tries)
            failed = self.draws.start_fails(g, j, rollout.tries) or start_s > s.sandbox_timeout_s
            rollout.tries += 1
            yield self.host.SANDBOX, begins - self.env.now + min(start_s, s.sandbox_timeout_s)
            if not failed:
                return True
        return False

    def request(self, rollout):
        s = self.scenario
        new = rollout.group.asked["prompt_tokens"] / rollout.turns
        rollout.prompt += new
        rollout.left = rollout.tokens / rollout.turns
        rollout.to_prefill = new if s.prefix_cache and not rollout.cold else rollout.context
        rollout.cold = False
        if rollout.replica is None:
            self.bind(rollout)
        rollout.replica.request(rollout)

    def bind(self, rollout):
        rollout.replica = min((each for each in self.replicas if each.is_open), key=lambda each: each.bound)
        rollout.replica.bound += 1

    @staticmethod
    def unbind(rollout):
        if rollout.replica:
            rollout.replica.bound -= 1
            rollout.replica = None

    def prefilled(self, rollout, replica):
        """It leaves a prefill server; if that replica has closed meanwhile, all again on another one."""
        if not rollout.rebind:
            replica.arrive(rollout)
            return
        rollout.rebind = False
        self.move(rollout)

    def move(self, rollout):
        self.unbind(rollout)
        self.bind(rollout)
        rollout.to_prefill = rollout.context
        rollout.replica.request(rollout)

    def fail(self, rollout):
        self.unbind(rollout)
        self.leave_slot(rollout)
        rollout.version = None
        rollout.group.out -= 1
        self.fates["failed"] += 1
        self.again.append(rollout)
        self.host.hand_over_places()

    def leave_slot(self, rollout, *, aborted=False):
        self.count_in_flight(-1)
        self.host.places -= rollout.has_place
        rollout.life = None
        self.left.append((self.env.now, self.env.now - rollout.since, aborted))

    # Section 5: a finished group
    def finish(self, group):
        s = self.scenario
        del self.running[group]
        group.finish_s, group.finish_version = self.env.now, self.version
        group.version = group.oldest
        if group.cohort:
            self.prompts.observe(group)
        self.prompts.release(group)
        if not group.cohort:
            self.end(group, "surplus")
            return
        group.cohort.running.discard(group)
        if self.prompts.law is None:
            group.informative = not self.draws.filtered(group.number)
        else:
            group.informative = 0 < group.solved < s.group_size
        self.judged.append(group)
        if s.gate == "zero-advantage" and not group.informative:
            self.end(group, "filtered")
            return
        group.fate = "queued"
        self.queue.append(group)
        cohort = group.cohort
        cohort.accepted += 1
        if cohort.accepted == self.scenario.prompts_per_step:
            cohort.closed = True
            self.counted += self.full - cohort.accepted - len(cohort.running)
            self.abort(sorted(cohort.running, key=lambda each: each.number), "pruned")

    def end(self, group, fate):
        group.fate = fate
        self.fates[fate] += group.out
        if group.cohort and fate != "pruned":
            self.counted -= 1

    def abort(self, groups, fate):
        """The rollouts of these running groups end at once; then others take what they held."""
        touched = set()
        for group in groups:
            del self.running[group]
            self.prompts.release(group)
            if group.cohort:
                group.cohort.running.discard(group)
            self.end(group, fate)
            for rollout in group.rollouts:
                if rollout.life and not rollout.ended:
                    self.end_at_once(rollout, touched)
        self.again = deque(rollout for rollout in self.again if rollout.group not in groups)
        self.undispatched = deque(rollout for rollout in self.undispatched if rollout.group not in groups)
        for replica in sorted(touched, key=lambda each: each.number):
            replica.start_waiting()
        self.host.hand_over_places()

    def end_at_once(self, rollout, touched):
        if rollout.stage == "batch":
            rollout.replica.advance()
            rollout.replica.leave(rollout)
            touched.add(rollout.replica)
        elif rollout.stage == "waiting":
            rollout.replica.waiting.remove(rollout)
        elif rollout.stage == "place":
            self.host.place_line.remove(rollout)
        self.unbind(rollout)
        self.leave_slot(rollout, aborted=True)

    # Section 7: the trainer
    def training(self):
        """A generator of what the trainer waits for: seconds, or a function that says whether it may go on."""
        s = self.scenario
        pauses = (s.evaluate_every_steps, s.evaluation_s), (s.checkpoint_every_steps, s.checkpoint_s)
        if self.number and s.tenant_start_gap_s:
            yield self.number * s.tenant_start_gap_s
        self.has_begun = True
        for step in count():
            row = {"start": self.env.now, "wait": 0.0, "turn": 0.0, "train": 0.0, "pause": 0.0, "sync": 0.0}
            for update in range(s.updates_per_step):
                yield from self.wait(row, partial(self.can_train, step, update), lend=True)
                yield from self.wait_for_turn(row)
                self.steps_begun += update == 0
                yield from self.update(row, self.host.take(self) + self.train(step))
            for every, seconds in pauses:
                if every and (step + 1) % every == 0:
                    yield from self.spend(row, "pause", seconds)
            if (step + 1) % s.steps_per_publication == 0:
                if self.schedule == "async-drain":
                    self.draining = True
                    yield from self.wait(row, lambda: self.in_flight == 0)
                elif self.schedule == "one-step-off":
                    yield from self.wait(row, partial(self.is_closed, step + 1))
                yield from self.spend(row, "sync", s.weight_sync_s)
                self.publish()
            self.steps_ended += 1
            row["end"] = self.env.now
            row["finished"], row["informative"] = len(self.judged), sum(each.informative for each in self.judged)
            row["all solved"] = sum(each.solved == s.group_size for each in self.judged)
            row["unqualified"], row["repeated"] = self.prompts.unqualified, self.prompts.repeated
            row["solve rate"], row["shares"] = self.prompts.survey()
            self.judged = []
            self.rows.append(row)
            self.count_in_flight()
            self.marks.append((self.env.now, self.area))
            self.host.step_ended()
            if self.host.done:
                return

    def update(self, row, seconds):
        if self.scenario.batch_fetch_s:
            yield from self.spend(row, "wait", self.scenario.batch_fetch_s / self.scenario.updates_per_step)
        yield from self.spend(row, "train", seconds)
        self.host.is_training = False

    def spend(self, row, what, seconds):
        row[what] += seconds
        yield seconds

    def wait(self, row, ready, *, lend=False):
        if ready():
            return
        began = self.env.now
        for replica in self.lent if lend else ():
            replica.is_open = True
        yield ready
        row["wait"] += self.env.now - began
        if lend:
            self.take_back()

    def wait_for_turn(self, row):
        """Section 13: the trainer takes the update that has been ready longest."""
        began = self.env.now
        self.host.trainer_line.append(self)
        if not self.host.is_turn_of(self):
            yield partial(self.host.is_turn_of, self)
        row["turn"] += self.env.now - began
        row["wait"] += self.env.now - began

    def is_closed(self, number):
        return self.cohort(number).closed

    def can_train(self, step, update):
        needed = self.scenario.prompts_per_step // self.scenario.updates_per_step
        if self.rule in {"lockstep", "one-step-off"}:
            return update > 0 or self.is_closed(step)
        if self.rule == "targeted":
            return sum(group.cohort.number == step for group in self.queue) >= needed
        return len(self.queue) >= needed

    def train(self, step):
        """Take the groups of one update; its time."""
        s = self.scenario
        mine = [group for group in self.queue if self.rule != "targeted" or group.cohort.number == step]
        taken = mine[: s.prompts_per_step // s.updates_per_step]
        self.queue = [group for group in self.queue if group not in taken]
        for group in taken:
            group.step, group.trained_version, group.fate = step, self.version, "trained"
            self.prompts.teach(group)
        self.fates["trained"] += len(taken) * s.group_size
        tokens = sum(group.trained_tokens for group in taken)
        return tokens * self.train_per_token + s.minibatches_per_update * s.trainer_overhead_s

    def publish(self):
        for replica in self.replicas:
            replica.advance()  # what was sampled until now has the old version
        self.version += 1
        self.prompts.learn()
        if self.rule == "drop":
            self.drop_stale(self.version - self.scenario.max_staleness)
        if self.schedule == "partial-rollout":
            for replica in self.replicas:
                replica.restart_batch(self)
        self.draining = False

    def drop_stale(self, oldest):
        queued = [group for group in self.queue if group.version < oldest]
        running = [group for group in self.running if group.oldest < oldest]
        self.queue = [group for group in self.queue if group not in queued]
        for group in queued:
            group.cohort.accepted -= not group.cohort.closed
            self.end(group, "stale")
        for group in running:
            group.version = group.oldest
        self.abort(running, "stale")

    def take_back(self):
        """The trainer stops waiting: its lent replicas close, their rollouts go elsewhere."""
        for replica in self.lent:
            replica.is_open = False
        for replica in self.lent:
            for rollout in replica.evict():
                self.move(rollout)
            for group in self.running:
                for rollout in group.rollouts:
                    if rollout.life and rollout.replica is replica and rollout.stage == "tool call":
                        self.unbind(rollout)
                        rollout.cold = True
                    elif rollout.life and rollout.replica is replica:  # in its prefill server
                        rollout.rebind = True

    # Section 9: what is measured
    def measure(self, result):
        s, ended = self.scenario, len(self.rows)
        horizon = 2 + 2 * s.steps_per_publication * math.ceil(min(s.max_staleness, 16))
        warm = min(max(math.ceil(ended / 5), horizon), ended // 2)
        if s.learning_logit_per_step or any(row != self.path[0] for row in self.path):
            warm = ended - math.ceil(ended / 5)
        if ended <= warm:
            return
        start, area_start = self.marks[warm - 1] if warm else (0.0, 0.0)
        end, area_end = self.marks[-1]
        span, rows = end - start, self.rows[warm:]
        groups = [group for group in self.groups if group.step is not None and warm <= group.step < ended]
        result.trainer_wait_ratio = sum(row["wait"] for row in rows) / span
        result.step_s = span / len(rows)
        result.trained_per_s = len(groups) * s.group_size / span
        result.in_flight = (area_end - area_start) / span
        result.staleness = mean([group.trained_version - group.version for group in groups])
        result.token_staleness = mean([group.token_staleness for group in groups])
        left = [(taken, aborted) for at, taken, aborted in self.left if start < at <= end]
        result.rollout_s = mean([taken for taken, aborted in left if not aborted])
        result.attempts_per_s, result.slot_s = len(left) / span, mean([taken for taken, _ in left])


def mean(values):
    return sum(values) / len(values) if values else math.nan
