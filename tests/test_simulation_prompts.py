"""Prompts that come again: what a pool changes and what not, who is next by what was observed, whose books are kept."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from simulation_schools import Z, schooled, some_schooled
from simulation_toys import run, toy
from test_simulation_laws import watched

from rlqueue import Scenario, simulate
from rlqueue.at_step import solve_rates
from rlqueue.choices import SCHEDULES
from rlqueue.presets import preset_names
from rlqueue.simulation import draws, state


# Nothing moves: the same run
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
@pytest.mark.parametrize("name", preset_names())
def test_without_learning_or_drift_a_pool_that_is_not_used_up_makes_the_same_run_event_for_event(name, schedule):
    preset = Scenario.from_data(name)
    plain = dataclasses.replace(
        preset, schedule=schedule, filtered_fraction=0.0, solve_rate_mean=0.4, solve_rate_concentration=2.0,
        concurrency=min(preset.concurrency, 64), prompts_per_step=8, group_size=4, updates_per_step=1,
        tool_calls=min(preset.tool_calls, 2.0),
    )  # fmt: skip
    pooled = dataclasses.replace(plain, pool_prompts=10_000)
    still = dataclasses.replace(pooled, drift_law="linear", drift_steps=3)
    first, *others = (simulate(each, seed=5, steps=5, rollouts=True) for each in (plain, pooled, still))
    for other in others:
        assert first.events == other.events
        for table in ("groups", "rollouts", "steps", "timeline", "series", "tokens"):
            ours, theirs = (
                getattr(each, table).drop(columns="mean_solve_rate", errors="ignore") for each in (first, other)
            )
            assert ours.equals(theirs), table
        assert first.operating_point == other.operating_point


@pytest.mark.parametrize("sampler", ["difficulty-band", "retire-solved"])
def test_a_sampler_that_wants_all_prompts_is_the_uniform_one(sampler):
    uniform, other = (simulate(schooled(sampler=each), seed=1, steps=30) for each in ("uniform", sampler))
    assert uniform.groups.equals(other.groups)


# Books
def observed(run):
    """Solved and tried of each prompt, from the groups in the order in which they finished."""
    n, s = run.scenario.group_size, run.scenario
    solved, tried = np.zeros(s.pool_prompts), np.zeros(s.pool_prompts)
    groups = run.groups[run.groups["finish_s"].notna() & (run.groups["fate"] != "surplus")]
    for _, group in groups.sort_values("finish_s", kind="stable").iterrows():
        solved[group["prompt"]] = solved[group["prompt"]] / 2 + group["solved_rollouts"]
        tried[group["prompt"]] = tried[group["prompt"]] / 2 + n
    return solved, tried


@settings(max_examples=60, deadline=None)
@given(scenario=some_schooled, seed=st.integers(0, 2**40))
def test_every_group_is_of_one_prompt_and_every_prompt_knows_its_groups(scenario, seed):
    result = simulate(scenario, seed, 6, max_events=300_000)
    groups, prompts, pool = result.groups, result.prompts, scenario.pool_prompts
    for column, chosen in (
        ("groups", groups),
        ("in_flight_groups", groups[groups["fate"] == "in flight"]),
        ("trained_groups", groups[groups["fate"] == "trained"]),
    ):
        assert list(prompts[column]) == list(np.bincount(chosen["prompt"], minlength=pool)), column
    solved, tried = observed(result)
    at_once = groups["finish_s"].dropna().duplicated().any()  # then the table does not say which came first
    if not at_once:
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(prompts["observed_solve_rate"], solved / tried)
    assert (prompts["groups"] == 0).sum() == 0 or result.steps["repeated_groups"].sum() == 0
    assert result.solve_rate_shares.sum(axis=1) == pytest.approx(np.ones(len(result.steps) + 1))
    assert (groups["solved_rollouts"] <= groups["ended_rollouts"]).all()


@settings(max_examples=40, deadline=None)
@given(scenario=some_schooled, seed=st.integers(0, 2**40))
def test_rollouts_are_conserved_and_the_run_ends_when_prompts_come_again(scenario, seed):
    assert watched(scenario, seed, steps=4, every=37) in (state.DONE, state.FRUITLESS)


@settings(max_examples=40, deadline=None)
@given(scenario=some_schooled, seed=st.integers(0, 2**40))
def test_no_prompt_is_in_flight_twice_unless_all_are(scenario, seed):
    result = simulate(scenario, seed, 6, max_events=300_000)
    if result.steps["repeated_groups"].sum() or int(result.world.clock["repeated"]):
        return
    groups = result.groups[~result.groups["fate"].isin(["stale", "pruned"])]  # their end is in no table
    for _, mine in groups.groupby("prompt"):
        ends = mine["finish_s"].fillna(math.inf).to_numpy()
        assert (mine["dispatch_s"].to_numpy()[1:] >= ends[:-1]).all()


@settings(max_examples=20, deadline=None)
@given(scenario=some_schooled, seed=st.integers(0, 1000))
def test_no_staleness_is_still_the_synchronous_run_event_for_event(scenario, seed):
    runs = [
        simulate(dataclasses.replace(scenario, max_staleness=0.0, schedule=each), seed, 4, max_events=300_000)
        for each in ("sync", "async-in-flight", "partial-rollout", "async-drain")
    ]
    for other in runs[1:]:
        assert runs[0].groups.equals(other.groups)
        assert runs[0].steps.equals(other.steps)


@settings(max_examples=20, deadline=None)
@given(scenario=some_schooled, seed=st.integers(0, 1000))
def test_one_seed_gives_the_same_prompts_and_solve_rates_again(scenario, seed):
    first, again = (simulate(scenario, seed, 4, max_events=300_000) for _ in range(2))
    for name in ("prompts", "choice", "spare", "bins", "groups", "steps"):
        assert first.world.arrays[name].tobytes() == again.world.arrays[name].tobytes()


@settings(max_examples=20, deadline=None)
@given(scenario=some_schooled, seed=st.integers(0, 1000))
def test_a_drop_rule_is_a_hard_bound_while_rates_and_lengths_move(scenario, seed):
    result = simulate(dataclasses.replace(scenario, staleness_family="drop"), seed, 5, max_events=300_000)
    if scenario.schedule != "one-step-off" and len(result.steps):
        assert result.steps["max_staleness_versions"].max() <= scenario.max_staleness


# Which prompt comes next
def test_uniformly_each_epoch_brings_every_prompt_once_the_first_by_number_and_later_ones_in_another_order():
    result = run(toy(solve_rate_mean=0.5, gate="none", pool_prompts=7), 28)
    order = result.groups["prompt"].to_numpy().reshape(4, 7)
    assert order[0].tolist() == list(range(7))
    for later in order[1:]:
        assert sorted(later) == list(range(7))
    assert len({tuple(each) for each in order}) == 4


def test_solved_prompts_retire_and_when_none_is_left_the_run_goes_on_with_all_of_them():
    knobs = {"sampler": "retire-solved", "retire_above": 0.9, "gate": "none", "pool_prompts": 4}
    result = run(toy(solve_rate_law="histogram", solve_rate_histogram="0.25: 0.5, 1: 0.5", **knobs), 40)
    surely, order = result.prompts["first_solve_rate"] == 1, result.groups["prompt"]
    assert result.prompts["retired"].tolist() == surely.tolist()
    assert 0 < surely.sum() < 4
    assert not order.iloc[4:].isin(np.flatnonzero(surely)).any()
    solved = run(toy(solve_rate_mean=1.0, **knobs), 40)
    assert solved.prompts["groups"].tolist() == [10] * 4
    assert solved.steps["unqualified_groups"].sum() == 36


def test_a_difficulty_band_goes_on_with_what_it_has_seen_inside_it():
    histogram = "0: 0.4, 0.5: 0.2, 1: 0.4"
    result = run(
        toy(solve_rate_law="histogram", solve_rate_histogram=histogram, sampler="difficulty-band", band_low=0.01,
            band_high=0.99, gate="none", pool_prompts=50, group_size=8), 200,
    )  # fmt: skip
    inside = result.prompts["first_solve_rate"] == 0.5
    counts = result.prompts["groups"]
    kept = result.prompts["observed_solve_rate"].between(0.01, 0.99)
    assert kept.sum() > 10
    assert inside[kept].all()
    assert (counts[~inside] == 1).all()
    assert counts[kept].max() - counts[kept].min() <= 1  # in turn


def test_with_one_slot_all_prompts_wait_for_their_turn_and_with_more_than_the_pool_holds_some_come_twice():
    assert run(toy(pool_prompts=1, solve_rate_mean=0.5), 5).steps["repeated_groups"].sum() == 0
    crowded = toy(pool_prompts=2, solve_rate_mean=0.5, prompts_per_step=2, concurrency=16, oversampling_factor=4.0)
    assert run(crowded, 5).steps["repeated_groups"].sum() > 0


def test_the_adaptive_sampler_draws_prompts_in_proportion_to_their_weights():
    histogram = "0: 0.5, 0.5: 0.5"
    result = run(
        toy(solve_rate_law="histogram", solve_rate_histogram=histogram, sampler="adaptive", gate="none", pool_prompts=30,
            group_size=8), 4000,
    )  # fmt: skip
    # Once all were seen often, tried is 16, the limit of n + n/2 + ...
    hard = result.prompts["first_solve_rate"] == 0
    counts = result.prompts["groups"]
    never = (1 / 18) * (17 / 18)
    solved = result.prompts.loc[~hard, "observed_solve_rate"] * 16
    often = float((((solved + 1) / 18) * (1 - (solved + 1) / 18)).mean())
    assert counts[~hard].mean() / counts[hard].mean() == pytest.approx(often / never, rel=0.15)


# Draws
def test_numbers_of_many_prompts_at_once_are_those_of_one_at_a_time():
    key = draws.keys(3)[draws.SOLVE_RATE]
    assert draws.uniforms(key, 100).tolist() == [draws.uniform(key, i, 0, 0) for i in range(100)]


@pytest.mark.parametrize("shift", [0.0, -2.0, 1.5])
@pytest.mark.parametrize(
    "knobs",
    [
        {"solve_rate_mean": 0.3, "solve_rate_concentration": 1.5},
        {"solve_rate_mean": 0.3},
        {"solve_rate_mean": 0.6, "solve_rate_law": "logit-normal", "solve_rate_logit_sigma": 2.0},
        {"solve_rate_law": "histogram", "solve_rate_histogram": "0: 0.1, 0.25: 0.6, 0.9: 0.2, 1: 0.1"},
    ],
    ids=["beta", "alike", "logit-normal", "histogram"],
)
def test_endless_pools_solve_as_the_law_of_the_curriculum_says(knobs, shift):
    scenario = toy(group_size=4, prompts_per_step=100, gate="none", solve_rate_logit_shift=shift, **knobs)
    solved = simulate(scenario, seed=4, steps=60).groups["solved_rollouts"].iloc[:6000]
    law = solve_rates(scenario)
    for count, expected in ((4, law.powers(4)[0]), (0, law.powers(4)[1])):
        error = math.sqrt(expected * (1 - expected) / 6000)
        assert abs((solved == count).mean() - expected) < Z * error + 1e-12
    assert abs(solved.mean() / 4 - law.mean) < Z * solved.std() / 4 / math.sqrt(6000) + 1e-12


def test_the_pool_has_the_rates_of_its_law():
    rates = simulate(schooled(pool_prompts=5000, solve_rate_logit_shift=0.5), steps=1).prompts["first_solve_rate"]
    law = solve_rates(schooled(solve_rate_logit_shift=0.5))
    chances = draws.uniforms(draws.keys(0)[draws.SOLVE_RATE], 5000)
    np.testing.assert_allclose(rates, law.quantile(chances), rtol=1e-9)
    assert expit(logit(rates)).mean() == pytest.approx(rates.mean())
