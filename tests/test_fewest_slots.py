"""Where groups hold the slots nobody looks at fewer than one group's: a scenario refuses them."""

import dataclasses

import pytest

from rlqueue import Scenario
from rlqueue.advice import concurrencies, moves
from rlqueue.app.answers import wait_map
from rlqueue.app.state import frame
from rlqueue.planning import Limits
from rlqueue.planning.grid import grid


@pytest.fixture
def in_groups():
    """Eight replicas and groups of sixteen: one slot a replica is half a group."""
    return dataclasses.replace(
        Scenario.from_data("slime-qwen3-235b"), slots_held_by="group", group_size=16, generator_gpus=32, trainer_gpus=32,
        gpus_per_replica=4, concurrency=64,
    )  # fmt: skip


def test_nothing_runs_below_one_group_of_slots(in_groups):
    assert in_groups.fewest_slots == 16
    assert dataclasses.replace(in_groups, slots_held_by="rollout").fewest_slots == 1
    with pytest.raises(ValueError, match="concurrency=15 must be >= group_size=16"):
        dataclasses.replace(in_groups, concurrency=15)


def test_advice_tries_no_fewer_slots(in_groups):
    assert concurrencies(in_groups).min() == 16
    assert concurrencies(dataclasses.replace(in_groups, slots_held_by="rollout")).min() == 8
    assert all(move.scenario.concurrency >= 16 for move in moves(in_groups))


def test_the_sliders_reach_no_fewer_slots(in_groups):
    around = frame(in_groups)
    assert around.slots_low == around.corner.fewest_slots == 16
    assert wait_map(in_groups).concurrency.min() == pytest.approx(16)


def test_plans_have_no_fewer_slots(in_groups):
    found = grid(in_groups, 64, Limits())
    assert found.table["concurrency"].min() == 16
    dataclasses.replace(in_groups, concurrency=int(found.table["concurrency"].min()))
