"""The report as a live page: dials move what depends on them, sections are computed when opened, nothing else is believed."""

import shutil
from pathlib import Path

import pytest
from serving import serve

from rlqueue.report.build import build
from rlqueue.report.page import AS_PRINTED, DIALS, ReportPage, drawn
from rlqueue.scenario import Scenario

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "report.ipynb"


@pytest.fixture
def page():
    return ReportPage()


def opened(page, title):
    page.folds.selected_index = [body.title for body in page.folded].index(title)
    return page.folded[page.folds.selected_index]


def dial(page, knob):
    return next(slider for each, slider in page._dials.items() if each.knob == knob)


def electricity(page):
    (figure,) = page.first.plots.values()
    data = figure._figures["tco-breakdown"]["data"]
    return next(trace["y"] for trace in data if trace["name"] == "Electricity")


def test_every_dial_starts_where_the_source_has_it_and_stops_there():
    node = Scenario.from_data("prime-rl-qwen3-235b").node
    for each in DIALS:
        assert each.printed == getattr(node, each.knob.removeprefix("node."))
        assert each.printed in each.stops
        assert each.stops == sorted(set(each.stops))
        assert (each.stops[0], each.stops[-1]) == (each.low, each.high)


def test_a_dial_moves_the_figures_in_sight_and_those_of_the_open_section(page):
    cost = opened(page, "Self-built against hosted")
    bars = cost.plots["cost-comparison"]._figures["cost-comparison"]["data"]
    before, self_built = electricity(page), bars[1]["y"]
    dial(page, "node.usd_per_kwh").value = 0.3
    assert electricity(page)[1] == pytest.approx(before[1] * 0.3 / 0.087)
    after = cost.plots["cost-comparison"]._figures["cost-comparison"]["data"]
    assert after[1]["y"][0] > self_built[0]
    assert after[3]["y"] == bars[3]["y"]  # the printed ones stay
    assert "node.usd_per_kwh = 0.3" in page._changed.value
    dial(page, "node.usd_per_kwh").value = 0.087
    assert page._changed.value == ""
    assert electricity(page) == before


def test_a_hosted_price_of_another_model_moves_the_hosted_bars(page):
    cost = opened(page, "Self-built against hosted")
    price = next(key for _, key in page._price.options if key.startswith("tinker/DeepSeek-V3.1/2026-10"))
    before = cost.plots["cost-comparison"]._figures["cost-comparison"]["data"][2]["y"]
    page._price.value = price
    assert cost.plots["cost-comparison"]._figures["cost-comparison"]["data"][2]["y"][0] > 1.5 * before[0]
    assert f"hosted_price = {price}" in page._changed.value
    page._price.value = AS_PRINTED
    assert cost.plots["cost-comparison"]._figures["cost-comparison"]["data"][2]["y"] == before


def test_a_section_is_computed_when_it_is_opened_and_again_when_what_it_shows_is_old(page):
    assert all(not body.box.children for body in page.folded)
    cost = opened(page, "Self-built against hosted")
    first = cost._words.value
    page.folds.selected_index = None
    dial(page, "node.server_usd").value = 400_000
    assert cost._words.value == first
    opened(page, "Self-built against hosted")
    assert cost._words.value != first


def test_a_dial_that_is_sent_nonsense_says_so_and_stays(page):
    slider = dial(page, "node.wacc_per_year")
    slider.set_state({"index": 10_000})
    assert slider.value == 0.1025
    assert "must be a whole number in" in page._status.value
    slider.set_state({"_options_labels": ["9"]})
    assert "must not be set by a page" in page._status.value


def test_page_and_file_show_the_same_figures_and_tables(page):
    report = build()
    shown = dict(page.first.plots)
    for body in page.folded:
        body.show(page.assumptions)
        shown |= body.plots
    assert list(shown) != []
    assert set(shown) == {figure.name for figure in report.figures}
    words = page.first._tables.value + "".join(body._tables.value for body in page.folded)
    assert [table.name for table in report.tables if f'id="table-{table.name}"' not in words] == []


def test_the_key_names_every_trace_of_a_figure_in_its_colour():
    for figure in build().figures:
        layout = drawn(figure)["layout"]
        keyed = [trace["name"] for trace in figure.plot["data"] if trace.get("showlegend", True)]
        assert [each["name"] for each in layout["meta"]["key"]] == keyed
        assert all(each["colour"].startswith("#") for each in layout["meta"]["key"])


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_visitor_turns_a_dial_opens_a_section_and_sees_it_drawn(visit, tmp_path, width):
    shutil.copy(NOTEBOOK, tmp_path)
    with serve(tmp_path) as server:
        here = visit(server, width=width)
        assert here.page.locator("h3", has_text="What an H200 GPU-hour costs to own").count() == 1
        here.slider("Electricity [$/kWh]").press("ArrowRight")
        here.page.wait_for_selector(".rlq-report .changed")
        here.page.locator(".jupyter-widget-Collapse-header", has_text="Hosted prices").click()
        here.page.wait_for_selector("figure[data-plot=hosted-price-rise][data-drawn]")
        assert here.page.locator("figure[data-plot=hosted-price-rise] .scatterlayer .trace").count() == 2
        assert here.page.evaluate("document.documentElement.scrollWidth") <= width
        assert "There was an error when executing cell" not in here.page.content()
