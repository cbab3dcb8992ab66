"""A log made by a known scenario gives that scenario back; with one of log and configuration there is as much as it can tell."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_shapes import as_console, as_json_lines, verl

from rlqueue import Measured, Scenario, cost, solve
from rlqueue.cli import main
from rlqueue.diagnosis import diagnose
from rlqueue.diagnosis.diagnose import as_dict, run_steps
from rlqueue.presets import preset_names


def log_of(scenario, steps=20, *, response=None, **more):
    """The log that SkyRL would write of a run that goes as the closed form has it."""
    rows = []
    for step in range(1, steps + 1):
        at = scenario if response is None else dataclasses.replace(scenario, mean_response_tokens=response(step))
        point = solve(at)
        rows.append({
            "step": step, "timing/step": point.step_s, "timing/wait_for_generation_buffer": point.wait_s,
            "timing/run_training": point.train_s, "timing/sync_weights": point.sync_s,
            "async/staleness_mean": point.staleness_versions, "generate/avg_num_tokens": at.mean_response_tokens, **more,
        })  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows)


def slower(scenario):
    """The run as it really goes: the generator decodes worse and the trainer better than the configuration has it."""
    return dataclasses.replace(
        scenario, decode_efficiency=0.6 * scenario.decode_efficiency, mfu=1.3 * scenario.mfu, weight_sync_s=12.0
    )


@pytest.mark.parametrize("name", ["prime-rl-qwen3-235b", "prime-rl-glm-5", "slime-qwen3-235b"])
def test_the_scenario_that_made_the_log_is_found_again(name):
    configured = Scenario.from_data(name)
    true = slower(configured)
    found = diagnose(Measured.from_log(log_of(true)), configured)
    for knob in ("decode_efficiency", "mfu", "weight_sync_s"):
        # Solved to the fit's tolerance; the wait ratio hardly feels the last thousandth of the efficiency.
        assert getattr(found.scenario, knob) == pytest.approx(getattr(true, knob), rel=5e-3), knob
    assert found.point.binding_constraint == solve(true).binding_constraint
    assert found.point.step_s == pytest.approx(solve(true).step_s, rel=1e-3)
    blind = {each.quantity: each for each in found.comparisons if not each.fitted}
    assert "staleness_versions" in blind
    assert blind["staleness_versions"].error == pytest.approx(0, abs=5e-3)
    assert not {"step_s", "wait_s", "train_s", "sync_s", "trainer_wait_ratio"} & blind.keys()


def test_lengths_are_taken_from_the_log():
    configured = Scenario.from_data("prime-rl-qwen3-235b")
    true = dataclasses.replace(slower(configured), mean_response_tokens=9000.0)
    found = diagnose(Measured.from_log(log_of(true)), configured)
    assert found.taken == {"mean_response_tokens": 9000.0}
    assert found.scenario.decode_efficiency == pytest.approx(true.decode_efficiency, rel=5e-3)


def test_steps_are_predicted_with_their_own_lengths():
    configured = Scenario.from_data("prime-rl-qwen3-235b")
    found = diagnose(
        Measured.from_log(log_of(slower(configured), 30, response=lambda step: 10_000.0 + 100 * step)), configured
    )
    # The fit meets the mean of steps that differ, so each is met to the curvature over a spread of 13 % in length.
    assert (found.steps["predicted_step_s"] / found.steps["step_s"]).to_numpy() == pytest.approx(1, abs=0.01)
    assert found.steps["predicted_step_s"].iloc[-1] > 1.1 * found.steps["predicted_step_s"].iloc[0]


def test_gains_are_the_differences_between_the_calibrated_run_and_the_run_after_the_move():
    found = diagnose(
        Measured.from_log(log_of(slower(Scenario.from_data("prime-rl-qwen3-235b")))),
        Scenario.from_data("prime-rl-qwen3-235b"),
    )
    assert found.gains
    changes = [each.usd_per_mtok_change for each in found.gains]
    assert changes == sorted(changes)
    assert changes[-1] < 0
    for gain in found.gains:
        after = solve(gain.move.scenario)
        assert gain.wait_change == pytest.approx(after.trainer_wait_ratio - found.point.trainer_wait_ratio)
        assert gain.tokens_per_s_change == pytest.approx(after.trained_tokens_per_s - found.point.trained_tokens_per_s)
        assert gain.usd_per_mtok_change == pytest.approx(
            cost(gain.move.scenario, after).usd_per_mtok - cost(found.scenario, found.point).usd_per_mtok
        )
        steps = run_steps(found.scenario)
        assert gain.hours == pytest.approx(after.step_s * steps / 3600)
        assert gain.hours_change == pytest.approx((after.step_s - found.point.step_s) * steps / 3600)
        for line in gain.paste:
            knob, _, value = line.partition("=")
            assert getattr(gain.move.scenario, knob) == pytest.approx(float(value))


@pytest.mark.parametrize(
    ("framework", "key"),
    [
        ("prime-rl", "orchestrator.concurrency.max_inflight="),
        ("verl", "async_training.concurrent_samples_per_replica="),
        ("slime", "--sglang-server-concurrency "),
        ("areal", "rollout.max_concurrent_rollouts="),
        ("skyrl", "concurrency="),
    ],
)
def test_a_move_comes_with_the_framework_s_own_keys(framework, key):
    found = diagnose(None, Scenario.from_data("prime-rl-qwen3-235b"), framework=framework)
    gain = next(each for each in found.gains if each.move.knob == "concurrency")
    assert any(line.startswith(key) for line in gain.paste)


def test_a_trainer_that_never_waits_leaves_the_generator_s_speed_open():
    configured = Scenario.from_data("prime-rl-qwen3-235b")
    fast = dataclasses.replace(configured, concurrency=20_000, mfu=0.05)
    found = diagnose(Measured.from_log(log_of(fast)), fast)
    assert solve(fast).trainer_wait_ratio == 0
    assert any("only known to keep up" in each for each in found.missing)
    assert found.scenario.decode_efficiency == fast.decode_efficiency


def test_a_log_that_the_configuration_cannot_give_is_doubted():
    # Even with perfect decoding one slot on each replica makes the trainer wait, and the log says that it hardly does.
    configured = dataclasses.replace(Scenario.from_data("prime-rl-qwen3-235b"), concurrency=24)
    busy = Measured.from_log(
        as_json_lines(lambda step: verl(step) | {"timing_s/gen": 10.0, "timing_s/update_actor": 200.0})
    )
    found = diagnose(busy, configured)
    assert "does not explain the log" in found.verdict


@pytest.mark.parametrize(
    ("logged", "doubt"),
    [
        ({}, ""),
        ({"trainer/mfu": 0.1}, ""),
        ({"perf/mfu/actor": 0.1}, ""),
        ({"perf/mfu/actor": 0.3}, "needs an MFU of 14% where the log has 30%"),
        ({"perf/total_num_tokens": 9.4e6}, ""),
        ({"perf/total_num_tokens": 1e5}, "times the tokens that the log counts"),
    ],
)
def test_tokens_or_mfu_of_another_batch_are_told(logged, doubt):
    configured = Scenario.from_data("prime-rl-qwen3-235b")
    point = solve(slower(configured))
    row = {
        "timing_s/gen": point.wait_s,
        "timing_s/update_actor": point.train_s,
        "timing_s/timing_s/param_sync": point.sync_s,
    }
    rows = "".join(
        json.dumps({"step": step, "timing_s/step": point.step_s, **row, **logged}) + "\n" for step in range(9)
    )
    said = diagnose(Measured.from_log(rows), configured).verdict
    assert doubt in said
    assert ("are not those of this run" in said) == bool(doubt)


def test_a_log_of_another_run_is_told_from_its_configuration_and_ends_soon():
    # More than 500 such steps would end during one longest response; the closed form would count them one by one.
    row = {"timing_s/gen": 0.5, "timing_s/update_actor": 0.05, "response_length/mean": 8.0, "prompt_length/mean": 10.0}
    measured = Measured.from_log("".join(json.dumps({"step": step, **row}) + "\n" for step in range(3)))
    found = diagnose(measured, Scenario.from_data("verl-qwen3-235b-c96"))
    assert "not of one run" in found.verdict
    assert found.gains == ()
    assert found.steps is None


def test_a_log_alone_says_who_waits_and_what_a_faster_generator_would_give():
    found = diagnose(Measured.from_log(as_console("verl")))
    assert found.waiting.side == "trainer"
    assert found.point is None
    assert found.gains == ()
    # 60 % of waiting: 1 / 0.4.
    assert "2.50 times what the generator delivers" in found.verdict
    assert found.missing[0].startswith("a configuration")


def test_a_configuration_alone_gives_operating_point_and_moves():
    scenario = Scenario.from_data("prime-rl-qwen3-235b")
    found = diagnose(None, scenario)
    assert found.point == solve(scenario)
    assert found.waiting is None
    assert found.comparisons == ()
    assert found.missing[0].startswith("a log")


def test_neither_is_refused():
    with pytest.raises(ValueError, match="needs a log, a configuration, or both"):
        diagnose(None)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(preset_names()), st.tuples(*[st.floats(0, high) for high in (1e5, 1e5, 1e4, 1e6, 1e6, 1e5)]))
def test_any_log_and_any_preset_end_in_a_diagnosis_or_a_refusal(name, numbers):
    wait, train, sync, prompt, response, rollout = numbers
    row = {
        "timing_s/gen": wait, "timing_s/update_actor": train, "timing_s/timing_s/param_sync": sync, "prompt_length/mean": prompt,
        "response_length/mean": response, "timing_s/agent_loop/generate_sequences/mean": rollout,
    }  # fmt: skip
    measured = Measured.from_log("".join(json.dumps({"step": step, **row}) + "\n" for step in range(3)))
    try:
        found = diagnose(measured, Scenario.from_data(name))
    except ValueError as refusal:
        assert "=" in str(refusal)  # noqa: PT017
        return
    assert found.verdict
    text = json.dumps(as_dict(found), allow_nan=False)
    assert json.loads(text)["verdict"] == found.verdict
    assert all(math.isfinite(gain.usd_per_mtok_change) for gain in found.gains)


def test_the_command_prints_the_diagnosis(tmp_path, capsys):
    log = tmp_path / "run.jsonl"
    log.write_text(log_of(slower(Scenario.from_data("prime-rl-qwen3-235b"))), encoding="utf-8")
    assert main(["diagnose", str(log), "--config", "prime-rl-qwen3-235b", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["binding_constraint"] == "concurrency cap"
    assert found["moves"][0]["paste"]
    assert len(found["steps"]) == 19  # the first starts up
    assert main(["diagnose", str(log), "--config", "prime-rl-qwen3-235b"]) == 0
    shown = capsys.readouterr().out
    assert "fitted: mfu = " in shown
    assert "1. concurrency" in shown
    assert main(["diagnose", str(log)]) == 0
    assert "missing: a configuration" in capsys.readouterr().out
    assert main(["diagnose"]) == 2
    assert "needs a log" in capsys.readouterr().err
