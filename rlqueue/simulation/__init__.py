"""The discrete-event simulation of a run; ``docs/semantics.md`` says what happens in it."""

from rlqueue.simulation.lumping import lumped, unlumped
from rlqueue.simulation.many import operating_points, simulate_grid
from rlqueue.simulation.run import Run, simulate, simulate_tenants

__all__ = ["Run", "lumped", "operating_points", "simulate", "simulate_grid", "simulate_tenants", "unlumped"]
