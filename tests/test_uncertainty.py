"""Ranges of inputs, the bands they give, and the tornado: exact cases, laws, and the defaults that the data hold."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation_toys import toy

from rlqueue import Scenario, cost, simulate, solve
from rlqueue.presets import preset, preset_names
from rlqueue.provenance import KINDS, table
from rlqueue.ranges import Range, default_ranges, file_ranges, given_range, moved, with_given
from rlqueue.uncertainty import QUANTITIES, bands, measure_first, sampled, simulated_bands, tornado

SLIME = Scenario.from_data("slime-qwen3-235b")
SPREAD = toy(schedule="async-in-flight", response_sigma_between_prompts=0.5, concurrency=8)
PRICE = Range(knob="gpu_hour_usd", low=2.0, high=4.0)
PRICED = dataclasses.replace(SLIME, gpu_hour_usd=3.0)


def test_a_price_that_is_even_between_its_ends_gives_cost_its_quantiles():
    """Cost is proportional to the price of a GPU-hour: 5 % of 2 to 4 $ lie below 2.1 $."""
    per_dollar = cost(PRICED, solve(PRICED)).usd_per_mtok / 3.0
    band = bands(PRICED, [PRICE], samples=1024).of("usd_per_mtok")
    assert band.value == pytest.approx(3.0 * per_dollar)
    found = np.array([band.low, band.median, band.high]) / per_dollar
    assert found == pytest.approx([2.1, 3.0, 3.9], abs=0.01)  # scrambled Sobol points: within one of 1,024
    wait = bands(PRICED, [PRICE]).of("trainer_wait_ratio")
    assert wait.low == wait.high == solve(PRICED).trainer_wait_ratio


@given(st.sampled_from(["even", "log", "normal"]), st.floats(0.01, 1.0), st.floats(1.01, 100.0))
def test_a_range_rises_from_its_low_end_to_its_high_end(law, low, factor):
    each = Range(knob="mfu", low=low, high=low * factor, law=law)
    values = each.at(np.linspace(0.0, 1.0, 21))
    assert values[0] == pytest.approx(low)
    assert values[-1] == pytest.approx(low * factor)
    assert np.all(np.diff(values) > 0)


def test_a_normal_range_has_two_standard_deviations_to_each_end():
    each = given_range(SLIME, "mfu", "+-0.02")
    assert (each.low, each.high) == pytest.approx((0.065, 0.145))
    inside = each.at(np.array([0.5 - 0.3413 / 0.9545, 0.5, 0.5 + 0.3413 / 0.9545]))  # a cut normal law's own quantiles
    assert inside == pytest.approx([0.085, 0.105, 0.125], abs=1e-5)


def test_samples_are_the_same_for_a_seed_and_others_for_another():
    ranges = default_ranges(SLIME)
    assert sampled(SLIME, ranges, 16, 3) == sampled(SLIME, ranges, 16, 3)
    assert sampled(SLIME, ranges, 16, 3) != sampled(SLIME, ranges, 16, 4)
    assert bands(SLIME, ranges, 16, 3) == bands(SLIME, ranges, 16, 3)


def test_samples_that_no_run_may_have_are_counted_and_left_out():
    longer = Range(knob="mean_response_tokens", low=12_000.0, high=2 * 24_836.0 - 12_000.0)
    found = bands(SLIME, [longer], samples=64)
    assert (found.samples, found.refused) == (32, 32)  # half of the range is beyond the cut at 24,836 tokens
    with pytest.raises(ValueError, match="no sample of them is a possible run"):
        bands(SLIME, [Range(knob="mean_response_tokens", low=25_000.0, high=26_000.0)], samples=8)


@pytest.mark.parametrize("name", preset_names())
def test_each_preset_s_default_ranges_hold_its_value_and_only_what_no_source_prints(name):
    scenario = Scenario.from_data(name)
    ranges = default_ranges(scenario)
    for each in ranges:
        assert each.low <= preset(name)[each.knob].value <= each.high
        assert each.kind not in {"printed", "measured", "datasheet"}
        assert each.reason
    assert {"mfu", "decode_efficiency"} & {each.knob for each in ranges}
    band = bands(scenario, samples=64)
    assert band.refused == 0
    assert all(each.low <= each.median <= each.high for each in band.rows)
    assert 0.05 < band.of("trainer_wait_ratio").high - band.of("trainer_wait_ratio").low < 0.8


def test_a_knob_that_was_moved_has_no_default_range():
    assert "mfu" in {each.knob for each in default_ranges(SLIME)}
    assert "mfu" not in {each.knob for each in default_ranges(dataclasses.replace(SLIME, mfu=0.2))}
    assert default_ranges(dataclasses.replace(SLIME, name="mine")) == ()


def test_rows_of_default_ranges_name_known_knobs_and_kinds():
    for row in table("input_ranges"):
        assert row["knob"] in SLIME.settable()
        assert set(row["of_kinds"].split()) <= set(KINDS)
        assert row["scale"] in {"factor", "value"}


def test_the_tornado_is_sorted_and_its_ends_are_solved_cases():
    bars = tornado(SLIME, quantity="trainer_wait_ratio")
    assert [bar.swing for bar in bars] == sorted((bar.swing for bar in bars), reverse=True)
    first = bars[0]
    for end, there in ((first.low, first.at_low), (first.high, first.at_high)):
        assert solve(moved(SLIME, {first.knob: end})).trainer_wait_ratio == there
    words = measure_first(bars, "trainer_wait_ratio")
    assert words.startswith(
        "Measure mfu first: between 0.0525 and 0.21 it moves trainer_wait_ratio from 0.167 to 0.792, "
    )
    assert tornado(SLIME, [PRICE])[0].value == pytest.approx(1.5919, abs=1e-4)  # unset: what owning the node costs
    assert measure_first(tornado(SLIME, [PRICE], "step_s"), "step_s") == "No input with a range moves step_s."


def test_a_tornado_draws_an_impossible_end_in():
    (bar,) = tornado(SLIME, [Range(knob="mean_response_tokens", low=10_000.0, high=30_000.0)])
    assert bar.low == 10_000.0
    assert bar.value < bar.high < 24_836.0


def test_chance_alone_gives_a_band_and_certain_lengths_none():
    chance = simulated_bands(SPREAD, (), samples=8, steps=20)
    assert chance.of("step_s").kind == "simulated"
    assert chance.of("step_s").low < chance.of("step_s").high
    still = simulated_bands(dataclasses.replace(SPREAD, response_sigma_between_prompts=0.0), (), samples=4, steps=20)
    assert still.of("step_s").low == still.of("step_s").high


def test_a_simulated_band_of_inputs_and_chance_is_wider_than_one_of_chance():
    ranges = [Range(knob="decode_overhead_s", low=0.005, high=0.02)]
    both = simulated_bands(SPREAD, ranges, samples=16, steps=20).of("step_s")
    chance = simulated_bands(SPREAD, (), samples=16, steps=20).of("step_s")
    assert both.high - both.low > 1.5 * (chance.high - chance.low)
    assert both.low < chance.value < both.high


@settings(max_examples=20)
@given(st.floats(0.5, 0.99))
def test_a_higher_level_never_narrows_a_band(level):
    narrow = bands(PRICED, [PRICE], samples=32, level=level - 0.3).of("usd_per_mtok")
    wide = bands(PRICED, [PRICE], samples=32, level=level).of("usd_per_mtok")
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_a_scenario_file_may_hold_ranges(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'based_on = "slime-qwen3-235b"\nconcurrency = 512\n[ranges]\nmfu = [0.08, 0.12]\ntool_call_s = "1..3"\n'
        'gpus_per_replica = {sigma = 1}\n"node.usd_per_kwh" = "+-0.01"\n', encoding="utf-8",
    )  # fmt: skip
    scenario = Scenario.from_file(file)
    found = {each.knob: each for each in file_ranges(file, scenario)}
    assert (found["mfu"].low, found["mfu"].high, found["mfu"].kind) == (0.08, 0.12, "given")
    assert found["node.usd_per_kwh"].law == "normal"
    assert "concurrency" not in found  # moved in the file, so that the preset's range says nothing of it
    assert "decode_efficiency" in found  # the preset's
    assert bands(scenario, [*found.values()], samples=16).samples == 16


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("mfu", "0.1-0.2", "must have the form low..high"),
        ("mfu", "0.2..0.1", "low=0.2 must be < high=0.1"),
        ("mfu", "0.1..2", r"mfu=2 must be <= 1"),
        ("mfu", "+-0", "must be < high"),
        ("mfu", {"spread": 1}, "must have the form"),
        ("mfu", {"sigma": 1, "low": 2}, "must be a finite number"),
        ("schedule", "1..2", "is no number"),
        ("prefix_cache", "0..1", "is no number"),
        ("mfy", "1..2", "did you mean mfu"),
        ("mean_response_tokens", "1..inf", "must be a finite number"),
    ],
)
def test_a_bad_range_is_refused_by_name(knob, value, message):
    with pytest.raises(ValueError, match=message):
        given_range(SLIME, knob, value)


def test_a_given_range_takes_the_place_of_the_default_one():
    defaults = default_ranges(SLIME)
    found = with_given(defaults, [Range(knob="mfu", low=0.1, high=0.11), PRICE])
    assert len(found) == len(defaults) + 1
    assert {each.knob: each.high for each in found}["mfu"] == 0.11


def test_every_quantity_is_one_of_a_run_or_its_bill():
    both = vars(solve(SLIME)) | vars(cost(SLIME, solve(SLIME)))
    assert QUANTITIES.keys() <= both.keys()
    with pytest.raises(ValueError, match="did you mean"):
        tornado(SLIME, quantity="trainer_wait")
    with pytest.raises(ValueError, match="level=1 must be > 0 and < 1"):
        bands(SLIME, level=1)
    with pytest.raises(ValueError, match="samples=0 must be"):
        bands(SLIME, samples=0)


def test_bands_of_a_run_that_moves_are_of_its_settled_part():
    """The hosted price follows the mix of tokens, which drift moves."""
    longer = dataclasses.replace(SLIME, drift_law="linear", drift_steps=20, drift_length_factor=1.5)
    run = simulate(longer, seed=0, steps=24)
    found = simulated_bands(longer, (), samples=1, steps=24)
    assert found.of("hosted_usd_per_mtok").value == cost(run.settled, run.operating_point).hosted_usd_per_mtok
    assert found.of("hosted_usd_per_mtok").value != cost(longer, run.operating_point).hosted_usd_per_mtok


def test_a_knob_without_a_limit_goes_to_both_ends_of_its_range():
    """No create rate limits the preset; one sandbox in a hundred seconds makes its steps cost more."""
    (bar,) = tornado(SLIME, [given_range(SLIME, "sandbox_creates_per_s", "0.01..1")])
    assert (bar.low, bar.high) == (0.01, 1.0)
    slow = dataclasses.replace(SLIME, sandbox_creates_per_s=0.01)
    assert bar.at_low == cost(slow, solve(slow)).usd_per_mtok > bar.at_value


def test_whole_numbers_stay_whole_in_parts_as_well():
    assert moved(SLIME, {"node.gpus_per_server": 7.6}).node.gpus_per_server == 8
    assert moved(SLIME, {"concurrency": 255.6}).concurrency == 256


def test_ranges_of_a_part_s_fields_may_stand_in_a_table_of_their_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'based_on = "slime-qwen3-235b"\n[ranges.node]\nusd_per_kwh = [0.05, 0.12]\n[ranges.hosted_price]\n'
        "train_usd_per_mtok = {sigma = 0.1}\n", encoding="utf-8",
    )  # fmt: skip
    found = {each.knob: each for each in file_ranges(file, Scenario.from_file(file))}
    assert (found["node.usd_per_kwh"].low, found["node.usd_per_kwh"].high) == (0.05, 0.12)
    assert found["hosted_price.train_usd_per_mtok"].law == "normal"


def test_a_written_preset_keeps_the_ranges_of_what_it_does_not_print(tmp_path):
    file = tmp_path / "downloaded.toml"
    file.write_text(dataclasses.replace(SLIME, mfu=0.2).to_toml(), encoding="utf-8")
    found = file_ranges(file, Scenario.from_file(file))
    assert {each.knob for each in found} == {each.knob for each in default_ranges(SLIME)} - {"mfu"}
    file.write_text(dataclasses.replace(SLIME, name="mine").to_toml(), encoding="utf-8")
    assert file_ranges(file, Scenario.from_file(file)) == ()


def test_a_price_of_power_gives_the_cost_its_share_by_hand():
    """1 kWh more a GPU-hour's worth of power: kW * PUE * utilisation / GPUs of a server, over the tokens of an hour."""
    ends = [Range(knob="node.usd_per_kwh", low=0.0, high=1.0)]
    (bar,) = tornado(SLIME, ends)
    node = SLIME.node
    kwh_per_gpu_hour = node.kw_per_server * node.pue_ratio * node.utilisation_ratio / node.gpus_per_server
    gpus = SLIME.trainer_gpus + SLIME.generator_gpus
    mtok_per_hour = solve(SLIME).trained_tokens_per_s * 3600 / 1e6
    assert bar.swing == pytest.approx(kwh_per_gpu_hour * gpus / mtok_per_hour)
