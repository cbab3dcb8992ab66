"""The table of controls against the scenario's knobs: what a slider stops at, what a choice offers, what is refused."""

import dataclasses

import pytest

from rlqueue import Scenario
from rlqueue.app import controls
from rlqueue.app.controls import (
    CONCURRENCY,
    MAIN,
    MORE,
    NO_PRICE,
    PRICE,
    SPLIT,
    checked,
    held,
    label,
    meant,
    options,
    stops,
    widget,
)
from rlqueue.app.state import opened, value_of, with_value
from rlqueue.presets import preset_names
from rlqueue.rates import rates

EVERY = (*MAIN, *MORE)
SLIDERS = [control for control in EVERY if control.shape in {"even", "log"}]


def id_of(control):
    return control.knob


@pytest.fixture(params=preset_names())
def state(request):
    return opened(request.param)


@pytest.mark.parametrize("control", EVERY, ids=id_of)
def test_every_control_says_what_it_is_and_in_which_unit(control):
    named = widget(control, opened())
    assert named.description.startswith(control.label)
    assert named.tooltip == control.explained
    assert control.explained
    assert control.measured_in or control.shape == "choice"


@pytest.mark.parametrize("control", EVERY, ids=id_of)
def test_a_control_begins_with_the_scenario_s_value(state, control):
    assert widget(control, state).value == held(control, state.scenario)
    assert meant(control, held(control, state.scenario)) == value_of(state.scenario, control.knob)


@pytest.mark.parametrize("control", SLIDERS, ids=id_of)
def test_a_slider_stops_at_the_preset_s_own_value_and_in_order(state, control):
    found = stops(control, state)
    assert value_of(state.start, control.knob) in found
    assert list(found) == sorted(set(found))
    assert {type(value) for value in found} == {type(value_of(state.scenario, control.knob))}
    texts = [label(control, value, state) for value in found]
    assert len(set(texts)) == len(texts)


def test_the_split_goes_by_whole_replicas_and_leaves_the_trainer_a_gpu(state):
    gpus = state.scenario.trainer_gpus + state.scenario.generator_gpus
    found = stops(SPLIT, state)
    assert found[0] == state.scenario.gpus_per_replica
    assert all(value % state.scenario.gpus_per_replica == 0 for value in found)
    assert 1 <= gpus - found[-1] <= state.scenario.gpus_per_replica
    moved = with_value(state.scenario, "generator_gpus", found[0])
    assert moved.trainer_gpus + moved.generator_gpus == gpus


def test_concurrency_goes_from_one_slot_a_replica_to_beyond_a_full_kv_cache_at_any_split(state):
    found = stops(CONCURRENCY, state)
    largest = with_value(state.scenario, "generator_gpus", stops(SPLIT, state)[-1])
    full = largest.replicas * float(rates(largest)["kv_slots"][0])
    assert found[0] <= largest.replicas
    assert 1.2 * full < found[-1] < max(1.6 * full, 10 * largest.replicas)


def test_the_range_of_concurrency_does_not_move_with_the_main_sliders(state):
    there = (stops(CONCURRENCY, state)[0], stops(CONCURRENCY, state)[-1])
    for control in MAIN:
        for value in (stops(control, state)[0], stops(control, state)[-1]):
            moved = dataclasses.replace(state, scenario=with_value(state.scenario, control.knob, value))
            assert (stops(CONCURRENCY, moved)[0], stops(CONCURRENCY, moved)[-1]) == there


def test_a_value_off_the_table_is_a_stop_as_long_as_it_holds():
    state = opened()
    moved = dataclasses.replace(state, scenario=with_value(state.scenario, "concurrency", 5_474))
    assert 5_474 not in stops(CONCURRENCY, state)
    assert 5_474 in stops(CONCURRENCY, moved)


@pytest.mark.parametrize("control", EVERY, ids=id_of)
def test_a_control_follows_from_preset_to_preset(control):
    holder = widget(control, opened())
    for name in (*reversed(preset_names()), *preset_names()):
        controls.show(control, holder, opened(name))
        assert holder.value == held(control, opened(name).scenario)
        if control in SLIDERS:
            assert holder.options[0][1] == stops(control, opened(name))[0]
            assert holder.options[-1][1] == stops(control, opened(name))[-1]


@pytest.mark.parametrize("control", EVERY, ids=id_of)
@pytest.mark.parametrize("sent", [-1, 10_000, 1.5, True, None, "192", [1], {"a": 1}, float("nan")])
def test_a_place_that_is_none_is_refused(control, sent):
    if control is PRICE and sent == "192":
        return
    assert checked(control, widget(control, opened()))(sent)


@pytest.mark.parametrize("control", EVERY, ids=id_of)
def test_a_place_that_is_one_is_taken(control):
    holder = widget(control, opened())
    sent = ["", "2", " 2.5 "] if control is PRICE else [0, len(holder.options) - 1]
    assert [checked(control, holder)(each) for each in sent] == [""] * len(sent)


@pytest.mark.parametrize("sent", ["-1", "nan", "inf", "1e9", "cheap", "1,5", 3, None])
def test_a_price_is_empty_or_a_number_of_dollars(sent):
    assert "dollars" in checked(PRICE, widget(PRICE, opened()))(sent)


def test_choices_name_each_entry_once_and_prices_show_their_date():
    for control in MORE:
        if control.shape == "choice":
            titles, keys = zip(*options(control.knob), strict=True)
            assert len(set(titles)) == len(titles)
            assert len(set(keys)) == len(keys)
    dated = [title for title, key in options("hosted_price") if key != NO_PRICE]
    assert all(title.endswith("undated") or title[-10:-6].isdigit() for title in dated)


def test_no_hosted_price_is_a_choice_too():
    hosted = next(control for control in MORE if control.knob == "hosted_price")
    assert meant(hosted, NO_PRICE) is None
    assert held(hosted, dataclasses.replace(opened().scenario, hosted_price=None)) == NO_PRICE


def test_an_empty_price_is_the_cost_of_ownership():
    assert meant(PRICE, " ") is None
    assert meant(PRICE, "2.5") == 2.5
    assert held(PRICE, Scenario.from_data("verl-qwen3-235b-c96")) == "3"


def test_the_staleness_budget_names_its_rule_and_the_framework_s_own_word():
    words = {name: controls.effect(controls.STALENESS, opened(name)) for name in preset_names()}
    assert words["prime-rl-qwen3-235b"] == "drop (Prime RL: max_off_policy_steps)"
    assert words["slime-qwen3-235b"] == "admission"
    assert words["verl-qwen3-235b-c96"] == "admission (verl: staleness_threshold)"
    state = opened()
    in_step = dataclasses.replace(state, scenario=dataclasses.replace(state.scenario, schedule="sync"))
    assert controls.effect(controls.STALENESS, in_step).startswith("no effect")


def test_the_split_is_read_as_both_sides():
    assert controls.effect(SPLIT, opened()) == "64 trainer : 192 generator (24 replicas)"
    assert label(SPLIT, 192, opened()) == "64 : 192"
