"""Who does the chunks: this process, processes on all cores, or a Dask cluster. Each yields chunks as they are done."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from rlqueue.bulk.job import Job, code_stamp, table_of

if TYPE_CHECKING:
    from distributed import Client, Future

TRIES = 3
"""Times in a row that workers may die without a chunk being done."""
FIND_S = 10
"""Seconds in which a cluster must answer."""
ALONE_S = 60
"""Seconds in which a cluster that lost its workers must have new ones."""
CHECK_S = 5
POLL_S = 0.1
"""Seconds between two looks at who is there, and at what is done."""
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
        with ProcessPoolExecutor(min(workers, len(left)), mp_context=context, initializer=_end_with_the_parent) as pool:
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


def _end_with_the_parent() -> None:
    """A process whose parent is killed ends: it would wait for work for ever, and its fork server with it."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def cluster(job: Job, chunks: Sequence[int], address: str) -> Done:
    """On a Dask cluster, which gives the chunks of a dead worker to another.

    Raises:
        ValueError: dask is not installed, nobody answers at the address, a worker has other code, or none is left.
    """
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise ValueError(f"a cluster needs the extra packages rlqueue[cluster] ({error.name} is missing)") from error
    try:
        with ThreadPoolExecutor(1) as thread:  # a loop of its own: a notebook's is running
            thread.submit(asyncio.run, asyncio.wait_for(_knock(address), FIND_S)).result()
        client = Client(address, timeout=FIND_S, set_as_default=False)
    except Exception as error:  # whatever answers there may answer anything
        said = str(error) or type(error).__name__
        raise ValueError(f"cluster={address!r}: no Dask scheduler answers there within {FIND_S} s ({said})") from error
    with client:
        if not client.nthreads():
            raise ValueError(f"cluster={address!r} has no worker")
        keys = [f"rlqueue-{job.fingerprint}-{chunk}" for chunk in chunks]
        places = dict(zip(keys, chunks, strict=True))
        futures = client.map(partial(_chunk, job, code_stamp()), chunks, key=keys, retries=TRIES)
        try:
            for future, table in _finished(client, futures):
                yield places.pop(future.key), table
                future.release()
        except (KilledWorker, CancelledError, OSError, TimeoutError) as error:
            said = str(error) or type(error).__name__
            raise ValueError(f"cluster={address!r}: it broke down, {len(places)} chunks are left ({said})") from error


def _finished(client: Client, futures: Sequence[Future]) -> Iterator[tuple[Future, pd.DataFrame]]:
    """Futures as they are done, with their tables.

    Raises TimeoutError where no worker is left for long: Dask itself would wait for new ones for ever.
    """
    from distributed import as_completed as finished

    left, seen = finished(futures, loop=client.loop), time.monotonic()
    waiting: list[Future] = []
    while waiting or not left.is_empty():
        waiting += left.next_batch(block=False) if left.has_ready() else []
        if not waiting:
            time.sleep(POLL_S)
        elif (table := _table(waiting[0])) is not None:
            yield waiting.pop(0), table
            continue
        if client.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > ALONE_S:
            raise TimeoutError(f"no worker for {ALONE_S} s")


def _table(future: Future) -> pd.DataFrame | None:
    """The table of a finished chunk; None where it does not come, since it died with its worker."""
    try:
        return future.result(timeout=CHECK_S)
    except TimeoutError:
        return None


async def _knock(address: str) -> None:
    """Shake hands with whoever is there: a client alone would wait for ever for one that takes calls and says nothing."""
    from distributed.comm import connect

    comm = await connect(address, timeout=FIND_S)
    comm.abort()


def _chunk(job: Job, stamp: int, chunk: int) -> pd.DataFrame:
    return table_of(job, chunk, stamp)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
