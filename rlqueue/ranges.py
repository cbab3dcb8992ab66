"""How far an input may be off: a range per knob, given by the reader or, for what nobody printed, from data/input_ranges.csv."""

import dataclasses
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlqueue.knobs import CATALOGUES
from rlqueue.presets import preset, preset_names
from rlqueue.provenance import table
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

ENDS = 2.0
"""Standard deviations from the middle at which a normal range ends: 95 % of it lies between."""
LAWS = {
    "even": "every value between the ends alike",
    "log": "every factor alike",
    "normal": "about the middle, cut at its ends",
}


@dataclass(frozen=True, kw_only=True)
class Range:
    """What one knob may be.

    Attributes:
        knob: name; ``node.usd_per_kwh`` reaches into a part. low, high: its ends, in the knob's unit.
        law: ``even``, ``log`` or ``normal`` (two standard deviations to each end). kind: of the scenario's value, or ``given``.
        source, reason: where the range comes from.
    """

    knob: str
    low: float
    high: float
    law: str = "even"
    kind: str = "given"
    source: str = ""
    reason: str = "given by the reader"

    def __post_init__(self) -> None:
        require_known("range law", self.law, LAWS)
        for end in (self.low, self.high):
            if not math.isfinite(end):
                raise ValueError(f"range of {self.knob}: {end} must be a finite number")
        if not self.low < self.high:
            raise ValueError(f"range of {self.knob}: low={self.low:g} must be < high={self.high:g}")
        if self.law == "log" and self.low <= 0:
            raise ValueError(f"range of {self.knob}: low={self.low:g} must be > 0 for factors")

    def at(self, share: np.ndarray) -> np.ndarray:
        """Values below which those shares of the range lie [unit of the knob]; any shape."""
        if self.law == "log":
            return self.low * (self.high / self.low) ** share
        if self.law == "normal":
            from scipy.stats import truncnorm

            middle, sigma = 0.5 * (self.low + self.high), (self.high - self.low) / (2.0 * ENDS)
            return truncnorm.ppf(share, -ENDS, ENDS, loc=middle, scale=sigma)
        return self.low + (self.high - self.low) * share


def default_ranges(scenario: Scenario, name: str = "") -> tuple[Range, ...]:
    """Ranges of the knobs that are still a preset's and that its source does not print, from data/input_ranges.csv.

    Args:
        name: the preset; by default the one that the scenario is called after. Without one there are no default ranges.
    """
    name = name or scenario.name
    if name not in preset_names():
        return ()
    facts = preset(name)
    return ranges_of(
        scenario, {knob: fact.kind for knob, fact in facts.items() if getattr(scenario, knob) == fact.value}
    )


def ranges_of(scenario: Scenario, kinds: Mapping[str, str]) -> tuple[Range, ...]:
    """Ranges of those knobs of a scenario whose value is of a kind that has one in data/input_ranges.csv."""
    found = []
    for knob, kind in kinds.items():
        row, value = _rows().get((knob, kind)), getattr(scenario, knob)
        if row is None or value is None:
            continue
        factor = value if row["scale"] == "factor" else 1.0
        low, high = float(row["low"]) * factor, float(row["high"]) * factor
        if low < high and low <= value <= high:
            found.append(
                Range(knob=knob, low=low, high=high, law="log" if row["scale"] == "factor" else "even", kind=kind,
                      source=row["source"], reason=row["note"])
            )  # fmt: skip
    return tuple(found)


@cache
def _rows() -> dict[tuple[str, str], dict[str, str]]:
    return {(row["knob"], kind): row for row in table("input_ranges") for kind in row["of_kinds"].split()}


def given_range(scenario: Scenario, knob: str, value: Any) -> Range:
    """A range in the words of a reader: ``"0.05..0.2"``, ``"+-0.02"`` (a standard deviation about the scenario's value),
    ``[0.05, 0.2]`` or ``{sigma = 0.02}``.

    Raises:
        ValueError: another form, an unknown knob, one that is no number, or ends that the knob may not have.
    """
    require_known("range of knob", knob, scenario.settable())
    middle = value_of(scenario, knob)
    unset = middle is None and knob == "gpu_hour_usd"
    if not unset and (isinstance(middle, bool) or not isinstance(middle, int | float)):
        raise ValueError(f"range of {knob}: {middle!r} is no number, so that it can have no range")
    low, high, law = _ends(knob, value, math.nan if unset else float(middle))
    found = Range(knob=knob, low=low, high=high, law=law)
    for end in (low, high):
        try:
            moved(scenario, {knob: end})
        except ValueError as refusal:
            raise ValueError(f"range of {knob}, end {end:g}: {refusal}") from refusal
    return found


def _ends(knob: str, value: Any, middle: float) -> tuple[float, float, str]:
    try:
        if isinstance(value, str) and value.startswith("+-"):
            value = {"sigma": float(value[2:])}
        if isinstance(value, Mapping):
            sigma = float(value["sigma"]) if len(value) == 1 else math.nan
            return middle - ENDS * sigma, middle + ENDS * sigma, "normal"
        low, high = (float(end) for end in (value.split("..") if isinstance(value, str) else value))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"range of {knob}={value!r} must have the form low..high, +-sigma, [low, high] or {{sigma = number}}"
        ) from error
    return low, high, "even"


def with_given(ranges: Iterable[Range], given: Iterable[Range]) -> tuple[Range, ...]:
    """The ranges, with those given in place of the others of the same knobs."""
    found = {each.knob: each for each in ranges} | {each.knob: each for each in given}
    return tuple(found.values())


def file_ranges(path: str | Path, scenario: Scenario) -> tuple[Range, ...]:
    """Ranges of a scenario file: those of its ``[ranges]`` table, and the default ones of the preset that it is based on
    or, as a preset's written file is, called after.

    A field of a part is named ``"node.usd_per_kwh"``, or ``usd_per_kwh`` in a table ``[ranges.node]``.
    """
    values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    given = values.get("ranges", {})
    if not isinstance(given, Mapping):
        raise ValueError(f"ranges={given!r} must be a table: knob = [low, high]")
    defaults = default_ranges(scenario, values.get("based_on", ""))
    return with_given(defaults, [given_range(scenario, knob, value) for knob, value in _flat(given)])


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for knob, value in given.items():
        if knob in CATALOGUES and isinstance(value, Mapping):
            yield from ((f"{knob}.{inner}", each) for inner, each in value.items())
        else:
            yield knob, value


def value_of(scenario: Scenario, knob: str) -> Any:
    """A knob's value; ``node.usd_per_kwh`` reaches into a part."""
    head, _, inner = knob.partition(".")
    part = getattr(scenario, head)
    return getattr(part, inner) if inner else part


def moved(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """The scenario with those knobs set, all at once; whole-number knobs are rounded.

    Raises:
        ValueError: the scenario would be impossible.
    """
    changed: dict[str, Any] = {}
    for knob, value in values.items():
        head, _, inner = knob.partition(".")
        if inner:
            part = changed.get(head, getattr(scenario, head))
            changed[head] = dataclasses.replace(part, **{inner: _number(type(part), inner, value)})
        else:
            changed[head] = _number(Scenario, head, value)
    return dataclasses.replace(scenario, **changed)


def _number(kind: type, name: str, value: float) -> float:
    return round(value) if name in _whole_numbers(kind) else float(value)


@cache
def _whole_numbers(kind: type) -> frozenset[str]:
    return frozenset(each.name for each in fields(kind) if each.type is int)
