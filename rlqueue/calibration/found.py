"""What goes into a calibration and what comes out of it."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlqueue.plain import plain
from rlqueue.scenario import Scenario
from rlqueue.units import after_number

MISSED = 3.0
"""Spreads off at which a measurement counts as missed: chance alone does that once in 370 times."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured value, a decode curve as text. ``spread``: standard deviation, relative (absolute for a share); None = usual."""

    value: float | str
    spread: float | None = None


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What is known of a knob beforehand: a value and the spread of its logarithm."""

    value: float
    spread: float


@dataclass(frozen=True, kw_only=True)
class FittedKnob:
    """One knob after the fit.

    Attributes:
        knob, unit: of the scenario. start, value: before and after.
        spread: standard deviation of its logarithm; infinite where the measurements (and priors) do not fix it.
        low, high: one such deviation down and up; 0 and infinite where it is not fixed.
        at_limit: whether it stands at a limit of the knob, so that the fit would have gone on.
    """

    knob: str
    unit: str
    start: float
    value: float
    spread: float
    low: float
    high: float
    at_limit: bool


@dataclass(frozen=True, kw_only=True)
class Residual:
    """What is left of one measurement: ``error`` is fitted / measured - 1, for a share fitted - measured.

    ``missed``: it is off by more than ``MISSED`` of its spreads, so that the fitted knobs cannot meet it, or not with the others.
    """

    row: int
    quantity: str
    unit: str
    measured: float
    fitted: float
    error: float
    spread: float
    missed: bool

    @property
    def words(self) -> str:
        """How far off it is, as a sentence's end."""
        return f"{self.quantity} of {self.measured:.4g}{after_number(self.unit)} is not met: the nearest is {self.fitted:.4g}"


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A fitted scenario with what it was fitted to; ``scenario`` is the first row's, ``scenarios`` are all rows'."""

    scenario: Scenario
    scenarios: tuple[Scenario, ...]
    solver: str
    knobs: tuple[FittedKnob, ...]
    residuals: tuple[Residual, ...]

    @property
    def identified(self) -> bool:
        """Whether every fitted knob has a finite uncertainty."""
        return all(math.isfinite(each.spread) for each in self.knobs)

    @property
    def missed(self) -> tuple[str, ...]:
        """What no value of the fitted knobs meets, or none that meets the rest: a sentence for each such measurement."""
        knobs = ", ".join(each.knob for each in self.knobs)
        return tuple(f"{each.words} by fitting {knobs} alone" for each in self.residuals if each.missed)

    @property
    def values(self) -> dict[str, float]:
        """The fitted knobs by name."""
        return {each.knob: each.value for each in self.knobs}

    def toml(self) -> str:
        """The fitted scenario as a file that ``Scenario.from_file`` reads, led by how it came about."""
        lines = [f"# Fitted by {self.solver} to what was measured"]
        lines += [f"# {each.knob} = {each.value:.6g} {each.unit}: {_range(each)}" for each in self.knobs]
        lines += [f"# {words}" for words in self.missed]
        return "\n".join(lines) + "\n" + self.scenario.to_toml()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which knows no infinity: None stands for it."""
        return {
            "scenario": self.scenario.name,
            "solver": self.solver,
            "identified": self.identified,
            "missed": list(self.missed),
            "knobs": [plain(dataclasses.asdict(each)) for each in self.knobs],
            "residuals": [plain(dataclasses.asdict(each)) for each in self.residuals],
        }


def _range(each: FittedKnob) -> str:
    if math.isinf(each.spread):
        return "not fixed by the measurements"
    return f"{each.low:.4g} to {each.high:.4g}{', at its limit' if each.at_limit else ''}"


Measurements = Mapping[str, float | str | Measured]
