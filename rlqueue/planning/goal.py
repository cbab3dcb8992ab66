"""What a plan is to reach, and the limits it must keep."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from rlqueue.choices import SCHEDULES
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario
from rlqueue.units import SECONDS_PER_HOUR

OBJECTIVES = {"usd-per-mtok": "$/Mtok", "tokens-per-s": "trained tokens/s", "hours": "h"}
"""What can be made best, and its unit."""
LIMITED = {
    "max_staleness_versions": "staleness_versions", "max_wait_ratio": "trainer_wait_ratio",
    "max_usd_per_mtok": "usd_per_mtok", "max_kv_ratio": "kv_used_ratio",
}  # fmt: skip
"""The quantity that each limit is for."""
Numbers = float | np.ndarray


@dataclass(frozen=True, kw_only=True)
class Goal:
    """An objective, with the length of the run where hours are asked for.

    Attributes:
        objective: of ``OBJECTIVES``. training_steps, training_tokens: the run, by steps or by trained tokens; at most one.

    Raises:
        ValueError: an unknown objective, or hours of a run of no length.
    """

    objective: str = "usd-per-mtok"
    training_steps: float | None = None
    training_tokens: float | None = None

    def __post_init__(self) -> None:
        require_known("objective", self.objective, OBJECTIVES)
        lengths = {"training_steps": self.training_steps, "training_tokens": self.training_tokens}
        for name, value in lengths.items():
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value} must be > 0: length of the run")
        if None not in lengths.values():
            raise ValueError("training_tokens must be unset with training_steps: the run has one length")
        if self.objective == "hours" and set(lengths.values()) == {None}:
            raise ValueError("objective='hours' needs training_steps or training_tokens: how long the run is")

    @classmethod
    def of(cls, scenario: Scenario, objective: str) -> Self:
        """The objective, for a run of as many steps as the scenario has (one step says nothing of a run's length)."""
        steps = float(scenario.training_steps) if scenario.training_steps > 1 else None
        return cls(objective=objective, training_steps=steps)

    @property
    def more_is_better(self) -> bool:
        return self.objective == "tokens-per-s"

    @property
    def unit(self) -> str:
        return OBJECTIVES[self.objective]

    def value(self, answers: dict[str, Any]) -> Numbers:
        """The objective of operating points: a number or an array, from step_s, usd_per_mtok and trained_tokens_per_s."""
        if self.objective == "usd-per-mtok":
            return answers["usd_per_mtok"]
        return answers["trained_tokens_per_s"] if self.objective == "tokens-per-s" else self.hours(answers)

    def hours(self, answers: dict[str, Any]) -> Numbers:
        """Wall-clock time of the run [h]."""
        if self.training_tokens:
            return self.training_tokens / answers["trained_tokens_per_s"] / SECONDS_PER_HOUR
        return (self.training_steps or 1.0) * answers["step_s"] / SECONDS_PER_HOUR

    def loss(self, value: Numbers) -> Numbers:
        """The objective as something of which less is better, and of the same relative differences."""
        return 1.0 / value if self.more_is_better else value

    def change(self, difference: float) -> float:
        """A relative difference of loss as one of the objective: of twice the loss, twice the $ or half the tokens/s."""
        return 1.0 / (1.0 + difference) - 1.0 if self.more_is_better else difference

    def words(self, value: float) -> str:
        """A value of the objective as written in a sentence."""
        if self.objective == "usd-per-mtok":
            return f"${value:.2f}/Mtok"
        if self.more_is_better:
            return f"{value:,.0f} trained tokens/s"
        return f"{value:,.2f} h" if value < 10 else f"{value:,.1f} h"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a plan must keep; None is no limit.

    Attributes:
        max_staleness_versions: mean staleness of a trained group. max_wait_ratio: trainer wait ratio.
        max_usd_per_mtok: wall-clock cost. max_kv_ratio: share of the KV cache in use on average.
        min_trainer_gpus: GPUs that the trainer needs for its own memory, which is not modelled.
        schedules: that the framework can do; empty = all.
    """

    max_staleness_versions: float | None = None
    max_wait_ratio: float | None = None
    max_usd_per_mtok: float | None = None
    max_kv_ratio: float | None = None
    min_trainer_gpus: int = 1
    schedules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in LIMITED:
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and value >= 0):
                raise ValueError(f"{name}={value!r} must be a number >= 0")
        whole = isinstance(self.min_trainer_gpus, int)
        if not whole or self.min_trainer_gpus < 1:
            raise ValueError(f"min_trainer_gpus={self.min_trainer_gpus} must be >= 1: somebody has to train")
        for schedule in self.schedules:
            require_known("schedule", schedule, SCHEDULES)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Limits by name."""
        for name in values:
            require_known("limit", name, [each.name for each in fields(cls)])
        return cls(**values)

    @property
    def given(self) -> dict[str, float]:
        """The limits that are set, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)
                if each.name in LIMITED and getattr(self, each.name) is not None}  # fmt: skip

    def kept(self, answers: dict[str, Any], slack: float = 0.0) -> np.ndarray:
        """Whether each operating point keeps every limit, with a slack (see ``excess``)."""
        return self.excess(answers) <= slack

    def excess(self, answers: dict[str, Any]) -> np.ndarray:
        """By how much the limit that is missed most is missed: as a share of it, or in points of a ratio; at most 0 = kept."""
        most = np.full(np.shape(answers["step_s"]), -np.inf)
        for name, limit in self.given.items():
            over = self.measure(name, answers) - limit
            if not name.endswith("ratio"):
                over = over / limit if limit > 0 else np.where(over > 0, np.inf, 0.0)
            most = np.maximum(most, over)
        return most

    @staticmethod
    def measure(name: str, answers: dict[str, Any]) -> np.ndarray:
        """The quantity that the limit is for, at each operating point."""
        return np.asarray(answers[LIMITED[name]])
