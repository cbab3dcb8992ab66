"""What is under every page, tried in a real browser on a stand-in: the plot view, the template, the guard, the served files."""

import os
import re
import signal
from urllib.parse import urlsplit

import psutil
import pytest
from serving import PAGE, serve, wait_until

pytestmark = pytest.mark.browser


def test_what_was_set_before_the_page_opened_is_drawn(visit, standin):
    here = visit(standin)
    assert here.plots.get_attribute("data-stamp") == "opening"
    assert here.page.locator("figure[data-plot=lines] h3").inner_text() == "Six lines against their share"
    assert here.page.locator("figure[data-plot=lines] figcaption p").inner_text() != ""
    assert len(here.paths("lines")) == 6
    assert len(here.paths("areas")) == 5
    assert here.page.locator("figure[data-plot=heat] .heatmaplayer image").count() == 1
    assert "There was an error when executing cell" not in here.page.content()


def test_a_key_on_a_slider_redraws_every_figure(visit, standin):
    here = visit(standin)
    before = {name: here.paths(name) for name in ("lines", "areas")}
    heat = here.page.locator("figure[data-plot=heat] image").get_attribute("href")
    assert here.press("Level") == "level=51 depth=4 width=8"
    assert all(old != new for name in before for old, new in zip(before[name], here.paths(name), strict=True))
    assert here.page.locator("figure[data-plot=heat] image").get_attribute("href") != heat
    assert here.press("Width", "ArrowLeft") == "level=51 depth=4 width=4"
    assert here.page.locator(".merit dd").all_inner_texts() == ["51", "4", "4", str(51 * 4 * 4)]


def test_a_fast_hand_gets_the_last_value_and_no_queue_of_redraws(visit, standin):
    here = visit(standin)
    handle = here.slider("Level")
    drawn = int(here.plots.get_attribute("data-drawn"))
    handle.evaluate(
        "(handle) => { for (let k = 0; k < 30; k++)"
        " handle.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })); }"
    )
    here.page.wait_for_selector(".rlq-plots[data-stamp='level=80 depth=4 width=8']")
    assert int(here.plots.get_attribute("data-drawn")) - drawn < 15


@pytest.mark.parametrize(
    ("label", "last_good", "said"),
    [
        ("Depth", "5", "Depth=6 refused: unexpected RuntimeError; the server's log has the details"),
        ("Width", "16", "Width=32 refused: width=32 must be less than 32: no wider page is drawn"),
    ],
)
def test_a_control_with_an_error_behind_it_says_so_and_goes_back(visit, standin, label, last_good, said):
    here = visit(standin)
    here.press(label)
    here.slider(label).press("ArrowRight")
    alert = here.page.locator(".rlq-status [role=alert]")
    alert.wait_for()
    assert alert.inner_text() == said
    here.page.locator(f"[aria-label={label}][aria-valuetext='{last_good}']").wait_for()
    assert here.press("Level").startswith("level=51 ")
    assert alert.count() == 0


def test_every_slider_has_a_name_and_a_read_value(visit, standin):
    here = visit(standin)
    handles = here.page.locator(".noUi-handle")
    names = handles.evaluate_all("handles => handles.map(handle => handle.getAttribute('aria-label'))")
    assert names[:3] == ["Level", "Depth", "Width"]
    assert len(names) == 11
    assert None not in names
    assert here.slider("Width").get_attribute("aria-valuetext") == "8"


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(visit, standin, width):
    here = visit(standin, width=width)
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    edges = here.page.locator(".rlq-plots svg.main-svg").evaluate_all(
        "all => all.map(svg => svg.getBoundingClientRect().right)"
    )
    assert max(edges) <= width


def test_figures_follow_the_width_of_the_window(visit, standin):
    here = visit(standin)
    here.page.set_viewport_size({"width": 390, "height": 800})
    here.page.wait_for_function("document.querySelector('.rlq-plots svg.main-svg').clientWidth < 390")


def test_a_figure_is_saved_as_a_picture_without_a_network(visit, standin, tmp_path):
    here = visit(standin)
    figure = here.page.locator("figure[data-plot=lines]")
    figure.hover()
    with here.page.expect_download() as saved:
        figure.locator(".modebar-btn").click()
    picture = tmp_path / "lines.png"
    saved.value.save_as(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_page_takes_few_requests_and_its_large_files_are_cached(visit, standin):
    here = visit(standin)
    assert len(here.requests) <= 15, "\n".join(here.requests)  # rlqueue/app/static/chunks.txt may need renewing
    large = [url for url in here.requests if re.search("/rlqueue/[0-9a-f]{16}/", url)]
    assert len(large) == 4
    for url in large:
        headers = standin.answer(urlsplit(url).path, headers={"Accept-Encoding": "gzip"}).headers
        assert "immutable" in headers["Cache-Control"]
        assert headers["Content-Encoding"] == "gzip"


def test_leaving_the_page_ends_its_kernel(visit, standin):
    here = visit(standin)
    kernel = _kernel(here)
    assert standin.answer(kernel).status == 200
    here.page.close(run_before_unload=True)
    wait_until(lambda: standin.answer(kernel).status == 404, 20, lambda: "the kernel goes on")


def test_a_page_without_its_kernel_says_so_and_offers_a_reload(visit):
    with serve() as server:
        here = visit(server)
        kernel_id = _kernel(here).rsplit("/", 1)[1]
        for process in psutil.Process(server.process.pid).children(recursive=True):
            if kernel_id in " ".join(process.cmdline()):
                os.kill(process.pid, signal.SIGKILL)
        notice = here.page.get_by_role("button", name="Reload the page")
        notice.wait_for(timeout=30_000)
        server.wait_for_pool(2)
        notice.click()
        here.page.wait_for_selector("body[data-state=ready] .rlq-plots[data-drawn]", timeout=60_000)
        here.errors.clear()  # the front end reports the lost kernel as well


def test_a_notebook_that_raises_shows_no_traceback(chromium, tmp_path):
    notebook = (
        (PAGE / "explorer.ipynb")
        .read_text()
        .replace("standin.page()", "raise RuntimeError('what only the server may know')")
    )
    (tmp_path / "broken.ipynb").write_text(notebook)
    (tmp_path / "standin.py").write_text("")
    with serve(tmp_path) as server:
        page = chromium.new_page()
        page.goto(server.url)
        page.wait_for_selector("body[data-state=ready]")
        page.get_by_text("There was an error when executing cell").wait_for()
        assert "what only the server may know" not in page.content()
        page.close()


def _kernel(here) -> str:
    config = here.page.locator("#jupyter-config-data").text_content()
    return "/api/kernels/" + re.search('"kernelId": "([^"]+)"', config)[1]


def test_the_stand_in_has_two_cells_as_every_notebook():
    assert (PAGE / "explorer.ipynb").read_text().count('"cell_type"') == 2
