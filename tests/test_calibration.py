"""A fit finds what made its measurements, says what it cannot know, and refuses what was never measured."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlqueue import Scenario, solve
from rlqueue.calibration import Measured, Prior, calibrate, calibrate_rows
from rlqueue.cli.accuracy import _measured
from rlqueue.measures import MEASURES, Outcome, outcome, read

SLIME = Scenario.from_data("slime-qwen3-235b")


def measured_of(scenario, *names):
    found = Outcome(scenario=scenario, point=solve(scenario))
    return {name: read(found, name) for name in names}


def test_three_seconds_fix_decode_rate_training_rate_and_synchronisation():
    found = calibrate(SLIME, {"generate_s": 178.0, "train_s": 95.0, "sync_s": 6.0})
    assert [each.knob for each in found.knobs] == ["decode_efficiency", "mfu", "weight_sync_s"]
    now = measured_of(found.scenario, "generate_s", "train_s", "sync_s")
    assert now == pytest.approx({"generate_s": 178.0, "train_s": 95.0, "sync_s": 6.0}, rel=1e-6)
    assert found.identified


def test_the_exact_answer_for_the_training_rate_is_found():
    # Training time is inverse to the MFU where nothing is fixed: half the time, twice the MFU.
    train_s = measured_of(SLIME, "train_s")["train_s"]
    found = calibrate(SLIME, {"train_s": train_s / 2})
    assert found.values["mfu"] == pytest.approx(2 * SLIME.mfu, rel=1e-6)
    # d ln(train) / d ln(mfu) = -1: the knob is as uncertain as the measurement.
    assert found.knobs[0].spread == pytest.approx(0.05, rel=1e-3)
    assert found.knobs[0].low == pytest.approx(found.knobs[0].value * math.exp(-0.05), rel=1e-3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    decode_efficiency=st.floats(0.1, 0.8),
    mfu=st.floats(0.03, 0.4),
    weight_sync_s=st.floats(0.5, 60.0),
)
def test_known_knobs_are_recovered_from_what_they_made(decode_efficiency, mfu, weight_sync_s):
    truth = dataclasses.replace(SLIME, decode_efficiency=decode_efficiency, mfu=mfu, weight_sync_s=weight_sync_s)
    found = calibrate(SLIME, measured_of(truth, "rollout_s", "train_s", "sync_s"))
    # A trainer-bound run leaves slots empty, and its rollouts then say little about full slots.
    assert found.values["mfu"] == pytest.approx(mfu, rel=1e-4)
    assert found.values["weight_sync_s"] == pytest.approx(weight_sync_s, rel=1e-4)
    again = measured_of(found.scenario, "rollout_s")["rollout_s"]
    assert again == pytest.approx(measured_of(truth, "rollout_s")["rollout_s"], rel=1e-3)


@settings(max_examples=25, deadline=None)
@given(efficiency=st.floats(0.1, 0.9), overhead_s=st.floats(0.002, 0.05))
def test_a_decode_curve_gives_back_the_roofline_that_made_it(efficiency, overhead_s):
    truth = dataclasses.replace(SLIME, decode_efficiency=efficiency, decode_overhead_s=overhead_s)
    flat = calibrate(truth, {"decode_curve": "1: 100, 16: 900, 128: 2000"}, fit=["mfu"])
    curve = ", ".join(f"{each.quantity.split()[-1]}: {each.fitted!r}" for each in flat.residuals)
    found = calibrate(SLIME, {"decode_curve": curve})
    assert found.values["decode_efficiency"] == pytest.approx(efficiency, rel=1e-3)
    assert found.values["decode_overhead_s"] == pytest.approx(overhead_s, rel=1e-3)


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.55])
def test_a_target_wait_ratio_is_met_by_the_number_of_slots(ratio):
    found = calibrate(SLIME, {"trainer_wait_ratio": ratio})
    # Slots are whole numbers: one of some hundred moves the ratio by less than half a point.
    assert solve(found.scenario).trainer_wait_ratio == pytest.approx(ratio, abs=0.005)
    assert isinstance(found.scenario.concurrency, int)


def test_a_fit_finds_its_way_out_of_a_run_that_never_waits():
    busy = dataclasses.replace(SLIME, concurrency=4096)
    assert solve(busy).trainer_wait_ratio == 0
    found = calibrate(busy, {"trainer_wait_ratio": 0.4})
    assert solve(found.scenario).trainer_wait_ratio == pytest.approx(0.4, abs=0.005)


def test_what_no_measurement_feels_keeps_its_value_and_has_no_end_of_uncertainty():
    found = calibrate(SLIME, {"train_s": 95.0}, fit=["mfu", "decode_efficiency"])
    felt, not_felt = found.knobs
    assert math.isfinite(felt.spread)
    assert not_felt.value == SLIME.decode_efficiency
    assert (not_felt.spread, not_felt.low, not_felt.high) == (math.inf, 0.0, math.inf)
    assert not found.identified
    assert found.as_dict()["knobs"][1]["spread"] is None


def test_two_knobs_that_one_number_cannot_part_are_both_called_unknown():
    found = calibrate(SLIME, {"rollout_s": 492.0}, fit=["decode_efficiency", "accept_length"])
    assert found.residuals[0].error == pytest.approx(0, abs=1e-6)
    assert [math.isinf(each.spread) for each in found.knobs] == [True, True]


def test_a_prior_parts_them_and_its_own_spread_is_what_stays():
    prior = Prior(value=0.2, spread=0.1)
    found = calibrate(SLIME, {"train_s": 95.0}, fit=["mfu", "decode_efficiency"], priors={"decode_efficiency": prior})
    knob = found.knobs[1]
    assert knob.value == pytest.approx(0.2, rel=1e-6)
    assert knob.spread == pytest.approx(0.1, rel=1e-3)


def test_measurements_that_contradict_each_other_widen_the_range():
    alone = calibrate(SLIME, {"train_s": 95.0}).knobs[0].spread
    rows = [(SLIME, {"train_s": 95.0}), (SLIME, {"train_s": 190.0})]
    found = calibrate_rows(rows, fit=["mfu"])
    assert found.knobs[0].spread > 3 * alone
    # Least squares of logarithms: the geometric mean of the two.
    assert found.residuals[0].fitted == pytest.approx(math.sqrt(95.0 * 190.0), rel=1e-5)


def test_a_knob_at_its_limit_says_so():
    found = calibrate(SLIME, {"train_s": 1e-3})
    assert found.knobs[0].value == pytest.approx(1.0)
    assert found.knobs[0].at_limit


def test_a_tighter_measurement_wins():
    rows = [(SLIME, {"train_s": Measured(value=95.0, spread=0.001)}), (SLIME, {"train_s": 190.0})]
    assert calibrate_rows(rows, fit=["mfu"]).residuals[0].fitted == pytest.approx(95.0, rel=1e-2)


def test_the_fitted_scenario_comes_back_from_its_file(tmp_path):
    found = calibrate(SLIME, {"generate_s": 178.0, "train_s": 95.0})
    path = tmp_path / "fitted.toml"
    path.write_text(found.toml())
    assert Scenario.from_file(path) == found.scenario
    assert "68" not in found.toml().splitlines()[0]
    assert found.toml().startswith("# Fitted by closed form")


def test_simulated_answers_meet_the_measurements_where_the_closed_form_would_not():
    sync = dataclasses.replace(SLIME, schedule="sync", max_staleness=0, tool_calls=0, concurrency=64)
    wanted = {"generate_s": 700.0, "train_s": 95.0}
    found = calibrate(sync, wanted, solver="simulated")
    simulated = outcome(found.scenario, "simulated")
    # In step the closed form is up to an eighth too fast; the corrected fit is left with what one round leaves.
    assert read(simulated, "generate_s") == pytest.approx(700.0, rel=0.01)
    assert abs(read(outcome(found.scenario, "closed form"), "generate_s") / 700.0 - 1) > 0.02


def test_one_simulated_number_is_met_although_it_cannot_part_two_knobs():
    sync = dataclasses.replace(SLIME, schedule="sync", max_staleness=0, tool_calls=0, concurrency=64)
    found = calibrate(sync, {"step_s": 900.0}, fit=["decode_efficiency", "mfu"], solver="simulated")
    assert found.residuals[0].fitted == pytest.approx(900.0, rel=0.01)
    assert not found.identified


def test_a_mean_length_stays_below_the_cut():
    found = calibrate(SLIME, {"rollout_s": 1e5}, fit=["mean_response_tokens"])
    assert found.scenario.mean_response_tokens < SLIME.max_response_tokens
    assert found.knobs[0].at_limit


@pytest.mark.parametrize(
    ("measurements", "fit", "words"),
    [
        ({}, None, "must hold at least one"),
        ({"train": 3.0}, None, "did you mean train_s"),
        ({"train_s": -1.0}, None, "train_s=-1 must be >= 0"),
        ({"train_s": 0.0}, None, "train_s=0 must be > 0"),
        ({"train_s": math.nan}, None, "must be a finite number"),
        ({"train_s": "long"}, None, "train_s='long' must be a finite number"),
        ({"trainer_wait_ratio": 30.0}, None, r"trainer_wait_ratio=30 must be in \[0, 1\]"),
        ({"train_s": 95.0}, ["mfuu"], "did you mean mfu"),
        ({"train_s": 95.0}, ["schedule"], "fit='schedule' is not known"),
        ({"train_s": 95.0}, [], "must name a knob"),
        ({"step_s": 95.0}, None, "must name a knob"),
        ({"decode_curve": "fast"}, None, "decode_curve"),
        ({"decode_curve": 3.0}, None, "must be text like"),
        ({"train_s": Measured(value=1.0, spread=0.0)}, None, "spread=0"),
        ({"staleness_p95": 2.0}, ["max_staleness"], "must be 'simulated'"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name_value_and_limit(measurements, fit, words):
    with pytest.raises(ValueError, match=words):
        calibrate(SLIME, measurements, fit=fit)


def test_a_curve_is_not_fitted_where_the_scenario_decodes_by_one():
    curved = dataclasses.replace(SLIME, decode_curve="1: 90, 16: 900")
    with pytest.raises(ValueError, match="must be empty for a roofline to be fitted"):
        calibrate(curved, {"decode_curve": "1: 90"})


def test_the_two_parts_of_training_add_up_and_generation_is_samples_over_production():
    scenario = dataclasses.replace(SLIME, logprob_passes=3, trainer_overhead_s=0.5, minibatches_per_update=4)
    point = solve(scenario)
    now = measured_of(scenario, "update_s", "logprob_s", "generate_s")
    assert now["update_s"] + now["logprob_s"] == pytest.approx(point.train_s, rel=1e-12)
    # Three passes of 2 FLOPs beside an update of 6 take as long as it, but for its fixed time.
    assert now["logprob_s"] == pytest.approx(now["update_s"] - 2.0, rel=1e-12)
    assert now["generate_s"] == pytest.approx(scenario.samples_per_step / point.production_per_s, rel=1e-12)


def test_every_measure_is_a_number_of_a_simulated_run():
    small = dataclasses.replace(SLIME, tool_calls=0)
    found = outcome(small, "simulated", rollouts=True)
    for name in MEASURES:
        assert math.isfinite(read(found, name)), name


def test_the_mean_start_of_a_sandbox_is_its_own_time_where_none_waits():
    for solver in ("closed form", "simulated"):
        found = outcome(dataclasses.replace(SLIME, tool_calls=0), solver)
        # Some thousand draws of a log-normal of spread 0.23
        assert read(found, "start_s") == pytest.approx(SLIME.sandbox_start_s, rel=0.02)


@pytest.mark.parametrize(
    ("name", "measurements"),
    [
        # A KV cache that is full holds no more rollouts, however many slots there are
        ("prime-rl-glm-5", {"trainer_wait_ratio": 0.1}),
        ("slime-qwen3-235b", {"generate_s": 1e-3}),
        # A roofline never falls with more requests
        ("slime-qwen3-235b", {"decode_curve": "16: 910, 100: 500"}),
    ],
)
def test_a_target_that_no_value_reaches_is_said_to_be_missed(name, measurements):
    found = calibrate(Scenario.from_data(name), measurements)
    assert found.missed
    assert found.as_dict()["missed"] == list(found.missed)
    assert all(
        words.split(" of ")[0] == each.quantity for words, each in zip(found.missed, found.residuals, strict=True)
    )
    assert "is not met: the nearest is" in found.toml()
    assert calibrate(Scenario.from_data(name), {"train_s": 95.0}).missed == ()


def test_a_range_ends_where_its_knob_does():
    fast = calibrate(SLIME, {"generate_s": 1e-3}).knobs[0]
    assert (fast.knob, fast.value, fast.high) == ("decode_efficiency", pytest.approx(1.0), pytest.approx(1.0))
    alone = calibrate(SLIME, {"trainer_wait_ratio": 0.99}).knobs[0]
    assert alone.low >= 1


def test_one_point_of_a_curve_is_met_near_the_beginning_and_fixes_neither_of_its_knobs():
    found = calibrate(SLIME, {"decode_curve": "16: 910"})
    assert found.missed == ()
    assert found.residuals[0].fitted == pytest.approx(910, rel=1e-4)  # a valley is left by thirty rounds at most
    assert [each.spread for each in found.knobs] == [math.inf, math.inf]
    # 910 at 16 is an eighth of what a fast engine gives: neither knob has to leave for the end of its range
    assert found.values["decode_overhead_s"] > SLIME.decode_overhead_s / 100


@pytest.mark.parametrize(
    ("word", "spread"),
    [
        ("train_s=95 +- 1.9", 0.02), ("train_s=95+-2%", 0.02), ("trainer_wait_ratio=0.3 +- 0.01", 0.01),
        ("decode_curve=16: 910, 100: 2400 +- 1%", 0.01),
    ],
)  # fmt: skip
def test_a_word_of_the_command_line_may_end_in_its_spread(word, spread):
    (given,) = _measured([word]).values()
    assert given.spread == pytest.approx(spread)


@pytest.mark.parametrize("word", ["train_s=95 +- x", "train_s=95 +- 0", "train_s=95 +- inf", "decode_curve=1: 90 +- 3",
                                  "trainer_wait_ratio=0.3 +- 2%"])  # fmt: skip
def test_a_spread_that_is_none_is_refused_with_its_word(word):
    with pytest.raises(ValueError, match="the spread"):
        _measured([word])


def test_a_wait_ratio_of_nothing_is_met_by_no_more_slots_than_it_takes():
    slots = calibrate(SLIME, {"trainer_wait_ratio": 0.0}).scenario.concurrency
    assert solve(dataclasses.replace(SLIME, concurrency=slots)).trainer_wait_ratio == pytest.approx(0, abs=1e-3)
    assert solve(dataclasses.replace(SLIME, concurrency=int(0.95 * slots))).trainer_wait_ratio > 0.01


def test_a_curve_may_say_its_own_spread():
    curve = "16: 910, 100: 2400"
    usual, exact = (
        calibrate(SLIME, {"decode_curve": Measured(value=curve, spread=spread)}) for spread in (0.05, 0.005)
    )
    for narrow, wide in zip(exact.knobs, usual.knobs, strict=True):
        assert narrow.spread == pytest.approx(wide.spread / 10, rel=1e-3)
    with pytest.raises(ValueError, match="spread=0 of decode_curve must be"):
        calibrate(SLIME, {"decode_curve": Measured(value=curve, spread=0.0)})


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_ranges_hold_the_truth_about_as_often_as_they_say(noise):
    """The 68 % range of each knob over noisy repeats; three binomial deviations of 100 repeats are 14 points."""
    truth = dataclasses.replace(SLIME, decode_efficiency=0.3, mfu=0.09, weight_sync_s=3.0)
    exact, draws = measured_of(truth, "generate_s", "train_s", "sync_s"), np.random.default_rng(3)
    held = dict.fromkeys(("decode_efficiency", "mfu", "weight_sync_s"), 0)
    for _ in range(100):
        noisy = {
            name: Measured(value=value * math.exp(noise * draws.standard_normal()), spread=noise)
            for name, value in exact.items()
        }
        for each in calibrate(SLIME, noisy).knobs:
            held[each.knob] += each.low <= getattr(truth, each.knob) <= each.high
    assert all(54 <= count <= 82 for count in held.values()), held


def test_a_simulated_range_comes_from_simulated_slopes():
    """A run that never waits trains at the trainer's pace: simulated, it says little of decoding, and the range says so."""
    busy = dataclasses.replace(Scenario.from_data("prime-rl-qwen3-235b"), mfu=0.084, weight_sync_s=3.0)
    truth = dataclasses.replace(busy, decode_efficiency=1.3 * busy.decode_efficiency)
    found = outcome(truth, "simulated")
    measured = {name: read(found, name) for name in ("generate_s", "train_s")}
    knob = calibrate(busy, measured, solver="simulated").knobs[0]
    assert knob.low <= truth.decode_efficiency <= knob.high
    assert knob.spread > 0.1  # by the closed form's slopes it would be 0.07
