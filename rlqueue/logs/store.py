"""What was read, one row per step and one column per metric: later values of a step replace earlier ones."""

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlqueue.logs.names import Key

NAN = float("nan")
LARGEST = 1e15
"""Larger numbers are no measurement: sums of them would lose their units."""
MOST_STEPS = 2_000_000
MOST_UNKNOWN = 2_000
"""So many names that no framework logs are remembered, to name near misses."""
SETTLED = 20_000
"""After so many steps it is clear whose log it is, and only its metrics are kept further."""


@dataclass(kw_only=True)
class Seen:
    """Where a metric was read: file, first and last line, and how often."""

    file: str
    first_line: int
    last_line: int
    count: int


class Store:
    """Columns of numbers over steps, in the order in which the steps were met."""

    def __init__(self, settle: Callable[["Store"], Callable[[Key], bool]]) -> None:
        self.rows: dict[int, int] = {}
        self.columns: dict[Key, array] = {}
        self.seen: dict[Key, Seen] = {}
        self.unknown: dict[str, None] = {}
        self.replayed: set[int] = set()
        self.restarts: list[int] = []
        self.lost = 0
        self.notes: list[str] = []
        self._settle, self._wanted = settle, None
        self._last = -1

    def put(self, step: int, values: Mapping[Key, float], file: str, line: int) -> None:
        """Keep the finite values of one step; the step's earlier ones are replaced."""
        kept = {key: value for key, value in values.items() if -LARGEST <= value <= LARGEST}
        self.lost += sum(not math.isnan(value) and key not in kept for key, value in values.items())
        if self._wanted is not None:
            kept = {key: value for key, value in kept.items() if self._wanted(key)}
        if not kept:
            return
        row = self._row(step)
        for key, value in kept.items():
            column = self.columns.setdefault(key, array("d"))
            if len(column) <= row:
                column.extend([NAN] * (row + 1 - len(column)))
            elif not math.isnan(column[row]):
                self._again(step, row)
            column[row] = value
            self._note(key, file, line, line, 1)
        self._last = max(self._last, step)
        self._settled()

    def put_many(
        self,
        steps: Sequence[int],
        columns: Mapping[Key, np.ndarray],
        file: str,
        lines: Mapping[Key, tuple[int, int, int]],
    ) -> None:
        """The same for a table: NaN is no value. ``lines``: first line, last line and count of each column's numbers."""
        rows = np.array([self._row(int(step)) for step in steps])
        top = int(rows.max()) + 1
        for key, found in columns.items():
            if self._wanted is not None and not self._wanted(key):
                continue
            there = np.abs(found) <= LARGEST
            self.lost += int(np.count_nonzero(~there & ~np.isnan(found)))
            if not there.any():
                continue
            column = self.columns.setdefault(key, array("d"))
            if len(column) < top:
                column.extend([NAN] * (top - len(column)))
            view = np.frombuffer(column)
            for place in np.flatnonzero(~np.isnan(view[rows]) & there):
                self._again(int(steps[place]), int(rows[place]))
            view[rows[there]] = found[there]
            del view  # an array can't grow while it is looked at
            self._note(key, file, *lines[key])
        self._last = max(self._last, int(max(steps)))
        self._settled()

    def table(self) -> tuple[np.ndarray, dict[Key, np.ndarray]]:
        """Steps in rising order, and the columns in that order."""
        steps = np.fromiter(self.rows, dtype=np.int64, count=len(self.rows))
        order = np.argsort(steps, kind="stable")
        found = {}
        for key, column in self.columns.items():
            whole = np.full(steps.size, np.nan)
            whole[: len(column)] = np.frombuffer(column)
            found[key] = whole[order]
        return steps[order], found

    def _row(self, step: int) -> int:
        row = self.rows.get(step)
        if row is None:
            if len(self.rows) == MOST_STEPS:
                raise ValueError(f"the log has more than {MOST_STEPS:,} steps: cut it to the part in question")
            row = self.rows[step] = len(self.rows)
        return row

    def _settled(self) -> None:
        if self._wanted is None and len(self.rows) >= SETTLED:
            self._wanted = self._settle(self)
            for key in [key for key in self.columns if not self._wanted(key)]:
                del self.columns[key]

    def replay(self, steps: np.ndarray, back: np.ndarray) -> None:
        """Steps that have a number twice in one table, and which steps came after later ones."""
        returned = set(back.tolist())
        for step in steps.tolist():
            self._again(step, self._row(step), resumed=step in returned)

    def _again(self, step: int, row: int, *, resumed: bool | None = None) -> None:
        """A value of this step is replaced: the run was resumed at or before it."""
        if row not in self.replayed:
            late = step < self._last if resumed is None else resumed
            if late and self.rows.get(step - 1) not in self.replayed:
                self.restarts.append(step)
            self.replayed.add(row)

    def _note(self, key: Key, file: str, first: int, last: int, count: int) -> None:
        seen = self.seen.get(key)
        if seen is None:
            self.seen[key] = Seen(file=file, first_line=first, last_line=last, count=count)
        else:
            seen.last_line = last
            seen.count += count

    def remember(self, name: str) -> None:
        if len(self.unknown) < MOST_UNKNOWN:
            self.unknown[name] = None
