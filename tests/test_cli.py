"""The command line: flat JSON with the field names of the answers, errors on stderr with status 2 and no traceback."""

import dataclasses
import json
import subprocess
import sys

import pytest

from rlqueue import Bill, OperatingPoint, Scenario, cost, solve
from rlqueue.cli import main
from rlqueue.presets import preset_names


def answer(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_presets_lists_the_report_s_runs(capsys):
    listed = answer(capsys, "presets")
    assert list(listed) == list(preset_names())
    assert listed["prime-rl-qwen3-235b"]["reported"]["trainer_wait_ratio"] == 0.3
    assert main(["presets"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in preset_names())


def test_tco_prints_the_report_s_gpu_hour(capsys):
    assert round(answer(capsys, "tco")["total_usd_per_gpu_hour"], 4) == 1.5919
    dearer = answer(capsys, "tco", "--set", "usd_per_kwh=0.2", "--set", "gpus_per_server=4")
    assert dearer["total_usd_per_gpu_hour"] > 2 * 1.59


@pytest.mark.parametrize("name", preset_names())
def test_solve_prints_operating_point_and_bill_as_one_flat_object(capsys, name):
    scenario = Scenario.from_data(name)
    point = solve(scenario)
    found = answer(capsys, "solve", name)
    assert found == {"scenario": name} | dataclasses.asdict(point) | dataclasses.asdict(cost(scenario, point))
    expected = {field.name for kind in (OperatingPoint, Bill) for field in dataclasses.fields(kind)}
    assert expected <= found.keys()
    assert main(["solve", name]) == 0
    assert "trainer_wait_ratio" in capsys.readouterr().out


def test_solve_takes_a_file_and_overrides(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('based_on = "slime-qwen3-235b"\nconcurrency = 512\n', encoding="utf-8")
    from_file = answer(capsys, "solve", str(file))
    assert from_file == answer(capsys, "solve", "slime-qwen3-235b", "--set", "concurrency=512") | {"scenario": "mine"}


def test_simulate_prints_the_same_run_for_the_same_seed_with_what_only_a_simulation_knows(capsys):
    asked = ("simulate", "slime-qwen3-235b", "--steps", "12", "--seed")
    found, again, other = (answer(capsys, *asked, seed) for seed in ("1", "1", "2"))
    assert found.pop("seconds") > 0
    again.pop("seconds")
    assert found == again
    assert found["kind"] == "simulated"
    assert found["events"] > 1000
    assert found["staleness_p95"] >= 0
    assert found["stalled"] is None
    assert found["usd_per_mtok"] > 0
    assert found["events"] != other["events"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "slime"], "preset='slime' is not known"),
        (["solve", "nowhere.toml"], "cannot be read"),
        (["solve", "slime-qwen3-235b", "--set", "group_size=1"], "group_size=1 must be >= 2"),
        (["solve", "slime-qwen3-235b", "--set", "concurrency"], "must have the form KNOB=VALUE"),
        (["solve", "slime-qwen3-235b", "--set", "concurrency=many"], "concurrency='many' must be a whole number"),
        (["solve", "slime-qwen3-235b", "--set", "usd_per_kwh=1"], "did you mean node.usd_per_kwh"),
        (["tco", "--set", "usd_per_kwh=x"], "usd_per_kwh='x' must be a number"),
        (["tco", "--set", "usd=1"], "input='usd' is not known"),
        (["tco", "--node", "h2"], "node='h2' is not known"),
        (["simulate", "slime-qwen3-235b", "--steps", "0"], "steps=0 must be a whole number >= 1"),
        (["simulate", "slime-qwen3-235b", "--seed", "-1"], "seed=-1 must be a whole number >= 0"),
    ],
)
def test_bad_input_goes_to_stderr_with_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


@pytest.mark.parametrize("arguments", [["solve", "slime"], ["nonsense"], []])
def test_a_failing_process_ends_with_status_2_and_no_traceback(arguments):
    ended = subprocess.run(
        [sys.executable, "-m", "rlqueue.cli", *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert ended.stderr


@pytest.mark.parametrize("command", ["solve", "simulate"])
def test_a_run_whose_every_sandbox_comes_too_late_is_answered_or_refused_without_a_traceback(capsys, command):
    late = ("--set", "sandbox_timeout_s=0.1", "--set", "sandbox_start_s=6", "--json")
    status = main([command, "slime-qwen3-235b", *late, *(["--steps", "2"] if command == "simulate" else [])])
    said = capsys.readouterr()
    if status == 0:
        assert json.loads(said.out)["trainer_wait_ratio"] > 0.999
    else:
        assert (status, said.out) == (2, "")
        assert "event budget used up: nearly every rollout fails with its sandbox" in said.err


def test_listing_presets_does_not_load_the_compiler():
    code = "import sys; from rlqueue.cli import main; main(['presets']); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_knobs_that_only_make_sense_together_may_be_set_in_any_order(capsys):
    drift = ["--set", "drift_steps=20", "--set", "drift_law=linear", "--set", "drift_length_factor=1.5"]
    for order in (drift, drift[2:] + drift[:2]):
        assert (
            main(["simulate", "prime-rl-qwen3-235b", "--steps", "5", "--json", "--set", "concurrency=64", *order]) == 0
        )
        answer = json.loads(capsys.readouterr().out)
        assert 0 < answer["truncated_fraction"] < 0.5
    assert "last_mean_solve_rate" not in answer


def test_a_reader_that_stops_early_sees_no_traceback():
    command = f"{sys.executable} -m rlqueue.cli presets --json | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
