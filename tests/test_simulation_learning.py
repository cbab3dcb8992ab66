"""The closed loop: solve rates rise by what was trained on, lengths drift by the step, and the queue follows both."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import logit
from simulation_schools import Z, schooled
from simulation_toys import run, toy
from test_simulation_laws import small

from rlqueue import Scenario, cost, simulate
from rlqueue.at_step import solve_rates
from rlqueue.choices import GATES
from rlqueue.curriculum import informative_fraction
from rlqueue.learning import freshness, own_rise, shared_rise
from rlqueue.simulation import draws


@pytest.mark.parametrize("transfer", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("half", [1.0, math.inf])
def test_solve_rates_rise_by_the_laws_of_the_curriculum(transfer, half):
    scenario = schooled(
        schedule="async-in-flight", learning_logit_per_step=0.3, learning_transfer=transfer,
        learning_staleness_half=half, gate="none", surplus_fraction=0.0,
    )  # fmt: skip
    result = simulate(scenario, seed=2, steps=20)
    trained = result.groups[result.groups["fate"] == "trained"]
    common, own = 0.0, np.zeros(scenario.pool_prompts)
    for _, batch in trained.groupby("step"):
        fresh = freshness(batch["staleness_versions"], half)
        common += shared_rise(0.3, transfer, batch["informative"], fresh)
        share = batch["solved_rollouts"] / scenario.group_size
        np.add.at(own, batch["prompt"], own_rise(0.3, transfer, share.to_numpy(), fresh))
    first, last = (result.prompts[f"{which}_solve_rate"] for which in ("first", "last"))
    np.testing.assert_allclose(logit(last) - logit(first), common + own, rtol=1e-9)
    assert result.steps["mean_solve_rate"].iloc[-1] == pytest.approx(last.mean())
    assert (result.steps["mean_solve_rate"].diff()[1:] >= 0).all()


def test_a_rollout_solves_with_the_policy_that_sampled_its_first_token():
    scenario = toy(
        schedule="async-in-flight", steps_per_publication=2, concurrency=3, response_sigma_within_group=0.5, gate="none",
        solve_rate_mean=0.3, pool_prompts=1, learning_logit_per_step=0.2,
    )  # fmt: skip
    result = run(scenario, 40)
    rates = {0: 0.3} | result.steps.groupby("version")["mean_solve_rate"].first().drop(0).to_dict()
    cause, solved = draws.keys(0)[draws.SOLVE], np.zeros(len(result.groups), int)
    for _, rollout in result.rollouts.iterrows():
        u = draws.uniform(cause, int(rollout["group"]), int(rollout["rollout"]), 0)
        solved[int(rollout["group"])] += u < rates[rollout["version"]]
    assert result.groups["solved_rollouts"].tolist() == solved.tolist()
    assert result.groups["solved_rollouts"].iloc[-10:].mean() > result.groups["solved_rollouts"].iloc[:10].mean()
    versions = result.rollouts.groupby("group")["version"]
    assert (versions.max() > versions.min()).any()  # groups of two policies are among them


def test_the_more_a_stale_group_still_teaches_the_faster_the_pool_is_learned():
    runs = [
        simulate(schooled(schedule="async-in-flight", learning_logit_per_step=0.2, learning_staleness_half=half), 1, 30)
        for half in (0.5, 2.0, 8.0, math.inf)
    ]
    last = [each.steps["mean_solve_rate"].iloc[-1] for each in runs]
    assert last == sorted(last)
    assert last[0] < last[-1]


def test_uniform_solve_rates_make_one_minus_two_over_n_plus_one_of_the_groups_informative():
    for n in (2, 8):
        scenario = toy(
            solve_rate_mean=0.5, solve_rate_concentration=2.0, group_size=n, prompts_per_step=50, gate="none"
        )
        informative = simulate(scenario, steps=80).groups["informative"].iloc[:4000]
        expected = 1 - 2 / (n + 1)
        assert informative_fraction(solve_rates(scenario), n) == pytest.approx(expected)
        assert abs(informative.mean() - expected) < Z * math.sqrt(expected * (1 - expected) / 4000)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_prompts_that_are_never_or_always_solved_teach_nothing(mean):
    knobs = {"solve_rate_law": "histogram", "solve_rate_histogram": f"{mean:g}: 1", "learning_logit_per_step": 1.0}
    result = run(toy(pool_prompts=3, gate="none", **knobs), 10)
    assert result.steps["informative_fraction"].tolist() == [0.0] * 10
    assert result.steps["informative_tokens"].tolist() == [0.0] * 10
    assert result.steps["all_solved_fraction"].tolist() == [mean] * 10
    assert result.prompts["last_solve_rate"].tolist() == [mean] * 3
    gated = run(toy(pool_prompts=3, **knobs), 10)
    assert gated.stalled.startswith("hardly a group teaches anything any more")


def test_a_pool_that_is_learned_ends_the_run_where_hardly_a_group_is_informative():
    result = simulate(schooled(learning_logit_per_step=1.0), seed=1, steps=2000)
    assert result.stalled.startswith("hardly a group teaches anything any more")
    assert 10 < len(result.steps) < 2000
    assert result.steps["mean_solve_rate"].iloc[-1] > 0.95
    assert result.operating_point.binding_constraint == "filter"


def test_without_the_gate_the_trainer_also_trains_on_what_teaches_nothing():
    result = simulate(schooled(gate="none", surplus_fraction=0.0, staleness_family="admission"), seed=1, steps=60)
    assert set(result.groups["fate"]) <= {"trained", "queued", "in flight"}
    trained = result.groups[(result.groups["step"] >= result.warm_up_steps)]
    share = trained.loc[trained["informative"], "tokens"].sum() / trained["tokens"].sum()
    assert result.operating_point.informative_ratio == pytest.approx(share)
    assert 0.3 < share < 0.9


def test_the_coin_of_a_given_share_is_informative_or_not_as_well():
    result = simulate(small(filtered_fraction=0.3, gate="none", surplus_fraction=0.0), seed=1, steps=200)
    expected = 0.7
    count = int(result.steps["informative_fraction"].notna().sum()) * 4
    assert abs(result.groups["informative"][result.groups["step"] >= 0].mean() - expected) < Z * math.sqrt(0.21 / count)
    assert result.steps["all_solved_fraction"].isna().all()
    assert result.steps["mean_solve_rate"].isna().all()


@pytest.fixture(scope="module")
def saturating():
    """One run whose prompts get too easy, behind the gate and without one: the published run's shape, bound by generation."""
    scenario = dataclasses.replace(
        Scenario.from_data("prime-rl-qwen3-235b"), tool_calls=0.0, concurrency=512, filtered_fraction=0.0,
        surplus_fraction=0.0, solve_rate_mean=0.5, solve_rate_concentration=3.0, learning_logit_per_step=0.03,
        schedule="async-in-flight",
    )  # fmt: skip
    return {gate: simulate(dataclasses.replace(scenario, gate=gate), seed=1, steps=150) for gate in GATES}


