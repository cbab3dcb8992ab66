"""Bands of a state's headline numbers: how far they may be off, for what its inputs are known to, and by chance."""

from __future__ import annotations

import html
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence

from rlqueue.app.cards import Span
from rlqueue.app.state import State
from rlqueue.ranges import default_ranges
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import LEVEL, Band, Bands, bands

SAMPLES = 64
"""Samples of the inputs: 0.1 s of a core."""
KEPT = 64
Known = Bands
_known: OrderedDict[tuple[str, Scenario], Bands] = OrderedDict()


def banded(state: State) -> Bands:
    """The bands of a state, from memory where they were asked for before."""
    key = (state.preset, state.scenario)
    if key not in _known:
        _known[key] = bands(state.scenario, default_ranges(state.scenario, state.preset), samples=SAMPLES)
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return _known[key]


def known(state: State) -> Bands | None:
    """The bands of a state if they were asked for before."""
    return _known.get((state.preset, state.scenario))


def band_of(found: Bands | None, quantity: str) -> Band | None:
    """The band of a quantity, where it has one that is more than a point."""
    if found is None or not found.ranges:
        return None
    band = next((each for each in found.rows if each.quantity == quantity), None)
    return band if band is not None and band.high > band.low else None


def words(found: Bands | None) -> str:
    """What the bands are over."""
    if found is None:
        return ""
    if not found.ranges:
        return "No input of this run has a range: all were printed, or set here."
    names = ", ".join(each.knob for each in found.ranges)
    return (
        f"Ranges: {found.level:.0%} of {found.samples} samples over what is assumed or fitted ({html.escape(names)})."
    )


def note(found: Bands | None, before: str = "", after: str = "") -> Span:
    """What the bands are over, for a line below cards that is there from the beginning; which inputs stands in its title."""
    said = _said(found)
    return Span(words=" ".join(filter(None, (before, said, after))), title=html.unescape(words(found)))


def _said(found: Bands | None) -> str:
    if found is None:
        return "inputs: how far a number may be off for what its inputs are known to; computed when the hand rests."
    if not found.ranges:
        return "inputs: none has a range, since all were printed, or set here."
    return (
        f"inputs: {found.level:.0%} of {found.samples} samples of the {len(found.ranges)} inputs that are assumed or fitted lie "
        "there, by closed form."
    )


def of_inputs(found: Bands | None, quantity: str, shown: Callable[[float], str]) -> Span:
    """How far a number may be off for what its inputs are known to, as a card says it; empty until that is known."""
    if found is None:
        return Span()
    if not found.ranges:
        return Span(words="inputs without a range", title=_said(found))
    band = next((each for each in found.rows if each.quantity == quantity), None)
    if band is None or not math.isfinite(band.low + band.high):
        return Span()
    return between("inputs", shown(band.low), shown(band.high), _said(found))


def between(of: str, low: str, high: str, title: str) -> Span:
    """A span from its ends as written; a unit that both have is written once."""
    if low == high:
        return Span(words=f"{of} {low} throughout", title=title)
    (low_number, unit), (_, other) = (_parted(each) for each in (low, high))
    return Span(words=f"{of} {low_number if unit == other else low}–{high}", title=title)


def _parted(text: str) -> tuple[str, str]:
    """A written number without its unit, and the unit with what divides them."""
    number, mark, unit = re.match(r"([^ /]*)([ /]?)(.*)", text).groups()
    return number, mark + unit


def of_seeds(values: Sequence[float], shown: Callable[[float], str]) -> Span:
    """Lowest and highest of several simulated runs, each with draws of its own; empty for one."""
    if len(values) < 2:
        return Span()
    return between("seeds", shown(min(values)), shown(max(values)), f"lowest and highest of {len(values)} seeds")


def of_chance(
    mean: float, error: float, count: int, shown: Callable[[float], str], *, of: str, least: float = 0.0
) -> Span:
    """How far a mean of some parts may be off by chance, by Student's t; of a single part nothing is known.

    Args:
        error: standard error of the mean, from the spread of the parts. count, of: how many parts, and what they are.
        least: what no mean can be below.
    """
    from scipy.stats import t

    if count < 2 or not math.isfinite(error):
        return Span(words="chance unknown", title=f"one of {of} says nothing about the spread")
    half = float(t.ppf(0.5 + 0.5 * LEVEL, count - 1)) * error
    title = f"the mean, with a confidence of {LEVEL:.0%}, from the spread of {count} {of}"
    return between("chance", shown(max(least, mean - half)), shown(mean + half), title)
