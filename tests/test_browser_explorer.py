"""The explorer as a visitor has it: in Chromium, without network, against the running server."""

import dataclasses
import re

import pytest
from intruder import Intruder, connected
from test_explorer import text

from rlqueue import Scenario
from rlqueue.app import controls, panels, way_words
from rlqueue.app.answers import answer
from rlqueue.app.banded import banded
from rlqueue.app.explorer import stamp
from rlqueue.app.figures import figures
from rlqueue.app.refining import Refinement, run
from rlqueue.app.state import State, opened, with_value
from rlqueue.app.way import way
from rlqueue.presets import preset_names

pytestmark = pytest.mark.browser

NAMES = {
    control.knob: f"{control.label} [{control.measured_in}]"
    for control in (*controls.MAIN, *controls.MORE)
    if control.measured_in
}
# Data of a drawn figure as plotly holds them, numbers from whatever kind of array.
BAND = r'<dd class="rlq-band".*?</dd>'
DRAWN = """name => document.querySelector(`figure[data-plot=${name}] .rlq-canvas`).data.map(
    ({x, y, z}) => [x, y, z].map(values => values && Array.from(values, each => each?.length ? Array.from(each) : each)))"""
NAMES_DRAWN = (
    """name => document.querySelector(`figure[data-plot=${name}] .rlq-canvas`).data.map(({name}) => name ?? null)"""
)
OVERFLOWING = """() => [...document.querySelectorAll('.rlq-page *')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.width && !each.closest('.rlq-wide, svg, select, .noUi-target, .rlq-canvas') && box.right > innerWidth + 1; })
    .map(each => each.className + ': ' + each.textContent.slice(0, 40))"""
CUT_OFF = """() => [...document.querySelectorAll('.rlq-page *')].filter(each => {
    const style = getComputedStyle(each);
    return each.clientWidth && style.overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1
        && !each.closest('.rlq-wide, svg, select, input, .noUi-target, .rlq-canvas'); })
    .map(each => each.className + ': ' + each.textContent.slice(0, 40))"""


def moved(state, knob, value):
    return State(preset=state.preset, scenario=with_value(state.scenario, knob, value))


def shows(here, state):
    """Wait until the page shows the state, then compare the closed form's words, numbers and traces with what the model gives.

    What is simulated is deterministic as well, but refined as soon as the hand rests: tests of their own are about that.
    """
    here.page.wait_for_selector(f".rlq-plots[data-stamp='{stamp(state.scenario)}']")
    found = answer(state)
    closed = [merit.text for merit in panels.merits(found) if merit.name != "Hosted"]
    assert here.page.locator(".rlq-closed b").all_inner_texts() == closed
    assert unbanded(here, ".rlq-lesser") == squeezed(
        text(re.sub(BAND, "", panels.lesser(found)).split("</h3>")[1].split("</dl>")[0])
    )
    assert squeezed(here.page.locator(".rlq-verdict").inner_text()) == squeezed(f"{found.point.kind}{found.verdict}")
    for name, figure in figures(found).items():
        drawn = here.page.evaluate(DRAWN, name)
        names = here.page.evaluate(NAMES_DRAWN, name)
        assert names == [trace.get("name") for trace in figure["data"]]
        for (x, y, _), trace in zip(drawn, figure["data"], strict=True):
            if trace.get("name", "").endswith("closed form"):
                assert x == numbers(trace["x"])
                assert y == numbers(trace["y"])


def squeezed(words):
    return "".join(words.split())


def unbanded(here, selector):
    """The text of cards without their bands, which come when the hand rests."""
    words = here.page.locator(f"{selector} dt, {selector} dd:not(.rlq-band)").all_inner_texts()
    return squeezed("".join(words))


def numbers(values):
    if values is None:
        return None
    return [each.tolist() if hasattr(each, "tolist") else each for each in values]


def choose(here, label, option):
    here.page.get_by_label(label, exact=True).select_option(label=option)


def unfold(here, title):
    here.page.locator(".jupyter-widget-Collapse-header", has_text=title).click()


def alert(here):
    return here.page.locator(".rlq-status [role=alert]")


