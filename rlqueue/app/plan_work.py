"""What the page about plans has computed: the plan, and how sure it is about its inputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

from rlqueue.planning import Goal, Limits, Plan, plan
from rlqueue.ranges import default_ranges
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import Bands, Bar, bands, tornado

QUANTITY = {"usd-per-mtok": "usd_per_mtok", "tokens-per-s": "trained_tokens_per_s", "hours": "step_s"}
"""Whose tornado belongs to an objective."""
SAMPLES = 256
KEPT = 64


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question: a scenario and the preset it comes from, GPUs, a goal and limits."""

    scenario: Scenario
    preset: str
    gpus: int
    objective: str
    max_staleness_versions: float | None
    max_wait_ratio: float | None
    max_usd_per_mtok: float | None
    max_kv_ratio: float | None
    min_trainer_gpus: int
    schedules: tuple[str, ...]

    @property
    def goal(self) -> Goal:
        steps = float(self.scenario.training_steps) if self.objective == "hours" else None
        return Goal(objective=self.objective, training_steps=steps)

    @property
    def limits(self) -> Limits:
        return Limits(
            max_staleness_versions=self.max_staleness_versions, max_wait_ratio=self.max_wait_ratio,
            max_usd_per_mtok=self.max_usd_per_mtok, max_kv_ratio=self.max_kv_ratio,
            min_trainer_gpus=self.min_trainer_gpus, schedules=self.schedules,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Made:
    """What came of a question.

    Attributes:
        plan: None where no plan keeps the limits; ``refusal`` says why then.
        bars: which of the plan's inputs move its objective. bands: of the plan over all of them.
    """

    asked: Asked
    plan: Plan | None = None
    refusal: str = ""
    bars: tuple[Bar, ...] = ()
    bands: Bands | None = None


_known: OrderedDict[Asked, Made] = OrderedDict()


class CalledOffError(Exception):
    """Nobody wants to know any more."""


def make(asked: Asked, called_off: Event, tell: Callable[[float, str], Any]) -> Made | None:
    """Answer a question; None when it was called off on the way."""

    def progress(share: float, what: str) -> None:
        if called_off.is_set():
            raise CalledOffError
        tell(0.95 * share, what)

    if asked not in _known:
        try:
            _known[asked] = _made(asked, progress)
        except CalledOffError:
            return None
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return _known[asked]


def _made(asked: Asked, progress: Callable[[float, str], Any]) -> Made:
    try:
        found = plan(asked.scenario, asked.goal, asked.limits, gpus=asked.gpus, progress=progress)
    except ValueError as refusal:
        return Made(asked=asked, refusal=str(refusal))
    best = found.best.scenario
    ranges = default_ranges(best, asked.preset)
    return Made(
        asked=asked, plan=found, bars=tornado(best, ranges, QUANTITY[asked.objective]),
        bands=bands(best, ranges, SAMPLES),
    )  # fmt: skip
