"""The page "side by side" as a visitor has it: in Chromium, without network, against the running server."""

import pytest
from test_browser_explorer import CUT_OFF, DRAWN, NAMES, OVERFLOWING, choose, numbers

from rlqueue.app import share
from rlqueue.app.compare import Compare
from rlqueue.app.compare_figures import figures
from rlqueue.app.state import State, opened, with_value

pytestmark = pytest.mark.browser

SMALL = "slime-qwen3-235b"


def test_a_run_brought_by_a_link_is_compared_moved_and_fits_the_screen(visit, explorer):
    state = State(preset=SMALL, scenario=with_value(opened(SMALL).scenario, "concurrency", 300))
    here = visit(explorer, path=f"voila/render/compare.ipynb?{share.query(state)}")
    page = Compare([opened(SMALL), state])
    here.page.wait_for_selector(f".rlq-plots[data-stamp='{page.stamp}']", timeout=30_000)
    drawn = here.page.evaluate(DRAWN, "waits")
    for (x, y, _), trace in zip(drawn[:2], figures(page.shown)["waits"]["data"][:2], strict=True):
        assert numbers(x) == pytest.approx(numbers(trace["x"]))
        assert numbers(y) == pytest.approx(numbers(trace["y"]))
    column = here.page.locator(".rlq-column").nth(1)
    column.get_by_role("slider", name=NAMES["concurrency"], exact=True).press("ArrowRight")
    here.page.wait_for_function("!decodeURIComponent(location.search).includes('c=300')")
    assert f"&b=p={SMALL}&c=" in here.page.evaluate("decodeURIComponent(location.search)")
    here.page.locator(".rlq-done").wait_for(timeout=60_000)
    assert "inputs $" in here.page.locator(".rlq-whole").first.inner_text()
    choose(here, "Scenarios", "4")
    here.page.wait_for_selector(".rlq-plots[data-stamp*='d=']")
    for width in (1280, 390):
        here.page.set_viewport_size({"width": width, "height": 900})
        here.page.wait_for_timeout(300)
        assert here.page.evaluate("document.documentElement.scrollWidth") <= width
        for found in (OVERFLOWING, CUT_OFF):
            assert here.page.evaluate(found) == []
