"""Who does the chunks: this process, processes on all cores, or a Dask cluster. Each yields chunks as they are done."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import pandas as pd

from rlqueue.bulk.job import Job, code_stamp, table_of

TRIES = 3
"""Times in a row that workers may die without a chunk being done."""
FIND_S = 10
"""Seconds in which a cluster must answer."""
Done = Iterator[tuple[int, pd.DataFrame]]


def here(job: Job, chunks: Sequence[int]) -> Done:
    """One after the other, in this process."""
    stamp = code_stamp()
    for chunk in chunks:
        yield chunk, table_of(job, chunk, stamp)


def processes(job: Job, chunks: Sequence[int], workers: int) -> Done:
    """On several processes. When one is killed, the chunks that were not done are given to new ones.

    Processes and not threads: a small run spends half its time in Python, which threads do one at a time.
    """
    left, deaths, stamp = list(chunks), 0, code_stamp()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rlqueue.bulk.job", "rlqueue.simulation.loop", "rlqueue.simulation.summary"])
    while left:
        with ProcessPoolExecutor(min(workers, len(left)), mp_context=context) as pool:
            futures = {pool.submit(table_of, job, chunk, stamp): chunk for chunk in left}
            try:
                for future in as_completed(futures):
                    table = future.result()
                    left.remove(futures[future])
                    deaths = 0
                    yield futures[future], table
            except BrokenProcessPool as error:
                deaths += 1
                if deaths >= TRIES:
                    raise ValueError(
                        f"workers={workers}: they were killed {deaths} times in a row; {len(left)} chunks are left "
                        "(out of memory?)"
                    ) from error
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def cluster(job: Job, chunks: Sequence[int], address: str) -> Done:
    """On a Dask cluster, which gives the chunks of a dead worker to another.

    Raises:
        ValueError: dask is not installed, nobody answers at the address, or a worker has other code.
    """
    try:
        from distributed import Client
        from distributed import as_completed as finished
    except ImportError as error:
        raise ValueError(f"a cluster needs the extra packages rlqueue[cluster] ({error.name} is missing)") from error
    try:
        client = Client(address, timeout=FIND_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(f"cluster={address!r}: no Dask scheduler answers there ({error})") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise ValueError(f"cluster={address!r} has no worker")
        keys = [f"rlqueue-{job.fingerprint}-{chunk}" for chunk in chunks]
        places = dict(zip(keys, chunks, strict=True))
        futures = client.map(partial(_chunk, job, code_stamp()), chunks, key=keys, retries=TRIES)
        for future, table in finished(futures, loop=client.loop, with_results=True):
            yield places[future.key], table
            future.release()


def _chunk(job: Job, stamp: int, chunk: int) -> pd.DataFrame:
    return table_of(job, chunk, stamp)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
