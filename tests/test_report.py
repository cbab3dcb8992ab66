"""The report: its numbers, its points over the curves, its files, and what a changed assumption moves."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import chromium_or_skip

from rlqueue.cli import main
from rlqueue.cost import cost
from rlqueue.provenance import sources, table
from rlqueue.report import (
    break_even,
    chromium,
    images,
    levers,
    measured,
    price_list,
    sandboxes,
    sharing,
    summary,
    tables,
    write,
)
from rlqueue.report.agreement import EXACT, RECONCILED, Agreement, decimals, rounds_to, within
from rlqueue.report.assumptions import GLM, PRIME, SLIME, Assumptions
from rlqueue.report.build import build
from rlqueue.report.html import page
from rlqueue.report.written import figure_csv, overlay_names, table_csv
from rlqueue.simulation import lumped, simulate, unlumped

UNCHANGED = Assumptions()


@pytest.fixture(scope="module")
def report():
    """Everything, computed once."""
    return build()


@pytest.fixture(scope="module")
def html(report):
    return page(report)


def figure(report, name):
    return next(each for each in report.figures if each.name == name)


def the_table(report, name):
    return next(each for each in report.tables if each.name == name)


def column(one, name):
    place = [each.name for each in one.columns].index(name)
    return [row[place] for row in one.rows]


# Tables


def test_the_cost_of_ownership_is_the_printed_one_line_by_line(report):
    rows = {row[0]: row for row in the_table(report, "h200_tco").rows}
    assert len(rows) == 16 + 15
    misses = [name for name, row in rows.items() if row[4] not in {"input", EXACT}]
    assert misses == ["Capital outlay without the server"]  # 103,253 printed, its items sum to 103,254
    assert rows["Total per GPU-hour"][3] == pytest.approx(1.5919, abs=5e-5)
    assert rows["Capital cost"][3] == pytest.approx(6738.18, abs=0.005)
    assert rows["Operating cost"][3] == pytest.approx(2558.27, abs=0.005)


def test_all_twenty_rows_of_the_hosted_cost_are_met_to_the_cent(report):
    rows = the_table(report, "slime_hosted_cost")
    assert column(rows, "status") == [EXACT] * 20
    for part in ("prefill_usd", "decode_usd", "train_usd", "total_usd", "usd_per_mtok"):
        printed, computed = column(rows, f"{part}_printed"), column(rows, f"{part}_computed")
        # Printed to the cent; a half cent may have been rounded either way.
        assert computed == pytest.approx(printed, abs=0.00501)


@pytest.mark.parametrize(
    ("name", "steps", "means"),
    [("prime_process_cost", 10, (6.90, 3.43, 2.01)), ("slime_process_cost", 20, (16.23, 3.34, 4.86))],
)
def test_each_step_of_a_run_has_its_cost_and_their_means_are_the_printed_ones(report, name, steps, means):
    rows = the_table(report, name)
    assert len(rows.rows) == steps + 1
    *_, last = rows.rows
    assert last[0] == "mean"
    assert tuple(round(last[place], 2) for place in (6, 8, 9)) == means


def test_the_comparison_gives_both_methods(report):
    found = {tuple(row[:3]): row[5] for row in the_table(report, "comparison").rows}
    prime, slime = (assumed_title(name) for name in (PRIME, SLIME))
    assert round(found[prime, "report's method", "self-built"], 2) == 6.90
    assert round(found[prime, "wall-clock, closed form", "self-built"], 2) == 3.17
    assert round(found[prime, "wall-clock, printed rates", "self-built"], 2) == 3.17
    assert round(found[slime, "report's method", "self-built"], 2) == 16.23
    assert found[prime, "wall-clock, closed form", "self-built over hosted"] < 1
    assert found[slime, "wall-clock, closed form", "self-built over hosted"] > 1


def assumed_title(name):
    return next(row["title"] for row in table("presets") if row["preset"] == name)


# Key data


def test_every_number_that_the_source_reports_is_in_the_key_data():
    rows = summary.key_data(UNCHANGED)
    reported = table("reported")
    high_ends = [row for row in reported if row["quantity"] in {"trainer_wait_ratio_high", "truncated_ratio_high"}]
    assert len(rows) == len(reported) - len(high_ends)
    printed = sorted([each.printed for each in rows] + [each.high for each in rows if each.high is not None])
    assert printed == sorted(float(row["value"]) for row in reported)


def test_the_known_contradictions_are_reconciled_in_words_and_never_silently():
    said = "\n".join(summary.corrections(summary.key_data(UNCHANGED)))
    assert "the ratio was printed as the price: 16.23 / 3.34 = 4.86; the price is 3.34" in said
    assert "the 74% belong to GLM-5 on Prime RL in the text, which gives slime 60%" in said
    assert "without remote hands and internet; all operation is 319.78" in said
    assert "5 times would be a wait of 80%, not 74%" in said
    charged = [
        each.explanation for each in summary.key_data(UNCHANGED) if "latency charged as wall-clock" in each.explanation
    ]
    assert len(charged) == 2


def test_a_number_that_was_fitted_to_is_never_called_a_prediction():
    fitted = {(each.run, each.quantity) for each in summary.key_data(UNCHANGED) if each.test == summary.CALIBRATED}
    prime, glm, slime = (assumed_title(name) for name in (PRIME, GLM, SLIME))
    assert {
        (prime, "mean rollout time"),
        (prime, "production (text)"),
        (glm, "trainer wait"),
        (slime, "trainer wait"),
    } <= fitted


def test_what_is_not_computable_says_what_is_missing():
    missing = [each for each in summary.key_data(UNCHANGED) if each.computed is None]
    assert missing
    assert all(each.explanation for each in missing)


def agreement(printed, computed, **more):
    return Agreement(
        run="", quantity="", unit=more.pop("unit", "USD"), printed=printed, kind="printed", source="", where="",
        computed=computed, how="", test="arithmetic", **more,
    )  # fmt: skip


def test_a_status_says_exact_only_where_the_printed_digits_agree():
    assert agreement(4.86, 4.8649).status == EXACT
    assert agreement(4.86, 4.8651).status == "within 0.1 %"
    assert agreement(6738.18, 6738.1847).status == EXACT
    assert agreement(0.3, 0.291, unit="1").status == "within 3.0 %"  # a share is printed in whole per cent
    assert agreement(299, 298.53, reconciled=True).status == RECONCILED
    assert agreement(100, 70).status == "missed by 30 %"
    assert agreement(0.3, 0.41, high=0.6, unit="1").status == "in the printed range"
    assert agreement(1.0, None).status == "not computable"
    assert decimals(0.725, "1") == 3
    assert not rounds_to(1.6, 1.59, "USD")
    assert within(-0.052) == "within 5.2 %"


# Figures


OVERLAYS = [
    ("prime-trainer-and-generator", "prime-trainer-and-generator", ("consumption_per_s", "production_per_s"), 0),
    (
        "prime-rollout-time",
        "prime-rollout-time",
        ("rollout_s", "llm_share"),
        10,
    ),  # and the ten rows of the process table
    ("glm-5-rollout-time", "glm-5-rollout-time", ("rollout_s",), 2),  # and the printed first and last LLM time
    ("glm-5-drift", "glm-5-drift", ("mean_sequence_tokens", "tool_calls"), 0),
    ("prime-start", "prime-trainer-and-generator", ("production_per_s",), 0),
    ("blind-glm-5-rollout-time", "glm-5-rollout-time", ("rollout_s",), 0),
]


def overlaid_points(one):
    names = overlay_names(one)
    return [
        (trace["name"], x, y)
        for trace in one.plot["data"]
        if trace["name"] in names
        for x, y in zip(trace["x"], trace["y"], strict=True)
    ]


@pytest.mark.parametrize(("name", "source", "series", "more"), OVERLAYS, ids=[each[0] for each in OVERLAYS])
def test_a_figure_has_as_many_overlaid_points_as_the_data_file(report, name, source, series, more):
    rows = [row for row in table("report_series") if row["figure"] == source and row["series"] in series]
    assert rows
    points = overlaid_points(figure(report, name))
    assert len(points) == len(rows) + more
    # Readings keep their values; shares stand as seconds, lengths as thousands of tokens.
    drawn = sorted(round(y, 6) for _, _, y in points)
    for row in rows:
        value = float(row["y"]) / (1000 if row["series"] == "mean_sequence_tokens" else 1)
        assert row["series"] == "llm_share" or round(value, 6) in drawn


def test_cost_and_ownership_have_the_printed_totals_over_their_bars(report):
    assert [y for _, _, y in overlaid_points(figure(report, "cost-comparison"))] == [6.9, 16.23, 3.43, 3.34]
    assert [y for _, _, y in overlaid_points(figure(report, "tco-breakdown"))] == [1.15, 0.44, 1.59]


def test_a_figure_with_the_source_s_values_states_its_error_and_one_without_them_is_called_model_only(report, html):
    text = Text(html)
    for one in report.figures:
        assert bool(one.overlay) == bool(overlay_names(one)), one.name
        label = "model only" if one.model_only else "with the source’s values"
        assert label in text.figures[one.name]
        if not one.model_only and one.kind != "fit":
            assert re.search(r"error|against", one.says), one.name


def test_every_figure_has_units_kind_and_sources_that_are_listed(report, html):
    text = Text(html)
    for one in report.figures:
        assert one.units
        assert one.kind
        assert one.sources
        assert set(one.sources) <= sources().keys()
        for axis in (key for key in one.plot["layout"] if key.startswith(("xaxis", "yaxis"))):
            shape = one.plot["layout"][axis]
            assert "title" in shape or shape.get("overlaying") or shape.get("tickvals"), (one.name, axis)
        for name in set(one.sources) - {"rlqueue"}:
            assert f'id="source-{name}"' in html
        assert one.units in text.figures[one.name]


def test_computed_points_stay_where_they_were_found_to_be():
    """Errors as they stand on the page: a change of the model that worsens them has to be looked at."""
    found = measured.glm_points(UNCHANGED)
    gap = measured.best_gap(measured._glm_solved(UNCHANGED.scenario(GLM)))
    assert len(found) == 24
    assert gap not in [each.step for each in found]
    assert measured.error_with_gap(measured._glm_solved(UNCHANGED.scenario(GLM)), gap) < 0.08
    assert found[-1].llm_s == pytest.approx(1941, rel=0.02)
    assert found[0].llm_s == pytest.approx(352, rel=0.08)
    times = [point.rollout_s for point in measured.prime_points(UNCHANGED.scenario(PRIME))]
    printed = [step["rollout_s"] for step in tables.process_rows("prime_process")]
    assert measured.mean_error(times, printed) < 0.08


# Hosted against self-built


def test_break_even_prices_make_both_costs_equal():
    for case in break_even.cases(UNCHANGED):
        price = case.price()
        changed = case.own(replace(case.scenario, gpu_hour_usd=price))
        assert changed == pytest.approx(case.hosted, rel=1e-9)
        wait = case.by_wait().meets
        assert case.bill.usd_per_mtok * (1 - case.point.trainer_wait_ratio) / (1 - wait) == pytest.approx(
            case.hosted, rel=5e-3
        )


def test_the_sentence_of_what_must_be_true_changes_with_the_scenario():
    prime, slime = break_even.cases(UNCHANGED)
    assert "It goes on winning as long as" in break_even.must_be_true(prime)
    assert "For self-built to win" in break_even.must_be_true(slime)
    dear, _ = break_even.cases(Assumptions.of({"gpu_hour_usd": "3"}))
    assert "For self-built to win" in break_even.must_be_true(dear)
    assert "a GPU-hour costs less than $1.72 (now $3.00)" in break_even.must_be_true(dear)


def test_hosted_costs_more_where_discarded_rollouts_and_cached_reads_are_billed():
    prime, slime = break_even.cases(UNCHANGED)
    assert prime.hosted_with_waste() == pytest.approx((3.4283 - 2.04) / 0.4 + 2.04, abs=0.001)
    assert slime.hosted_with_waste() == pytest.approx(slime.hosted)
    billed, free = prime.by_discard(billed=True), prime.by_discard(billed=False)
    assert billed.own.tolist() == free.own.tolist()
    place = abs(billed.x - 0.6).argmin()
    assert billed.x[place] == pytest.approx(0.6)
    assert billed.hosted[place] == pytest.approx(prime.hosted_with_waste())
    assert set(free.hosted.tolist()) == {prime.hosted}
    again = sum(
        prime.scenario.mean_prompt_tokens * i / 16 + prime.scenario.mean_response_tokens * (i - 1) / 16
        for i in range(1, 17)
    )
    extra = (again - prime.scenario.mean_prompt_tokens) * 0.2 * 0.68 / (5591 + 12704)
    assert prime.hosted_with_reads() - prime.hosted == pytest.approx(extra, rel=1e-9)


def test_the_rise_of_july_is_that_of_the_price_lists():
    prime, _ = break_even.cases(UNCHANGED)
    rise = price_list.rise(prime)
    assert len(rise) == 20
    both = {}
    for row in table("hosted_prices"):
        if row["date"] in {price_list.BEFORE, price_list.AFTER} and row["service"] == "tinker":
            both.setdefault(row["model"], set()).add(row["date"])
    assert rise.keys() == {model for model, dates in both.items() if len(dates) == 2}
    assert 0.2 < sorted(rise.values())[10] < 0.3


def test_any_model_of_the_price_lists_has_a_row(report):
    rows = the_table(report, "hosted_prices")
    assert len(rows.rows) == len(price_list.rows()) > 100


def test_1536_sandboxes_cost_about_as_much_as_the_gpus():
    rows = sandboxes.cpu_rows(break_even.cases(UNCHANGED))
    found = {row[3]: (row[5], row[6]) for row in rows if row[1] == 1536}
    assert found["modal"][0] == pytest.approx(365.5, abs=0.1)
    assert found["modal"][1] == pytest.approx(407.5, abs=0.1)
    assert found["e2b"][0] < found["modal"][0]


def test_the_cap_that_explains_an_hour_of_starting_gives_that_hour():
    cap = sandboxes.cap_that_explains(UNCHANGED)
    scenario = replace(sandboxes.crowded(UNCHANGED), max_staleness=sandboxes.ENDLESS_BUDGET)
    held = sandboxes.capped(scenario, 960, cap).rollout_s
    assert sandboxes.start_delay_s(960, cap, held) == pytest.approx(3600, rel=1e-3)
    assert sandboxes.start_delay_s(200, cap, held) == 0
    starts = sandboxes.simulated_starts(scenario, 960, cap)
    assert starts.mean() == pytest.approx(3600, rel=0.1)


def test_levers_are_ranked_within_each_run_by_what_they_save(report):
    rows = the_table(report, "levers").rows
    by_run = {}
    for row in rows:
        by_run.setdefault(row[0], []).append(row)
    assert len(by_run) == 6
    for found in by_run.values():
        changes = [row[8] for row in found if row[1] is not None]
        assert changes == sorted(changes)
        assert len(found) == 5
    assert {row[3] for row in rows} <= {levers.TO_ADD, levers.IN_USE, "in-flight updates in use instead"}


# Published series that move


def test_blind_predictions_lie_under_all_published_points_and_say_what_was_fitted(report):
    for name, rows, fitted in (
        ("blind-prime-rollout-time", [float(row["rollout_s"]) for row in table("prime_process")], 1),
        ("blind-dapo-all-solved", [float(row["value"]) for row in table("curriculum_series")], 3),
    ):
        points = overlaid_points(figure(report, name))
        assert sorted(y for _, _, y in points) == sorted(rows)
        assert sum(trace == "published, fitted" for trace, _, _ in points) == fitted


def test_errors_of_blind_predictions_stay_where_they_were_found_to_be(report):
    found = {
        each.name: float(re.search(r"not fitted: ([\d.]+)", each.says)[1])
        for each in report.figures
        if "blind" in each.name
    }
    assert found["blind-glm-5-rollout-time"] <= 12
    assert found["blind-prime-rollout-time"] <= 14
    assert found["blind-dapo-all-solved"] <= 5.4


def test_the_shares_over_steps_begin_at_the_printed_one_and_both_solvers_agree(report):
    one = figure(report, "solve-shares")
    lines = {trace["name"]: trace for trace in one.plot["data"]}
    every, taught = lines["all rollouts solve"], lines["informative"]
    assert every["y"][0] == pytest.approx(0.55, abs=1e-3)
    assert every["y"] == sorted(every["y"])
    assert taught["y"] == sorted(taught["y"], reverse=True)
    assert float(re.search(r"lies ([\d.]+) points away", one.says)[1]) < 1.5


# Tenants


@pytest.fixture(scope="module")
def pools():
    return sharing.cases(UNCHANGED)


def test_alone_a_run_of_the_tenancy_is_the_simulated_run(pools):
    slime = next(case for case in pools if case.name == SLIME)
    point = unlumped(simulate(lumped(UNCHANGED.scenario(SLIME)), sharing.SEED, sharing.STEPS).operating_point,
                     UNCHANGED.scenario(SLIME))  # fmt: skip
    assert slime.sharing[0].point == point
    assert slime.usd[0] == cost(UNCHANGED.scenario(SLIME), point).usd_per_mtok


def test_every_run_has_a_line_for_itself_and_one_for_its_hosted_quote(report, pools):
    names = [trace["name"] for trace in figure(report, "tenants-cost").plot["data"]]
    for case in pools:
        title = assumed_title(case.name)
        assert {title, f"{title}, hosted"} <= set(names)
    for name in ("tenants-cost", "tenants-wait", "tenants-decode"):
        assert figure(report, name).model_only
    rows = the_table(report, "tenancy").rows
    assert len(rows) == len(pools) * len(sharing.TRIED)


def test_the_number_of_tenants_that_reaches_the_hosted_price_is_computed_from_the_scenario(pools):
    by_name = {case.name: case for case in pools}
    assert by_name[PRIME].needed == 1
    assert by_name[SLIME].needed == 2
    assert "2 tenants reach the hosted price" in sharing.reached(by_name[SLIME])
    assert by_name["verl-qwen3-235b-c96"].needed is None
    assert "no number reaches the hosted price" in sharing.reached(by_name["verl-qwen3-235b-c96"])
    dear = {case.name: case for case in sharing.cases(Assumptions.of({"gpu_hour_usd": "4"}))}
    assert dear[SLIME].needed is None
    assert dear[PRIME].needed is None


def test_more_tenants_never_make_a_token_dearer_than_alone_and_fill_the_replicas(pools):
    for case in pools:
        assert max(case.usd[1:]) < case.usd[0]
        used = [each.decode_use_ratio for each in case.sharing]
        assert used[-1] > used[0]


# Files


class Text(HTMLParser):
    """The page as a reader of its source sees it: words by figure, and every address that a browser would fetch."""

    def __init__(self, html):
        super().__init__()
        self.figures, self.fetched, self._name, self._skip = {}, [], "", False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "figure":
            self._name = given["id"]
            self.figures[self._name] = ""
        self._skip = tag in {"script", "style"}
        if tag in {"script", "img", "iframe", "source", "video", "audio"} and given.get("src"):
            self.fetched.append(given["src"])
        if tag == "link":
            self.fetched.append(given["href"])

    def handle_endtag(self, tag):
        if tag == "figure":
            self._name = ""
        self._skip = False

    def handle_data(self, data):
        if self._name and not self._skip:
            self.figures[self._name] += data


def test_the_page_is_one_file_that_fetches_nothing(html):
    assert [each for each in Text(html).fetched if not each.startswith("data:")] == []
    assert html.count("plotly.js v") == 1  # the bundle's own first line: inlined once
    style = html[: html.index("</style>")]
    assert "@import" not in style
    assert "url(" not in style


def test_regenerating_gives_the_same_bytes(report):
    again = build()
    assert [table_csv(each) for each in report.tables] == [table_csv(each) for each in again.tables]
    assert [figure_csv(each) for each in report.figures] == [figure_csv(each) for each in again.figures]
    assert page(report) == page(again)


def test_a_second_process_writes_the_same_csv_bytes(tmp_path, report):
    """Another process has other hashes and no caches."""
    code = (
        "import sys; from pathlib import Path; from rlqueue.report.build import build; "
        "from rlqueue.report.write import write_text; folder = Path(sys.argv[1]); "
        "[(folder / each).mkdir() for each in ('tables', 'figures')]; write_text(build(), folder)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    for one in report.tables:
        assert (tmp_path / "tables" / f"{one.name}.csv").read_bytes() == table_csv(one).encode()
    for one in report.figures:
        assert (tmp_path / "figures" / f"{one.name}.csv").read_bytes() == figure_csv(one).encode()


def test_a_csv_has_its_table_s_columns_and_rows(report):
    for one in report.tables:
        header, *rows = list(csv.reader(io.StringIO(table_csv(one))))
        assert header == [each.name for each in one.columns]
        assert len(rows) == len(one.rows)
        assert len(set(header)) == len(header)
        for cells, values in zip(rows, one.rows, strict=True):
            for cell, value in zip(cells, values, strict=True):
                assert cell == value if isinstance(value, str) else (value is None) == (cell == "")
                assert isinstance(value, str | None) or float(cell) == pytest.approx(value, rel=1e-9)


MONEY = {
    "tco-breakdown", "cost-comparison", "break-even-gpu-hour", "break-even-wait", "break-even-discard", "break-even-use",
    "break-even-turns", "break-even-prompt-share", "sandbox-cost", "tenants-cost",
}  # fmt: skip


def test_a_changed_tco_input_changes_every_figure_that_depends_on_it_and_no_other(report):
    changed = build(Assumptions.of({"node.usd_per_kwh": "0.25"}))
    moved = {
        before.name
        for before, after in zip(report.figures, changed.figures, strict=True)
        if figure_csv(before) != figure_csv(after)
    }
    assert moved == MONEY
    before, after = (figure(each, "tco-breakdown").plot["data"] for each in (report, changed))
    assert [trace["name"] for trace, other in zip(before, after, strict=True) if trace["y"] != other["y"]] == [
        "Electricity"
    ]
    assert "node.usd_per_kwh = 0.25" in page(changed)


def test_without_a_browser_page_and_tables_are_written_and_the_message_says_what_is_missing(
    monkeypatch, tmp_path, report, capsys
):
    monkeypatch.setattr(write, "find_chromium", lambda: None)
    monkeypatch.setattr(write, "build", lambda *_, **__: report)
    assert main(["report", "--out", str(tmp_path / "new" / "folder"), "--json"]) == 0
    said = capsys.readouterr()
    written = json.loads(said.out)
    assert written["images"] == 0
    assert "no browser was found" in written["missing"]
    assert chromium.VARIABLE in written["missing"]
    assert "written: report.html" in said.err
    assert (tmp_path / "new" / "folder" / "report.html").stat().st_size > 1e6
    assert len(list((tmp_path / "new" / "folder" / "tables").glob("*.csv"))) == len(report.tables)
    assert main(["report", "--out", str(tmp_path / "plain")]) == 0
    assert "missing: figures as SVG and PNG" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("node.usd_per_kw=1", "did you mean node.usd_per_kwh"),
        ("node.usd_per_kwh=-1", "usd_per_kwh=-1 must be"),
        ("hosted_price=none", "hosted_price=none: the report compares"),
        ("concurrency", "must have the form KNOB=VALUE"),
    ],
)
def test_a_bad_assumption_is_refused_before_anything_is_written(tmp_path, capsys, setting, message):
    assert main(["report", "--out", str(tmp_path / "out"), "--set", setting]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["report", "--out", str(tmp_path / "file")]) == 2
    assert "no folder can be made there" in capsys.readouterr().err


# With a browser


@pytest.mark.browser
def test_a_figure_is_written_as_svg_and_png_with_its_title_units_kind_and_source(tmp_path, report):
    path = chromium_or_skip()
    one = figure(report, "tco-breakdown")
    images.write_images([one], tmp_path, path, lambda _: None)
    drawn = (tmp_path / "tco-breakdown.svg").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>", " ", drawn)
    assert one.title in words
    assert "$/GPU-hour" in words
    assert "SemiAnalysis" in words
    assert (tmp_path / "tco-breakdown.png").read_bytes().startswith(b"\x89PNG")
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", drawn)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_from_disk_draws_every_figure_and_asks_nobody(chromium, tmp_path, html, report, width):
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 900})
    asked, errors = [], []
    try:
        here = context.new_page()
        here.on("request", lambda request: asked.append(request.url))
        here.on("console", lambda message: message.type in {"error", "warning"} and errors.append(message.text))
        here.on("pageerror", lambda error: errors.append(str(error)))
        here.goto((tmp_path / "report.html").as_uri())
        for one in report.figures:
            here.locator(f"#{one.name}").scroll_into_view_if_needed()
            here.wait_for_selector(f"#{one.name} .plot[data-drawn]")
        assert here.evaluate("document.documentElement.scrollWidth") <= width
        shapes = here.evaluate(
            "[...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('.trace').length)"
        )
        assert len(shapes) == len(report.figures)
        assert min(shapes) > 0
    finally:
        context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []


def test_nothing_in_the_report_s_text_is_a_path_of_this_machine(html):
    body = html[: html.index('<script type="application/json"')]
    assert str(Path.cwd()) not in body
    assert "/tmp" not in body  # noqa: S108
