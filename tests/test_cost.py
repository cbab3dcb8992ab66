"""The bill: the report's hosted table to the cent, its two self-built figures, and that dollars add up."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue import Scenario, cost, simulate, solve
from rlqueue.cost import (
    PARTS,
    hosted_usd,
    hosted_usd_per_mtok,
    latency_charged_usd_per_mtok,
    mean_of_quotients,
    measured_report_method,
)
from rlqueue.hosted import hosted_price, hosted_price_keys
from rlqueue.presets import preset_names, reported
from rlqueue.provenance import table
from rlqueue.simulation import lumped
from rlqueue.sweep import split_grid

REPORT_PRICE = hosted_price("tinker/Qwen3-235B-A22B/2026-06-11")
PRIME = Scenario.from_data("prime-rl-qwen3-235b")
SLIME = Scenario.from_data("slime-qwen3-235b")
GLM = Scenario.from_data("prime-rl-glm-5")


@pytest.mark.parametrize("step", range(20))
def test_each_row_of_the_report_s_hosted_table_is_reproduced_to_the_cent(step):
    process, printed = table("slime_process")[step], table("slime_hosted_cost")[step]
    assert int(process["step"]) == int(printed["step"]) == step
    prompt, response = (
        SLIME.samples_per_step * float(process[f"mean_{kind}_tokens"]) for kind in ("prompt", "response")
    )
    dollars = hosted_usd(REPORT_PRICE, prompt, response)
    for part in ("prefill_usd", "decode_usd", "train_usd", "total_usd"):
        assert round(getattr(dollars, part), 2) == float(printed[part]), part
    assert round(hosted_usd_per_mtok(REPORT_PRICE, prompt, response), 2) == float(printed["usd_per_mtok"])


def test_the_average_hosted_prices_of_both_runs_are_reproduced():
    for name, printed in (("slime-qwen3-235b", 3.34), ("prime-rl-qwen3-235b", 3.43)):
        scenario = Scenario.from_data(name)
        assert round(cost(scenario, solve(scenario)).hosted_usd_per_mtok, 2) == printed


@pytest.mark.parametrize(("scenario", "printed"), [(PRIME, 6.90), (SLIME, 16.23)])
def test_the_report_s_self_built_cost_follows_from_its_table_of_steps(scenario, printed):
    assert round(measured_report_method(scenario), 2) == printed


@pytest.mark.parametrize(("scenario", "printed"), [(PRIME, 6.90), (SLIME, 16.23)])
def test_the_report_s_method_at_the_operating_point_agrees_with_its_table(scenario, printed):
    bill = cost(scenario, solve(scenario))
    # decode_efficiency is calibrated to the mean rollout time to four digits, which is worth less than 0.1 %
    assert bill.usd_per_mtok_report_method == pytest.approx(printed, rel=1e-3)


def test_prime_rl_costs_3_17_by_wall_clock_and_the_reported_ratio_belongs_to_the_other_method():
    bill = cost(PRIME, solve(PRIME))
    assert round(bill.usd_per_mtok, 2) == 3.17
    assert round(bill.cost_ratio_report_method, 2) == 2.01
    assert bill.cost_ratio < 1


def test_slime_s_printed_hosted_price_of_4_86_is_the_ratio():
    bill = cost(SLIME, solve(SLIME))
    assert round(bill.cost_ratio_report_method, 2) == 4.86
    assert reported("summary")["slime_hosted_usd_per_mtok"].value == 4.86


def test_latency_is_charged_as_if_no_step_overlapped_another():
    point = solve(PRIME)
    tokens = PRIME.trained_tokens_per_step
    assert latency_charged_usd_per_mtok(256, 1.59, point.step_s, tokens) == pytest.approx(
        latency_charged_usd_per_mtok(256, 1.59, point.rollout_s, tokens) * point.step_s / point.rollout_s
    )
    assert mean_of_quotients(dataclasses.replace(PRIME, measured_run="")) == 1.0


@pytest.mark.parametrize("name", preset_names())
def test_the_parts_of_a_bill_add_up_to_gpu_hours_times_price(name):
    scenario = Scenario.from_data(name)
    point = solve(scenario)
    bill = cost(scenario, point)
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    assert sum(getattr(bill, f"{part}_usd_per_mtok") for part in PARTS) == pytest.approx(bill.usd_per_mtok)
    assert bill.usd_per_step == pytest.approx(gpus * point.step_s / 3600 * bill.usd_per_gpu_hour)
    assert bill.usd_per_mtok == pytest.approx(bill.usd_per_step / scenario.trained_tokens_per_step * 1e6)


def test_a_rule_that_drops_what_is_old_is_billed_for_the_shorter_rollouts_it_trains():
    scenario = dataclasses.replace(GLM, staleness_family="drop", max_staleness=1.0)
    run = simulate(lumped(scenario), seed=1, steps=40)
    point = run.operating_point
    kept = run.steps.iloc[run.warm_up_steps :]
    hours = (kept["end_s"].iloc[-1] - kept["start_s"].iloc[0]) / 3600
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    bill = cost(scenario, point)
    tokens = kept["trained_tokens"].sum()
    assert tokens < 0.95 * len(kept) * run.scenario.trained_tokens_per_step
    assert bill.usd_per_mtok == pytest.approx(gpus * hours * bill.usd_per_gpu_hour / tokens * 1e6, rel=1e-9)


@given(
    st.sampled_from(preset_names()),
    st.sampled_from(("colocated-sync", "sync", "async-in-flight", "partial-rollout")),
    st.integers(1, 4000),
    st.floats(0.0, 1.0),
)
def test_the_parts_add_up_for_any_schedule_and_sandbox_price(name, schedule, concurrency, sandbox_usd):
    scenario = dataclasses.replace(
        Scenario.from_data(name), schedule=schedule, concurrency=concurrency, sandbox_usd_per_hour=sandbox_usd
    )
    point = solve(scenario)
    bill = cost(scenario, point)
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    dollars = gpus * point.step_s / 3600 * bill.usd_per_gpu_hour
    dollars += point.in_flight_rollouts * sandbox_usd * point.step_s / 3600
    assert bill.usd_per_mtok * scenario.trained_tokens_per_step / 1e6 == pytest.approx(dollars)
    assert all(getattr(bill, f"{part}_usd_per_mtok") >= 0 for part in PARTS)


def test_a_grid_of_splits_costs_what_its_cells_cost_one_by_one():
    generator = np.array([64, 128, 192])
    grid = split_grid(PRIME, generator_gpus=generator, trainer_gpus=256 - generator)
    for i, gpus in enumerate(generator.tolist()):
        cell = dataclasses.replace(PRIME, generator_gpus=gpus, trainer_gpus=256 - gpus)
        bill = cost(cell, solve(cell))
        assert grid["usd_per_mtok"][i] == pytest.approx(bill.usd_per_mtok, rel=1e-12)
        assert grid["generator_discarded"][i] == pytest.approx(bill.generator_discarded_usd_per_mtok, rel=1e-12)


def test_every_complete_row_of_the_price_lists_can_be_used_and_no_other_is_offered():
    offered = hosted_price_keys()
    assert len(offered) > 90
    for row in table("hosted_prices"):
        complete = all(row[f"{kind}_usd_per_mtok"] for kind in ("prefill", "sample", "train"))
        assert (row["key"] in offered) == complete
        if complete:
            assert hosted_usd_per_mtok(hosted_price(row["key"]), 1000, 2000) >= 0
