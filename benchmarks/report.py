"""How long the report takes: computing it, writing page and tables, drawing its figures."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Timing
from rlqueue.report.build import build
from rlqueue.report.chromium import find_chromium
from rlqueue.report.html import page
from rlqueue.report.images import write_images
from rlqueue.report.write import write_text


def timings() -> Iterator[Timing]:
    """One run of each: what is computed is kept, so a second one would cost nothing."""
    start = time.perf_counter()
    report = build()
    computed = time.perf_counter() - start
    note = f"{len(report.tables)} tables, {len(report.figures)} figures"
    yield Timing(name="report, computed with compiled code cached", seconds=computed, limit_s=30.0, note=note)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in ("tables", "figures"):
            (folder / each).mkdir()
        start = time.perf_counter()
        write_text(report, folder)
        note = f"{len(page(report).encode()) / 1e6:.1f} MB of page"
        yield Timing(
            name="report, page and tables written", seconds=time.perf_counter() - start, limit_s=2.0, note=note
        )
        path = find_chromium()
        if path is None:
            return
        start = time.perf_counter()
        write_images(report.figures, folder / "figures", path, lambda _: None)
        drawn = time.perf_counter() - start
    note = f"{drawn / len(report.figures):.2f} s a figure as SVG and PNG"
    yield Timing(name="report, figures drawn", seconds=drawn, limit_s=25.0, note=note)
