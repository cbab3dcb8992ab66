"""The page in Chromium: from opening to drawn plots, and from a key on a slider to the redrawn ones.

    python -m benchmarks browser
    python benchmarks/browser.py --chunks     # the list in rlqueue/app/static/chunks.txt, as the installed packages want it

Opening counts from navigation start, with a preheated kernel waiting, to the first frame with plots; cold is a new browser
profile, warm the same one again. A redraw counts from the key's event to the frame that shows the last figure.
"""

import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page, sync_playwright

REPOSITORY = Path(__file__).parents[1]
NOTEBOOKS = REPOSITORY / "notebooks"
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

from browser import find_chromium  # noqa: E402
from serving import CHROMIUM_FLAGS, Server, serve  # noqa: E402

from benchmarks import Timing  # noqa: E402
from rlqueue.app.assets import installed  # noqa: E402
from rlqueue.app.server import heated  # noqa: E402

RUNS = 5
MOVES = 20
SLIDERS = {"split": "ArrowLeft", "staleness": "ArrowLeft", "concurrency": "ArrowRight"}
ALONG = {
    "which_prompts_teach": ("Mean solve rate [share]", "Group size [rollouts]", "Step looked at"),
    "what_if_answers_grow": ("Growth of answers [end : start]", "Concurrency [rollouts]", "Step looked at"),
}
"""Sliders of the pages over a run's steps, by their names; moved upwards from their lowest place."""
# In the page: `painted` is the time of the first frame after a drawing, `moves` the durations from key to frame.
WATCH = """
window.bench = { moves: [], stamp: "" };
const after = (then) => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = then;
  channel.port2.postMessage(0);
});
document.addEventListener("keydown", (event) => { bench.key = event.timeStamp; }, true);
document.addEventListener("plots-drawn", ({ detail: { stamp } }) => {
  const moved = stamp !== bench.stamp; // and not just refined
  const key = moved ? bench.key : undefined;
  if (moved) Object.assign(bench, { key: undefined, stamp });
  after(() => {
    bench.painted ??= performance.now();
    if (key !== undefined) bench.moves.push(performance.now() - key);
  });
});
"""


@contextmanager
def profile(folder: str) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=find_chromium(), args=CHROMIUM_FLAGS, viewport={"width": 1280, "height": 900}
        )
        context.add_init_script(WATCH)
        yield context
        context.close()


def opened(server: Server, context: BrowserContext, path: str = "") -> tuple[Page, SimpleNamespace]:
    """Open the page; what it cost: seconds to the drawn plots, requests, bytes over the wire (scripts and frames)."""
    page = context.new_page()
    cost = SimpleNamespace(seconds=0.0, requests=[], http_bytes=0, frame_bytes=0)
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on(
        "Network.loadingFinished",
        lambda event: setattr(cost, "http_bytes", cost.http_bytes + event["encodedDataLength"]),
    )
    wire.on(
        "Network.webSocketFrameReceived",
        lambda event: setattr(cost, "frame_bytes", cost.frame_bytes + len(event["response"]["payloadData"])),
    )
    page.on("request", lambda request: cost.requests.append(request.url))
    page.goto(server.url + path, wait_until="commit")
    page.wait_for_function("window.bench?.painted", timeout=30_000)
    cost.seconds = page.evaluate("bench.painted") / 1000
    return page, cost


def rested(server: Server, fills: int) -> None:
    """A kernel that is still starting would take its processor time from the page that is measured."""
    server.wait_for_pool(fills)
    time.sleep(3)


def openings() -> Iterator[Timing]:
    cold, warm = [], []
    with serve(NOTEBOOKS) as server:
        fills = len(heated(NOTEBOOKS))
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                for kind in (cold, warm, warm):
                    rested(server, fills)
                    with profile(folder) as context:
                        kind.append(opened(server, context)[1])
                    fills += 1
    for name, costs, limit_s in (("cold", cold, 4), ("warm", warm, 2.5)):
        note = f"{len(costs[0].requests)} requests, {costs[0].http_bytes / 1e6:.2f} MB"
        seconds = [cost.seconds for cost in costs]
        note += f" + {costs[0].frame_bytes / 1e3:.0f} kB in frames, worst {max(seconds):.2f} s"
        yield Timing(
            name=f"page open to drawn plots, {name} browser cache",
            seconds=statistics.median(seconds),
            limit_s=limit_s,
            note=note,
        )


