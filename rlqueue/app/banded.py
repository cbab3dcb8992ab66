"""Bands of a state's headline numbers: how far they may be off, for what its inputs are known to."""

from __future__ import annotations

from collections import OrderedDict
from html import escape

from rlqueue.app.state import State
from rlqueue.ranges import default_ranges
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import Band, Bands, bands

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
    return f"Ranges: {found.level:.0%} of {found.samples} samples over what is assumed or fitted ({escape(names)})."
