"""From the text of logs to rows per step: CSV in chunks, JSON as a whole where it is one object, all else line by line."""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from rlqueue.logs import dialects
from rlqueue.logs.dialects import Found
from rlqueue.logs.names import EVALUATED, EVALUATIONS, STEP_NAMES, key_of, known, role_of
from rlqueue.logs.source import Progress, Source, lines
from rlqueue.logs.store import Store

CHUNK_ROWS = 20_000
LARGEST_JSON = 64 << 20
"""A single JSON object is read as a whole, so it may not be larger."""
LAST_STEP = 1e12


class Assembler:
    """Gives every line's numbers to a step: its own, that of the heading above, or the next one where none is said."""

    def __init__(self, store: Store, file: str) -> None:
        self.store, self.file = store, file
        self.role = ""
        self._heading: int | None = None
        self._step = -1
        self._open: set[str] = set()

    def take(self, found: Found, line: int) -> None:
        if found.heading:
            self._heading = _whole(found.step)
            return
        evaluated = any(map(_of_evaluation, found.numbers))
        names = [name for name in found.numbers if name in known()]
        if not names and not evaluated:
            for name in found.numbers:
                self.store.remember(name)
            return
        self.role = role_of(names) or self.role
        step = self._placed(found, names)
        if step is None:
            return
        values = {key_of(name, self.role): found.numbers[name] for name in names}
        if evaluated:
            values[EVALUATED] = 1.0
        self.store.put(step, values, self.file, line)

    def _placed(self, found: Found, names: list[str]) -> int | None:
        if found.step is not None:
            step = _whole(found.step)
            if step is not None:
                self._step = step
                self._open = set()
            return step
        if self._heading is not None:
            return self._heading
        if found.whole or self._step < 0 or not self._open.isdisjoint(names):
            self._step += 1
            self._open = set()
        if not found.whole:
            self._open.update(names)
        return self._step


@lru_cache(maxsize=1 << 14)
def _of_evaluation(name: str) -> bool:
    return name == EVALUATED[1] or name.startswith(EVALUATIONS)


def _whole(step: float | None) -> int | None:
    return int(step) if step is not None and math.isfinite(step) and 0 <= step <= LAST_STEP else None


def read(log: Source, store: Store, progress: Progress | None = None) -> str:
    """Put all numbers of a log into the store; returns the format it has."""
    beginning = (line.strip() for line in log.head().splitlines())
    first = next((line for line in beginning if line and not line.startswith("#")), "")
    columns = _csv_columns(first)
    if columns:
        return _read_csv(log, store, first, progress)
    if first.startswith(("{", "[")) and _is_one_object(first):
        document = _document(log)
        if document is not None:
            _read_document(document, store, log.name)
            return "JSON"
    assembler = Assembler(store, log.name)
    as_json = 0
    taken = 0
    for line_number, line in lines(log, progress):
        found = dialects.read(line)
        if found is not None:
            taken += 1
            as_json += line.startswith(b"{")
            assembler.take(found, line_number)
    return "JSON lines" if as_json * 2 > taken else "console"


def _csv_columns(first: str) -> list[str]:
    """The names in a header line, where it is one: known metrics, or at least a step."""
    if first.startswith(("{", "[")) or len(first) > 1_000_000:
        return []
    names = [plain(name) for name in _cells(first)]
    if len(names) < 2:
        return []
    return names if any(name in known() or name in STEP_NAMES for name in names) else []


def _cells(first: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(first), delimiter=delimiter(first)), [])
    except csv.Error:
        return []


def delimiter(first: str) -> str:
    return max(",;\t", key=first.count)


def plain(name: str) -> str:
    """A column's metric: W&B's charts export ``run name - metric``, with minimum and maximum beside it."""
    name = name.strip()
    if name.endswith(("__MIN", "__MAX")):
        return ""
    return name.rpartition(" - ")[2] if " - " in name else name


def _read_csv(log: Source, store: Store, first: str, progress: Progress | None) -> str:
    places = _places(_cells(first), store, log.name)
    role = role_of(places)
    metrics = [name for name in places if name in known()]
    evaluations = [name for name in places if name.startswith(EVALUATIONS)][:20]
    above = next(number for number, line in lines(log) if line.strip() and not line.lstrip().startswith(b"#"))
    read_rows = 0
    named = {place: name for name, place in places.items()}
    for frame in _chunks(log, first, sorted(named), above=above, progress=progress):
        numbers = frame.apply(_as_numbers).rename(columns=named)
        steps = _csv_steps(numbers, read_rows)
        line = above + 1 + read_rows + np.arange(len(numbers))
        read_rows += len(numbers)
        good = np.isfinite(steps) & (steps >= 0) & (steps <= LAST_STEP)
        numbers, steps, line = numbers[good], steps[good].astype(np.int64), line[good]
        table = pd.DataFrame({key_of(name, role): numbers[name] for name in metrics})
        if evaluations:
            table[[EVALUATED]] = np.where(numbers[evaluations].notna().any(axis=1), 1.0, np.nan)[:, None]
        if steps.size:
            _put(store, steps, table, line, log.name)
    if not read_rows:
        raise ValueError(
            f"{log.name} has a header with {len(metrics)} known metrics and no row: export the history with its values"
        )
    if progress:
        progress(log.size, log.size)
    return "CSV"


