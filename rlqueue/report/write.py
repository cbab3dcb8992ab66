"""Write the report: page, tables and figures into a folder, telling what is done and what is missing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlqueue.report.assumptions import Assumptions
from rlqueue.report.build import build
from rlqueue.report.chromium import HOW_TO_GET_ONE, find_chromium
from rlqueue.report.content import Report
from rlqueue.report.html import page
from rlqueue.report.images import write_images
from rlqueue.report.written import figure_csv, table_csv

PAGE = "report.html"


@dataclass(frozen=True, kw_only=True)
class Written:
    """What lies in the folder now. ``missing`` says what could not be made and what it needs; empty when all is there."""

    page: str
    tables: int
    figures: int
    images: int
    missing: str


def write(folder: Path, assumptions: Assumptions, say: Callable[[str], None]) -> Written:
    """Compute the report and write it.

    Args:
        folder: made if it isn't there. assumptions: what the reader changed. say: told each step of the progress.

    Raises:
        ValueError: the folder can't be written.
    """
    try:
        for each in (folder, folder / "tables", folder / "figures"):
            each.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"out={folder}: no folder can be made there ({error.strerror})") from error
    say("computing the report (the first time after an update the simulation is compiled: up to a minute more)")
    report = build(assumptions, say=lambda title: say(f"computing: {title}"))
    write_text(report, folder)
    say(f"written: {PAGE}, {len(report.tables)} tables, values of {len(report.figures)} figures")
    images, missing = _write_images(report, folder, say)
    return Written(
        page=str(folder / PAGE), tables=len(report.tables), figures=len(report.figures), images=images, missing=missing
    )


def write_text(report: Report, folder: Path) -> None:
    """Everything that needs no browser: the page, and CSVs of tables and figures."""
    (folder / PAGE).write_text(page(report), encoding="utf-8", newline="\n")
    for table in report.tables:
        (folder / "tables" / f"{table.name}.csv").write_text(table_csv(table), encoding="utf-8", newline="\n")
    for figure in report.figures:
        (folder / "figures" / f"{figure.name}.csv").write_text(figure_csv(figure), encoding="utf-8", newline="\n")


def _write_images(report: Report, folder: Path, say: Callable[[str], None]) -> tuple[int, str]:
    path = find_chromium()
    if path is None:
        return 0, f"figures as SVG and PNG: no browser was found to draw them; {HOW_TO_GET_ONE}"
    done = 0

    def said(figure) -> None:  # noqa: ANN001
        nonlocal done
        done += 1
        say(f"drawn: {done} of {len(report.figures)}, {figure.name}")

    try:
        write_images(report.figures, folder / "figures", path, said)
    except ImportError:
        return 0, "figures as SVG and PNG: the package kaleido is not installed"
    return 2 * done, ""
