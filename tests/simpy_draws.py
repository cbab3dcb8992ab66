"""What chance decides in a run, one method per cause of section 1 of docs/semantics.md.

A test that wants given draws overrides the named methods, or ``uniform`` and ``normal``, from which all of them are made.
"""

import math

import numpy as np
from scipy.special import ndtri

CAUSES = (
    "prompt length", "rollout length", "tool calls", "tool time", "start", "start fails", "dies", "dies where",
    "solve rate", "solves", "filtered", "surplus", "turn", "choice",
)  # fmt: skip
BLOCK = 64


def log_normal(mean, sigma, z):
    return mean * math.exp(sigma * z - sigma**2 / 2)


class Draws:
    """Functions of (seed, cause, group or prompt, rollout, number): asking twice answers the same.

    ``asked`` is what the run asks of a rollout at its group's step: a row of ``at_step.drift_path``.
    """

    def __init__(self, scenario, seed):
        self.scenario, self.seed, self.blocks = scenario, seed, {}

    def uniform(self, cause, group, rollout=0, number=0):
        key = (CAUSES.index(cause), number, group // BLOCK)
        if key not in self.blocks:
            shape = (BLOCK, self.scenario.group_size)
            self.blocks[key] = np.random.default_rng((self.seed, *key)).random(shape).tolist()
        return self.blocks[key][group % BLOCK][rollout]

    def normal(self, cause, group, rollout=0, number=0):
        return float(ndtri(self.uniform(cause, group, rollout, number)))

    def length(self, group, rollout, prompt, asked):
        between = asked["sigma_between"] * self.normal("prompt length", prompt)
        within = asked["sigma_within"] * self.normal("rollout length", group, rollout)
        return min(self.scenario.max_response_tokens, math.exp(asked["log_median"] + between + within))

    def tool_calls(self, group, rollout, asked):
        whole = math.floor(asked["tool_calls"])
        return whole + (self.uniform("tool calls", group, rollout) < asked["tool_calls"] - whole)

    def tool_call_s(self, group, rollout, turn):
        mean, sigma = self.scenario.tool_call_s, self.scenario.tool_call_sigma
        return log_normal(mean, sigma, self.normal("tool time", group, rollout, turn)) if sigma else mean

    def sandbox_start_s(self, group, rollout, tries):
        mean, sigma = self.scenario.sandbox_start_s, self.scenario.sandbox_start_sigma
        return log_normal(mean, sigma, self.normal("start", group, rollout, tries)) if sigma else mean

    def start_fails(self, group, rollout, tries):
        return self.uniform("start fails", group, rollout, tries) < self.scenario.sandbox_failure_ratio

    def dies_after(self, group, rollout, attempt, turns):
        """The segment, 1 to ``turns``, at whose end the sandbox dies; 0: it does not."""
        if self.uniform("dies", group, rollout, attempt) >= self.scenario.sandbox_run_failure_ratio:
            return 0
        return 1 + math.floor(self.uniform("dies where", group, rollout, attempt) * turns)

    def filtered(self, group):
        return self.uniform("filtered", group) < self.scenario.filtered_fraction

    def surplus(self, group):
        return self.uniform("surplus", group) < self.scenario.surplus_fraction
