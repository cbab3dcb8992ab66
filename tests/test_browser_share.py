"""Links and downloads as a visitor has them: in Chromium, without network, against the running server."""

import csv

import pytest
from test_browser_explorer import NAMES, shows

from rlqueue.app import share
from rlqueue.app.state import State, opened, with_value

pytestmark = pytest.mark.browser

SMALL = "slime-qwen3-235b"


def test_a_link_restores_the_scenario_and_the_address_and_the_other_pages_follow(visit, explorer):
    state = State(preset=SMALL, scenario=with_value(opened(SMALL).scenario, "concurrency", 300))
    here = visit(explorer, path=f"voila/render/explorer.ipynb?{share.query(state)}")
    shows(here, state)
    here.slider(NAMES["max_staleness"]).press("ArrowRight")
    here.page.wait_for_function("location.search.includes('s=8.5')")
    query = here.page.evaluate("location.search.slice(1)")
    found = share.read(query)[0]
    assert found.scenario.max_staleness == state.scenario.max_staleness + 0.5
    assert found.scenario.concurrency == 300
    links = here.page.locator(".rlq-pages a").evaluate_all("links => links.map(link => link.search.slice(1))")
    assert set(links) == {query}
    here.page.get_by_role("link", name="Inside one run").click()
    here.page.wait_for_selector(".rlq-plots[data-stamp*='C=300']", timeout=60_000)


def test_a_bad_link_says_so_and_the_page_is_there(visit, explorer):
    here = visit(explorer, path="voila/render/explorer.ipynb?g=many&<script>=1")
    here.page.locator(".rlq-status [role=alert]").wait_for()
    assert "is not known" in here.page.locator(".rlq-status [role=alert]").inner_text()
    shows(here, opened())


def test_numbers_figures_and_the_page_are_saved_and_the_saved_page_needs_nothing(visit, explorer, chromium, tmp_path):
    here = visit(explorer, path="voila/render/what_if_answers_grow.ipynb")
    saved = {}
    for label in ("CSV", "PNG", "Page"):
        with here.page.expect_download(timeout=60_000) as waited:
            here.page.locator(".rlq-share button", has_text=label).click()
        saved[label] = tmp_path / waited.value.suggested_filename
        waited.value.save_as(saved[label])
    with saved["CSV"].open(newline="") as file:
        assert {row["kind"] for row in csv.DictReader(file)} >= {"closed form"}
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
    page = chromium.new_context(offline=True).new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(saved["Page"].as_uri())
    page.wait_for_selector("#figure-0 .main-svg")
    assert page.locator("figure .main-svg").count() >= 5
    assert page.locator("h1").inner_text().startswith("What if answers grow?")
    assert "The whole run" in page.content()
    assert page.locator(".jupyter-button, .noUi-handle").count() == 0
    assert errors == []
    page.context.close()
