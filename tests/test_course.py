"""Whole runs by closed form: the operating point where nothing moves, sums over steps, flips, and strategies."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlqueue import Scenario, cost, solve
from rlqueue.at_step import at_step
from rlqueue.cost import PARTS
from rlqueue.course import compare, course, totals, whole_run, with_and_without
from rlqueue.curriculum import expit
from rlqueue.presets import preset_names
from rlqueue.rates import filtered_fraction, informative_fraction, zero_advantage_fraction

GLM = Scenario.from_data("prime-rl-glm-5")
LEARNING = dataclasses.replace(
    GLM, training_steps=200, filtered_fraction=0.0, solve_rate_mean=0.4, solve_rate_concentration=2.0, pool_prompts=4000,
    learning_logit_per_step=0.01,
)  # fmt: skip
SHRINKING = dataclasses.replace(
    Scenario.from_data("prime-rl-qwen3-235b"), training_steps=101, drift_law="linear", drift_steps=100,
    drift_length_factor=0.45,
)  # fmt: skip
NUMBERS = ("step_s", "trainer_wait_ratio", "production_per_s", "consumption_per_s", "rollout_s", "staleness_versions")


@pytest.mark.parametrize("name", preset_names())
def test_where_nothing_moves_every_moment_is_the_operating_point(name):
    scenario = dataclasses.replace(Scenario.from_data(name), training_steps=30)
    point, bill, table = solve(scenario), cost(scenario, solve(scenario)), course(scenario).table
    assert len(table) == 30
    for field in NUMBERS:
        assert set(table[field]) == {getattr(point, field)}
    assert set(table["binding_constraint"]) == {point.binding_constraint}
    assert set(table["next_constraint"]) == {point.next_constraint}
    assert table["usd_per_mtok"].to_numpy() == pytest.approx(bill.usd_per_mtok, rel=1e-12)


@pytest.mark.parametrize("gate", ["zero-advantage", "none"])
def test_where_solve_rates_stay_every_moment_is_the_operating_point(gate):
    scenario = dataclasses.replace(LEARNING, learning_logit_per_step=0.0, gate=gate)
    point, bill = solve(scenario), cost(scenario, solve(scenario))
    table = course(scenario).table
    # The pool's classes stand for the law to 1e-6
    for field in NUMBERS:
        assert table[field].to_numpy() == pytest.approx(getattr(point, field), rel=1e-4)
    assert table["usd_per_informative_mtok"].to_numpy() == pytest.approx(bill.usd_per_informative_mtok, rel=1e-4)


@pytest.mark.parametrize("name", preset_names())
def test_a_whole_run_that_stays_as_it_is_costs_its_steps(name):
    scenario = dataclasses.replace(Scenario.from_data(name), training_steps=777)
    point = solve(scenario)
    bill, whole = cost(scenario, point), whole_run(scenario)
    assert whole.hours == pytest.approx(777 * point.step_s / 3600, rel=1e-9)
    assert whole.gpu_hours == pytest.approx(whole.hours * (scenario.trainer_gpus + scenario.generator_gpus))
    assert whole.usd == pytest.approx(777 * bill.usd_per_step, rel=1e-9)
    assert whole.usd_per_mtok == pytest.approx(bill.usd_per_mtok, rel=1e-9)
    assert sum(getattr(whole, f"{part}_usd") for part in PARTS) == pytest.approx(whole.usd)
    assert whole.hosted_usd / whole.trained_tokens * 1e6 == pytest.approx(bill.hosted_usd_per_mtok)
    assert math.isnan(whole.solve_rate_end)


def test_a_run_at_few_moments_costs_what_the_sum_over_all_its_steps_is():
    exact = sum(solve(at_step(SHRINKING, step)).step_s for step in range(101)) / 3600
    assert whole_run(SHRINKING, points=101).hours == pytest.approx(exact, rel=1e-9)
    # Between 40 moments each figure is a straight line
    assert whole_run(SHRINKING).hours == pytest.approx(exact, rel=2e-3)


def test_one_moment_and_one_step_are_a_course_too():
    assert len(course(SHRINKING, points=1).table) == 1
    assert whole_run(dataclasses.replace(SHRINKING, training_steps=1)).hours == pytest.approx(
        solve(SHRINKING).step_s / 3600
    )
    with pytest.raises(ValueError, match="points=0 must be >= 1"):
        course(SHRINKING, points=0)


def test_the_flip_of_the_bottleneck_is_found_to_the_step():
    flips = course(SHRINKING, points=8).flips
    assert list(flips["becomes"]) == ["trainer compute"]
    step = int(flips["step"].iloc[0])
    before, then = (solve(at_step(SHRINKING, each)).binding_constraint for each in (step - 1, step))
    assert (before, then) == (flips["was"].iloc[0], "trainer compute")


def test_easy_prompts_saturate_and_then_the_filter_makes_the_trainer_wait():
    table = course(LEARNING).table
    assert np.all(np.diff(table["solve_rate"]) > 0)
    late = table[table["solve_rate"] > 0.6]
    assert np.all(np.diff(late["informative_fraction"]) < 0)
    assert np.all(np.diff(late["trainer_wait_ratio"]) > 0)
    assert np.all(np.diff(late["usd_per_informative_mtok"]) > 0)
    assert set(table["trained_informative_fraction"]) == {1.0}


def test_a_run_ends_where_the_gate_lets_nothing_through_any_more():
    learned = dataclasses.replace(LEARNING, training_steps=5000, learning_logit_per_step=0.02)
    way = course(learned)
    assert 300 < way.stalled_at < 2000
    assert way.table["step"].iloc[-1] < way.stalled_at
    assert totals(way).steps == way.table["step"].iloc[-1] + 1
    assert totals(way).solve_rate_end > 0.99
    # Without the gate it goes on, and teaches nothing
    free = course(dataclasses.replace(learned, gate="none"))
    assert free.stalled_at is None
    assert totals(free).steps == 5000


def test_a_pool_that_teaches_nothing_from_the_start_takes_no_step_and_costs_nothing():
    way = course(dataclasses.replace(LEARNING, solve_rate_mean=1.0, solve_rate_concentration=math.inf))
    assert len(way.table) == len(way.pools) == 1
    assert way.stalled_at == 0
    whole = totals(way)
    assert (whole.steps, whole.hours, whole.usd, whole.trained_tokens) == (0, 0, 0, 0)
    assert math.isnan(whole.usd_per_mtok)
    assert whole.usd_per_informative_mtok is None


def test_each_moment_keeps_its_pool():
    way = course(LEARNING)
    assert len(way.pools) == len(way.table)
    means = [float(pool.weights @ expit(pool.logits)) for pool in way.pools]
    assert means == pytest.approx(list(way.table["solve_rate"]))
    assert course(GLM).pools == ()


def test_what_is_trained_and_informative_follows_the_pool_and_not_its_start():
    table = course(dataclasses.replace(LEARNING, gate="none")).table
    assert (table["informative_ratio"] == table["trained_informative_fraction"]).all()
    assert table["informative_ratio"].iloc[-1] < table["informative_ratio"].iloc[0]
    assert np.allclose(table["usd_per_informative_mtok"] * table["informative_ratio"], table["usd_per_mtok"])


def test_drift_and_learning_can_be_switched_off_to_see_the_difference():
    moving = dataclasses.replace(LEARNING, drift_law="linear", drift_steps=200, drift_length_factor=1.8)
    runs = with_and_without(moving).set_index("run")
    assert runs.loc["neither", "usd"] == pytest.approx(
        whole_run(dataclasses.replace(LEARNING, learning_logit_per_step=0.0)).usd
    )
    assert runs.loc["no drift", "usd"] == pytest.approx(whole_run(LEARNING).usd)
    assert runs.loc["as it is", "usd"] > max(runs.loc["no drift", "usd"], runs.loc["no learning", "usd"])


def test_a_target_is_reached_between_the_moments_around_it():
    way = course(LEARNING)
    found = way.reaches(0.6)
    rates = way.table["solve_rate"]
    below, above = way.table[rates < 0.6].iloc[-1], way.table[rates >= 0.6].iloc[0]
    assert below["step"] <= found["steps"] <= above["step"]
    assert below["usd"] <= found["usd"] <= above["usd"]
    assert way.reaches(0.999) is None
    assert way.reaches(0.1) == {"steps": 0.0, "hours": 0.0, "usd": 0.0}


def test_strategies_differ_in_steps_and_in_dollars():
    long = dataclasses.replace(LEARNING, training_steps=400)
    table = compare(
        {
            "refill": long,
            "train on all": dataclasses.replace(long, gate="none"),
            "band": dataclasses.replace(long, sampler="difficulty-band", band_low=0.1, band_high=0.9),
            "too slow": dataclasses.replace(long, learning_logit_per_step=1e-5),
        },
        solve_rate=0.7,
    ).set_index("strategy")
    # The gate gets there in fewer steps, of which each takes longer
    assert table.loc["refill", "steps"] < table.loc["train on all", "steps"]
    assert (
        table.loc["refill", "hours"] / table.loc["refill", "steps"]
        > table.loc["train on all", "hours"] / table.loc["train on all", "steps"]
    )
    assert table.loc["band", "usd"] < table.loc["refill", "usd"]
    assert not table.loc["too slow", "reached"]
    assert math.isnan(table.loc["too slow", "usd"])


def test_the_gate_decides_between_filtered_and_uninformative():
    law = dataclasses.replace(GLM, filtered_fraction=0.0, solve_rate_mean=0.5, solve_rate_concentration=2.0)
    lost = zero_advantage_fraction(law)
    assert lost == pytest.approx(2 / 17)
    assert (filtered_fraction(law), informative_fraction(law)) == (lost, 1.0)
    free = dataclasses.replace(law, gate="none")
    assert (filtered_fraction(free), informative_fraction(free)) == (0.0, pytest.approx(1 - 2 / 17))
    bill = cost(free, solve(free))
    assert bill.usd_per_informative_mtok == pytest.approx(bill.usd_per_mtok * 17 / 15)
    useless = dataclasses.replace(free, solve_rate_mean=1.0, solve_rate_concentration=math.inf)
    assert cost(useless, solve(useless)).usd_per_informative_mtok is None


def test_a_given_share_without_advantage_is_trained_on_without_the_gate():
    free = dataclasses.replace(GLM, gate="none")
    assert (filtered_fraction(free), informative_fraction(free)) == (0.0, pytest.approx(0.45))
    assert solve(free).trainer_wait_ratio < solve(GLM).trainer_wait_ratio


@settings(max_examples=20)
@given(st.floats(0.0, 0.05), st.floats(0.0, 1.0), st.sampled_from(["uniform", "adaptive", "retire-solved"]))
def test_faster_learning_never_ends_lower(speed, transfer, sampler):
    slow = dataclasses.replace(
        LEARNING,
        training_steps=60,
        sampler=sampler,
        retire_above=0.9,
        learning_transfer=transfer,
        learning_logit_per_step=speed,
    )
    fast = dataclasses.replace(slow, learning_logit_per_step=speed + 0.01)
    assert whole_run(fast, points=6).solve_rate_end >= whole_run(slow, points=6).solve_rate_end - 1e-9


def test_stale_groups_teach_less():
    fresh, stale = LEARNING, dataclasses.replace(LEARNING, learning_staleness_half=1.0)
    assert whole_run(stale).solve_rate_end < whole_run(fresh).solve_rate_end


def test_the_moment_of_a_run_is_a_scenario_of_its_own():
    moved = at_step(LEARNING, 100, logit_shift=1.0)
    row = course(LEARNING, points=200).table.set_index("step").loc[100]
    assert solve(moved).trainer_wait_ratio == pytest.approx(row["trainer_wait_ratio"], rel=1e-4)
    assert totals(course(moved)).solve_rate_start == pytest.approx(row["solve_rate"], abs=1e-5)
