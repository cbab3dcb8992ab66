"""The compiled simulation against the plain one that was written from docs/semantics.md alone: given the same draws, the same run.

Far stronger than agreement of means: every step begins at the same moment, every group has the same fate and versions.
"""

import numpy as np
import pytest
from simpy_draws import CAUSES, Draws
from simpy_run import run as plain_run
from simpy_scenarios import random_scenarios

from rlqueue import simulate
from rlqueue.simulation import draws

STEPS = 25
ROUNDING = 1e-6  # of a moment; both sum thousands of times in different orders
OURS = dict(zip(CAUSES, range(len(draws.CAUSES)), strict=True))  # both list the causes in the order of the page


class SameDraws(Draws):
    """The plain simulation's draws, answered by the compiled one's functions."""

    def __init__(self, scenario, seed):
        super().__init__(scenario, seed)
        self.keys = draws.keys(seed)

    def uniform(self, cause, group, rollout=0, number=0):
        return draws.uniform(self.keys[OURS[cause]], group, rollout, number)

    def normal(self, cause, group, rollout=0, number=0):
        return draws.normal(self.keys[OURS[cause]], group, rollout, number)


# Two of each schedule and staleness family, with everything else switched on and off at random
@pytest.mark.parametrize("case", range(42))
def test_given_the_same_draws_both_simulations_make_the_same_run(case):
    scenario = random_scenarios(42, seed=1)[case]
    plain = plain_run(scenario, steps=STEPS, draws=SameDraws(scenario, case))
    compiled = simulate(scenario, seed=case, steps=STEPS)
    for ours, theirs in (("start_s", "start"), ("wait_s", "wait"), ("train_s", "train")):
        expected = np.array([row[theirs] for row in plain.steps])
        assert compiled.steps[ours].to_numpy() == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
    groups = compiled.groups
    assert groups["fate"].tolist() == [group.fate for group in plain.groups]
    trained = [group for group in plain.groups if group.fate == "trained"]
    assert groups["version"][groups["fate"] == "trained"].tolist() == [group.version for group in trained]
    assert compiled.world.clock["dispatched"] == plain.dispatched
