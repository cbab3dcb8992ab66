"""The verdict: it names what solve says, and no other value of the moved knob is better by much."""

import dataclasses

import pytest

from rlqueue import Scenario, cost, solve
from rlqueue.advice import WORTH_IT, break_even_usd_per_gpu_hour, concurrencies, moves, splits, verdict
from rlqueue.presets import preset_names


@pytest.mark.parametrize("name", preset_names())
def test_each_move_is_about_the_best_value_of_its_knob_alone(name):
    scenario = Scenario.from_data(name)
    for move in moves(scenario):
        if move.knob == "split":
            gpus = scenario.trainer_gpus + scenario.generator_gpus
            others = [{"generator_gpus": g, "trainer_gpus": gpus - g} for g in splits(scenario).tolist()]
            assert move.scenario.trainer_gpus + move.scenario.generator_gpus == gpus
        elif move.knob == "concurrency":
            others = [{"concurrency": slots} for slots in concurrencies(scenario).tolist()]
        else:
            others = [{"max_staleness": budget} for budget in range(33)]
        for other in others:
            changed = dataclasses.replace(scenario, **other)
            assert move.bill.usd_per_mtok <= cost(changed, solve(changed)).usd_per_mtok * (1 + 2 * WORTH_IT)


@pytest.mark.parametrize("name", preset_names())
def test_moves_are_sorted_by_what_they_save_and_their_changes_are_differences(name):
    scenario = Scenario.from_data(name)
    point = solve(scenario)
    bill = cost(scenario, point)
    found = moves(scenario, point)
    assert found
    assert [move.usd_per_mtok_change for move in found] == sorted(move.usd_per_mtok_change for move in found)
    for move in found:
        assert move.point == solve(move.scenario)
        assert move.wait_change == move.point.trainer_wait_ratio - point.trainer_wait_ratio
        assert move.usd_per_mtok_change == move.bill.usd_per_mtok - bill.usd_per_mtok < 0


def test_the_verdict_on_prime_rl_names_the_wait_the_constraint_and_the_move():
    scenario = Scenario.from_data("prime-rl-qwen3-235b")
    point = solve(scenario)
    words = verdict(point, moves(scenario, point), cost(scenario, point))
    for part in ("29%", "concurrency cap binds", "trainer compute is next", "Best single move", "$3.17 →"):
        assert part in words


def test_after_the_best_moves_nothing_is_left_to_gain():
    scenario = Scenario.from_data("prime-rl-qwen3-235b")
    for _ in range(20):
        found = moves(scenario)
        if not found:
            break
        scenario = found[0].scenario
    assert not moves(scenario)
    point = solve(scenario)
    assert "No single move" in verdict(point, [], cost(scenario, point))


def test_at_the_break_even_price_self_built_costs_what_the_host_charges():
    scenario = dataclasses.replace(Scenario.from_data("slime-qwen3-235b"), sandbox_usd_per_hour=0.05)
    price = break_even_usd_per_gpu_hour(cost(scenario, solve(scenario)))
    even = dataclasses.replace(scenario, gpu_hour_usd=price)
    bill = cost(even, solve(even))
    assert bill.usd_per_mtok == pytest.approx(bill.hosted_usd_per_mtok)


def test_splits_are_whole_replicas_and_leave_the_trainer_a_gpu():
    scenario = Scenario.from_data("prime-rl-glm-5")
    assert splits(scenario).tolist() == [64, 128, 192]
