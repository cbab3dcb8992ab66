"""The discrete-event simulation of a run; ``docs/semantics.md`` says what happens in it."""

from rlqueue.simulation.run import Run, simulate

__all__ = ["Run", "simulate"]
