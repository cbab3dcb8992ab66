"""Knobs that can only move together, and what a page opens with over a preset."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue.app.controls import held, stops, widget
from rlqueue.app.moving_knobs import (
    CHOOSING,
    DIFFICULTY,
    GROWTH,
    KV_PRECISION,
    LEARNING,
    MORE_OF_CURRICULUM,
    MORE_OF_GROWTH,
    OF_SAMPLERS,
    STEPS,
    applies,
)
from rlqueue.app.state import kind_of, opened, value_of, with_value
from rlqueue.at_step import solve_rates
from rlqueue.presets import preset_names
from rlqueue.provenance import table

SMALL = "slime-qwen3-235b"
EVERY = (
    *DIFFICULTY, *LEARNING, *CHOOSING, *OF_SAMPLERS, *MORE_OF_CURRICULUM, *GROWTH, KV_PRECISION, *MORE_OF_GROWTH, STEPS
)  # fmt: skip
OPENINGS = sorted({row["entity"] for row in table("page_openings")})


def taught(**knobs):
    scenario = opened(SMALL, "which_prompts_teach").scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return scenario


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("name", preset_names())
def test_each_page_opens_with_every_preset_and_what_it_adds_is_said_to_be_assumed(name, opening):
    state = opened(name, opening)
    assert state.untouched
    added = [row["quantity"] for row in table("page_openings") if row["entity"] == opening]
    assert {kind_of(state, knob) for knob in added} == {"assumed"}


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("control", EVERY, ids=lambda control: control.knob)
def test_a_control_of_what_moves_begins_with_the_scenario_s_value_and_stops_at_it(control, opening):
    state = opened(SMALL, opening)
    assert widget(control, state).value == held(control, state.scenario)
    if control.shape in {"even", "log"}:
        assert value_of(state.scenario, control.knob) in stops(control, state)
        assert {type(each) for each in stops(control, state)} == {type(value_of(state.scenario, control.knob))}


@given(mean=st.floats(0.05, 0.95), concentration=st.floats(0.3, 50.0))
def test_another_law_has_the_same_mean_and_spread(mean, concentration):
    scenario = taught(solve_rate_mean=mean, solve_rate_concentration=concentration)
    other = with_value(scenario, "solve_rate_law", "logit-normal")
    back = with_value(other, "solve_rate_law", "beta")
    spreads = [solve_rates(each).powers(2)[0] - mean**2 for each in (scenario, other, back)]
    assert (other.solve_rate_mean, back.solve_rate_mean) == (pytest.approx(mean), pytest.approx(mean))
    assert spreads == pytest.approx([spreads[0]] * 3, rel=0.02)  # knobs are rounded to three digits


def test_prompts_that_are_all_alike_stay_so_under_another_law():
    other = taught(solve_rate_concentration=math.inf, solve_rate_law="logit-normal")
    assert other.solve_rate_logit_sigma == 0.0


def test_a_measured_histogram_takes_the_place_of_a_law_and_leaves_one_of_its_mean():
    scenario = taught(solve_rate_histogram="0: 0.25, 0.5: 0.5, 1: 0.25")
    assert (scenario.solve_rate_law, scenario.solve_rate_mean) == ("histogram", 0.0)
    back = with_value(scenario, "solve_rate_histogram", "")
    assert (back.solve_rate_law, back.solve_rate_mean) == ("beta", pytest.approx(0.5))
    law = solve_rates(back)
    assert law.powers(2)[0] - law.mean**2 == pytest.approx(0.125, rel=0.01)


def test_a_mean_solve_rate_takes_the_filter_s_place():
    scenario = opened("prime-rl-glm-5").scenario
    assert scenario.filtered_fraction > 0
    assert with_value(scenario, "solve_rate_mean", 0.4).filtered_fraction == 0.0


def test_a_factor_makes_a_drift_where_there_is_none_and_constant_ends_it():
    scenario = with_value(opened("verl-qwen3-235b-c96").scenario, "drift_length_factor", 1.5)
    assert (scenario.drift_law, scenario.drift_steps) == ("linear", scenario.training_steps - 1)
    none = with_value(scenario, "drift_law", "constant")
    assert (none.drift_length_factor, none.drift_steps) == (1.0, 0)


def test_a_law_in_the_place_of_a_series_has_its_ends():
    series = with_value(opened(SMALL).scenario, "drift_series", "0: 8000 / 10, 5: 9000 / 15, 20: 12000 / 40")
    law = with_value(series, "drift_law", "exponential")
    assert law.drift_steps == 20
    assert ends(law)[0] == pytest.approx((8000, 10))
    assert ends(law)[1] == pytest.approx((12000, 40), rel=0.01)  # factors are rounded to three digits


def ends(scenario):
    from rlqueue.at_step import drift_path

    path = drift_path(scenario, 10_000)
    return [(float(path[i]["mean_response_tokens"]), float(path[i]["tool_calls"])) for i in (0, -1)]


@pytest.mark.parametrize(
    ("knobs", "there"),
    [
        ({}, {"solve_rate_concentration"}),
        ({"solve_rate_law": "logit-normal"}, {"solve_rate_logit_sigma"}),
        ({"sampler": "difficulty-band"}, {"solve_rate_concentration", "band_low", "band_high"}),
        ({"sampler": "retire-solved"}, {"solve_rate_concentration", "retire_above"}),
    ],
)
def test_a_control_without_a_say_is_left_out(knobs, there):
    choosy = {"solve_rate_concentration", "solve_rate_logit_sigma", "band_low", "band_high", "retire_above"}
    assert {each.knob for each in EVERY if each.knob in choosy and applies(each, taught(**knobs))} == there
