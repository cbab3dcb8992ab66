"""How fast deciding is: bands for a page at rest, a plan of each preset, and ten thousand runs on every backend."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Timing
from rlqueue import Scenario, simulate, solve
from rlqueue.bulk import Job, axis_from_text, run_job
from rlqueue.planning import plan
from rlqueue.presets import preset_names
from rlqueue.uncertainty import bands, tornado

RUNS = 10_000


def timings() -> Iterator[Timing]:
    """Bands and plans of presets, then a sweep whose three tables must be the same bytes."""
    for name in preset_names():  # compiled and read from disk once
        simulate(Scenario.from_data(name), steps=1)
        solve(Scenario.from_data(name))
    slime = Scenario.from_data("slime-qwen3-235b")
    yield _timed("bands of 256 samples", lambda: bands(slime), 1.0)
    yield _timed("tornado of 15 inputs", lambda: tornado(slime), 1.0)
    for name in preset_names():
        yield _timed(f"plan {name}", lambda name=name: plan(Scenario.from_data(name)), 10.0)
    yield from _sweeps(slime)


def _sweeps(scenario: Scenario) -> Iterator[Timing]:
    from distributed import LocalCluster

    axes = tuple(axis_from_text(scenario, text) for text in ("split=32:64,40:56", "concurrency=256,512,1024,2048,4096"))
    job = Job(scenario=scenario, axes=axes, seeds=RUNS // 10, steps=1, chunk=200)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.parquet" for name in ("one", "all", "cluster")]
        yield _timed(f"{job.runs:,} runs, one core", lambda: run_job(job, files[0], workers=1))
        yield _timed(f"{job.runs:,} runs, all cores", lambda: run_job(job, files[1]))
        with LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=None
        ) as cluster:
            address = cluster.scheduler_address
            yield _timed(f"{job.runs:,} runs, Dask, two workers", lambda: run_job(job, files[2], cluster=address))
        tables = {file.read_bytes() for file in files}
        yield Timing(
            name="different tables among the three", seconds=len(tables) - 1, note="a count; 0 = the same bytes"
        )


def _timed(name: str, what: object, limit_s: float | None = None) -> Timing:
    begin, cpu = time.perf_counter(), time.process_time()
    what()
    return Timing(
        name=name, seconds=time.perf_counter() - begin, limit_s=limit_s,
        note=f"{time.process_time() - cpu:.1f} s of this process's cores",
    )  # fmt: skip


if __name__ == "__main__":
    for each in timings():
        print(each)
