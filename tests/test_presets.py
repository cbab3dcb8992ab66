"""Presets: what was calibrated is reproduced from the rows that the data files name."""

import csv
import dataclasses

import pytest

from rlqueue import Scenario, solve
from rlqueue.presets import preset, preset_names, reported
from rlqueue.provenance import data_folder, table


def mean_rollout_s(name):
    """The mean rollout time that a preset's decode efficiency was calibrated on."""
    if name == "prime-rl-glm-5":
        times = [
            float(row["y"])
            for row in table("report_series")
            if row["figure"] == "glm-5-rollout-time" and row["series"] == "rollout_s"
        ]
    else:
        times = [float(row["rollout_s"]) for row in table(Scenario.from_data(name).measured_run)]
    assert len(times) in (10, 20, 25)
    return sum(times) / len(times)


@pytest.mark.parametrize("name", ["prime-rl-qwen3-235b", "prime-rl-glm-5", "slime-qwen3-235b"])
def test_the_calibrated_decode_efficiency_gives_the_measured_mean_rollout_time(name):
    assert preset(name)["decode_efficiency"].kind == "calibrated"
    # four digits of an efficiency of 0.2 to 0.4 are worth 0.05 % of the time
    assert solve(Scenario.from_data(name)).rollout_s == pytest.approx(mean_rollout_s(name), rel=5e-4)


def test_the_concurrency_of_prime_rl_is_little_s_law_on_the_printed_rate_and_time():
    in_flight = 1.95 * mean_rollout_s("prime-rl-qwen3-235b") / (1 - 0.6)
    assert preset("prime-rl-qwen3-235b")["concurrency"].kind == "calibrated"
    assert Scenario.from_data("prime-rl-qwen3-235b").concurrency == pytest.approx(in_flight, rel=1e-3)


def test_the_mfu_of_the_verl_runs_is_calibrated_on_the_run_at_96_slots():
    first = Scenario.from_data("verl-qwen3-235b-c96")
    for slots in (96, 256, 360):
        fact = preset(f"verl-qwen3-235b-c{slots}")["mfu"]
        assert (fact.kind, fact.value) == ("calibrated", first.mfu)
    assert solve(first).trainer_wait_ratio == pytest.approx(0.6, abs=0.002)


@pytest.mark.parametrize("name", preset_names())
def test_no_calibrated_number_is_passed_off_as_a_prediction(name):
    for knob, fact in preset(name).items():
        if fact.kind == "calibrated":
            assert "no test" in fact.note or "predicted" in fact.note, knob


@pytest.mark.parametrize("name", preset_names())
def test_what_the_report_does_not_give_is_marked_assumed(name):
    kinds = {fact.kind for fact in preset(name).values()}
    assert "assumed" in kinds
    assert preset(name)["memory_fraction"].kind == "assumed"


def test_every_preset_file_is_listed_and_every_listed_preset_has_a_file():
    files = {path.stem for path in (data_folder() / "presets").glob("*.csv")}
    assert files == set(preset_names())
    for name in files:
        with (data_folder() / "presets" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert {row["entity"] for row in rows} == {name}
        quantities = [row["quantity"] for row in rows]
        assert len(quantities) == len(set(quantities))
        assert set(quantities) <= {field.name for field in dataclasses.fields(Scenario)}


def test_every_preset_says_what_the_report_found():
    for name in preset_names():
        found = reported(name)
        assert "trainer_wait_ratio" in found or {"trainer_wait_ratio_low", "trainer_wait_ratio_high"} <= found.keys()
