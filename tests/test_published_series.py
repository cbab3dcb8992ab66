"""Published series that move during training: what was fitted, how far off the rest is, and which law of learning fails."""

import dataclasses

import numpy as np
import pytest

from rlqueue import Scenario, published
from rlqueue.at_step import solve_rates
from rlqueue.course import whole_run
from rlqueue.curriculum_presets import curriculum_knobs, curriculum_names
from rlqueue.presets import preset_names
from rlqueue.provenance import table
from rlqueue.published import rollout_times, solved_shares

COLUMNS = ["series", "step", "published", "predicted", "unit", "error", "calibrated", "source"]


@pytest.mark.parametrize(
    ("series", "fitted"),
    [
        (published.glm_rollout_time, [0, 1, 2, 3, 4]),
        (published.prime_rollout_time, [0]),
        (published.dapo_all_solved, [0, 1000, 2500]),
    ],
)
def test_each_table_names_the_rows_it_was_fitted_to(series, fitted):
    found = series()
    assert list(found.columns) == COLUMNS
    assert list(found.loc[found["calibrated"], "step"]) == fitted
    assert len(found) > len(fitted)


def test_glm_5_rollouts_get_five_times_as_long_as_sequences_get_four_times():
    found = published.glm_rollout_time()
    first, last = found.iloc[0], found.iloc[-1]
    assert (first["published"], last["published"]) == (370, 1950)
    # Twenty steps predicted from five: 12 % off on average, 3 % at the last, where 5.7 is predicted for a printed 5.3
    assert published.blind_error(found) < 0.13
    assert abs(last["error"]) < 0.05
    assert last["predicted"] / first["predicted"] == pytest.approx(1950 / 370, rel=0.1)


def test_which_bar_of_lengths_was_lost_moves_the_error_by_less_than_half_unless_it_was_among_the_first():
    found = published.glm_alignment()
    late = found[found["lost_bar"] >= 5]
    assert len(found) == 25
    assert late["test_error"].between(0.08, 0.125).all()
    # With a later bar lost the one step that is half off, 17, falls into line
    assert late["test_error"].min() < 0.09
    assert published.blind_error(published.glm_rollout_time(0)) > 0.2


def test_prime_rl_rollouts_grow_faster_than_the_model_says():
    # Known miss: the measured time per token grows by 37 %, the model's by 9 %, as a fixed part of each iteration does not grow
    found = published.prime_rollout_time()
    assert published.blind_error(found) < 0.15
    assert (found["error"][1:] < 0).all()
    assert np.corrcoef(found["predicted"], found["published"])[0, 1] > 0.9


def test_prime_rl_s_time_per_token_grows_more_than_its_sequences():
    # What no model does that reads weights and KV cache at constant concurrency
    lengths = np.array([float(row["mean_response_tokens"]) for row in table("prime_process")])
    sequences = np.array([float(row["mean_sequence_tokens"]) for row in table("prime_process")])
    per_token = published.prime_rollout_time()["published"].to_numpy() / lengths
    assert np.polyfit(np.log(sequences[1:]), np.log(per_token[1:]), 1)[0] > 1.2


def test_a_concurrency_that_grew_by_little_s_law_would_explain_most_of_it():
    found = published.prime_as_concurrency_grew()
    grown = found["in_flight_rollouts"].iloc[-1] / found["in_flight_rollouts"].iloc[1]
    assert grown == pytest.approx(2.21 * 663 / (1.65 * 479))
    at_rest = published.prime_rollout_time((1,))
    rise = [each["predicted"].iloc[-1] / each["predicted"].iloc[1] for each in (at_rest, found)]
    assert rise[0] < 1.2 < 663 / 479 < rise[1] < 1.5
    later = slice(2, None)
    assert found["error"][later].abs().mean() < 0.6 * at_rest["error"][later].abs().mean()


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        (
            "glm_rollout_time",
            lambda name, row: name == "report_series" and row["series"] == "rollout_s" and float(row["x"]) > 4,
        ),
        ("prime_rollout_time", lambda name, row: name == "prime_process" and row["step"] != "0"),
        ("dapo_all_solved", lambda name, row: name == "curriculum_series" and float(row["step"]) > 2500),
    ],
)
def test_no_prediction_knows_the_rows_that_it_is_held_to(monkeypatch, name, changed):
    """Another published value in a row that is not fitted moves no prediction."""
    cells = {"report_series": "y", "prime_process": "rollout_s", "curriculum_series": "value"}

    def poisoned(asked):
        found = table(asked)
        return [
            row | {cells[asked]: str(0.5 * float(row[cells[asked]]))} if changed(asked, row) else row for row in found
        ]

    honest = getattr(published, name)()
    for module in (rollout_times, solved_shares):
        monkeypatch.setattr(module, "table", poisoned)
    poison = getattr(published, name).__wrapped__()
    assert (poison["published"] != honest["published"])[~honest["calibrated"]].all()
    assert poison["predicted"].tolist() == honest["predicted"].tolist()


