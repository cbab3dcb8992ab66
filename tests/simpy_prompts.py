"""The prompts of section 12 of docs/semantics.md: which comes next, who solves it, what is learned."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from rlqueue.at_step import solve_rates

STAND_INS = 1000


@dataclass(eq=False, kw_only=True)
class Prompt:
    number: int
    turn: float
    in_flight: int = 0
    solved: float = 0.0
    tried: float = 0.0
    own_rise: float = 0.0

    @property
    def weight(self):
        w = (self.solved + 1) / (self.tried + 2)
        return w * (1 - w)


class Prompts:
    def __init__(self, scenario, draws):
        s, self.scenario, self.draws = scenario, scenario, draws
        self.pool = [Prompt(number=i, turn=i / s.pool_prompts) for i in range(s.pool_prompts)]
        self.epoch = self.unqualified = self.repeated = 0
        self.common_rise, self.to_come = 0.0, []  # what is trained comes into force at the next publication
        self.law = solve_rates(s)
        self.start = {}  # prompt -> logit of its solve rate at the start

    # Which comes next
    def choose(self, group):
        if not self.pool:
            return group
        prompt = self.by_weight(group) if self.scenario.sampler == "adaptive" else self.by_turn()
        prompt.in_flight += 1
        return prompt.number

    def by_weight(self, group):
        free = [prompt for prompt in self.pool if not prompt.in_flight]
        self.repeated += not free
        choice = free or self.pool
        limit = self.draws.uniform("choice", group) * sum(prompt.weight for prompt in choice)
        total = 0.0
        for prompt in choice:
            total += prompt.weight
            if total > limit:
                return prompt
        return choice[-1]

    def by_turn(self):
        free = [prompt for prompt in self.pool if not prompt.in_flight]
        wanted = [prompt for prompt in free if self.qualifies(prompt)]
        self.unqualified += bool(free) and not wanted
        self.repeated += not free
        prompt = min(wanted or free or self.pool, key=lambda each: (each.turn, each.number))
        self.epoch = max(self.epoch, math.floor(prompt.turn))
        prompt.turn = self.epoch + 1 + self.draws.uniform("turn", prompt.number, self.epoch + 1)
        return prompt

    def qualifies(self, prompt):
        s = self.scenario
        if not prompt.tried:
            return True
        seen = prompt.solved / prompt.tried
        if s.sampler == "difficulty-band":
            return s.band_low <= seen <= s.band_high
        return s.sampler != "retire-solved" or seen <= s.retire_above

    def release(self, group):
        if self.pool:
            self.pool[group.prompt].in_flight -= 1

    def observe(self, group):
        if self.pool:
            prompt = self.pool[group.prompt]
            prompt.solved = prompt.solved / 2 + group.solved
            prompt.tried = prompt.tried / 2 + self.scenario.group_size

    # Who solves
    def logit_at_start(self, prompt):
        if prompt not in self.start:
            self.start[prompt] = float(logit(self.law.quantile(self.draws.uniform("solve rate", prompt))))
        return self.start[prompt]

    def solve_rate(self, prompt):
        own = self.pool[prompt].own_rise if self.pool else 0.0
        return float(expit(self.logit_at_start(prompt) + self.common_rise + own))

    def solves(self, group, rollout):
        return self.law is not None and self.draws.uniform("solves", group.number, rollout) < self.solve_rate(
            group.prompt
        )

    # What is learned
    def teach(self, group):
        self.to_come.append(
            (group, 2 ** (-(group.trained_version - group.version) / self.scenario.learning_staleness_half))
        )

    def learn(self):
        s, n = self.scenario, self.scenario.group_size
        speed, shared = s.learning_logit_per_step, s.learning_transfer
        for group, fresh in self.to_come:
            if group.informative:
                self.common_rise += speed * shared * fresh / s.prompts_per_step
            share = group.solved / n
            if self.pool:
                self.pool[group.prompt].own_rise += speed * (1 - shared) * 4 * share * (1 - share) * fresh
        self.to_come = []

    def survey(self):
        """Mean solve rate of the pool, and the share of prompts in each twentieth."""
        if self.law is None:
            return None, None
        if self.pool:
            rates = np.array([self.solve_rate(prompt.number) for prompt in self.pool])
        else:
            even = (np.arange(STAND_INS) + 0.5) / STAND_INS
            rates = expit(logit(self.law.quantile(even)) + self.common_rise)
        return float(rates.mean()), (np.histogram(rates, bins=20, range=(0, 1))[0] / rates.size).tolist()
