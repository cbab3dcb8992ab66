"""Sweeps: one tidy row per combination, equal to solving each by hand."""

import dataclasses

import pytest

from rlqueue import Scenario, cost, solve
from rlqueue.sweep import sweep

SLIME = Scenario.from_data("slime-qwen3-235b")


def test_a_sweep_has_one_row_per_combination_in_order():
    table = sweep(SLIME, concurrency=[64, 256], mfu=[0.05, 0.1, 0.2])
    assert table[["concurrency", "mfu"]].to_numpy().tolist() == [[c, m] for c in (64, 256) for m in (0.05, 0.1, 0.2)]
    row = dataclasses.replace(SLIME, concurrency=256, mfu=0.1)
    assert table.loc[4, "trainer_wait_ratio"] == solve(row).trainer_wait_ratio
    assert table.loc[4, "usd_per_mtok"] == cost(row, solve(row)).usd_per_mtok


def test_a_sweep_refuses_what_a_scenario_refuses():
    with pytest.raises(ValueError, match=r"mfu=2 must be <= 1"):
        sweep(SLIME, mfu=[0.1, 2.0])