def test_the_first_published_run_is_there_with_all_its_figures(visit, explorer):
    here = visit(explorer)
    assert "There was an error when executing cell" not in here.page.content()
    assert here.page.locator("h1").inner_text().startswith("Who waits, and what does a trained token cost?")
    shows(here, opened())
    assert here.page.locator("figure h3").all_inner_texts() == [
        figure["layout"]["title"]["text"] for figure in figures(answer(opened())).values()
    ]
    assert len(here.paths("wait")) >= 4
    assert here.page.locator("figure[data-plot=cost] .barlayer .bars").count() == 4
    assert here.page.locator("figure[data-plot=map] .heatmaplayer image").count() == 1
    assert here.page.locator("figure[data-plot=map] .contourlayer path").count() > 2


@pytest.mark.parametrize(
    ("knob", "key", "places"),
    [("generator_gpus", "ArrowLeft", -1), ("max_staleness", "Home", None), ("concurrency", "ArrowRight", 1)],
)
def test_each_slider_moved_by_keyboard_shows_what_solve_gives(visit, explorer, knob, key, places):
    here = visit(explorer)
    control = next(each for each in controls.MAIN if each.knob == knob)
    stops = controls.stops(control, opened())
    place = 0 if places is None else stops.index(getattr(opened().scenario, knob)) + places
    before = here.page.evaluate(DRAWN, "wait"), here.page.locator(".rlq-cards").inner_text()
    assert here.press(NAMES[knob], key) == stamp(moved(opened(), knob, stops[place]).scenario)
    shows(here, moved(opened(), knob, stops[place]))
    assert here.page.locator(".rlq-cards").inner_text() != before[1]
    if knob != "generator_gpus":  # the curves are over the split: along them only the marker moves
        assert all(
            new != old for new, old in zip(here.page.evaluate(DRAWN, "wait")[2:5:2], before[0][2:5:2], strict=True)
        )
    assert here.slider(NAMES[knob]).get_attribute("aria-valuetext") == controls.label(control, stops[place], opened())


def test_a_drag_ends_where_the_hand_stopped_and_draws_on_the_way(visit, explorer):
    here = visit(explorer)
    box = here.slider(NAMES["generator_gpus"]).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drawn = int(here.plots.get_attribute("data-drawn"))
    here.page.mouse.move(x, y)
    here.page.mouse.down()
    for step in range(400):  # on a busy machine one drags longer
        here.page.mouse.move(x - 4 * (15 + step % 15), y)
        here.page.wait_for_timeout(30)
        during = int(here.plots.get_attribute("data-drawn"))
        if during - drawn >= 5 and step > 20:
            break
    here.page.mouse.up()
    read = here.slider(NAMES["generator_gpus"]).get_attribute("aria-valuetext")
    trainer, generator = map(int, read.split(" : "))
    assert trainer > 64
    assert during - drawn >= 5
    shows(here, moved(opened(), "generator_gpus", generator))


def test_every_preset_can_be_chosen_and_the_sliders_stand_where_they_should(visit, explorer):
    here = visit(explorer)
    titles = here.page.get_by_label("Published run").locator("option").all_inner_texts()
    for place in (3, 1, 2, 0, 5, 4, 0):
        state = opened(preset_names()[place])
        choose(here, "Published run", titles[place])
        shows(here, state)
        for control in controls.MAIN:
            stops = controls.stops(control, state)
            handle = here.slider(NAMES[control.knob])
            assert float(handle.get_attribute("aria-valuemax")) == len(stops) - 1
            assert float(handle.get_attribute("aria-valuenow")) == stops.index(getattr(state.scenario, control.knob))
        assert here.page.locator(".rlq-header .rlq-changed").count() == 0


def test_reset_brings_the_published_run_back(visit, explorer):
    here = visit(explorer)
    choose(here, "Published run", "slime · Qwen3-235B FP8 · H200")
    shows(here, opened("slime-qwen3-235b"))
    here.press(NAMES["concurrency"], "End")
    here.press(NAMES["generator_gpus"], "Home")
    assert here.page.locator(".rlq-header .rlq-changed").count() == 1
    here.page.get_by_role("button", name="Reset").click()
    shows(here, opened("slime-qwen3-235b"))
    assert here.page.locator(".rlq-header .rlq-changed").count() == 0


