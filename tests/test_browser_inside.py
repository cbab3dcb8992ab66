"""The page "inside one run" as a visitor has it: in Chromium, without network, against the running server."""

import re

import pytest
from intruder import Intruder, connected
from test_browser_explorer import BAND, NAMES, alert, choose, numbers, squeezed, unbanded
from test_explorer import text

from rlqueue.app import controls, inside_panels
from rlqueue.app.banded import banded
from rlqueue.app.inside import STEPS_AT_FIRST, stamp
from rlqueue.app.inside_figures import figures
from rlqueue.app.inside_runs import short, slices
from rlqueue.app.state import State, opened, with_value

pytestmark = pytest.mark.browser

PAGE = "voila/render/inside_one_run.ipynb"
SMALL = "verl-qwen3-235b-c96"
SMALL_TITLE = "verl · Qwen3-235B · GB300 · 96 slots"
# Bars, their bases and lines of a drawn figure, as plotly holds them.
DRAWN = """name => document.querySelector(`figure[data-plot=${name}] .rlq-canvas`).data.map(
    ({x, y, base}) => [x, y, base].map(values => values && Array.from(values, each => Number.isNaN(each) ? null : each)))"""
TOO_WIDE = """() => [...document.querySelectorAll('.rlq-inside *')].filter(each => {
    const box = each.getBoundingClientRect(), style = getComputedStyle(each);
    const cut = each.clientWidth && style.overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1;
    return box.width && !each.closest('svg, select, input, .noUi-target, .rlq-canvas') && (box.right > innerWidth + 1 || cut); })
    .map(each => each.className + ': ' + each.textContent.slice(0, 40))"""


def opened_page(visit, server, *, width=1280):
    here = visit(server, path=PAGE, width=width)
    choose(here, "Published run", SMALL_TITLE)
    rested(here, opened(SMALL).scenario)
    return here


def rested(here, scenario, *, seed=0, steps=STEPS_AT_FIRST):
    """Wait until the full run of a scenario is drawn."""
    here.page.wait_for_selector(f".rlq-plots[data-stamp='{stamp(scenario, seed, steps, full=True)}']", timeout=60_000)


def full(scenario, seed=0):
    *_, last = slices(scenario, seed)
    return last


def shows(here, found, steps=STEPS_AT_FIRST):
    """The drawn traces and the cards are those of the run."""
    for name, figure in figures(found, steps).items():
        drawn = here.page.evaluate(DRAWN, name)
        for traces, trace in zip(drawn, figure["data"], strict=True):
            for values, key in zip(traces, ("x", "y", "base"), strict=True):
                expected = numbers(trace.get(key))
                assert values == (expected and [None if each != each else each for each in expected])  # noqa: PLR0124
    expected = inside_panels.cards(found).partition("</dl>")[0]
    assert unbanded(here, ".rlq-cards") == squeezed(text(re.sub(BAND, "", expected)))
    assert squeezed(here.page.locator(".rlq-verdict").inner_text()) == squeezed(inside_panels.believe(found))


def test_the_page_opens_with_all_its_figures_and_the_full_run_follows(visit, explorer):
    here = visit(explorer, path=PAGE)
    assert "There was an error when executing cell" not in here.page.content()
    assert here.page.locator("h1").inner_text().startswith("Inside one run")
    rested(here, opened().scenario)
    assert here.page.locator("figure h3").all_inner_texts() == [
        figure["layout"]["title"]["text"] for figure in figures(short(opened().scenario, 0), 10).values()
    ]
    assert "The full run: 100 steps, 51,200 rollouts trained" in here.page.locator(".rlq-run").inner_text()
    for name, marks in {"timeline": ".bars path", "levels": "path.js-line", "spent": ".bars path"}.items():
        assert here.page.locator(f"figure[data-plot={name}] {marks}").count() > 3


def test_what_is_drawn_at_rest_is_the_full_run(visit, explorer):
    here = opened_page(visit, explorer)
    found = full(opened(SMALL).scenario)
    shows(here, found)
    here.page.locator(".rlq-cards .rlq-band", has_text="inputs ").first.wait_for()
    seen = here.page.locator(".rlq-cards .rlq-band").all_inner_texts()
    assert [each.partition(" ")[0] for each in seen].count("chance") == len(inside_panels.PAIRS)
    assert squeezed("".join(seen)) == squeezed(
        "".join(map(text, re.findall(BAND, inside_panels.cards(found, banded(opened(SMALL))))))
    )


