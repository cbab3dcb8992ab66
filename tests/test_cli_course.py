"""The command line on whole runs: one JSON object, published and measured drifts and pass rates, refusals on stderr."""

import json

import pytest

from rlqueue.cli import main
from rlqueue.course import whole_run
from rlqueue.scenario import Scenario

PRESET = "prime-rl-qwen3-235b"


def answer(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_course_tells_what_the_whole_run_costs_and_how_it_moves(capsys):
    found = answer(capsys, "course", PRESET, "--drift", "qwen3.5-35b-dapo", "--set", "training_steps=101")
    assert found["scenario"] == PRESET
    assert [run["run"] for run in found["without"]] == ["as it is", "no drift", "no learning", "neither"]
    assert found["without"][0]["usd"] == found["usd"] < found["without"][1]["usd"]
    assert found["flips"][0]["becomes"] == "trainer compute"
    assert len(found["moments"]) == 40
    assert found["solve_rate_end"] is None


def test_a_course_without_drift_is_the_preset_s_own_run(capsys):
    whole = whole_run(Scenario.from_data(PRESET))
    found = answer(capsys, "course", PRESET)
    assert (found["steps"], found["hours"], found["usd"]) == (whole.steps, whole.hours, whole.usd)


def test_a_curriculum_can_be_laid_on_a_preset(capsys):
    found = answer(
        capsys, "course", PRESET, "--curriculum", "dapo-32b", "--set", "training_steps=2000", "--points", "9"
    )
    assert found["solve_rate_end"] > found["solve_rate_start"]
    assert len(found["moments"]) == 9


def test_measured_lengths_and_pass_rates_are_read_from_files(capsys, tmp_path):
    lengths, rates = tmp_path / "lengths.csv", tmp_path / "rates.csv"
    lengths.write_text("step,mean_response_tokens\n0,5000\n9,9000\n", encoding="utf-8")
    rates.write_text("solved,rollouts\n0,8\n4,8\n8,8\n8,8\n", encoding="utf-8")
    found = answer(capsys, "course", PRESET, "--drift", str(lengths), "--pass-rates", str(rates))
    assert [found["moments"][i]["mean_response_tokens"] for i in (0, -1)] == [5000, 9000]
    assert found["moments"][0]["informative_fraction"] == pytest.approx((1 - 2 / 2**16) / 4)


def test_a_run_that_can_learn_from_nothing_is_told_as_one_of_no_step(capsys, tmp_path):
    rates = tmp_path / "rates.csv"
    rates.write_text("solve_rate\n0\n1\n", encoding="utf-8")
    found = answer(capsys, "course", PRESET, "--pass-rates", str(rates))
    assert (found["steps"], found["usd"], found["usd_per_mtok"], found["stalled_at"]) == (0, 0, None, 0)
    assert main(["course", PRESET, "--pass-rates", str(rates)]) == 0
    assert "as it is: 0.0 h, $0, nothing trained" in capsys.readouterr().out


def test_a_drift_holds_for_one_operating_point_only_at_its_start(capsys):
    grown = answer(capsys, "solve", PRESET, "--drift", "minimax-m1")
    assert grown["step_s"] == answer(capsys, "solve", PRESET)["step_s"]


def test_an_operating_point_of_measured_lengths_is_that_of_the_first_of_them(capsys, tmp_path):
    lengths = tmp_path / "lengths.csv"
    lengths.write_text("step,mean_response_tokens,tool_calls\n0,5000,3\n9,9000,12\n", encoding="utf-8")
    found = answer(capsys, "solve", PRESET, "--drift", str(lengths))
    first = answer(capsys, "course", PRESET, "--drift", str(lengths))["moments"][0]
    for name in ("step_s", "rollout_s", "usd_per_mtok", "hosted_usd_per_mtok"):
        assert found[name] == pytest.approx(first[name], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--drift", "minimax"), "did you mean minimax-m1?"),
        (("--curriculum", "dapo"), "did you mean dapo-32b?"),
        (("--drift", "missing.csv"), "cannot be read"),
        (("--pass-rates", "missing.csv"), "cannot be read"),
        (("--points", "0"), "points=0 must be >= 1"),
    ],
)
def test_what_is_not_there_is_refused_on_stderr(capsys, words, message):
    assert main(["course", PRESET, *words]) == 2
    spoken = capsys.readouterr()
    assert message in spoken.err
    assert not spoken.out
