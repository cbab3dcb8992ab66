"""All turns of a rollout in one: what stays the same, and by how much the answer moves."""

import dataclasses

import pytest

from rlqueue import Scenario
from rlqueue.presets import preset_names
from rlqueue.rates import mean_context_tokens, prefill_s_per_token, prefilled_tokens, rates
from rlqueue.simulation import lumped, simulate, unlumped

TURNS = [name for name in preset_names() if Scenario.from_data(name).tool_calls]


def test_a_scenario_without_turns_is_its_own_equivalent():
    alone = dataclasses.replace(Scenario.from_data(TURNS[0]), tool_calls=0.0)
    assert lumped(alone) is alone
    point = simulate(alone, 0, 2).operating_point
    assert unlumped(point, alone) is point


@pytest.mark.parametrize(
    "moves",
    [
        {"drift_law": "linear", "drift_steps": 10, "drift_tool_calls_factor": 2.0},
        {"drift_law": "series", "drift_series": "0: 5000 / 3, 10: 6000 / 9"},
        {"drift_law": "linear", "drift_steps": 10, "drift_prompt_factor": 2.0},
    ],
)
def test_turns_that_become_more_or_whose_prompt_grows_stay_turns(moves):
    moving = dataclasses.replace(Scenario.from_data(TURNS[0]), **moves)
    assert lumped(moving) is moving
    longer = dataclasses.replace(
        Scenario.from_data(TURNS[0]), drift_law="linear", drift_steps=10, drift_length_factor=1.2
    )
    assert lumped(longer).tool_calls == 0


@pytest.mark.parametrize("name", TURNS)
def test_the_single_turn_equivalent_keeps_context_prefill_training_and_outside_time(name):
    whole = Scenario.from_data(name)
    short = lumped(whole)
    assert short.tool_calls == 0
    assert mean_context_tokens(short) == pytest.approx(mean_context_tokens(whole))
    for field in ("train_gpu_s", "outside_s"):
        assert rates(short)[0][field] == pytest.approx(rates(whole)[0][field])
    prefill = [prefilled_tokens(each) * prefill_s_per_token(each) for each in (short, whole)]
    assert prefill[0] == pytest.approx(prefill[1])


@pytest.mark.parametrize("name", TURNS)
def test_lumping_the_turns_moves_the_answer_by_less_than_two_points(name):
    scenario = Scenario.from_data(name)
    whole = simulate(scenario, 0, 30).operating_point
    short = unlumped(simulate(lumped(scenario), 0, 30).operating_point, scenario)
    assert short.trainer_wait_ratio == pytest.approx(whole.trainer_wait_ratio, abs=0.02)
    assert short.trained_tokens_per_s == pytest.approx(whole.trained_tokens_per_s, rel=0.04)
    assert short.mfu_computing == pytest.approx(whole.mfu_computing, rel=0.02)
    assert short.staleness_versions == pytest.approx(whole.staleness_versions, abs=0.15)


def test_where_responses_double_the_turns_in_one_piece_train_a_few_per_cent_longer():
    scenario = dataclasses.replace(
        Scenario.from_data("slime-qwen3-235b"), drift_law="linear", drift_steps=20, drift_length_factor=2.0
    )
    whole, short = (simulate(each, 0, 30).steps.iloc[-8:].mean() for each in (scenario, lumped(scenario)))
    assert short["train_s"] == pytest.approx(whole["train_s"], rel=0.10)
    assert short["wait_s"] == pytest.approx(whole["wait_s"], rel=0.10)
