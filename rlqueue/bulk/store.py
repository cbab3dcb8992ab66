"""Where a sweep's table is kept: finished chunks in a folder beside it, then one parquet file that says what it is of."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd

from rlqueue.bulk.job import Job

KEY, TERMS = b"rlqueue", b"rlqueue_sweep"
"""Of the fingerprint in a parquet file's metadata, and of what was asked for: scenario, axes, seeds and steps, as JSON."""


class Store:
    """A table that grows chunk by chunk, and survives whoever writes it.

    Raises:
        ValueError: there is another table, or one that was begun, and nobody asked to go on with it.
    """

    def __init__(self, path: Path, job: Job, *, resume: bool) -> None:
        self.path, self.job, self.fingerprint = path, job, job.fingerprint
        self.parts = path.with_name(path.name + ".parts")
        if path.suffix != ".parquet":
            raise ValueError(f"out={path} must end in .parquet")
        if not path.parent.is_dir():
            raise ValueError(f"out={path}: there is no folder {path.parent}")
        for there, kept in ((path, _fingerprint(path)), (self.parts, self._begun())):
            if not there.exists() or (there == self.parts and not any(there.glob("*.parquet"))):
                continue  # nothing is there, or nothing was done yet
            if not resume:
                raise ValueError(f"out={path}: {there.name} exists already; resume, remove it or choose another name")
            if kept != self.fingerprint:
                raise ValueError(
                    f"out={path}: {there.name} is of another sweep (scenario, axes, seeds, steps or code differ); "
                    "it cannot be resumed by this one"
                )
        if not self.whole:
            try:
                self.parts.mkdir(exist_ok=True)
                _write_text(
                    self.parts / "job.json", json.dumps({"fingerprint": self.fingerprint, "chunks": job.chunks})
                )
            except OSError as error:
                raise ValueError(f"out={path}: cannot be written ({error.strerror or error})") from error

    @property
    def whole(self) -> bool:
        """Whether the table is finished."""
        return self.path.exists()

    @property
    def missing(self) -> list[int]:
        """Chunks still to be done."""
        if self.whole:
            return []
        return [each for each in range(self.job.chunks) if _fingerprint(self._part(each)) != self.fingerprint]

    def keep(self, chunk: int, table: pd.DataFrame) -> None:
        """Keep a chunk: all of it, or nothing, whenever the power goes."""
        self._write(table, self._part(chunk))

    def finish(self) -> pd.DataFrame:
        """Put the chunks together, in order, and read the table."""
        if not self.whole:
            tables = [pd.read_parquet(self._part(each)) for each in range(self.job.chunks)]
            self._write(pd.concat(tables, ignore_index=True), self.path)
        shutil.rmtree(self.parts, ignore_errors=True)
        return pd.read_parquet(self.path)

    def _part(self, chunk: int) -> Path:
        return self.parts / f"{chunk:06d}.parquet"

    def _begun(self) -> str:
        file = self.parts / "job.json"
        return json.loads(file.read_text(encoding="utf-8"))["fingerprint"] if file.exists() else ""

    def _write(self, table: pd.DataFrame, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrow = pa.Table.from_pandas(table, preserve_index=False)
        said = {KEY: self.fingerprint.encode(), TERMS: self.job.terms().encode()}
        arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), **said})
        half = path.with_name(path.name + ".half")
        with half.open("wb") as file:
            pq.write_table(arrow, file)
            file.flush()
            os.fsync(file.fileno())  # or the name may outlive the power, and its bytes not
        half.replace(path)


def _fingerprint(path: Path) -> str:
    """Of the sweep that a parquet file is of; empty where it says none."""
    if not path.exists():
        return ""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return (pq.read_schema(path).metadata or {}).get(KEY, b"").decode()
    except (pa.ArrowException, OSError):  # cut off, or nobody's
        return ""


def _write_text(path: Path, text: str) -> None:
    half = path.with_name(path.name + ".half")
    half.write_text(text, encoding="utf-8")
    half.replace(path)