@pytest.mark.parametrize("control", controls.MAIN, ids=lambda control: control.knob)
def test_each_slider_moved_by_keyboard_draws_a_short_run_at_once_and_then_the_full_one(visit, explorer, control):
    here = opened_page(visit, explorer)
    start = opened(SMALL)
    stops = controls.stops(control, start)
    value = stops[stops.index(getattr(start.scenario, control.knob)) - 1]
    state = State(preset=SMALL, scenario=with_value(start.scenario, control.knob, value))
    before = {name: here.page.evaluate(DRAWN, name) for name in ("timeline", "staleness", "spent")}
    here.slider(NAMES[control.knob]).press("ArrowLeft")
    here.page.wait_for_selector(f".rlq-plots[data-stamp='{stamp(state.scenario, 0, 10, full=False)}']", timeout=5_000)
    rested(here, state.scenario)
    shows(here, full(state.scenario))
    if control is not controls.STALENESS:  # a budget that does not bind changes where its line is, and nothing else
        assert all(here.page.evaluate(DRAWN, name) != drawn for name, drawn in before.items())
    assert here.page.evaluate(DRAWN, "staleness") != before["staleness"]


def test_seed_schedule_and_steps_shown_move_the_figures_too(visit, explorer):
    here = opened_page(visit, explorer)
    here.slider("Seed").press("ArrowRight")
    scenario = opened(SMALL).scenario
    rested(here, scenario, seed=1)
    shows(here, full(scenario, seed=1))
    here.slider("Steps shown").press("ArrowRight")
    rested(here, scenario, seed=1, steps=12)
    shows(here, full(scenario, seed=1), steps=12)
    choose(here, "Schedule", "sync")
    scenario = with_value(scenario, "schedule", "sync")
    rested(here, scenario, seed=1, steps=12)
    shows(here, full(scenario, seed=1), steps=12)
    here.page.get_by_role("button", name="Reset").click()
    rested(here, opened(SMALL).scenario, steps=12)


def test_a_drag_draws_on_the_way_and_ends_with_the_full_run_of_where_it_stopped(visit, explorer):
    here = opened_page(visit, explorer)
    box = here.slider(NAMES["concurrency"]).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drawn = int(here.plots.get_attribute("data-drawn"))
    here.page.mouse.move(x, y)
    here.page.mouse.down()
    for step in range(20):
        here.page.mouse.move(x - 3 * step, y)
        here.page.wait_for_timeout(30)
    during = int(here.plots.get_attribute("data-drawn"))
    here.page.mouse.up()
    read = here.slider(NAMES["concurrency"]).get_attribute("aria-valuetext")
    assert during - drawn >= 4
    scenario = with_value(opened(SMALL).scenario, "concurrency", int(read.replace(",", "")))
    rested(here, scenario)
    assert scenario.concurrency < 96


def test_a_place_that_no_slider_has_is_refused_by_name_and_the_page_lives_on(visit, explorer):
    here = opened_page(visit, explorer)
    html = here.page.content()
    kernel_id = re.search('"kernelId": ?"([^"]+)"', html)[1]
    socket = connected(explorer.port, kernel_id)
    intruder = Intruder(socket=socket, kernel_id=kernel_id, html=html)
    sliders = {
        state["description"]: comm
        for comm, state in intruder.widgets().items()
        if state.get("_model_name") == "SelectionSliderModel"
    }
    intruder.set(sliders["Seed"], index=10_000)
    alert(here).wait_for()
    assert "Seed: index" not in alert(here).inner_text()
    assert "Seed=10000 must be a whole number in [0, 19]" in alert(here).inner_text()
    socket.close()
    here.slider("Seed").press("ArrowRight")
    rested(here, opened(SMALL).scenario, seed=1)
    assert alert(here).count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off_or_wider_than_the_screen(visit, explorer, width):
    here = opened_page(visit, explorer, width=width)
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    assert here.page.evaluate(TOO_WIDE) == []
