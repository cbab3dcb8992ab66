"""A run as its log tells it: one tidy table in our names and units, the means of its steady steps, and what was avoided."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rlqueue.logs import times
from rlqueue.logs.columns import COLUMNS, RATIOS, SIGNED
from rlqueue.logs.kinds import KINDS, kinds
from rlqueue.logs.names import EVALUATED, Metric, Trap, key_of, of, title, traps
from rlqueue.logs.reading import read
from rlqueue.logs.recognise import named, recognised, weights
from rlqueue.logs.source import Progress, source
from rlqueue.logs.store import Store
from rlqueue.logs.waiting import Waiting, waiting

MOST_FILES = 16
ASYNCHRONOUS = {
    "verl": ("fully_async/", "timing_s/wait_prev_gen", "timing_s/timing_s/param_sync"),
    "skyrl": ("timing/wait_for_generation_buffer",),
    "nemo-rl": ("timing/train/exposed_generation", "console/exposed_generation"),
    "roll": ("scheduler/off_policy_ratio",),
}
"""Names that only an asynchronous trainer logs, where one name means two things."""


@dataclass(frozen=True, kw_only=True)
class Mean:
    """Mean over the steady steps, their standard deviation (NaN with one) and how many there were."""

    mean: float
    sd: float
    rows: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One metric that was read: what it became, and where it stood."""

    key: str
    role: str
    column: str
    use: str
    trap: str
    file: str
    first_line: int
    last_line: int
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What a log holds.

    Attributes:
        framework, formats, files: as recognised, and what was given.
        table: one row per step with its ``kind`` (see KINDS) and the columns of COLUMNS that the log has.
        readings: each metric that was read, with its key and lines. traps: those that lay in this log, avoided.
        notes: what had to be decided while reading. missing: what the log lacks for a full answer, by column.
        unknown: names in it that are no metric we know.
    """

    framework: str
    formats: tuple[str, ...]
    files: tuple[str, ...]
    table: pd.DataFrame
    readings: tuple[Reading, ...]
    traps: tuple[Trap, ...]
    notes: tuple[str, ...]
    missing: dict[str, str]
    unknown: tuple[str, ...]

    @classmethod
    def from_log(
        cls,
        path_or_text: Any,
        framework: str | None = None,
        *,
        names: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> "Measured":
        """Read one log, or several of one run (trainer and orchestrator): paths, texts or bytes.

        ``names`` are what to call texts and bytes. Of a step that is logged twice (holes, resumed runs) the last value counts.
        """
        several = isinstance(path_or_text, list | tuple)
        given = list(path_or_text) if several else [path_or_text]
        if not 0 < len(given) <= MOST_FILES:
            raise ValueError(f"{len(given)} logs were given, must be 1 to {MOST_FILES}: those of one run")
        wanted = None if framework is None else named(framework)
        logs = [source(each, name) for each, name in zip(given, [*names, *[""] * len(given)], strict=False)]
        store = Store(lambda now: _only(wanted or _likely(now)))
        formats = tuple(read(log, store, progress) for log in logs)
        files = " and ".join(log.name for log in logs)
        found = recognised({name for _, name in store.seen if name != EVALUATED[1]}, store.unknown, framework, files)
        return _measured(store, found, formats, tuple(log.name for log in logs))

    @property
    def steady(self) -> pd.DataFrame:
        """The rows that go into the means: the steady ones, or all where there is none."""
        steady = self.table[self.table["kind"] == "steady"]
        return steady if len(steady) else self.table

    def means(self) -> dict[str, Mean]:
        """Mean of every column over the steady steps; of the two ratios of times that of the summed times."""
        steady = self.steady
        found = {}
        for name in self.table.columns.drop("kind"):
            there = steady[name].dropna()
            if len(there):
                sd = float(there.std()) if len(there) > 1 else math.nan
                found[name] = Mean(mean=float(there.mean()), sd=sd, rows=len(there))
        for name, ratio in (("trainer_wait_ratio", _wait_of_sums), ("not_training_ratio", _not_training_of_sums)):
            if name in found:
                found[name] = Mean(mean=ratio(steady), sd=found[name].sd, rows=found[name].rows)
        return found

    def left_out(self) -> pd.DataFrame:
        """Of each kind that is left out: steps, hours, and its share of all time logged."""
        time = _time(self.table)
        all_time = float(time.sum()) or math.inf
        rows = [
            {"kind": kind, "steps": int(at.sum()), "hours": float(time[at].sum()) / 3600,
             "share": float(time[at].sum()) / all_time, "why": KINDS[kind]}
            for kind in KINDS
            if kind != "steady" and (at := self.table["kind"] == kind).any()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["kind", "steps", "hours", "share", "why"])

    def waiting(self) -> Waiting:
        """Which side waits."""
        return waiting({name: each.mean for name, each in self.means().items()}, self.steady)


def _time(table: pd.DataFrame) -> pd.Series:
    return times.column(table, "step_s").fillna(times.column(table, "generator_step_s"))


def _wait_of_sums(steady: pd.DataFrame) -> float:
    there = steady[steady["trainer_wait_ratio"].notna()]
    names = ("wait_s", "train_s", "sync_s", "step_s")
    sums = pd.DataFrame({name: [times.column(there, name).sum(min_count=1)] for name in names})
    return float(times.wait_ratio(sums).iloc[0])


def _not_training_of_sums(steady: pd.DataFrame) -> float:
    there = steady[steady["not_training_ratio"].notna()]
    return float(1 - there["train_s"].sum() / there["step_s"].sum())


def _likely(store: Store) -> str:
    found = weights({name for _, name in store.seen})
    return max(found, key=found.__getitem__)


def _only(framework: str) -> Any:
    keys = {each.key for each in of(framework)} | {EVALUATED[1]}
    return lambda key: key[1] in keys


def _measured(store: Store, framework: str, formats: tuple[str, ...], files: tuple[str, ...]) -> Measured:
    steps, columns = store.table()
    frame = pd.DataFrame(index=pd.Index(steps, name="step"))
    notes = list(store.notes)
    readings = []
    met: dict[str, None] = {}
    for metric in of(framework):
        key = key_of(metric.key, metric.role)
        if key not in columns:
            continue
        if metric.trap:
            met[metric.trap] = None
        seen = store.seen[key]
        readings.append(
            Reading(key=metric.key, role=metric.role, column=metric.column, use=metric.use, trap=metric.trap, file=seen.file,
                    first_line=seen.first_line, last_line=seen.last_line, count=seen.count)
        )  # fmt: skip
        if metric.use not in ("mark", "lies"):
            _take(frame, metric, columns[key])
    if EVALUATED in columns:
        frame["evaluated"] = columns[EVALUATED]
    frame.attrs["asynchronous"] = any(each.key.startswith(ASYNCHRONOUS.get(framework, ())) for each in readings)
    frame = frame.dropna(axis=0, how="all").copy()
    if frame.empty or not any(each.column for each in readings):
        shown = ", ".join(each.key for each in readings[:4]) or "none"
        wanted = ", ".join(each.key for each in of(framework) if each.column in ("step_s", "wait_s", "train_s"))
        raise ValueError(
            f"{' and '.join(files)} is of {title(framework)} and has none of its times or sizes ({shown} alone); expected "
            f"{wanted}"
        )
    _only_measurements(frame, notes)
    frame = times.finish(frame, framework, notes)
    if store.lost:
        notes.append(f"{store.lost:,} values were infinite or absurd, and are left out")
    if store.replayed:
        notes.append(
            f"{len(store.replayed):,} steps were logged again (the run was resumed, or a row repeated): the last value counts"
        )
    kind = kinds(frame, store.restarts)
    table = frame[[name for name in COLUMNS if name in frame and frame[name].notna().any()]].copy()
    table.insert(0, "kind", kind)
    return Measured(
        framework=framework, formats=formats, files=files, table=table, readings=tuple(readings),
        traps=tuple(traps()[each] for each in met), notes=tuple(notes), missing=_missing(table, framework, formats),
        unknown=tuple(store.unknown),
    )  # fmt: skip


def _take(frame: pd.DataFrame, metric: Metric, found: np.ndarray) -> None:
    """One metric into its column of ours."""
    values = pd.Series(found, index=frame.index) * metric.scale
    if metric.use == "counter":
        values = _differenced(values)
    if metric.column not in frame:
        frame[metric.column] = values
    elif metric.use == "part":
        frame[metric.column] = pd.concat([frame[metric.column], values], axis=1).sum(axis=1, min_count=1)
    else:
        frame[metric.column] = frame[metric.column].fillna(values)


def _differenced(counter: pd.Series) -> pd.Series:
    """Growth per step of a counter; where it fell the run was resumed, and it counts from nought.

    Over a gap in the steps the growth is shared out, so that a log of every tenth step gives a tenth for each. A first row
    that is not the run's first step has no growth to tell.
    """
    there = counter.dropna()
    apart = pd.Series(np.diff(there.index, prepend=there.index[0] - 1), index=there.index)
    growth = there.diff()
    growth = growth.where(growth >= 0, there)
    if len(growth) and there.index[0] > 1:
        growth.iloc[0] = np.nan
    return (growth / apart).reindex(counter.index)


def _only_measurements(frame: pd.DataFrame, notes: list[str]) -> None:
    """Negative times and shares outside [0, 1] are holes: they are no measurements."""
    bad = 0
    for name in frame.columns:
        wrong = frame[name] < 0 if name not in SIGNED else pd.Series(False, index=frame.index)  # noqa: FBT003
        if name in RATIOS:
            wrong |= frame[name] > 1
        bad += int(wrong.sum())
        frame[name] = frame[name].mask(wrong)
    if bad:
        notes.append(f"{bad:,} values were negative or no share in [0, 1], and are left out")


WANTED = ("step_s", "wait_s", "train_s", "sync_s", "staleness_versions", "mean_response_tokens", "mean_prompt_tokens")


def _missing(table: pd.DataFrame, framework: str, formats: tuple[str, ...]) -> dict[str, str]:
    """What a full answer would need, and where this framework has it."""
    names = of(framework)
    terse = "console" in formats and any(each.key.startswith("console/") for each in names)
    found = {}
    for name in WANTED:
        if name in table:
            continue
        there = [each for each in names if each.column == name and not each.key.startswith("console/")]
        if there:
            whose = f" of the {there[0].role}" if there[0].role else ""
            where = " (in its metrics: the console has less)" if terse else ""
            found[name] = f"{' or '.join(each.key for each in there[:3])}{whose}{where}"
        else:
            found[name] = f"{title(framework)} does not log it"
    return found
