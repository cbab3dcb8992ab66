"""A page's downloads in JupyterLab: its address is its own and it serves no files of ours, so all comes from kernel and page."""

import csv
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from conftest import NOTEBOOKS
from serving import _end, _free_port, _listening, wait_until
from test_browser_explorer import squeezed

from rlqueue import Scenario
from rlqueue.app.state import opened

pytest.importorskip("jupyterlab")
pytestmark = pytest.mark.browser

SMALL = "verl-qwen3-235b-c96"


@contextmanager
def lab(folder):
    """`jupyter lab` as a user starts it, with settings and traces of its own; ended with the kernels it started."""
    port, notebooks, log = _free_port(), folder / "notebooks", folder / "log"
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    notebooks.mkdir()
    (notebooks / "explorer.ipynb").write_bytes((NOTEBOOKS / "explorer.ipynb").read_bytes())
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
               "--IdentityProvider.token=", f"--ServerApp.root_dir={notebooks}"]  # fmt: skip
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, env=os.environ | own
        )
    try:
        wait_until(lambda: _listening(port), 60, log.read_text)
        yield f"http://localhost:{port}"
    finally:
        _end(process)


def run_first_cell(page):
    """The first cell, once the notebook takes keys: while it still opens it forgets them."""
    cell = page.locator(".jp-CodeCell").first
    cell.locator(".cm-content").wait_for(timeout=60_000)
    for _ in range(60):
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(1_000)
        if cell.locator(".jp-InputPrompt").inner_text() != "[ ]:":
            return
    raise AssertionError("the first cell did not run in a minute")


def test_every_download_of_a_page_works_in_jupyterlab_and_the_saved_page_needs_nothing(chromium, tmp_path):
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    with lab(tmp_path) as url:
        page, errors = context.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}/lab/tree/explorer.ipynb")
        run_first_cell(page)
        page.locator("figure[data-plot=wait] .main-svg").first.wait_for(timeout=60_000)
        page.get_by_label("Published run").select_option(label="verl · Qwen3-235B · GB300 · 96 slots")
        page.wait_for_selector(".rlq-plots[data-stamp*='C=96']", timeout=30_000)
        saved = {}
        for label in page.locator(".rlq-share button").all_inner_texts():
            with page.expect_download(timeout=30_000) as waited:
                page.locator(".rlq-share button", has_text=label).click()
            saved[label] = tmp_path / waited.value.suggested_filename
            waited.value.save_as(saved[label])
        assert list(saved) == ["Scenario (TOML)", "CSV", "PNG", "Page"]
        assert errors == []
    assert Scenario.from_file(saved["Scenario (TOML)"]) == opened(SMALL).scenario
    with saved["CSV"].open(newline="") as file:
        assert {row["kind"] for row in csv.DictReader(file)} == {"closed form", "simulated"}
    content = saved["PNG"].read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) == 2000  # wide, and as high as all figures together
    assert int.from_bytes(content[20:24]) == 3 * 1120
    page = context.new_page()
    page.context.set_offline(True)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(saved["Page"].as_uri())
    page.wait_for_selector("#figure-2 .main-svg")
    assert page.title().startswith("Who waits")
    assert squeezed("Published run verl · Qwen3-235B · GB300 · 96 slots") in squeezed(
        page.locator(".rlq-header").inner_text()
    )
    assert page.locator("a[download]").get_attribute("download") == f"{SMALL}.toml"
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert errors == []
    context.close()