def _places(cells: list[str], store: Store, file: str) -> dict[str, int]:
    """The columns worth reading by metric; of an export of several runs those of the first."""
    places: dict[str, int] = {}
    runs: dict[str, None] = {}
    for place, cell in enumerate(cells):
        name = plain(cell)
        if name not in known() and name not in STEP_NAMES and not name.startswith(EVALUATIONS):
            if name:
                store.remember(name)
            continue
        run = cell.strip().rpartition(" - ")[0]
        if run:
            runs[run] = None
        if run in ("", next(iter(runs), "")):
            places.setdefault(name, place)
    if len(runs) > 1:
        first, *others = runs
        store.notes.append(f"{file} holds several runs: {first} is read, {', '.join(others)} not")
    return places


def _as_numbers(column: pd.Series) -> pd.Series:
    """Text that is no number becomes a hole."""
    return pd.to_numeric(column, errors="coerce").astype(float)


def _chunks(
    log: Source, first: str, places: list[int], *, above: int, progress: Progress | None
) -> Iterator[pd.DataFrame]:
    try:
        with log.open() as file:
            found = pd.read_csv(
                file, sep=delimiter(first), header=None, names=range(len(_cells(first))), skiprows=above, usecols=places,
                chunksize=CHUNK_ROWS, encoding=log.encoding, encoding_errors="replace", on_bad_lines="skip",
                low_memory=False, index_col=False,
            )  # fmt: skip
            for frame in found:
                yield frame
                if progress:
                    progress(file.tell(), log.size)
    except pd.errors.EmptyDataError:
        return
    except (pd.errors.ParserError, ValueError, OverflowError, csv.Error) as error:
        raise ValueError(f"{log.name} begins like a CSV export and cannot be read as one: {error!s:.200}") from None


def _csv_steps(numbers: pd.DataFrame, before: int) -> np.ndarray:
    """The step of each row; rows are counted where no column says."""
    named = [name for name in STEP_NAMES if name in numbers]
    if not named:
        return before + np.arange(len(numbers), dtype=float)
    return numbers[named].bfill(axis=1).iloc[:, 0].to_numpy()


def _put(store: Store, steps: np.ndarray, table: pd.DataFrame, line: np.ndarray, file: str) -> None:
    """Rows into the store: of a step's rows the last number of each column, since a row has only what was logged together."""
    by_step = table.groupby(steps, sort=False)
    repeated = by_step.count().gt(1).any(axis=1)
    store.replay(repeated.index[repeated].to_numpy(), steps[steps < np.maximum.accumulate(steps)])
    spans = {}
    for key in table:
        places = np.flatnonzero(table[key].notna())
        if places.size:
            spans[key] = (int(line[places[0]]), int(line[places[-1]]), int(places.size))
    if spans:
        last = by_step.last()
        store.put_many(last.index.to_numpy(), {key: last[key].to_numpy() for key in spans}, file, spans)


def _is_one_object(first: str) -> bool:
    """A document of JSON, and not JSON lines: its first line opens what later lines close, or dumps one series per metric."""
    if first in ("{", "[") or first.startswith("[") or first.endswith((",", "{", "[")):
        return True
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and _by_metric(row)


def _by_metric(row: Mapping[str, Any]) -> bool:
    """``{"timing/train/total_step_time": {"1": 322.7}}``: how NeMo-RL dumps TensorBoard."""
    return any(name in known() and isinstance(value, dict) for name, value in row.items())


def _document(log: Source) -> Any:
    if log.size > LARGEST_JSON:
        raise ValueError(
            f"{log.name} is one JSON object of {log.size >> 20:,} MB, must be <= {LARGEST_JSON >> 20} MB (it is read as a "
            "whole): write one line per step"
        )
    try:
        with log.open() as file:
            return json.loads(file.read().decode(log.encoding, errors="replace"))
    except (ValueError, RecursionError):
        return None


def _read_document(document: Any, store: Store, file: str) -> None:
    assembler = Assembler(store, file)
    if isinstance(document, dict) and _by_metric(document):
        for name, series in document.items():
            for step, value in series.items() if isinstance(series, dict) else ():
                found, place = dialects.number(value), dialects.number(step)
                if found is not None and place is not None:
                    assembler.take(Found(numbers={name: found}, step=place, whole=True), 1)
        return
    rows = document if isinstance(document, list) else [document]
    for place, row in enumerate(rows):
        if isinstance(row, dict):
            assembler.take(dialects.record(row), place + 1)
