"""Published runs as starting points: every knob of a preset is a quantity with its source in data/presets/."""

from functools import cache

from rlqueue.provenance import Quantity, quantities, table
from rlqueue.refusal import require_known

MEASURED_RUNS = ("prime_process", "slime_process")
"""Tables of a measured run's steps that a scenario may name as its ``measured_run``."""


@cache
def preset_names() -> tuple[str, ...]:
    """Names of the presets, in the order of data/presets.csv."""
    return tuple(row["preset"] for row in table("presets"))


@cache
def preset(name: str) -> dict[str, Quantity]:
    """The knobs of one preset with their sources. Raises ValueError for an unknown name."""
    require_known("preset", name, preset_names())
    return quantities(f"presets/{name}", name)


@cache
def reported(name: str) -> dict[str, Quantity]:
    """What the source says came out of that run, by quantity; empty where it says nothing."""
    return quantities("reported", name)
