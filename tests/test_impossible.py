"""Curricula and drifts that cannot be are refused by name, value and limit; those that can be round-trip."""

import dataclasses

import pytest

from rlqueue import Scenario, solve
from rlqueue.drift_presets import growth_knobs

PRIME = Scenario.from_data("prime-rl-qwen3-235b")
GLM = Scenario.from_data("prime-rl-glm-5")
RATES = {"solve_rate_mean": 0.4}
LINEAR = {"drift_law": "linear", "drift_steps": 10}


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"solve_rate_law": "gamma"}, r"solve_rate_law='gamma' is not known"),
        ({"gate": "all"}, r"gate='all' is not known"),
        ({"training_steps": 0}, r"training_steps=0 must be >= 1"),
        ({"solve_rate_law": "histogram"}, r"solve_rate_histogram='' must be 'rate: share, ...'"),
        (
            {"solve_rate_law": "histogram", "solve_rate_histogram": "0.5: 1", **RATES},
            r"solve_rate_mean=0.4 must be 0 with",
        ),
        ({"solve_rate_law": "histogram", "solve_rate_histogram": "0.5: 0.7"}, r"the shares sum to 0.7"),
        ({"solve_rate_histogram": "0.5: 1"}, r"solve_rate_histogram='0.5: 1' must be '' with solve_rate_law='beta'"),
        (
            {"solve_rate_logit_sigma": 2.0, **RATES},
            r"solve_rate_logit_sigma=2.0 must be 0.0 with solve_rate_law='beta'",
        ),
        (
            {"solve_rate_law": "logit-normal", "solve_rate_concentration": 2.0, **RATES},
            r"solve_rate_concentration=2.0 must be inf",
        ),
        ({"filtered_fraction": 0.2, **RATES}, r"filtered_fraction=0.2 must be 0 with solve_rate_mean=0.4"),
        (
            {"filtered_fraction": 0.2, "solve_rate_law": "histogram", "solve_rate_histogram": "0.5: 1"},
            r"filtered_fraction=0.2 must be 0 with",
        ),
        ({"learning_logit_per_step": 0.1}, r"learning_logit_per_step=0.1 must be 0 without solve rates"),
        ({"solve_rate_logit_shift": 1.0}, r"solve_rate_logit_shift=1 must be 0 without solve rates"),
        ({"learning_staleness_half": 0.0, **RATES}, r"learning_staleness_half=0 must be > 0"),
        ({"learning_transfer": 1.1, **RATES}, r"learning_transfer=1.1 must be <= 1"),
        ({"sampler": "adaptive", "pool_prompts": 1000}, r"sampler='adaptive' must be 'uniform' without solve rates"),
        ({"sampler": "adaptive", **RATES}, r"pool_prompts=0 must be > 0 with sampler='adaptive'"),
        ({"pool_prompts": 31}, r"pool_prompts=31 must be >= prompts_per_step=32"),
        ({"band_low": 0.6, "band_high": 0.6}, r"band_low=0.6 must be < band_high=0.6"),
        ({"drift_length_factor": 2.0}, r"drift_length_factor=2 must be 1 with drift_law='constant'"),
        ({"drift_steps": 5}, r"drift_steps=5 must be 0 with drift_law='constant'"),
        ({"drift_law": "linear"}, r"drift_steps=0 must be >= 1 with drift_law='linear'"),
        ({"drift_law": "series"}, r"drift_series='' and drift_law='series' must come together"),
        ({"drift_series": "0: 5"}, r"must come together"),
        (
            {"drift_law": "series", "drift_series": "0: 5", "drift_length_factor": 2.0},
            r"must be 1 with drift_law='series'",
        ),
        (
            {"drift_law": "series", "drift_series": "0: 5, 9: 28000"},
            r"response tokens=28000 must be < max_response_tokens",
        ),
        ({"drift_law": "series", "drift_series": "0: 5 / 1 / 250000"}, r"grown by the drift, .* must be <= 262144"),
        (LINEAR | {"drift_length_factor": 0.0}, r"drift_length_factor=0 must be > 0"),
        (LINEAR | {"drift_length_factor": 1000.0}, r"drift_length_factor=1000 must leave responses below"),
        (LINEAR | {"drift_prompt_factor": 100.0}, r"mean_prompt_tokens=559100, grown by the drift, "),
        (LINEAR | {"drift_tool_calls_factor": 70.0}, r"tool_calls=1050, grown by the drift, must be <= 1000"),
        (LINEAR | {"drift_sigma_factor": 10.0}, r"sigma_between_prompts=.*, grown by the drift, must be <= 3"),
        (
            LINEAR
            | {"drift_sigma_factor": 10.0, "response_sigma_between_prompts": 0.1, "response_sigma_within_group": 0.4},
            r"sigma_within_group=4, grown by the drift, must be <= 3",
        ),
        (
            {"drift_law": "series", "drift_series": "0: 5000 / 0, 9: 6000 / 1001"},
            r"tool_calls=1001, grown by the drift, must be <= 1000",
        ),
        (
            LINEAR
            | {"drift_length_factor": 3.0, "response_sigma_between_prompts": 0, "response_sigma_within_group": 0},
            r"must leave responses below max_response_tokens=27177: at the end all would be cut",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(knobs, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PRIME, **knobs)


@pytest.mark.parametrize(
    "knobs",
    [
        RATES | {"solve_rate_law": "logit-normal", "solve_rate_logit_sigma": 2.0, "learning_logit_per_step": 0.01},
        {"solve_rate_law": "histogram", "solve_rate_histogram": "0: 0.5, 0.5: 0.25, 1: 0.25", "gate": "none"},
        RATES | {"sampler": "difficulty-band", "pool_prompts": 4000, "band_low": 0.1, "band_high": 0.9},
        RATES | {"sampler": "retire-solved", "pool_prompts": 4000, "retire_above": 0.9, "learning_staleness_half": 4.0},
        growth_knobs("qwen3.5-35b-dapo") | {"training_steps": 100},
        LINEAR | {"drift_sigma_factor": 1.3, "drift_tool_calls_factor": 0.0},
    ],
)
def test_a_curriculum_and_a_drift_round_trip_and_are_solved_at_their_start(knobs):
    scenario = dataclasses.replace(PRIME, **knobs)
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    assert solve(scenario).step_s > 0


def test_drift_alone_does_not_move_the_operating_point_of_the_start():
    assert solve(dataclasses.replace(GLM, **growth_knobs("minimax-m1"))) == solve(GLM)
