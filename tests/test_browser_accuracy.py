"""The page "how accurate is it?" as a visitor has it: in Chromium, without network, against the running server."""

import pytest

from rlqueue.app.validation import computed
from rlqueue.app.validation_figures import figures
from rlqueue.validation import cases

pytestmark = pytest.mark.browser

PAGE = "voila/render/validation.ipynb"
NAMES = [case.name for case in cases()]
FIRST = NAMES[0]
POINTS = """() => document.querySelector('figure[data-plot=staleness] .rlq-canvas').data
    .filter(trace => trace.name).map(trace => Array.from(trace.y))"""
TOO_WIDE = """() => [...document.querySelectorAll('.rlq-validation *')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.width && !each.closest('svg, .rlq-canvas, .rlq-scroll') && box.right > innerWidth + 1; })
    .map(each => each.className + ': ' + each.textContent.slice(0, 40))"""


def first_case(visit, server, width=1280):
    here = visit(server, path=PAGE, width=width)
    here.page.wait_for_selector(".rlq-case table", timeout=90_000)
    here.page.wait_for_selector(".rlq-plots:not([data-stamp^='0 cases'])", timeout=90_000)
    return here


def test_the_page_opens_and_its_first_case_is_computed_while_one_looks(visit, explorer):
    here = first_case(visit, explorer)
    found = computed(FIRST, "closed form")
    drawn = here.page.evaluate(POINTS)[0]
    expected = next(trace for trace in figures([found], NAMES)["staleness"]["data"] if trace.get("name") == FIRST)["y"]
    # By closed form at first, by simulation soon after, which differs by less than a fifth of a version here.
    assert drawn == pytest.approx(list(expected), abs=0.3)
    rows = here.page.locator(".rlq-case table").first.locator("tbody tr")
    assert rows.count() == len(found.comparisons)
    assert here.page.locator(".rlq-cases .jupyter-widget-Collapse-header").count() == len(NAMES)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_but_a_table_is_wider_than_the_screen(visit, explorer, width):
    here = first_case(visit, explorer, width)
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    assert here.page.evaluate(TOO_WIDE) == []
