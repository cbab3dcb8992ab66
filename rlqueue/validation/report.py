"""A validation as tables: for the terminal, as CSV, and as rows for a page."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlqueue.measures import MEASURES
from rlqueue.validation.protocol import CALIBRATED, PREDICTED, CaseResult, Comparison, Validation

COLUMNS = ("case", "row", "title", "role", "solver", "quantity", "unit", "published", "kind", "predicted", "error",
           "error_points", "note")  # fmt: skip
RANKING_COLUMNS = ("case", "quantity", "lower", "higher", "right", "counts")
KNOB_COLUMNS = ("case", "calibration", "knob", "unit", "start", "value", "low", "high", "at_limit")


def is_share(quantity: str) -> bool:
    """Whether an error of that quantity is a difference, counted in points."""
    return quantity in MEASURES and MEASURES[quantity].share


def table(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
    """One row per published figure: relative error, or for shares the difference (``error_points``, 1 point = 0.01)."""
    rows = []
    for result in results:
        for each in result.comparisons:
            share = is_share(each.quantity)
            rows.append({
                "case": each.case, "row": each.row, "title": each.title, "role": each.role, "solver": result.solver,
                "quantity": each.quantity, "unit": each.unit, "published": each.published, "kind": each.kind,
                "predicted": each.predicted, "error": None if share else each.error,
                "error_points": each.error if share else None, "note": each.note,
            })  # fmt: skip
    return rows


def ranking_table(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
    """One row per ranked pair."""
    return [
        {name: getattr(pair, name) for name in RANKING_COLUMNS} for result in results for pair in result.pairs
    ]  # fmt: skip


def knob_table(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
    """One row per fitted knob."""
    return [
        {"case": result.case.name, "calibration": number} | {name: getattr(knob, name) for name in KNOB_COLUMNS[2:]}
        for result in results for number, found in enumerate(result.calibrations) for knob in found.knobs
    ]  # fmt: skip


def write(validation: Validation, folder: Path) -> list[str]:
    """The tables as CSV files in a folder that is made if need be; returns their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"out={folder}: no folder can be made there ({error})") from error
    written = []
    for name, columns, rows in (
        ("validation.csv", COLUMNS, table(validation.results)),
        ("rankings.csv", RANKING_COLUMNS, ranking_table(validation.results)),
        ("calibrations.csv", KNOB_COLUMNS, knob_table(validation.results)),
    ):
        path = folder / name
        path.write_text(_csv(columns, rows), encoding="utf-8")
        written.append(str(path))
    return written


def _csv(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def lines(result: CaseResult) -> Iterator[str]:
    """One case as lines for the terminal."""
    yield f"{result.case.title} ({result.solver})"
    for number, found in enumerate(result.calibrations):
        rows = ", ".join(result.case.fits[number].rows)
        knobs = ", ".join(f"{k.knob}={k.value:.4g}{' (at its limit)' if k.at_limit else ''}" for k in found.knobs)
        yield f"  fitted on {rows}: {knobs}"
        yield from (f"  {words}" for words in found.missed)
    yield f"  {'':2} {'row':24} {'quantity':22} {'published':>11} {'predicted':>11}  error"
    for each in result.comparisons:
        mark = {PREDICTED: "", CALIBRATED: "c"}.get(each.role, "-")
        yield (
            f"  {mark:2} {each.row:24.24} {each.quantity:22} {each.published:11,.4g} {each.predicted:11,.4g}  "
            f"{error_words(each)}"
        )
    counted = [pair for pair in result.pairs if pair.counts]
    if counted:
        wrong = [f"{pair.lower} < {pair.higher} ({pair.quantity})" for pair in counted if not pair.right]
        yield f"  rankings right: {len(counted) - len(wrong)} of {len(counted)}" + (
            f"; wrong: {', '.join(wrong)}" if wrong else ""
        )
    yield from (f"  not compared: {words}" for words in result.not_compared)
    for words in result.case.lacks:
        yield f"  lacks: {words}"


def error_words(each: Comparison) -> str:
    """An error as a reader sees it: points of a share, else percent."""
    return f"{100 * each.error:+.1f} points" if is_share(each.quantity) else f"{each.error:+.1%}"
