"""What the tenants of section 13 of docs/semantics.md share: clock, slots, replicas, the provider of sandboxes, the trainer.

A run without other tenants is a host with one. simpy keeps the clock and the order of events; its priorities are the order at
one moment (section 8).
"""

import math
import time
from collections import deque

import simpy
from simpy_replica import Replica


class Host:
    def __init__(self, scenario, steps):
        s, self.scenario, self.steps = scenario, scenario, steps
        self.env = simpy.Environment()
        gpus = s.trainer_gpus + s.generator_gpus if s.schedule == "colocated-sync" else s.generator_gpus
        own = gpus // s.gpus_per_replica
        in_step = s.max_staleness == 0
        lent = s.trainer_gpus // s.gpus_per_replica if s.schedule == "lent-trainer" and not in_step else 0
        self.REPLICA = s.tenants  # after the trainer's events, which are by tenant
        first = self.REPLICA + own + lent
        self.SANDBOX, self.PREFILL, self.TOOL, self.REWARD = range(first, first + 4)
        self.tenants = []
        self.replicas = [Replica(self, i, is_open=i < own) for i in range(own + lent)]
        self.lent = self.replicas[own:]
        self.places, self.place_line, self.next_creation = 0, deque(), 0.0
        self.trainer_line, self.trained_last, self.is_training = deque(), None, False
        self.given = 0  # slots
        self.events, self.done = 0, False

    # The machinery: timers, and what has become possible after one
    def after(self, delay, priority, act):
        """An event: ``act`` in so many seconds, then whatever has become possible (section 8)."""
        event = simpy.Event(self.env)
        event._ok, event._value = True, None
        event.callbacks.append(lambda _: (act(), self.settle()))
        self.env.schedule(event, priority, delay)

    def settle(self):
        if self.done:
            return
        for tenant in self.tenants:
            tenant.look()
        self.give_slots()

    def go(self, rollout):
        """A rollout runs on until it waits for a time (priority, seconds) or for somebody to call this (None)."""
        wish, life = next(rollout.life, None), rollout.life
        if wish:
            self.after(wish[1], wish[0], lambda: rollout.life is life and self.go(rollout))

    def run(self, max_events):
        """Until every tenant has ended its steps; why it ended before, and how long that took."""
        began, cause = time.perf_counter(), ""
        for tenant in self.tenants:
            tenant.resume_trainer()
        self.settle()
        while not self.done and not cause:
            if self.events >= max_events:
                cause = "event budget used up"
            elif self.env.peek() == math.inf:
                cause = "nothing can happen any more"
            else:
                self.env.step()
                self.events += 1
        return cause, time.perf_counter() - began

    def step_ended(self):
        self.done = all(tenant.steps_ended >= self.steps for tenant in self.tenants)

    # Slots
    def give_slots(self):
        while sum(tenant.in_flight for tenant in self.tenants) < self.scenario.concurrency:
            able = [tenant for tenant in self.tenants if tenant.can_dispatch()]
            if not able:
                return
            tenant = min(able, key=lambda each: (each.in_flight, each.last_given))
            self.given += 1
            tenant.last_given = self.given
            tenant.dispatch_one()

    def has_place(self):
        """Section 2: where groups hold slots, one more needs as many as it has rollouts that no group holds."""
        if self.scenario.slots_held_by == "rollout":
            return True
        groups = 1 + sum(len(tenant.running) for tenant in self.tenants)
        return groups * self.scenario.group_size <= self.scenario.concurrency

    # The provider of sandboxes
    def hand_over_places(self, asking=None):
        """Free places go to those who wait, first come first served; one who is asking just now is running already."""
        while self.place_line and self.places + 1 <= self.scenario.sandbox_cap:
            rollout = self.place_line.popleft()
            self.places += 1
            rollout.has_place = True
            if rollout is not asking:
                self.go(rollout)

    def creation_begins(self):
        begins = max(self.env.now, self.next_creation)
        self.next_creation = begins + 1 / self.scenario.sandbox_creates_per_s
        return begins

    # The trainer
    def is_turn_of(self, tenant):
        return not self.is_training and self.trainer_line[0] is tenant

    def take(self, tenant):
        """The trainer takes the tenant's update; the time of changing to its adapter."""
        self.trainer_line.popleft()
        self.is_training = True
        changes = self.trained_last not in {None, tenant}
        self.trained_last = tenant
        return self.scenario.adapter_switch_s if changes else 0.0