def redraws() -> Iterator[Timing]:
    """Each of the three sliders on its way through stops that it has not met yet: what was simulated before is not timed."""
    with serve(NOTEBOOKS) as server, tempfile.TemporaryDirectory() as folder, profile(folder) as context:
        fills = len(heated(NOTEBOOKS))
        rested(server, fills)
        page, cost = opened(server, context)
        rested(server, fills + 1)
        everything = []
        for slider, (name, key) in enumerate(SLIDERS.items()):
            page.wait_for_selector(".rlq-done", timeout=120_000)
            page.locator(".noUi-handle").nth(slider).focus()
            before, first = cost.frame_bytes, page.evaluate("bench.moves.length")
            for move in range(1, MOVES + 1):
                page.keyboard.press(key)
                page.wait_for_function(f"bench.moves.length >= {first + move}", timeout=10_000)
                page.wait_for_timeout(30)
            moves = sorted(page.evaluate("bench.moves")[first:])
            everything += moves
            note = f"{MOVES} keys, {(cost.frame_bytes - before) / MOVES / 1e3:.1f} kB each"
            yield from percentiles(f"{name} key to redrawn figures", moves, note)
    yield from percentiles("slider key to redrawn figures", sorted(everything), "all three")


def percentiles(name: str, moves: list[float], note: str) -> Iterator[Timing]:
    yield Timing(name=f"{name}, median", seconds=statistics.median(moves) / 1e3, limit_s=0.100, note=note)
    p95_ms = moves[round(0.95 * (len(moves) - 1))]
    yield Timing(name=f"{name}, 95th percentile", seconds=p95_ms / 1e3, limit_s=0.160)


def redraws_along() -> Iterator[Timing]:
    """The same for the pages over a run's steps, whose figures are closed form while the hand moves."""
    with serve(NOTEBOOKS) as server, tempfile.TemporaryDirectory() as folder, profile(folder) as context:
        for name, sliders in ALONG.items():
            rested(server, len(heated(NOTEBOOKS)))
            page, cost = opened(server, context, f"voila/render/{name}.ipynb")
            everything = []
            for slider in sliders:
                page.get_by_role("slider", name=slider, exact=True).press("Home")
                page.wait_for_timeout(1_000)
                page.wait_for_selector(".rlq-done", timeout=120_000)
                before, first = cost.frame_bytes, page.evaluate("bench.moves.length")
                for move in range(1, MOVES + 1):
                    page.keyboard.press("ArrowRight")
                    page.wait_for_function(f"bench.moves.length >= {first + move}", timeout=10_000)
                    page.wait_for_timeout(30)
                moves = sorted(page.evaluate("bench.moves")[first : first + MOVES])
                everything += moves
                note = f"{MOVES} keys, {(cost.frame_bytes - before) / MOVES / 1e3:.1f} kB each"
                yield from percentiles(f"{name}, {slider.partition(' [')[0].lower()}", moves, note)
            yield from percentiles(name, sorted(everything), "all three")
            page.close()


def timings() -> Iterator[Timing]:
    yield from openings()
    yield from redraws()
    yield from redraws_along()


def chunks() -> list[str]:
    """The scripts that the front end asks for by itself when it gets none joined, as paths below a Jupyter data folder."""
    with serve(NOTEBOOKS) as server, tempfile.TemporaryDirectory() as folder, profile(folder) as context:
        context.route("**/chunks.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
        rested(server, 1)
        _, cost = opened(server, context)
    paths = [urlsplit(url).path for url in cost.requests]
    found = set()
    for path in paths:
        if chunk := re.fullmatch(r"/voila/static/(\d+\.voila\.js)", path):
            found.add(f"voila/templates/base/static/{chunk[1]}")
        elif (chunk := re.fullmatch(r"/voila/(labextensions/.*/static/(?!remoteEntry).*\.js)", path)) is not None:
            found.update(place for place in (chunk[1], f"voila/{chunk[1]}") if installed(place))
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(chunks()) if "--chunks" in sys.argv else json.dumps([vars(timing) for timing in timings()]))
