"""What every file of facts in data/ promises, and the printed arithmetic that must hold in it."""

import csv
import math
import tomllib
from pathlib import Path
from statistics import fmean

import pytest

DATA = Path(__file__).parents[1] / "data"
KINDS = {"datasheet", "printed", "chart-read", "measured", "derived", "calibrated", "assumed"}
GRADES = {"A", "B", "C"}
QUANTITY_COLUMNS = ["entity", "quantity", "value", "unit", "kind", "source", "where", "note"]
UNIT_ENDINGS = ("_tokens", "_s", "_ratio", "_usd", "_per_s", "_bytes", "_h")
KEY_COLUMNS = {
    "llms": ["key"],
    "hosted_prices": ["key"],
    "sandbox_start": ["key"],
    "trainer_mfu": ["key"],
    "published_runs": ["key"],
    "prime_process": ["step"],
    "slime_process": ["step"],
    "slime_hosted_cost": ["step"],
    "report_series": ["figure", "series", "x"],
    "drift_presets": ["key"],
    "drift_series": ["key", "step"],
    "curriculum_series": ["series", "step"],
    "weight_sync_times": ["framework", "llm", "gpu", "method"],
}


def rows(name):
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def header(name):
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))


def numbers(name, column):
    return [float(row[column]) for row in rows(name)]


def quantities(name, entity):
    return {row["quantity"]: float(row["value"]) for row in rows(name) if row["entity"] == entity}


