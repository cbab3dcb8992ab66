"""Browser fixtures: a server, a Chromium without network, and visits that fail on any outside request or console error."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import chromium_or_skip
from hypothesis import settings
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from serving import CHROMIUM_FLAGS, Server, serve

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
LOCAL = {"localhost", "127.0.0.1"}

# A first call compiles, and a busy machine is slow: time is for the benchmarks. In CI the same examples every time.
settings.register_profile("rlqueue", deadline=None)
if not os.environ.get("CI"):
    settings.load_profile("rlqueue")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in a browser come last: its driver keeps an event loop running in this thread, which other tests must own."""
    items.sort(key=lambda item: "chromium" in item.fixturenames or item.get_closest_marker("browser") is not None)


@dataclass(kw_only=True)
class Visit:
    """One open page, and what it did that it must not do."""

    page: Page
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def plots(self) -> Locator:
        return self.page.locator(".rlq-plots")

    def slider(self, label: str) -> Locator:
        return self.page.get_by_role("slider", name=label, exact=True)

    def press(self, label: str, key: str = "ArrowRight") -> str:
        """Move a slider by keyboard and wait for the redraw that belongs to it; answers the stamp that was drawn."""
        before = int(self.plots.get_attribute("data-revision"))
        self.slider(label).press(key)
        self.page.wait_for_function(
            "before => +document.querySelector('.rlq-plots').dataset.revision > before", arg=before
        )
        return self.plots.get_attribute("data-stamp")

    def paths(self, figure: str) -> list[str]:
        """The drawn lines of a figure; the legend's own lines are not among them."""
        lines = self.page.locator(f"figure[data-plot={figure}] .scatterlayer path.js-line")
        return lines.evaluate_all("lines => lines.map(line => line.getAttribute('d'))")


@pytest.fixture(scope="session")
def standin() -> Iterator[Server]:
    """A page of the explorer's size with a made-up model: tests/page."""
    with serve() as server:
        yield server


@pytest.fixture(scope="session")
def explorer() -> Iterator[Server]:
    """The notebooks as they are."""
    with serve(NOTEBOOKS) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = chromium_or_skip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser):
    """`visit(server)` opens its page and waits for the plots; after the test it must have asked nobody else, nor complained."""
    with contextlib.ExitStack() as closing:
        visits: list[Visit] = []

        def opened(server: Server, *, path: str = "", width: int = 1280, drawn: bool = True) -> Visit:
            context = chromium.new_context(viewport={"width": width, "height": 900})
            closing.callback(context.close)
            made = Visit(page=context.new_page())
            visits.append(made)
            made.page.on("request", lambda request: _note(made, request.url))
            made.page.on("websocket", lambda socket: _note(made, socket.url))
            made.page.on("console", lambda message: message.type == "error" and made.errors.append(message.text))
            made.page.on("pageerror", lambda error: made.errors.append(str(error)))
            made.page.goto(server.url + path)
            if drawn:
                made.page.wait_for_selector(".rlq-plots[data-drawn]", timeout=60_000)
            return made

        yield opened
        assert [made.outside for made in visits] == [[] for _ in visits]
        assert [made.errors for made in visits] == [[] for _ in visits]


def _note(visit: Visit, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in {"blob", "data"}:
        return
    visit.requests.append(url)
    if parts.hostname not in LOCAL:
        visit.outside.append(url)