def test_as_prompts_get_too_easy_the_gate_makes_the_trainer_wait(saturating):
    steps = saturating["zero-advantage"].steps
    early, late = steps.iloc[10:40], steps.iloc[-30:]
    assert late["informative_fraction"].mean() < 0.6 * early["informative_fraction"].mean()
    assert late["all_solved_fraction"].mean() > 2 * early["all_solved_fraction"].mean()
    wait = [(each["wait_s"].sum() / (each["end_s"] - each["start_s"]).sum()) for each in (early, late)]
    assert wait[1] > wait[0] + 0.1
    groups = [len(each) / each["informative_fraction"].mean() for each in (early, late)]
    sampled = [each["sampled_tokens"].sum() for each in (early, late)]
    assert sampled[1] / sampled[0] == pytest.approx(
        groups[1] / groups[0], rel=0.1
    )  # what one batch asks of the generator


def test_as_prompts_get_too_easy_a_run_without_a_gate_goes_on_as_fast_and_pays_for_it_in_informative_tokens(saturating):
    steps = saturating["none"].steps
    early, late = steps.iloc[10:40], steps.iloc[-30:]
    took = [(each["end_s"] - each["start_s"]).mean() for each in (early, late)]
    assert took[1] == pytest.approx(took[0], rel=0.1)
    share = [each["informative_tokens"].sum() / each["trained_tokens"].sum() for each in (early, late)]
    assert share[1] < 0.6 * share[0]
    point = saturating["none"].operating_point
    bill = cost(saturating["none"].settled, point)
    assert bill.usd_per_informative_mtok == pytest.approx(bill.usd_per_mtok / point.informative_ratio)
    assert saturating["zero-advantage"].steps["mean_solve_rate"].iloc[-1] > steps["mean_solve_rate"].iloc[-1]


# Drift
def test_lengths_tool_calls_and_prompts_are_those_of_the_step_at_which_a_group_is_admitted():
    scenario = toy(
        drift_law="linear", drift_steps=4, drift_length_factor=3.0, drift_tool_calls_factor=3.0, drift_prompt_factor=2.0,
        tool_calls=1.0, mean_prompt_tokens=40.0,
    )  # fmt: skip
    result = run(scenario, 6)
    rollouts = result.rollouts.set_index("group")
    assert rollouts["response_tokens"].groupby("group").first().tolist() == pytest.approx(
        [100, 150, 200, 250, 300, 300]
    )
    assert result.groups["prompt_tokens"].tolist() == pytest.approx([80, 100, 120, 140, 160, 160])
    assert result.groups["tokens"].tolist() == pytest.approx([280, 400, 520, 640, 760, 760])
    assert result.steps["train_s"].tolist() == pytest.approx([0.28, 0.4, 0.52, 0.64, 0.76, 0.76])
    assert rollouts["turns"].loc[5].tolist() == [4, 4]
    assert result.steps["mean_response_tokens"].tolist() == pytest.approx([100, 150, 200, 250, 300, 300])


def test_a_published_run_that_grows_is_cut_more_often_and_its_figures_are_those_of_the_end():
    preset = dataclasses.replace(Scenario.from_data("prime-rl-qwen3-235b"), tool_calls=0.0, concurrency=512)
    still = simulate(preset, steps=60)
    grown = simulate(
        dataclasses.replace(preset, drift_law="exponential", drift_steps=50, drift_length_factor=2.0), steps=60
    )
    cut = grown.steps["truncated_fraction"]
    assert cut[48:].mean() > 1.5 * cut[:6].mean()
    assert grown.warm_up_steps == 48
    assert grown.settled.mean_response_tokens > 1.3 * preset.mean_response_tokens
    assert grown.operating_point.train_s > 1.2 * still.operating_point.train_s
    assert grown.steps["train_s"][0] == pytest.approx(still.steps["train_s"][0])