def test_the_best_move_can_be_applied(visit, explorer):
    here = visit(explorer)
    best = answer(opened()).moves[0]
    here.page.get_by_role("button", name=panels.move_words(best)).click()
    shows(here, State(preset=opened().preset, scenario=best.scenario))
    assert here.slider(NAMES["concurrency"]).get_attribute("aria-valuetext") == f"{best.scenario.concurrency:,}"


def test_an_llm_that_does_not_fit_is_refused_with_the_reason_and_the_page_lives_on(visit, explorer):
    here = visit(explorer)
    unfold(here, "More knobs")
    choose(here, "LLM", "Kimi-K2")
    alert(here).wait_for()
    assert "gpus_per_replica=8 leaves" in alert(here).inner_text()
    shows(here, opened())
    held = here.page.get_by_label("LLM", exact=True)
    assert held.evaluate("select => select.selectedOptions[0].text") == "Qwen3-235B-A22B-Thinking-2507"
    here.press(NAMES["generator_gpus"], "ArrowLeft")
    shows(here, moved(opened(), "generator_gpus", 184))
    alert(here).wait_for(state="detached")


def test_a_place_that_no_slider_has_is_refused_when_it_comes_over_the_websocket(visit, explorer):
    here = visit(explorer)
    html = here.page.content()
    kernel_id = re.search('"kernelId": ?"([^"]+)"', html)[1]
    socket = connected(explorer.port, kernel_id)
    intruder = Intruder(socket=socket, kernel_id=kernel_id, html=html)
    sliders = {
        state["description"]: comm
        for comm, state in intruder.widgets().items()
        if state.get("_model_name") == "SelectionSliderModel"
    }
    intruder.set(sliders[NAMES["generator_gpus"]], index=10_000)
    alert(here).wait_for()
    assert "must be a whole number in [0, 30]" in alert(here).inner_text()
    intruder.set(sliders[NAMES["concurrency"]], index="many", _options_labels=["1"])
    socket.close()
    shows(here, opened())
    here.press(NAMES["concurrency"], "ArrowLeft")
    alert(here).wait_for(state="detached")


def test_the_download_is_the_scenario_on_the_page(visit, explorer):
    here = visit(explorer)
    here.press(NAMES["generator_gpus"], "ArrowRight")
    here.press(NAMES["max_staleness"], "ArrowLeft")
    with here.page.expect_download() as waited:
        here.page.get_by_role("button", name="Scenario (TOML)").click()
    assert waited.value.suggested_filename == "prime-rl-qwen3-235b.toml"
    with open(waited.value.path(), encoding="utf-8") as file:  # noqa: PTH123
        held = Scenario.from_toml(file.read())
    assert held == moved(moved(opened(), "generator_gpus", 200), "max_staleness", 15.5).scenario


def test_the_second_group_moves_the_run(visit, explorer):
    here = visit(explorer)
    header = here.page.get_by_role("button", name="More knobs of this run")
    header.press("Enter")
    assert header.get_attribute("aria-expanded") == "true"
    here.press(NAMES["tool_calls"], "ArrowRight")
    state = moved(opened(), "tool_calls", 16.0)
    shows(here, state)
    price = here.page.get_by_label(NAMES["gpu_hour_usd"], exact=True)
    price.fill("2.50")
    price.press("Enter")
    state = moved(state, "gpu_hour_usd", 2.5)
    here.page.get_by_text("set to $2.5; h200 would cost $1.5919").wait_for()
    shows(here, state)
    choose(here, NAMES["hosted_price"], "none")
    here.page.locator(".rlq-card-run", has_text="no hosted price chosen").wait_for()
    shows(here, State(preset=state.preset, scenario=dataclasses.replace(state.scenario, hosted_price=None)))
    choose(here, "Schedule", "sync")
    here.page.get_by_text("no effect: schedule sync keeps trainer and generator in step").wait_for()
    price.fill("cheap")
    price.press("Enter")
    alert(here).wait_for()
    assert "must be empty or a number of dollars" in alert(here).inner_text()


def test_costs_and_origins_unfold_with_what_is_reconciled_and_where_numbers_come_from(visit, explorer):
    here = visit(explorer)
    unfold(here, "Two costs")
    here.page.get_by_text("$6.90 by the report's method", exact=True).wait_for()
    unfold(here, "Where these numbers come from")
    table = here.page.locator(".rlq-origins")
    table.get_by_text("decode_efficiency").first.wait_for()
    assert table.locator("tr.rlq-row-assumed .rlq-assumed").count() >= 10
    here.press(NAMES["max_staleness"], "ArrowLeft")
    table.get_by_text("set on this page; the preset has 16").wait_for()


