"""The two pages over a run's steps as a visitor has them: in Chromium, without network, against the running server."""

import pytest
from test_browser_explorer import CUT_OFF, DRAWN, NAMES_DRAWN, OVERFLOWING, choose, numbers, squeezed
from test_explorer import text

from rlqueue.app import moving_knobs, way_words
from rlqueue.app.growth import Growth
from rlqueue.app.state import opened
from rlqueue.app.teach import Teach

pytestmark = pytest.mark.browser

PAGES = {"which_prompts_teach": Teach, "what_if_answers_grow": Growth}
NAMES = {
    control.knob: f"{control.label} [{control.measured_in}]"
    for control in (*moving_knobs.DIFFICULTY, *moving_knobs.LEARNING, *moving_knobs.GROWTH, moving_knobs.STEPS)
}
DRAGGED = {"which_prompts_teach": "solve_rate_mean", "what_if_answers_grow": "drift_length_factor"}


def opened_page(visit, server, name, *, width=1280):
    return visit(server, path=f"voila/render/{name}.ipynb", width=width)


def rested(here):
    here.page.locator(".rlq-done").wait_for(timeout=60_000)


def lines_are(here, page):
    """What is drawn as a line is the closed form of the page's state at its step."""
    for name, figure in page.figures().items():
        assert here.page.evaluate(NAMES_DRAWN, name) == [trace.get("name") for trace in figure["data"]]
        for (x, y, _), trace in zip(here.page.evaluate(DRAWN, name), figure["data"], strict=True):
            if trace.get("mode") == "lines":
                assert numbers(x) == pytest.approx(numbers(trace["x"]), nan_ok=True)
                assert numbers(y) == pytest.approx(numbers(trace["y"]), nan_ok=True)


@pytest.mark.parametrize("name", PAGES)
def test_a_slider_draws_the_closed_form_at_once_and_rest_adds_the_simulated_run(visit, explorer, name):
    here = opened_page(visit, explorer, name)
    assert "There was an error when executing cell" not in here.page.content()
    rested(here)
    page = PAGES[name]()
    knob = DRAGGED[name]
    here.press(NAMES[knob])
    control = next(each for each in page.board.holders if each.knob == knob)
    page.board.holders[control].index += 1
    here.page.wait_for_selector(f".rlq-plots[data-stamp^='{page.stamp.partition('simulated')[0]}']", timeout=10_000)
    assert squeezed(f"${page.way.whole.usd:,.0f}") in squeezed(here.page.locator(".rlq-whole").inner_text())
    lines_are(here, page)
    assert squeezed(here.page.locator(".rlq-verdict").inner_text()) == squeezed(text(way_words.verdict(page.way, None)))
    rested(here)
    course = here.page.evaluate(DRAWN, "course")
    names = here.page.evaluate(NAMES_DRAWN, "course")
    assert len(course[names.index("wait, simulated")][0]) >= 20
    assert f"seed 0, {page.state.scenario.training_steps:,} steps" in here.page.locator(".rlq-how").inner_text()


def test_play_walks_the_step_to_the_end_of_the_run(visit, explorer):
    here = opened_page(visit, explorer, "which_prompts_teach")
    rested(here)
    choose(here, "Published run", "Prime RL · Qwen3-235B · H200")
    here.slider("Step looked at").press("End")
    here.slider("Step looked at").press("ArrowLeft")
    here.slider("Step looked at").press("ArrowLeft")
    button = here.page.locator(".rlq-play")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    here.page.wait_for_selector(".rlq-plots[data-stamp*='step=999 of 1000']", timeout=15_000)
    here.page.wait_for_selector(".rlq-play[aria-pressed=false]", timeout=5_000)
    assert button.inner_text() == "Play"


def test_a_published_growth_is_picked_and_drawn_beside(visit, explorer):
    here = opened_page(visit, explorer, "what_if_answers_grow")
    choose(here, "Published growth", "MiniMax-M1: 12.5k to 22k tokens over 4,300 steps · by the same factor")
    here.page.wait_for_selector(".rlq-plots[data-stamp*='of 4301']", timeout=10_000)
    drawn = here.page.evaluate(DRAWN, "tail")[5]
    start = opened("verl-qwen3-235b-c360").scenario.mean_response_tokens
    assert drawn[:2] == [[0, 4300], [start, pytest.approx(start * 22 / 12.5)]]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_or_wider_than_the_screen(visit, explorer, name):
    here = opened_page(visit, explorer, name)
    for width in (1280, 390):
        here.page.set_viewport_size({"width": width, "height": 900})
        here.page.wait_for_timeout(300)
        rested(here)
        assert here.page.evaluate("document.documentElement.scrollWidth") <= width
        for found in (OVERFLOWING, CUT_OFF):
            assert here.page.evaluate(found) == []