def test_prompts_that_learn_from_their_own_groups_saturate_as_under_dapo():
    found = published.dapo_all_solved()
    # Three points fitted with three numbers; the two others are predicted within .08, both too high
    assert np.abs(found.loc[found["calibrated"], "error"]).max() < 0.01
    assert np.abs(found.loc[~found["calibrated"], "error"]).max() < 0.09


def test_the_curriculum_of_dapo_in_the_catalogue_is_the_fitted_one():
    knobs = curriculum_knobs("dapo-32b")
    fitted = published.dapo_shares(
        np.array([0.0, 1000.0, 2500.0]), knobs["solve_rate_mean"], knobs["solve_rate_concentration"],
        knobs["learning_logit_per_step"], knobs["learning_transfer"],
    )  # fmt: skip
    assert fitted == pytest.approx([0.0, 0.25, 0.40], abs=0.01)


def test_the_curriculum_of_glm_5_has_the_printed_share_of_solved_groups():
    scenario = dataclasses.replace(Scenario.from_data("prime-rl-glm-5"), **curriculum_knobs("prime-rl-glm-5"))
    assert solve_rates(scenario).powers(16)[0] == pytest.approx(0.55, abs=1e-3)


@pytest.mark.parametrize("name", curriculum_names())
def test_each_curriculum_runs_on_each_preset(name):
    for preset in preset_names():
        scenario = dataclasses.replace(Scenario.from_data(preset), **curriculum_knobs(name))
        assert whole_run(scenario, points=5).solve_rate_end > scenario.solve_rate_mean


def test_a_rise_that_all_prompts_share_contradicts_dapo():
    # It would solve every prompt by step 5,000, where half were solved
    found = published.dapo_all_solved(transfer=1.0)
    assert found["predicted"].iloc[-2] > 0.9
    assert published.blind_error(found) > 5 * published.blind_error(published.dapo_all_solved())


def test_solved_groups_cost_glm_5_half_of_each_dollar_and_other_samplers_save_most_of_it():
    found = published.glm_solved_groups().set_index("way")
    refill, train = found.loc["drop them and refill (as printed)"], found.loc["train on them"]
    assert refill["all_solved_fraction"] == train["all_solved_fraction"] == pytest.approx(0.55, abs=1e-5)
    assert refill["finished_per_trained"] == pytest.approx(1 / (1 - 0.568), abs=0.01)
    # The preset's wait is fitted to 74 %, with 55 % filtered
    assert refill["trainer_wait_ratio"] == pytest.approx(0.74, abs=0.02)
    assert train["trainer_wait_ratio"] < refill["trainer_wait_ratio"] - 0.2
    assert train["usd_per_informative_mtok"] > refill["usd_per_informative_mtok"]
    for way in ("difficulty band", "retire solved", "adaptive"):
        assert found.loc[way, "usd_per_informative_mtok"] < 0.6 * refill["usd_per_informative_mtok"]
        assert found.loc[way, "trainer_wait_ratio"] < refill["trainer_wait_ratio"] - 0.15
    assert found.loc["difficulty band", "usd_per_step_more"] < 0.05 * refill["usd_per_step_more"]