def test_sliders_are_named_explained_and_read_for_those_who_hear_the_page(visit, explorer):
    here = visit(explorer)
    for control in controls.MAIN:
        handle = here.slider(NAMES[control.knob])
        assert control.explained in handle.get_attribute("aria-description")
    assert here.slider(NAMES["generator_gpus"]).get_attribute("aria-valuetext") == "64 : 192"
    assert here.page.locator(".widget-readout[contenteditable=true]").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off_or_wider_than_the_screen(visit, explorer, width):
    here = visit(explorer, width=width)
    for place in (0, 1, 5):
        here.page.get_by_label("Published run").select_option(index=place)
        shows(here, opened(preset_names()[place]))
        for fold in ("More knobs", "Two costs", "Where these"):
            unfold(here, fold)
            here.page.wait_for_timeout(300)
            assert here.page.evaluate("document.documentElement.scrollWidth") <= width
            assert here.page.evaluate(OVERFLOWING) == []
            assert here.page.evaluate(CUT_OFF) == []


# Each first number of the cards that was on the page, and what was said then of how it was got.
NOTED = """() => { window.seen = []; new MutationObserver(() => {
    const number = document.querySelector('.rlq-number');
    if (number) seen.push([number.firstChild.textContent, document.querySelector('.rlq-how').textContent]);
    }).observe(document.querySelector('.rlq-page'), { childList: true, subtree: true }); }"""


def waits(here):
    """The drawn curve of the trainer's wait: x, y."""
    names = here.page.evaluate(NAMES_DRAWN, "wait")
    return here.page.evaluate(DRAWN, "wait")[names.index("trainer waits")][:2]


def test_a_move_draws_what_is_simulated_and_rest_refines_it_until_the_next_move(visit, explorer):
    first = moved(opened("slime-qwen3-235b"), "max_staleness", 8.5)
    state = moved(first, "max_staleness", 9.0)
    found, last = answer(first), answer(state)
    here = visit(explorer)
    choose(here, "Published run", "slime · Qwen3-235B FP8 · H200")
    here.page.locator(".rlq-done").wait_for(timeout=60_000)
    here.page.evaluate(NOTED)
    here.press(NAMES["max_staleness"], "ArrowRight")
    here.page.locator(".rlq-done").wait_for(state="detached")
    here.press(NAMES["max_staleness"], "ArrowRight")  # before it is done
    here.page.locator(".rlq-done").wait_for(timeout=60_000)
    seen = here.page.evaluate("seen")
    quick = [panels.shown_merits(each)[0].text for each in (found, last)]
    assert any("%" in how.rpartition(".")[2] for _, how in seen)  # progress
    assert [number for number in quick if number not in [wait for wait, _ in seen]] == []
    said = squeezed(text(panels.how(found)))
    assert any(wait == quick[0] and squeezed(how) == said for wait, how in seen)
    refined = Refinement(last)
    for job in refined.jobs:
        refined.take(job, run(job, lambda: True))
    final = refined.answer
    expected = panels.cards(final, way_words.card(way(state)), banded(state)).partition("</dl>")[0]
    assert unbanded(here, ".rlq-cards") == squeezed(text(re.sub(BAND, "", expected)))
    bands = here.page.locator(".rlq-cards .rlq-band").all_inner_texts()
    assert [
        each for each in bands if each.startswith("inputs")
    ] == bands  # of each number, the whole run's two among them
    assert len(bands) == len(panels.merits(final)) - 1 + 2
    assert bands[0] == panels.band(panels.merits(final)[0], banded(state)).words
    assert "8 seeds, 60 steps" in here.page.locator(".rlq-how").inner_text()
    drawn = waits(here)
    assert drawn[0] == final.frame.splits.tolist()
    assert drawn[1] == pytest.approx(final.simulated.curve.by_split["trainer_wait_ratio"].tolist(), abs=1e-12)
    bands = here.page.evaluate(DRAWN, "wait")[0]
    assert len(bands[0]) == 2 * len(final.frame.splits)
    assert here.page.evaluate(DRAWN, "map")[0][2] == figures(final)["map"]["data"][0]["z"].tolist()
