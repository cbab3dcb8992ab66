"""rlqueue: reinforcement-learning post-training as a queue; wait ratio, staleness and $/Mtok of a GPU split."""

from typing import TYPE_CHECKING, Any

from rlqueue.cost import Bill, cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.scenario import Scenario
from rlqueue.tco import tco

if TYPE_CHECKING:
    from rlqueue.logs import Measured
    from rlqueue.queueing import solve
    from rlqueue.simulation import Run, simulate

__all__ = ["Bill", "Measured", "OperatingPoint", "Run", "Scenario", "cost", "simulate", "solve", "tco"]

_LAZY = {
    "solve": "rlqueue.queueing", "simulate": "rlqueue.simulation", "Run": "rlqueue.simulation", "Measured": "rlqueue.logs",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the compiled solvers on first use: listing presets must not pay for a compiler."""
    if name not in _LAZY:
        raise AttributeError(f"module 'rlqueue' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
