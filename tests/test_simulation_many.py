"""Many simulated runs at once: the same answers as one by one, in the order asked."""

import dataclasses

import numpy as np
import pytest
from simulation_toys import PRIME, toy

from rlqueue import Scenario, simulate
from rlqueue.operating_point import CONSTRAINTS
from rlqueue.simulation import lumped, operating_points, simulate_grid

SPREAD = toy(schedule="async-in-flight", response_sigma_between_prompts=0.5, concurrency=8)


def test_threads_give_what_single_runs_give_in_the_order_asked():
    asked = [(SPREAD, seed) for seed in range(12)]
    assert list(operating_points(asked, steps=20)) == [simulate(SPREAD, seed, 20).operating_point for seed in range(12)]


def test_whoever_stops_asking_stops_what_has_not_begun():
    points = operating_points([(PRIME, seed) for seed in range(500)], steps=3, workers=1)
    next(points)
    points.close()  # returns at once: 500 such runs would take half a minute


def test_a_grid_varies_any_knob_and_keeps_its_shape():
    grid = simulate_grid(SPREAD, steps=10, concurrency=np.array([2, 4, 8])[:, None], weight_sync_s=np.array([0.0, 1.0]))
    assert grid["trainer_wait_ratio"].shape == (3, 2)
    alone = simulate(dataclasses.replace(SPREAD, concurrency=4, weight_sync_s=1.0), steps=10).operating_point
    assert grid["step_s"][1, 1] == alone.step_s
    assert list(CONSTRAINTS)[grid["binding_constraint"][1, 1]] == alone.binding_constraint
    with pytest.raises(ValueError, match="concurrency=0 must be >= 1"):
        simulate_grid(SPREAD, concurrency=np.array([0, 1]))


def test_lumped_turns_take_as_long_in_all():
    preset = dataclasses.replace(Scenario.from_data("slime-qwen3-235b"), mean_prompt_tokens=100.0)
    turns, lump = (simulate(each, steps=100).operating_point for each in (preset, lumped(preset)))
    assert lump.rollout_s == pytest.approx(turns.rollout_s, rel=0.03)
    assert lump.trainer_wait_ratio == pytest.approx(turns.trainer_wait_ratio, abs=0.02)
