"""A job done by whoever is asked, and kept as it goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from rlqueue.bulk import backends
from rlqueue.bulk.job import Job
from rlqueue.bulk.store import Store


def run_job(
    job: Job, out: str | Path | None = None, *, workers: int | None = None, cluster: str = "", resume: bool = False,
    progress: Callable[[int, int], Any] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Simulate all runs of a job: one row per run, the same table whoever does it.

    Args:
        out: parquet file; None keeps the table in memory only. workers: processes; all cores. 1 = this process.
        cluster: address of a Dask scheduler, in place of processes. resume: go on with a table that was begun.
        progress: is told how many runs of how many are done.

    Raises:
        ValueError: a file that is there already, or of another sweep; a cluster that does not answer; workers that keep dying.
    """
    workers = backends.cores() if workers is None else workers
    if workers < 1:
        raise ValueError(f"workers={workers} must be >= 1")
    store = None if out is None else Store(Path(out), job, resume=resume)
    missing = list(range(job.chunks)) if store is None else store.missing
    done = job.runs - sum(len(job.runs_of(chunk)) for chunk in missing)
    tell = progress or (lambda *_: None)
    tell(done, job.runs)
    if cluster:
        working = backends.cluster(job, missing, cluster)
    elif workers == 1 or len(missing) <= 1:
        working = backends.here(job, missing)
    else:
        working = backends.processes(job, missing, workers)
    tables: dict[int, pd.DataFrame] = {}
    with closing(working):
        for chunk, table in working:
            if store is None:
                tables[chunk] = table
            else:
                store.keep(chunk, table)
            done += len(table)
            tell(done, job.runs)
    if store is not None:
        return store.finish()
    return pd.concat([tables[chunk] for chunk in range(job.chunks)], ignore_index=True)
