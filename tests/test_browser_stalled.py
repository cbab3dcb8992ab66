"""A scenario of which no step ever ends, on the pages that simulate it: they say why, and live on."""

import nbformat
import pytest
from serving import serve
from test_browser_explorer import NAMES, shows

from rlqueue.app.inside import stamp
from rlqueue.app.state import opened

pytestmark = pytest.mark.browser

STUCK = """
import dataclasses

from rlqueue.app.{module} import page
from rlqueue.app.state import State, opened

state = opened("slime-qwen3-235b")
page(State(preset=state.preset, scenario=dataclasses.replace(state.scenario, cluster_gpus=0, solve_rate_mean=1.0)))
"""
WHY = "nearly every group is filtered"


@pytest.fixture(scope="module")
def stuck(tmp_path_factory):
    """Both pages, opened with a run whose prompts are all solved always."""
    folder = tmp_path_factory.mktemp("stuck")
    for name, module in (("explorer", "explorer"), ("inside_one_run", "inside")):
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(STUCK.format(module=module))])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(made, folder / f"{name}.ipynb")
    with serve(folder) as server:
        yield server


def test_the_explorer_says_why_and_lives_on(visit, stuck):
    here = visit(stuck)
    doubt = here.page.locator(".rlq-doubt", has_text=WHY)
    doubt.wait_for(timeout=60_000)
    assert "The simulated run stalls" in doubt.inner_text()
    here.press(NAMES["generator_gpus"], "ArrowLeft")
    doubt.wait_for(timeout=60_000)
    here.page.get_by_role("button", name="Reset").click()
    here.page.locator(".rlq-doubt").wait_for(state="detached")
    shows(here, opened("slime-qwen3-235b"))


def test_inside_one_run_shows_the_cause_instead_of_empty_figures_and_lives_on(visit, stuck):
    here = visit(stuck, path="voila/render/inside_one_run.ipynb", drawn=False)
    stall = here.page.locator(".rlq-stall")
    stall.wait_for(timeout=60_000)
    assert "This run stalled after 0 of" in stall.inner_text()
    assert WHY in stall.inner_text()
    assert not here.plots.is_visible()
    here.slider(NAMES["concurrency"]).press("ArrowLeft")
    here.page.locator(".rlq-run", has_text="The full run").wait_for(timeout=60_000)
    assert WHY in stall.inner_text()
    here.page.get_by_role("button", name="Reset").click()
    scenario = opened("slime-qwen3-235b").scenario
    here.page.wait_for_selector(f".rlq-plots[data-stamp='{stamp(scenario, 0, 10, full=True)}']", timeout=60_000)
    assert not stall.is_visible()
    assert here.page.locator("figure[data-plot=timeline] .bars path").count() > 3
