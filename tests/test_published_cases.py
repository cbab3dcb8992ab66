"""What comes out of the published runs: the levels that the model reaches are held, and each figure of a case has its source."""

import pytest

from rlqueue.provenance import Quantity, table
from rlqueue.validation import Validation, cases, validate
from rlqueue.validation.protocol import AIMS, PREDICTED

CASES = {case.name: case for case in cases()}


def test_every_run_that_a_case_names_is_among_the_published_ones():
    published = {row["key"] for row in table("published_runs")}
    for case in CASES.values():
        assert {row.run for row in case.rows if row.run} <= published


NUMBERS = {"step_s": "step_s", "wait_s": "trainer_wait_s", "update_s": "update_s", "rollout_s": "mean_rollout_s",
           "staleness_versions": "mean_staleness_versions", "trained_tokens_per_s": "tokens_per_s",
           "trainer_wait_ratio": "trainer_wait_ratio", "consumption_per_s": "consumption_per_s",
           "production_per_s": "production_per_s", "generate_s": "generation_s", "logprob_s": "old_logprob_s"}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_case_calls_printed_is_what_the_table_of_published_runs_has(name):
    published = {row["key"]: row for row in table("published_runs")}
    for row in CASES[name].rows:
        for quantity, fact in row.measured.items():
            cell = published[row.run].get(NUMBERS.get(quantity, "")) if row.run else ""
            if fact.kind in {"printed", "chart-read"} and cell:
                # Published to three digits at least
                assert float(fact.value) == pytest.approx(float(cell), rel=5e-3), (row.key, quantity)


def test_every_fact_of_a_case_says_where_it_is_from():
    for case in CASES.values():
        assert case.source.title
        assert case.lacks
        for fact in [*case.facts.values(), *(fact for row in case.rows for fact in row.measured.values())]:
            assert isinstance(fact, Quantity)
            assert fact.where or fact.kind == "assumed"
            assert fact.source


def test_the_cases_that_were_asked_for_are_there():
    runs = {row.run for case in CASES.values() for row in case.rows}
    for wanted in ("SA1", "SA2.step23", "VFA-7B-16:16", "VFA-7B-32:32", "VFA-7B-64:64", "VFA-7B-128-s0.3", "VFA-7B-128-rb1",
                   "AR-eta16-128gpu", "AR-eta8-8gpu", "AR-32B-async", "AC6"):  # fmt: skip
        assert wanted in runs


@pytest.fixture(scope="module")
def whole():
    return Validation(results=list(validate(list(CASES.values()))))


LEVELS = {
    # Reached when these were written, with a little room for other draws of another version; the aims are in AIMS.
    "median_error_step": 0.08,
    "median_error_speedup": 0.12,
    "median_error_wait_points": 0.04,
    "median_error_staleness_versions": 0.25,
    "median_error_rollout": 0.18,
}


def test_the_levels_that_the_model_reaches_are_held(whole):
    found = whole.summary()
    assert found["cases"] >= 10
    assert found["predicted_rows"] >= 70
    for name, level in LEVELS.items():
        assert found[name] <= level, name
    assert found["rankings_right"] >= 0.85


def test_errors_are_within_their_aims_and_what_misses_is_known(whole):
    # Rankings miss where a published rate still grows by some percent and the model's no longer does, and in uni-agent's drains
    assert whole.missed() == ["rankings_right"]
    assert AIMS["median_error_step"] == AIMS["median_error_speedup"] == 0.15


def blind(found, quantity):
    return {each.row: each for each in found.comparisons if each.quantity == quantity and each.role == PREDICTED}


def test_what_async_gains_at_three_sizes_of_verl_and_what_it_waits_come_out_of_its_colocated_runs(whole):
    (found,) = (each for each in whole.results if each.case.name == "verl-7b-scaling")
    # Published to three digits; windows of one run differ by some percent
    assert all(abs(each.error) < 0.06 for each in blind(found, "speedup_ratio").values())
    assert all(abs(each.error) < 0.05 for each in blind(found, "trainer_wait_ratio").values())
    assert all(abs(each.error) < 0.10 for each in blind(found, "step_s").values())


def test_staleness_ablation_of_verl_is_in_the_right_order_and_level_where_the_published_one_is(whole):
    (found,) = (each for each in whole.results if each.case.name == "verl-7b-staleness")
    steps, waits = blind(found, "step_s"), blind(found, "trainer_wait_ratio")
    assert steps["s0"].predicted > steps["s0.1"].predicted > steps["s0.3"].predicted
    assert steps["s0.3"].predicted == pytest.approx(steps["s0.5"].predicted, rel=0.01)  # 122.7 and 121.8 s
    assert all(abs(steps[row].error) < 0.10 for row in ("s0.3", "s0.5"))
    assert all(abs(waits[row].error) < 0.10 for row in ("s0", "s0.1", "s0.3", "s0.5"))


def test_every_staleness_of_applied_compute_is_within_three_tenths_of_a_version(whole):
    (found,) = (each for each in whole.results if each.case.name == "applied-compute-staleness")
    assert all(abs(each.predicted - each.published) < 0.3 for each in found.comparisons)


def test_where_a_case_misses_its_aims_it_says_what_the_model_lacks(whole):
    for found in whole.results:
        if Validation(results=[found]).missed():
            assert found.case.lacks
