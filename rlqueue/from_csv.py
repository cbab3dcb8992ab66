"""Measured tables from CSV files, as the text of knobs: solve rates of prompts, and lengths over the steps of a run."""

import csv
import math
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path

from rlqueue import curriculum, drift

MOST_RATES = 128
"""A histogram of more rates is gathered: what is never or always solved apart, the rest in even bins, each at the mean of what
it holds."""

STEP, RESPONSE, TOOLS, PROMPT = "step", "mean_response_tokens", "tool_calls", "mean_prompt_tokens"


def histogram_text(path: str | Path) -> str:
    """Solve rates from a table of one prompt a row, as text for ``solve_rate_histogram``.

    Columns: ``solve_rate`` in [0, 1], or ``solved`` and ``rollouts``; optionally ``prompts``, how many a row stands for. What
    is measured from few rollouts is spread wider than the rates are: of k rollouts it adds p (1 - p) / k to the variance.

    Raises:
        ValueError: no such file, missing columns, or a row that is no solve rate; the message names file, row and value.
    """
    counts: dict[float, float] = defaultdict(float)
    for place, row in _rows(path):
        prompts = _number(row, "prompts", place) if "prompts" in row else 1.0
        if "solve_rate" in row:
            rate = _number(row, "solve_rate", place)
        elif {"solved", "rollouts"} <= set(row):
            rollouts = _number(row, "rollouts", place)
            if rollouts <= 0:
                raise ValueError(f"{place}: rollouts={rollouts:g} must be > 0")
            rate = _number(row, "solved", place) / rollouts
        else:
            raise ValueError(
                f"{place}: columns must hold 'solve_rate', or 'solved' and 'rollouts': not {', '.join(row)}"
            )
        if rate > 1:
            raise ValueError(f"{place}: solve rate {rate:g} must be <= 1")
        counts[float(f"{rate:.9g}")] += prompts  # rates that are written alike are one
    if not sum(counts.values()) > 0:
        raise ValueError(f"{path}: holds no prompts")
    text = ", ".join(f"{rate:.9g}: {share:.9g}" for rate, share in _gathered(counts))
    curriculum.histogram(text)
    return text


def pass_rate_file(path: str | Path) -> dict[str, float | str]:
    """The knobs by which prompts have the solve rates of that table, whatever they had before."""
    return {
        "solve_rate_law": "histogram", "solve_rate_histogram": histogram_text(path), "solve_rate_mean": 0.0,
        "solve_rate_concentration": math.inf, "solve_rate_logit_sigma": 0.0, "solve_rate_logit_shift": 0.0,
        "filtered_fraction": 0.0,
    }  # fmt: skip


def _gathered(counts: dict[float, float]) -> list[tuple[float, float]]:
    whole = sum(counts.values())
    if len(counts) <= MOST_RATES:
        return sorted((rate, count / whole) for rate, count in counts.items())
    bins: dict[int, list[tuple[float, float]]] = defaultdict(list)
    inner = MOST_RATES - 2
    for rate, count in counts.items():
        bins[int(rate * inner) if 0 < rate < 1 else -1 if rate == 0 else inner].append((rate, count))
    held = {i: sum(count for _, count in pairs) for i, pairs in bins.items()}
    return [
        (sum(rate * count for rate, count in bins[i]) / held[i], held[i] / whole) for i in sorted(bins) if held[i] > 0
    ]


def series_text(path: str | Path) -> str:
    """Lengths over steps from a table of one step a row, as text for ``drift_series``.

    Columns: ``step``, ``mean_response_tokens``, optionally ``tool_calls`` and, with it, ``mean_prompt_tokens``; an empty cell
    leaves out a row's whole column, which must then be empty in all rows.

    Raises:
        ValueError: no such file, missing columns, steps that do not go up, or what is no number.
    """
    points = []
    for place, row in _rows(path):
        for column in (STEP, RESPONSE):
            if column not in row:
                raise ValueError(f"{place}: column {column!r} is missing")
        given = [column for column in (TOOLS, PROMPT) if row.get(column)]
        if given == [PROMPT]:
            raise ValueError(f"{place}: {PROMPT} needs {TOOLS} as well (the same in each row where they do not move)")
        numbers = [_number(row, column, place) for column in (RESPONSE, *given)]
        points.append(f"{_number(row, STEP, place):.9g}: " + " / ".join(f"{number:.9g}" for number in numbers))
    if not points:
        raise ValueError(f"{path}: holds no steps")
    text = ", ".join(points)
    try:
        drift.series(text)
    except ValueError as refusal:
        raise ValueError(f"{path}: {refusal}") from None
    return text


def series_file(path: str | Path) -> dict[str, float | str | int]:
    """The knobs by which lengths follow that table, whatever they did before."""
    return drift.drift_as(series_text(path))


def _rows(path: str | Path) -> list[tuple[str, dict[str, str]]]:
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read ({error})") from error
    names = [name.strip() for name in rows[0]] if rows else []
    twice = {name for name in names if name and names.count(name) > 1}
    if twice:
        raise ValueError(f"{path}: column {min(twice)!r} is there twice")
    for i, row in enumerate(rows[1:], start=1):
        if any(cell.strip() for cell in row[len(names) :]):
            raise ValueError(
                f"{path}, row {i}: {len(row)} cells must be <= {len(names)}, one for each column (a decimal comma?)"
            )
    return [
        (f"{path}, row {i}", dict(zip_longest(names, map(str.strip, row[: len(names)]), fillvalue="")))
        for i, row in enumerate(rows[1:], start=1)
    ]


def _number(row: dict[str, str], column: str, place: str) -> float:
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{place}: {column}={row[column]!r} must be a number >= 0")
    return number