NAMES = sorted(path.stem for path in DATA.glob("*.csv"))
QUANTITY_NAMES = [name for name in NAMES if header(name)[0] == "entity"]
TABLE_NAMES = [name for name in NAMES if name not in QUANTITY_NAMES]
SOURCES = tomllib.loads((DATA / "sources.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_says_its_title_author_date_and_address(source):
    entry = SOURCES[source]
    assert {"title", "author", "date", "url"} <= set(entry)
    assert all(entry[field] for field in ("title", "author", "date"))
    assert entry["url"] == "" or entry["url"].startswith("https://")
    assert entry.get("grade", "A") in GRADES


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_a_known_kind_a_listed_source_and_a_place_in_it(name):
    for row in rows(name):
        assert None not in row, f"{name}: too many cells in {row}"
        assert None not in row.values(), f"{name}: too few cells in {row}"
        assert row["kind"] in KINDS, row
        assert row["source"] in SOURCES, row
        assert row["where"], row


@pytest.mark.parametrize("name", QUANTITY_NAMES)
def test_a_quantity_file_has_the_eight_columns_a_unit_and_a_number_or_a_text_in_each_row(name):
    assert header(name) == QUANTITY_COLUMNS
    for row in rows(name):
        assert row["unit"], row
        assert row["value"].isprintable() if row["unit"] == "text" else math.isfinite(float(row["value"])), row


@pytest.mark.parametrize("name", QUANTITY_NAMES)
def test_a_quantity_file_states_each_quantity_of_an_entity_once(name):
    pairs = [(row["entity"], row["quantity"]) for row in rows(name)]
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_a_table_ends_with_kind_source_where_and_note(name):
    assert header(name)[-4:] == ["kind", "source", "where", "note"]


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_no_table_repeats_a_row_or_a_key(name):
    table = rows(name)
    columns = KEY_COLUMNS.get(name, header(name))
    keys = [tuple(row[column] for column in columns) for row in table]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", NAMES)
def test_columns_with_a_unit_in_their_name_hold_finite_numbers_or_nothing(name):
    columns = [c for c in header(name) if c.endswith(UNIT_ENDINGS) or "_usd_per_" in c]
    for row in rows(name):
        for column in columns:
            assert row[column] == "" or math.isfinite(float(row[column])), (column, row)


@pytest.mark.parametrize("name", NAMES)
def test_ratios_lie_between_zero_and_one(name):
    for row in rows(name):
        for column, cell in row.items():
            # Speed-ups are ratios of times and pass 1.
            if column.endswith("_ratio") and column != "speedup_ratio" and cell:
                assert 0 <= float(cell) <= 1, (column, row)


def test_dense_fp8_is_twice_dense_bf16_on_every_gpu_that_has_fp8():
    for gpu in {row["entity"] for row in rows("hardware")}:
        have = quantities("hardware", gpu)
        if "dense_fp8_flops_per_s" in have:
            # Data sheets round the two figures apart: 989 and 1,979.
            assert have["dense_fp8_flops_per_s"] == pytest.approx(2 * have["dense_bf16_flops_per_s"], rel=1e-3)


def test_every_gpu_has_memory_bandwidth_bf16_peak_and_a_node_size():
    wanted = {"hbm_bytes", "hbm_bytes_per_s", "dense_bf16_flops_per_s", "gpus_per_node"}
    for gpu in {row["entity"] for row in rows("hardware")}:
        assert wanted <= set(quantities("hardware", gpu))


def test_h200_peaks_are_the_dense_figures_in_decimal_tera():
    h200 = quantities("hardware", "h200_sxm")
    assert h200["hbm_bytes"] == 141e9
    assert h200["hbm_bytes_per_s"] == 4.8e12
    assert h200["dense_bf16_flops_per_s"] == 989e12
    assert h200["dense_fp8_flops_per_s"] == 1979e12


@pytest.mark.parametrize("row", rows("llms"), ids=lambda row: row["key"])
def test_kv_bytes_of_a_token_follow_from_the_shape_of_the_llm(row):
    layers = int(row["kv_growing_layers"])
    assert layers <= int(row["layers"])
    if row["mla_kv_lora_rank"]:
        values_per_layer = int(row["mla_kv_lora_rank"]) + int(row["mla_rope_dim"])
    else:
        values_per_layer = 2 * int(row["kv_heads"]) * int(row["head_dim"])
    assert int(row["kv_bytes_per_token_bf16"]) == layers * values_per_layer * 2


@pytest.mark.parametrize("row", rows("llms"), ids=lambda row: row["key"])
def test_weights_take_two_bytes_a_parameter_in_bf16_and_one_in_fp8(row):
    assert int(row["weights_bytes_bf16"]) == 2 * int(row["total_params"])
    assert int(row["weights_bytes_fp8"]) == int(row["total_params"])


@pytest.mark.parametrize("row", rows("llms"), ids=lambda row: row["key"])
def test_a_dense_llm_has_one_expert_and_a_mixture_activates_a_part(row):
    experts, per_token = int(row["experts"]), int(row["experts_per_token"])
    if row["family"] == "dense":
        assert (experts, per_token) == (1, 1)
        assert row["active_params"] == row["total_params"]
    else:
        assert 1 < per_token < experts
        assert int(row["active_params"]) < int(row["total_params"])


def test_llm_keys_are_lower_case_without_spaces():
    for row in rows("llms"):
        assert row["key"] == row["title"].lower()
        assert " " not in row["key"]


def test_the_six_capital_items_sum_to_the_printed_total():
    inputs, printed = quantities("h200_tco", "h200"), quantities("reported", "h200-tco")
    items = ["server_usd", "networking_usd", "storage_usd", "server_service_usd", "installation_usd", "software_usd"]
    total_usd = sum(inputs[item] for item in items)
    assert total_usd == printed["capex_usd_per_server"]
    assert round(total_usd / inputs["gpus_per_server"]) == printed["capex_usd_per_gpu"]
    # 258,001 + 103,253 = 361,254: the printed subtotal is rounded by one dollar.
    assert total_usd - inputs["server_usd"] == pytest.approx(printed["capex_without_server_usd_per_server"], abs=1)


def test_an_annuity_paid_at_month_ends_gives_the_printed_capital_cost_to_the_cent():
    inputs, printed = quantities("h200_tco", "h200"), quantities("reported", "h200-tco")
    rate, payments = inputs["wacc_per_year"] / 12, 12 * inputs["useful_life_years"]
    monthly_usd = printed["capex_usd_per_server"] * rate / (1 - (1 + rate) ** -payments)
    assert monthly_usd == pytest.approx(printed["capital_usd_per_server_month"], abs=0.005)


def test_power_colocation_and_services_give_the_printed_operating_cost_to_the_cent():
    inputs, printed = quantities("h200_tco", "h200"), quantities("reported", "h200-tco")
    electricity = inputs["usd_per_kwh"] * inputs["utilisation_ratio"] * inputs["pue_ratio"] * inputs["hours_per_month"]
    assert electricity == pytest.approx(printed["electricity_usd_per_kw_month"], abs=0.005)
    power = inputs["kw_per_server"] * (electricity + inputs["colocation_usd_per_kw_month"])
    assert power == pytest.approx(printed["power_and_colocation_usd_per_server_month"], abs=0.005)
    operating = power + inputs["remote_hands_usd_per_month"] + inputs["internet_usd_per_month"]
    assert operating == pytest.approx(printed["operating_usd_per_server_month"], abs=0.005)


def test_the_unrounded_power_of_a_server_rounds_to_both_printed_figures():
    inputs, printed = quantities("h200_tco", "h200"), quantities("reported", "h200-tco")
    assert round(inputs["kw_per_server"], 2) == inputs["kw_per_server_printed"]
    assert round(inputs["kw_per_server"] / inputs["gpus_per_server"], 2) == printed["kw_per_gpu"]


def test_printed_costs_of_a_gpu_hour_follow_from_those_of_a_server_month():
    inputs, printed = quantities("h200_tco", "h200"), quantities("reported", "h200-tco")
    gpu_hours = inputs["gpus_per_server"] * inputs["hours_per_month"]
    capital, operating = printed["capital_usd_per_server_month"], printed["operating_usd_per_server_month"]
    assert capital / gpu_hours == pytest.approx(printed["capital_usd_per_gpu_hour"], abs=0.005)
    assert operating / gpu_hours == pytest.approx(printed["operating_usd_per_gpu_hour"], abs=0.005)
    assert (capital + operating) / gpu_hours == pytest.approx(printed["total_usd_per_gpu_hour"], abs=0.005)
    assert capital / (capital + operating) == pytest.approx(printed["capital_share"], abs=5e-4)


def test_the_299_dollars_of_the_summary_are_power_and_colocation_alone():
    power = quantities("reported", "h200-tco")["power_and_colocation_usd_per_server_month"]
    assert power / 8 == pytest.approx(quantities("reported", "summary")["usd_per_gpu_month"], abs=0.5)


@pytest.mark.parametrize("name", ["prime_process", "slime_process"])
def test_prompt_and_response_tokens_make_the_sequence(name):
    for row in rows(name):
        parts = int(row["mean_prompt_tokens"]) + int(row["mean_response_tokens"])
        # Three means, each rounded to one token.
        assert abs(parts - int(row["mean_sequence_tokens"])) <= 1, row


@pytest.mark.parametrize(
    ("name", "preset"), [("prime_process", "prime-rl-qwen3-235b"), ("slime_process", "slime-qwen3-235b")]
)
def test_process_tables_average_to_the_printed_averages(name, preset):
    printed = quantities("reported", preset)
    for column in ("mean_prompt_tokens", "mean_response_tokens", "mean_sequence_tokens"):
        # The rows are themselves rounded, so the mean may fall to the other side of a half.
        assert fmean(numbers(name, column)) == pytest.approx(printed[column], abs=1)
    assert fmean(numbers(name, "rollout_s")) == pytest.approx(printed["mean_rollout_s"], abs=0.5)


def test_hosted_cost_rows_average_to_the_printed_averages():
    printed = quantities("reported", "slime-qwen3-235b")
    for column, quantity in [
        ("prefill_usd", "hosted_prefill_usd_per_step"),
        ("decode_usd", "hosted_decode_usd_per_step"),
        ("train_usd", "hosted_train_usd_per_step"),
        ("total_usd", "hosted_total_usd_per_step"),
        ("usd_per_mtok", "hosted_usd_per_mtok"),
    ]:
        # Cents on both sides: half a cent of the average and half a cent of the rows.
        assert fmean(numbers("slime_hosted_cost", column)) == pytest.approx(printed[quantity], abs=0.01)


def test_hosted_cost_rows_are_the_tokens_of_64_samples_at_the_price_of_that_day():
    price = next(row for row in rows("hosted_prices") if row["key"] == "tinker/Qwen3-235B-A22B/2026-06-11")
    samples_per_step = 64
    for step, bill in zip(rows("slime_process"), rows("slime_hosted_cost"), strict=True):
        assert step["step"] == bill["step"]
        for tokens, usd_per_mtok, usd in [
            ("mean_prompt_tokens", "prefill_usd_per_mtok", "prefill_usd"),
            ("mean_response_tokens", "sample_usd_per_mtok", "decode_usd"),
            ("mean_sequence_tokens", "train_usd_per_mtok", "train_usd"),
        ]:
            mtok = samples_per_step * int(step[tokens]) / 1e6
            assert mtok * float(price[usd_per_mtok]) == pytest.approx(float(bill[usd]), abs=0.0055), (step, usd)


@pytest.mark.parametrize(
    ("name", "preset", "gpus", "samples_per_step"),
    [("prime_process", "prime-rl-qwen3-235b", 256, 512), ("slime_process", "slime-qwen3-235b", 96, 64)],
)
def test_the_cost_of_the_report_is_the_mean_over_steps_of_gpu_hours_of_one_rollout_per_trained_token(
    name, preset, gpus, samples_per_step
):
    usd_per_gpu_hour = quantities("reported", "h200-tco")["total_usd_per_gpu_hour"]
    usd_per_mtok = [
        gpus
        * usd_per_gpu_hour
        * float(row["rollout_s"])
        / 3600
        / (samples_per_step * int(row["mean_sequence_tokens"]) / 1e6)
        for row in rows(name)
    ]
    printed = quantities("reported", preset)["usd_per_mtok_report_method"]
    assert fmean(usd_per_mtok) == pytest.approx(printed, abs=0.005)


def test_printed_cost_ratios_are_self_built_over_hosted():
    for preset in ("prime-rl-qwen3-235b", "slime-qwen3-235b"):
        printed = quantities("reported", preset)
        ratio = printed["usd_per_mtok_report_method"] / printed["hosted_usd_per_mtok"]
        assert ratio == pytest.approx(printed["cost_ratio"], abs=0.005)


def test_printed_mfu_follows_from_tokens_flops_and_the_dense_peak():
    printed = quantities("reported", "prime-rl-qwen3-235b")
    active = next(int(r["active_params"]) for r in rows("llms") if r["key"] == "qwen3-235b-a22b-thinking-2507")
    flops_per_s = 6 * active * printed["mean_sequence_tokens"] * printed["consumption_per_s"]
    peak = 64 * quantities("hardware", "h200_sxm")["dense_bf16_flops_per_s"]
    assert flops_per_s / peak == pytest.approx(printed["mfu_computing"], abs=5e-4)


def test_printed_wait_of_the_prime_rl_run_is_the_gap_between_the_two_rates():
    printed = quantities("reported", "prime-rl-qwen3-235b")
    gap = 1 - printed["production_per_s"] / printed["consumption_per_s"]
    # Printed as "about 30 %".
    assert gap == pytest.approx(printed["trainer_wait_ratio"], abs=0.015)


def test_chart_readings_stay_within_a_tenth_of_the_printed_rollout_times():
    chart = [
        float(r["y"])
        for r in rows("report_series")
        if (r["figure"], r["series"]) == ("prime-rollout-time", "rollout_s")
    ]
    for read, printed in zip(chart, numbers("prime_process", "rollout_s"), strict=True):
        assert read == pytest.approx(printed, rel=0.1)


def test_every_preset_of_the_report_has_a_wait_or_a_range_of_waits():
    for preset in ("prime-rl-qwen3-235b", "prime-rl-glm-5", "slime-qwen3-235b"):
        assert "trainer_wait_ratio" in quantities("reported", preset)
    for concurrency in ("c96", "c256", "c360"):
        printed = quantities("reported", f"verl-qwen3-235b-{concurrency}")
        assert printed["trainer_wait_ratio_low"] < printed["trainer_wait_ratio_high"]


def test_a_cached_prefill_costs_a_fifth_of_a_prefill_on_tinker():
    priced = [r for r in rows("hosted_prices") if r["cached_prefill_usd_per_mtok"] and "serverless" not in r["key"]]
    assert priced
    for row in priced:
        cached, prefill = float(row["cached_prefill_usd_per_mtok"]), float(row["prefill_usd_per_mtok"])
        # Prices are listed to a tenth of a cent.
        assert cached == pytest.approx(prefill / 5, abs=5e-4), row


def test_the_hosted_price_key_holds_service_and_date():
    for row in rows("hosted_prices"):
        assert row["key"].startswith(row["service"] + "/")
        assert row["key"].endswith("/" + (row["date"] or "undated"))


def test_sandbox_quantiles_rise_and_the_fitted_median_lies_near_the_measured_one():
    for row in rows("sandbox_start"):
        quantiles = [float(row[c]) for c in ("p50_s", "p90_s", "p95_s", "p99_s")]
        assert quantiles == sorted(quantiles)
        # A fit through few tail values may miss the median; the worst here is a two-humped burst.
        assert math.exp(float(row["lognormal_mu_ln_s"])) == pytest.approx(quantiles[0], rel=0.35), row


def test_trainer_benchmarks_share_their_tokens_evenly_among_the_gpus():
    for row in rows("trainer_mfu"):
        per_gpu = float(row["tokens_per_s"]) / int(row["gpus"])
        assert per_gpu == pytest.approx(float(row["tokens_per_s_per_gpu"]), abs=0.1)


def test_weight_sync_ranges_have_their_low_end_first():
    for row in rows("weight_sync_times"):
        if row["weight_sync_s_low"]:
            assert float(row["weight_sync_s_low"]) <= float(row["weight_sync_s_high"])


def test_a_decode_row_gives_its_rate_either_per_server_or_per_gpu():
    for row in rows("decode_curves"):
        assert bool(row["output_tokens_per_s"]) != bool(row["output_tokens_per_s_per_gpu"]), row
        assert row["usable"] in {"yes", "no"}


def test_unreviewed_and_anomalous_decode_rows_are_marked_unusable():
    for row in rows("decode_curves"):
        if row["source"] == "inferencex" or "anomalous" in row["note"]:
            assert row["usable"] == "no", row


def test_published_runs_point_at_baselines_that_are_there():
    keys = {row["key"] for row in rows("published_runs")}
    for row in rows("published_runs"):
        assert row["baseline_key"] == "" or row["baseline_key"] in keys
        assert row["grade"] in GRADES


def test_published_gpus_are_split_between_the_two_sides_or_used_by_both():
    for row in rows("published_runs"):
        if row["gpus"] and row["trainer_gpus"] and row["generator_gpus"]:
            total, sides = int(row["gpus"]), (int(row["trainer_gpus"]), int(row["generator_gpus"]))
            assert sum(sides) == total or sides == (total, total), row


def test_published_wait_ratios_are_the_wait_over_the_step():
    for row in rows("published_runs"):
        if row["trainer_wait_s"] and row["step_s"] and row["trainer_wait_ratio"]:
            ratio = float(row["trainer_wait_s"]) / float(row["step_s"])
            assert ratio == pytest.approx(float(row["trainer_wait_ratio"]), abs=0.005), row


def test_published_batches_are_prompts_times_group_size():
    for row in rows("published_runs"):
        if row["prompts_per_step"] and row["group_size"] and row["samples_per_step"]:
            assert int(row["samples_per_step"]) == int(row["prompts_per_step"]) * int(row["group_size"]), row


def test_the_prime_rl_steps_among_the_runs_repeat_the_process_table():
    runs = {r["key"]: r for r in rows("published_runs")}
    for row in rows("prime_process"):
        run = runs[f"SA1.step{row['step']}"]
        assert run["mean_prompt_tokens"] == row["mean_prompt_tokens"]
        assert run["mean_response_tokens"] == row["mean_response_tokens"]
        assert float(run["mean_rollout_s"]) == float(row["rollout_s"])
