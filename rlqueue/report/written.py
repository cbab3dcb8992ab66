"""Numbers as text: as a reader sees them on the page, and as a CSV holds them."""

import csv
import io
import math
from typing import Any

import numpy as np

from rlqueue.report.content import Figure, Table


def shown(value: Any, digits: int = 2) -> str:
    """A cell of a table on the page: at most ``digits`` after the point, thousands apart, nothing where there is no value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | np.number):
        number = float(value)
        if number.is_integer() and (isinstance(value, int) or digits >= 4):
            return f"{int(number):,}"
        text = f"{number:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if digits >= 4 and "." in text else text
    return str(value)


def cell(value: Any) -> str:
    """A cell of a CSV: ten significant digits, so that the last bits of a sum don't change the bytes."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | np.integer):
        return str(int(value))
    return f"{float(value):.10g}"


def table_csv(table: Table) -> str:
    """A table as CSV text, with the names of its columns as header and line ends that no machine changes."""
    return _csv([[column.name for column in table.columns], *([cell(value) for value in row] for row in table.rows)])


def figure_csv(figure: Figure) -> str:
    """What a figure draws, as CSV text: one row per mark, with the trace it belongs to."""
    rows: list[list[str]] = [["trace", "of", "x", "y"]]
    overlaid = overlay_names(figure)
    for trace in figure.plot["data"]:
        name = str(trace.get("name", ""))
        of = "source" if name in overlaid else "computed"
        rows += [[name, of, cell(x), cell(y)] for x, y in zip(trace.get("x", ()), trace.get("y", ()), strict=False)]
    return _csv(rows)


def overlay_names(figure: Figure) -> set[str]:
    """Names of the traces that show values of a source: open symbols, in every figure."""
    return {
        str(trace.get("name", ""))
        for trace in figure.plot["data"]
        if str(trace.get("marker", {}).get("symbol", "")).endswith("-open")
    }


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
