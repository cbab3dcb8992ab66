"""What a plain run keeps of its rollouts, groups and batches, and what it answers."""

import math
from collections import Counter
from dataclasses import dataclass, field


@dataclass(eq=False, kw_only=True)
class Rollout:
    group: "Group"
    number: int
    tokens: float
    turns: int
    attempt: int = -1
    tries: int = 0
    ended: bool = False
    solved: bool = False

    def begin(self, life, now):
        """A new attempt: nothing sampled, no replica."""
        self.life, self.since, self.stage, self.has_place = life, now, "", False
        self.attempt += 1
        self.replica = self.version = None
        self.prompt = self.sampled = self.left = self.to_prefill = self.token_versions = 0.0
        self.cold = self.rebind = False

    @property
    def tenant(self):
        return self.group.tenant

    @property
    def context(self):
        return self.prompt + self.sampled


@dataclass(eq=False, kw_only=True)
class Cohort:
    number: int
    running: set = field(default_factory=set)
    accepted: int = 0
    closed: bool = False


@dataclass(eq=False, kw_only=True)
class Group:
    tenant: object
    number: int
    cohort: Cohort
    dispatch_s: float
    prompt: int
    asked: object  # the lengths of its step
    rollouts: list = field(default_factory=list)  # those dispatched at least once
    out: int = 0  # rollouts in flight or ended, failed attempts not counted
    version: int | None = None
    finish_s: float | None = None
    finish_version: int | None = None
    step: int | None = None
    trained_version: int | None = None
    informative: bool = False
    fate: str = "in flight"

    @property
    def oldest(self):
        """The smallest version of its rollouts that have one."""
        return min((each.version for each in self.rollouts if each.version is not None), default=math.inf)

    @property
    def solved(self):
        return sum(rollout.solved for rollout in self.rollouts)

    @property
    def tokens(self):
        return sum(rollout.tokens for rollout in self.rollouts)

    @property
    def trained_tokens(self):
        return self.tokens + len(self.rollouts) * self.asked["prompt_tokens"]

    @property
    def token_staleness(self):
        """Mean over its sampled tokens of the versions between sampling and training."""
        return self.trained_version - sum(rollout.token_versions for rollout in self.rollouts) / self.tokens


@dataclass(kw_only=True)
class Result:
    """``steps``: a row per step; ``groups``: every group admitted; ``fates``: rollouts by fate; the rest is section 9."""

    steps: list
    groups: list
    fates: Counter
    dispatched: int
    cause: str = ""
    events: int = 0
    seconds: float = 0.0
    trainer_wait_ratio: float = math.nan
    step_s: float = math.nan
    trained_per_s: float = math.nan
    staleness: float = math.nan
    token_staleness: float = math.nan
    in_flight: float = math.nan
    rollout_s: float = math.nan
    attempts_per_s: float = math.nan
    slot_s: float = math.nan
