"""How lengths move: laws that begin and end where they are told, means after the cut that are met, published drifts."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue import Scenario, drift
from rlqueue.at_step import at_step, drift_path, without_drift
from rlqueue.drift_presets import drift_names, growth_knobs, measured_drift, nearest_law, series_knobs
from rlqueue.lengths import clipped_mean, clipped_means, log_medians, response_lengths, truncated_fractions
from rlqueue.rates import lengths_of

PRIME = Scenario.from_data("prime-rl-qwen3-235b")
MOVING_LAWS = ("linear", "exponential", "logistic")


def moving(**knobs):
    return dataclasses.replace(PRIME, **({"drift_law": "linear", "drift_steps": 100} | knobs))


@given(st.sampled_from(MOVING_LAWS), st.floats(1e-3, 1e3))
def test_a_law_begins_at_one_and_ends_at_its_factor_exactly(law, end):
    reached = drift.factor(law, end, np.array([0.0, 1.0, 1.5]))
    assert reached[0] == 1.0
    assert reached[1] == reached[2] == end


@given(st.sampled_from(MOVING_LAWS), st.floats(1e-3, 1e3))
def test_a_law_moves_one_way_only(law, end):
    steps = np.diff(drift.factor(law, end, np.linspace(0, 1, 101)))
    assert np.all(steps * np.sign(end - 1) >= -1e-12 * max(1.0, end))


def test_half_way_each_law_is_where_its_name_says():
    half = np.array([0.5])
    assert drift.factor("linear", 9.0, half) == pytest.approx(5.0)
    assert drift.factor("exponential", 9.0, half) == pytest.approx(3.0)
    assert drift.factor("logistic", 9.0, half) == pytest.approx(5.0)
    assert drift.factor("logistic", 9.0, np.array([0.1])) < 1.2


def test_without_drift_the_path_is_one_row_and_the_scenario_s_own():
    path, lengths = drift_path(PRIME, 1000), lengths_of(PRIME)
    assert len(path) == 1
    row = path[0]
    assert row["mean_response_tokens"] == pytest.approx(lengths.mean_tokens, rel=1e-12)
    assert row["log_median"] == pytest.approx(lengths.log_median, rel=1e-12)
    assert row["truncated_fraction"] == pytest.approx(lengths.truncated_fraction, rel=1e-9)
    assert (row["sigma_between"], row["sigma_within"]) == (0.5, 0.25)
    assert (row["tool_calls"], row["prompt_tokens"]) == (PRIME.tool_calls, PRIME.mean_prompt_tokens)
    assert at_step(PRIME, 17) == PRIME


def test_the_path_ends_where_nothing_moves_any_more():
    assert len(drift_path(moving(), 1000)) == 101
    assert len(drift_path(moving(), 50)) == 50
    assert len(drift_path(moving(drift_steps=0, drift_law="series", drift_series="0: 9000, 20: 9500"), 1000)) == 21


@given(st.floats(0.1, 8.0), st.floats(0.0, 5.0), st.floats(0.5, 1.4), st.sampled_from(MOVING_LAWS))
def test_at_the_end_every_length_has_its_factor(length, tools, sigma, law):
    scenario = moving(
        drift_law=law,
        drift_length_factor=length,
        drift_tool_calls_factor=tools,
        drift_prompt_factor=1.5,
        drift_sigma_factor=sigma,
    )
    start, end = drift_path(scenario, 101)[[0, -1]]
    assert end["log_median"] - start["log_median"] == pytest.approx(np.log(length), abs=1e-9)
    assert end["tool_calls"] == PRIME.tool_calls * tools
    assert end["prompt_tokens"] == PRIME.mean_prompt_tokens * 1.5
    assert end["sigma_between"] == pytest.approx(0.5 * sigma, rel=1e-12)
    then = at_step(scenario, 100)
    assert then.mean_response_tokens == end["mean_response_tokens"] < PRIME.max_response_tokens
    assert lengths_of(then).log_median == pytest.approx(end["log_median"], abs=1e-6)


def test_growth_before_the_cut_fills_the_cut_and_not_the_mean():
    path = drift_path(moving(drift_length_factor=4.0), 101)
    assert np.all(np.diff(path["truncated_fraction"]) > 0)
    assert path["mean_response_tokens"][-1] < 2.1 * path["mean_response_tokens"][0]
    assert path["truncated_fraction"][-1] > 0.75


@given(st.lists(st.floats(1.0, 26_900.0), min_size=1, max_size=50), st.floats(0.0, 2.0))
def test_the_median_solved_for_gives_the_mean_after_the_cut(means, sigma):
    found = log_medians(np.array(means), sigma, 27_000.0)
    assert clipped_means(found, sigma, 27_000.0) == pytest.approx(means, rel=1e-9)
    one = response_lengths(means[0], sigma, 0.0, 27_000.0, 8)
    assert clipped_mean(one.log_median, sigma, 27_000.0) == pytest.approx(means[0], rel=1e-9)
    assert truncated_fractions(found, sigma, 27_000.0)[0] == pytest.approx(one.truncated_fraction, abs=1e-9)


def test_a_mean_at_the_cut_has_no_median():
    with pytest.raises(ValueError, match="below the cut at 100"):
        log_medians(np.array([50.0, 100.0]), 0.5, 100.0)


def test_a_measured_series_is_met_at_its_points_and_straight_between():
    scenario = moving(drift_law="series", drift_steps=0, drift_series="0: 8000 / 10 / 5000, 10: 12000 / 20 / 6000")
    path = drift_path(scenario, 100)
    assert path["mean_response_tokens"] == pytest.approx(np.linspace(8000, 12000, 11))
    assert path["tool_calls"][5] == 15
    assert path["prompt_tokens"][-1] == 6000
    assert without_drift(scenario).mean_response_tokens == 8000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be 'step: response tokens"),
        ("5", "must be 'step: response tokens"),
        ("0: 5, x: 6", "'x: 6' must be"),
        ("0: 0", "response tokens > 0"),
        ("0: 5, 0: 6", "must go up in steps: 0 comes after 0"),
        ("0: 5 / 1, 1: 6", "must give as many numbers"),
        ("0: 5 / 1 / 2 / 3", "must be 'step: response tokens"),
        ("-1: 5", "the step >= 0"),
    ],
)
def test_text_that_is_no_series_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        drift.series(text)


@pytest.mark.parametrize("name", drift_names())
def test_a_published_drift_can_be_laid_on_any_preset(name):
    run, knobs = measured_drift(name), growth_knobs(name)
    for preset in ("prime-rl-qwen3-235b", "prime-rl-glm-5", "verl-qwen3-235b-c96", "slime-qwen3-235b"):
        start = Scenario.from_data(preset)
        end = drift_path(dataclasses.replace(start, **knobs), 10**6)[-1]
        grown = np.exp(end["log_median"] - lengths_of(start).log_median)
        assert grown == pytest.approx(run.response_tokens[-1] / run.response_tokens[0], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "first", "last", "steps"),
    [
        ("deepseek-r1-zero", 500, 10_000, 8400),
        ("dapo-32b", 700, 4600, 5300),
        ("minimax-m1", 12_500, 22_000, 4300),
        ("prime-rl-qwen3-235b", 10_203, 13_262, 9),
        ("qwen3.5-35b-dapo", 5500, 2500, 100),
    ],
)
def test_published_drifts_begin_and_end_as_published(name, first, last, steps):
    run = measured_drift(name)
    assert (run.response_tokens[0], run.response_tokens[-1], run.steps[-1]) == (first, last, steps)


def test_glm_sequences_grow_from_7_to_28_thousand_tokens_and_15_to_52_tool_calls():
    run = measured_drift("prime-rl-glm-5")
    sequence = run.response_tokens + run.prompt_tokens
    assert (sequence[0], sequence[-1]) == (7300, 28000)
    assert (run.tool_calls[0], run.tool_calls[-1], run.steps[-1]) == (15, 52, 24)


def test_a_preset_can_have_its_own_run_s_lengths_step_by_step():
    path = drift_path(dataclasses.replace(PRIME, **series_knobs("prime-rl-qwen3-235b", PRIME.tool_calls)), 10)
    run = measured_drift("prime-rl-qwen3-235b")
    assert path["mean_response_tokens"] == pytest.approx(run.response_tokens)
    assert path["prompt_tokens"] == pytest.approx(run.prompt_tokens)
    assert np.all(path["tool_calls"] == PRIME.tool_calls)


def test_a_series_that_ends_between_two_steps_is_gone_through_to_its_end():
    scenario = dataclasses.replace(PRIME, drift_law="series", drift_series="0: 5000, 2.5: 9000")
    path = drift_path(scenario, 100)
    assert path["mean_response_tokens"].tolist() == pytest.approx([5000, 6600, 8200, 9000])
    assert drift_path(scenario, 3)["mean_response_tokens"][-1] == pytest.approx(8200)


@pytest.mark.parametrize("law", MOVING_LAWS)
def test_the_nearest_law_of_points_on_a_law_is_that_law(law):
    steps = np.linspace(0, 50, 11)
    assert nearest_law(steps, 100 * drift.factor(law, 12.0, steps / 50)) == law
