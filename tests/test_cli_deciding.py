"""The commands plan, sensitivity and sweep: JSON with the answers' own names, text that says them, refusals by name."""

import dataclasses
import json
import subprocess
import sys

import pandas as pd
import pytest
from simulation_toys import toy

from rlqueue import Scenario, simulate
from rlqueue.cli import main
from rlqueue.simulation import lumped
from rlqueue.uncertainty import simulated_bands


@pytest.fixture
def small(tmp_path):
    """A scenario file of four GPUs whose runs take milliseconds."""
    file = tmp_path / "small.toml"
    scenario = toy(
        trainer_gpus=2, generator_gpus=2, prompts_per_step=4, concurrency=16, schedule="async-in-flight", max_staleness=2.0,
        response_sigma_between_prompts=0.6, mfu=1.5e-6, gpu_hour_usd=2.0, measured_run="",
    )  # fmt: skip
    file.write_text(scenario.to_toml(), encoding="utf-8")
    return file


def answer(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_plan_prints_the_best_plan_within_its_limits_and_the_same_again(capsys, small):
    asked = (
        "plan",
        small,
        "--objective",
        "tokens-per-s",
        "--max-staleness-versions",
        2,
        "--schedule",
        "async-in-flight",
    )
    found = answer(capsys, *asked)
    assert found["plan"]["schedule"] == "async-in-flight"
    assert found["plan"]["staleness_versions"] <= 2
    assert found["plan"]["trainer_gpus"] + found["plan"]["generator_gpus"] == found["gpus"] == 4
    assert found["plan"]["value"] >= found["as_it_is"]["value"]
    assert found == answer(capsys, *asked)
    assert main([*map(str, asked)]) == 0
    told = capsys.readouterr().out
    assert all(sentence in told for sentence in found["sentences"])
    for each in found["options"]:
        tied = each["change_low"] <= 0 <= each["change_high"]
        assert each["distinguishable"] != tied  # both sides: the band of the difference holds none, or it does not
        line = next(
            line
            for line in told.splitlines()
            if line.startswith(f"{each['role']:26}") and f"{each['concurrency']:,}" in line
        )
        if each["role"] != "plan" and [one["role"] for one in found["options"]].count(each["role"]) == 1:
            assert ("not distinguishable" in line) == tied
            assert f"{100 * each['change_low']:+.1f} to {100 * each['change_high']:+.1f} %" in line


def test_plan_of_hours_takes_the_length_of_the_run_from_the_scenario(capsys, small):
    limits = ("--schedule", "async-in-flight", "--gpus", 3)
    found = answer(capsys, "plan", small, "--objective", "hours", "--set", "training_steps=100", *limits)
    twice = answer(capsys, "plan", small, "--objective", "hours", "--training-steps", 200, *limits)
    assert twice["plan"]["value"] == pytest.approx(2 * found["plan"]["value"])


def test_sensitivity_prints_bands_and_a_tornado(capsys):
    asked = (
        "sensitivity",
        "slime-qwen3-235b",
        "--range",
        "mfu=0.1..0.11",
        "--samples",
        32,
        "--quantity",
        "trainer_wait_ratio",
    )
    found = answer(capsys, *asked, "--simulated", 4)
    assert {band["kind"] for band in found["bands"]} == {"closed form", "simulated"}
    bars = {bar["knob"]: bar for bar in found["tornado"]}
    assert (bars["mfu"]["kind"], bars["mfu"]["high"]) == ("given", 0.11)
    assert bars["decode_overhead_s"]["kind"] == "assumed"
    assert main([*map(str, asked), "--only-given"]) == 0
    told = capsys.readouterr().out
    assert "Measure mfu first" in told
    assert "decode_overhead_s" not in told


def test_sensitivity_reads_the_ranges_of_a_scenario_file(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('based_on = "slime-qwen3-235b"\n[ranges]\ntool_call_s = [1, 3]\n', encoding="utf-8")
    found = answer(capsys, "sensitivity", file, "--samples", 8)
    bars = {bar["knob"]: bar for bar in found["tornado"]}
    assert (bars["tool_call_s"]["low"], bars["tool_call_s"]["kind"]) == (1, "given")
    assert bars["mfu"]["kind"] == "assumed"


def test_solve_with_bands_is_solve_and_the_bands_of_sensitivity(capsys):
    asked = ("slime-qwen3-235b", "--range", "mfu=0.1..0.11", "--samples", 64, "--level", 0.8)
    plain = answer(capsys, "solve", "slime-qwen3-235b")
    found = answer(capsys, "solve", *asked, "--band")
    assert plain.items() <= found.items()
    other = answer(capsys, "sensitivity", *asked)
    for name in ("bands", "ranges", "level", "samples", "refused"):
        assert found[name] == other[name]
    for band in found["bands"]:
        assert band["kind"] == "closed form"
        assert band["value"] == plain[band["quantity"]]
        assert band["low"] <= band["median"] <= band["high"]
    known = {each["knob"]: each for each in found["ranges"]}
    assert (known["mfu"]["kind"], known["tool_call_s"]["kind"]) == ("given", "assumed")
    assert main(["solve", *map(str, asked), "--band", "--only-given"]) == 0
    told = capsys.readouterr().out
    band = next(each for each in found["bands"] if each["quantity"] == "trainer_wait_ratio")
    line = next(line for line in told.splitlines() if line.startswith("trainer_wait_ratio"))
    assert f"{band['value']:.4f}" in line
    assert " to " in line
    assert "closed form; 80% of 64 samples lie between" in told
    assert "Over: mfu 0.1..0.11." in told


def test_simulate_with_bands_is_the_run_and_bands_over_ranges_and_seeds(capsys):
    asked = ("simulate", "slime-qwen3-235b", "--seed", 1, "--steps", 12)
    plain = answer(capsys, *asked)
    found = answer(capsys, *asked, "--band", "--samples", 8)
    del plain["seconds"]
    assert plain.items() <= found.items()
    for band in found["bands"]:
        assert (band["kind"], band["value"]) == ("simulated", plain[band["quantity"]])
    library = simulated_bands(Scenario.from_data("slime-qwen3-235b"), samples=8, seed=1, steps=12)
    expected = {band.quantity: (band.low, band.high) for band in library.rows}
    assert {band["quantity"]: (band["low"], band["high"]) for band in found["bands"]} == expected
    chance = answer(capsys, *asked, "--band", "--samples", 8, "--only-given")
    assert chance["ranges"] == []
    wide, narrow = (
        next(band for band in each["bands"] if band["quantity"] == "usd_per_mtok") for each in (found, chance)
    )
    assert 0 < narrow["high"] - narrow["low"] < wide["high"] - wide["low"]


def test_bands_of_an_unlimited_knob_are_json(capsys):
    found = answer(
        capsys, "sensitivity", "slime-qwen3-235b", "--range", "sandbox_cap=50..500", "--only-given", "--samples", 8
    )
    assert found["tornado"][0]["value"] is None


def test_ranges_of_a_file_are_given_ones(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('based_on = "slime-qwen3-235b"\n[ranges.node]\nusd_per_kwh = [0.05, 0.1]\n', encoding="utf-8")
    found = answer(capsys, "solve", file, "--band", "--only-given", "--range", "mfu=0.1..0.11", "--samples", 8)
    assert [each["knob"] for each in found["ranges"]] == ["node.usd_per_kwh", "mfu"]
    for name in ("trainer_wait_ratio", "usd_per_mtok"):
        band = next(band for band in found["bands"] if band["quantity"] == name)
        assert band["low"] < band["high"]


def test_a_bad_range_in_a_file_is_refused_even_where_no_band_is_asked_for(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('based_on = "slime-qwen3-235b"\n[ranges]\nmfu = [0.2, 0.1]\n', encoding="utf-8")
    for command in ("solve", "sensitivity"):
        assert main([command, str(file)]) == 2
        assert "range of mfu: low=0.2 must be < high=0.1" in capsys.readouterr().err


def test_sweep_writes_a_table_and_resumes_it(capsys, small, tmp_path):
    out = tmp_path / "sweep.parquet"
    asked = (
        "sweep",
        small,
        "--axis",
        "concurrency=4,8",
        "--axis",
        "split=1:3,2:2",
        "--seeds",
        3,
        "--steps",
        4,
        "--out",
        out,
    )
    found = answer(capsys, *asked, "--workers", 1)
    assert (found["runs"], found["combinations"], found["without_a_step"]) == (12, 4, 0)
    table = pd.read_parquet(out)
    assert table["split"].tolist() == [each for _ in range(2) for each in ("1:3", "2:2") for _ in range(3)]
    assert answer(capsys, *asked, "--resume") == found
    assert main([*map(str, asked)]) == 2
    assert "exists already; resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["plan", "slime-qwen3-235b", "--objective", "hours", "--set", "training_steps=1"],
            "needs training_steps or training_tokens",
        ),
        (
            ["plan", "slime-qwen3-235b", "--gpus", "8"],
            "gpus=8 must be >= 9: one replica of 8 GPUs and 1 for the trainer",
        ),
        (["plan", "slime-qwen3-235b", "--max-usd", "0.5"], "no plan: max_usd_per_mtok=0.5 must be >= 1.3"),
        (["plan", "slime-qwen3-235b", "--schedule", "async"], "schedule='async' is not known"),
        (["plan", "slime-qwen3-235b", "--max-wait=-1"], "max_wait_ratio=-1.0 must be a number >= 0"),
        (["sensitivity", "slime-qwen3-235b", "--range", "mfu"], "must have the form KNOB=LOW..HIGH"),
        (["sensitivity", "slime-qwen3-235b", "--only-given"], "no input has a range"),
        (["solve", "slime-qwen3-235b", "--band", "--only-given"], "no input has a range"),
        (["solve", "slime-qwen3-235b", "--range", "mfu=0.1..0.2"], "belong to --band, which is not given"),
        (["solve", "slime-qwen3-235b", "--band", "--range", "mfu=0.1..2"], "range of mfu, end 2: mfu=2 must be <= 1"),
        (["solve", "slime-qwen3-235b", "--band", "--range", "schedule=1..2"], "'partial-rollout' is no number"),
        (["simulate", "slime-qwen3-235b", "--band", "--level", "1"], "level=1.0 must be > 0 and < 1"),
        (["sensitivity", "slime-qwen3-235b", "--quantity", "wait"], "quantity='wait' is not known"),
        (["sweep", "slime-qwen3-235b", "--axis", "mfu", "--out", "x.parquet"], "must have the form knob=a,b,c"),
        (["sweep", "slime-qwen3-235b", "--out", "x.csv"], r"must end in .parquet"),
        (["sweep", "slime-qwen3-235b", "--seeds", "0", "--out", "x.parquet"], "seeds=0 must be a whole number >= 1"),
    ],
)
def test_bad_input_goes_to_stderr_with_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_the_commands_are_listed_without_loading_a_compiler():
    code = (
        "import sys; from rlqueue.cli import _parser; _parser().format_help(); sys.exit(2 * ('numba' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_the_small_scenario_is_what_its_file_says(small):
    from rlqueue import Scenario

    assert dataclasses.replace(Scenario.from_file(small), name="x").generator_gpus == 2


def test_tenancy_on_the_command_line_is_that_of_the_library_and_one_tenant_is_the_single_run(capsys):
    words = ["tenancy", "slime-qwen3-235b", "--tenants", "2", "--steps", "10", "--seed", "3", "--lumped"]
    assert main([*words, "--json"]) == 0
    alone, both = json.loads(capsys.readouterr().out)["sharing"]
    assert both["tenants"] == 2
    assert both["usd_per_mtok"] < alone["usd_per_mtok"]
    run = simulate(lumped(Scenario.from_data("slime-qwen3-235b")), seed=3, steps=10)
    assert alone["trainer_wait_ratio"] == run.operating_point.trainer_wait_ratio
    assert main([*words[:3], "0"]) == 2
    assert "--tenants=0 must be >= 1" in capsys.readouterr().err
