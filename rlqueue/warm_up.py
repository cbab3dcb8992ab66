"""``python -m rlqueue.warm_up``: have everything compiled and kept on disk before somebody waits for it; once, a minute or two.

Where the code is there already it takes three seconds.
"""

from dataclasses import replace

from rlqueue.course import course
from rlqueue.curriculum_presets import curriculum_knobs
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped, simulate, simulate_tenants


def warm_up() -> None:
    """Solve and simulate a run, alone and with a tenant beside it, and follow one over its steps."""
    scenario = Scenario.from_data("slime-qwen3-235b")
    solve(scenario)
    course(replace(scenario, **curriculum_knobs(scenario.name)))
    short = lumped(scenario)
    simulate(short, steps=1)
    simulate_tenants(replace(short, tenants=2), steps=1)


if __name__ == "__main__":
    warm_up()
