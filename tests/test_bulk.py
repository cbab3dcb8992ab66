"""Sweeps at scale: the same table on one core, on all, and on a real cluster; what is killed or stopped loses nothing."""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest
from distributed import Client
from simulation_toys import toy

from rlqueue import Scenario, cost, simulate
from rlqueue.bulk import Job, axis_from_text, backends, run_job
from rlqueue.bulk import job as job_module
from rlqueue.bulk.job import table_of

SMALL = toy(schedule="async-in-flight", response_sigma_between_prompts=0.5, concurrency=4)
JOB = Job(
    scenario=SMALL,
    axes=(("concurrency", (2, 4, 8)), ("schedule", ("sync", "async-in-flight"))),
    seeds=20,
    steps=4,
    chunk=10,
)
MANY = dataclasses.replace(
    JOB, axes=(("concurrency", (2, 4)), ("max_staleness", (1.0, 2.0))), seeds=250, chunk=100, steps=2
)
SLIME = Scenario.from_data("slime-qwen3-235b")


@pytest.fixture(scope="module")
def table():
    return run_job(JOB, workers=1)


@pytest.fixture(scope="module")
def dask_cluster():
    """Two worker processes, each with a nanny, on the loopback."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, memory_limit=None
    ) as cluster:
        yield cluster


def test_a_row_is_a_run_of_its_cell_and_seed_in_order(table):
    assert len(table) == JOB.runs == 120
    assert table["seed"].tolist() == [*range(20)] * 6
    assert table["concurrency"].tolist() == [each for each in (2, 4, 8) for _ in range(40)]
    row = table.iloc[57]
    there = dataclasses.replace(SMALL, concurrency=4, schedule="sync")
    run = simulate(there, 17, 4)
    assert row["step_s"] == run.operating_point.step_s
    assert row["usd_per_mtok"] == cost(there, run.operating_point).usd_per_mtok
    assert (row["seed"], row["events"], row["stalled"]) == (17, run.events, "")


def test_processes_give_the_same_table(table):
    pd.testing.assert_frame_equal(run_job(JOB, workers=2), table, check_exact=True)


def test_a_thousand_runs_are_the_same_bytes_on_one_core_on_processes_and_on_a_cluster(tmp_path, dask_cluster):
    """benchmarks/sweep.py does the same with ten thousand."""
    files = [tmp_path / f"{name}.parquet" for name in ("one", "processes", "cluster")]
    run_job(MANY, files[0], workers=1)
    run_job(MANY, files[1], workers=2)
    run_job(MANY, files[2], cluster=dask_cluster.scheduler_address)
    first, *others = (file.read_bytes() for file in files)
    assert all(other == first for other in others)
    assert len(pd.read_parquet(files[0])) == MANY.runs == 1_000


def test_a_killed_process_loses_nothing(table):
    killed = []

    def kill(done, of):
        if done > JOB.chunk and not killed:  # some chunks are done, more are under way
            victim = max(psutil.Process().children(recursive=True), key=psutil.Process.create_time)
            victim.send_signal(signal.SIGKILL)
            killed.append((done, of))

    found = run_job(JOB, workers=2, progress=kill)
    assert killed
    pd.testing.assert_frame_equal(found, table, check_exact=True)


def test_a_killed_worker_of_a_cluster_loses_nothing(table, dask_cluster):
    killed = []

    def kill(done, _):
        if done >= JOB.chunk and not killed:
            killed.append(next(iter(dask_cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    found = run_job(JOB, cluster=dask_cluster.scheduler_address, progress=kill)
    assert killed
    pd.testing.assert_frame_equal(found, table, check_exact=True)


def test_workers_that_always_die_are_not_tried_for_ever(monkeypatch):
    monkeypatch.setattr(backends, "table_of", _die)
    with pytest.raises(ValueError, match="workers=2: they were killed 3 times in a row; 12 chunks are left"):
        run_job(JOB, workers=2)


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def stopped(out, after):
    """A sweep that somebody interrupts."""

    def stop(done, _):
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(JOB, out, workers=1, progress=stop)


def test_a_stopped_sweep_is_resumed_where_it_was(tmp_path, table, monkeypatch):
    out = tmp_path / "sweep.parquet"
    stopped(out, after=50)
    assert not out.exists()
    assert len(list(Path(f"{out}.parts").glob("*.parquet"))) == 5
    done = []
    monkeypatch.setattr(
        backends, "table_of", lambda job, chunk, stamp: done.append(chunk) or table_of(job, chunk, stamp)
    )
    told = []
    found = run_job(JOB, out, workers=1, resume=True, progress=lambda *each: told.append(each))
    assert done == list(range(5, 12))
    assert (told[0], told[-1]) == ((50, 120), (120, 120))
    pd.testing.assert_frame_equal(found, table, check_exact=True)
    assert not Path(f"{out}.parts").exists()
    pd.testing.assert_frame_equal(run_job(JOB, out, resume=True), table, check_exact=True)  # nothing left to do
    assert len(done) == 7


def test_a_half_written_chunk_is_done_again(tmp_path, table):
    out = tmp_path / "sweep.parquet"
    stopped(out, after=30)
    parts = Path(f"{out}.parts")
    (parts / "000003.parquet.half").write_bytes(b"PAR1 and then the power went")
    pd.testing.assert_frame_equal(run_job(JOB, out, workers=1, resume=True), table, check_exact=True)


@pytest.mark.parametrize(
    "other",
    [
        {"steps": 5}, {"seeds": 21}, {"scenario": dataclasses.replace(SMALL, weight_sync_s=1.0)}, {"axes": JOB.axes[:1]},
        {"chunk": 9},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_a_sweep_is_not_resumed_into_the_table_of_another(tmp_path, other):
    out = tmp_path / "sweep.parquet"
    stopped(out, after=10)
    with pytest.raises(ValueError, match="is of another sweep"):
        run_job(dataclasses.replace(JOB, **other), out, workers=1, resume=True)


def test_a_sweep_is_not_resumed_by_other_code(tmp_path):
    out = tmp_path / "sweep.parquet"
    stopped(out, after=10)
    begun = Path(f"{out}.parts/job.json")
    begun.write_text(json.dumps(json.loads(begun.read_text()) | {"fingerprint": "of yesterday's code"}))
    with pytest.raises(ValueError, match="is of another sweep"):
        run_job(JOB, out, workers=1, resume=True)
    with pytest.raises(ValueError, match="a worker runs other code"):
        table_of(JOB, 0, 1)


def test_nothing_is_overwritten_unasked(tmp_path):
    out = tmp_path / "sweep.parquet"
    stopped(out, after=10)
    with pytest.raises(ValueError, match="exists already; resume"):
        run_job(JOB, out)
    other = tmp_path / "mine.parquet"
    other.write_bytes(b"not ours")
    for resume in (False, True):
        with pytest.raises(ValueError, match=r"mine\.parquet (exists already|is of another sweep)"):
            run_job(JOB, other, resume=resume)
    assert other.read_bytes() == b"not ours"
    with pytest.raises(ValueError, match=r"must end in \.parquet"):
        run_job(JOB, tmp_path / "sweep.csv")
    with pytest.raises(ValueError, match="there is no folder"):
        run_job(JOB, tmp_path / "no" / "sweep.parquet")


def test_a_run_without_a_step_is_a_row_that_says_why():
    hopeless = dataclasses.replace(SMALL, solve_rate_mean=1.0, oversampling_factor=1.0)
    found = run_job(Job(scenario=hopeless, axes=(("concurrency", (2, 4)),), steps=2))
    assert found["step_s"].isna().all()
    assert found["stalled"].str.len().min() > 0


def test_a_split_moves_both_sides():
    job = Job(
        scenario=SLIME,
        axes=(axis_from_text(SLIME, "split=32:64, 40:56"), axis_from_text(SLIME, "node.usd_per_kwh=0.1,0.2")),
    )
    assert [(job.at(cell).trainer_gpus, job.at(cell).generator_gpus) for cell in range(4)] == [(32, 64)] * 2 + [
        (40, 56)
    ] * 2
    assert job.at(1).node.usd_per_kwh == 0.2
    assert job.changed(2) == {"split": "40:56", "node.usd_per_kwh": 0.1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Job(scenario=SLIME, axes=(("mfy", (1,)),)), "did you mean mfu"),
        (lambda: Job(scenario=SLIME, axes=(("mfu", (0.1, 2.0)),)), "mfu=2 must be <= 1"),
        (lambda: Job(scenario=SLIME, axes=(("mfu", ()),)), "axis mfu has no value"),
        (lambda: Job(scenario=SLIME, axes=(("mfu", (0.1,)), ("mfu", (0.2,)))), "each knob may be an axis once"),
        (lambda: Job(scenario=SLIME, axes=(("split", ("4-8",)),)), "must have the form trainer:generator"),
        (lambda: Job(scenario=SLIME, axes=(), seeds=0), "seeds=0 must be a whole number >= 1"),
        (lambda: axis_from_text(SLIME, "mfu"), "must have the form knob=a,b,c"),
        (lambda: Job(scenario=SLIME, axes=(axis_from_text(SLIME, "mfu=lots"),)), "mfu='lots' must be a number"),
        (lambda: run_job(JOB, workers=0), "workers=0 must be >= 1"),
        (lambda: run_job(JOB, cluster="tcp://127.0.0.1:9"), "no Dask scheduler answers there"),
    ],
)
def test_bad_sweeps_are_refused_by_name(make, message, monkeypatch):
    monkeypatch.setattr(backends, "FIND_S", 1)
    with pytest.raises(ValueError, match=message):
        make()


def test_a_whole_table_says_what_it_is_of(tmp_path):
    out = tmp_path / "sweep.parquet"
    job = dataclasses.replace(JOB, seeds=1)
    run_job(job, out, workers=1)
    said = json.loads(pq.read_schema(out).metadata[b"rlqueue_sweep"])
    assert Scenario.from_toml(said["scenario"]) == SMALL
    assert (said["axes"], said["seeds"], said["steps"]) == ([[name, list(values)] for name, values in job.axes], 1, 4)


@pytest.mark.parametrize("broken", [b"", b"PAR1 and then the power went"])
def test_a_chunk_that_lost_its_bytes_is_done_again(tmp_path, table, broken):
    out = tmp_path / "sweep.parquet"
    stopped(out, after=30)
    Path(f"{out}.parts/000001.parquet").write_bytes(broken)
    pd.testing.assert_frame_equal(run_job(JOB, out, workers=1, resume=True), table, check_exact=True)


def test_a_sweep_that_came_to_nothing_is_in_nobody_s_way(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "FIND_S", 1)
    out, job = tmp_path / "sweep.parquet", dataclasses.replace(JOB, seeds=1)
    with pytest.raises(ValueError, match="no Dask scheduler answers"):
        run_job(JOB, out, cluster="tcp://127.0.0.1:9")
    assert len(run_job(job, out, workers=1)) == job.runs


def test_a_folder_that_takes_nothing_is_refused_by_name(tmp_path):
    (tmp_path / "sweep.parquet.parts").write_text("a file where the folder should be")
    with pytest.raises(ValueError, match=r"out=.*sweep\.parquet: cannot be written \(File exists\)"):
        run_job(JOB, tmp_path / "sweep.parquet", workers=1)


def test_a_sweep_knows_another_gpu_of_the_same_name():
    faster = dataclasses.replace(SLIME.trainer_gpu, dense_bf16_flops_per_s=2e15)
    jobs = [Job(scenario=each, axes=()) for each in (SLIME, dataclasses.replace(SLIME, trainer_gpu=faster))]
    assert jobs[0].fingerprint != jobs[1].fingerprint


@pytest.mark.parametrize("changed", ["data_folder", "version", "source_stamp"])
def test_a_sweep_knows_other_data_other_packages_and_other_code(tmp_path, monkeypatch, changed):
    before = JOB.fingerprint
    (tmp_path / "hardware.csv").write_text("entity\n")
    other = {"data_folder": lambda: tmp_path, "version": lambda _: "0.1", "source_stamp": lambda *_: 1}[changed]
    monkeypatch.setattr(job_module, changed, other)
    assert JOB.fingerprint == before  # of what this process loaded
    monkeypatch.setattr(job_module, "code_stamp", job_module.code_stamp.__wrapped__)
    assert JOB.fingerprint != before


def test_what_is_killed_in_the_middle_of_a_write_is_resumed_to_the_same_bytes(tmp_path):
    """SIGKILL at moments that nobody chose, of one process and of two, until a run comes through."""
    whole, out = tmp_path / "whole.parquet", tmp_path / "killed.parquet"
    assert _sweeping(whole, 1).wait(240) == 0
    kept = [0]
    for workers in (2, 1):
        running = _sweeping(out, workers)
        end = time.monotonic() + 120
        while _chunks(out) < kept[-1] + 10 and running.poll() is None:
            assert time.monotonic() < end
        helpers = psutil.Process(running.pid).children(recursive=True) if running.poll() is None else []
        running.kill()
        running.wait(60)
        kept.append(_chunks(out))
        assert psutil.wait_procs(helpers, timeout=30)[1] == [], "processes outlive the one that began them"
    assert kept == sorted(kept)
    assert 20 <= kept[-1] < 90
    assert _sweeping(out, 1).wait(240) == 0
    assert out.read_bytes() == whole.read_bytes()


def _chunks(out):
    return len(list(Path(f"{out}.parts").glob("*.parquet")))


def _sweeping(out, workers):
    """Ninety runs, each a chunk of its own, by a process of their own."""
    code = """if __name__ == "__main__":
        import sys
        from rlqueue import Scenario
        from rlqueue.bulk import Job, run_job
        axes = (("concurrency", (64, 128, 256)),)
        job = Job(scenario=Scenario.from_data("slime-qwen3-235b"), axes=axes, seeds=30, steps=2, chunk=1)
        run_job(job, sys.argv[1], workers=int(sys.argv[2]), resume=True)
    """
    return subprocess.Popen([sys.executable, "-c", code, str(out), str(workers)])


def test_who_takes_calls_and_says_nothing_is_no_cluster(monkeypatch):
    monkeypatch.setattr(backends, "FIND_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with pytest.raises(ValueError, match="no Dask scheduler answers there within 1 s"):
            run_job(JOB, cluster=f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        assert time.monotonic() - begin < 30


@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_a_cluster_that_breaks_down_is_named_and_its_sweep_resumed(tmp_path, table, monkeypatch, lost):
    """Dask itself would wait for new workers for ever."""
    monkeypatch.setattr(backends, "ALONE_S", 2)
    monkeypatch.setattr(backends, "CHECK_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    scheduler = _dask("scheduler", "--host", "127.0.0.1", "--port", address.split(":")[1])
    worker = _dask("worker", address, "--nthreads", "1", "--no-nanny")
    out = tmp_path / "sweep.parquet"

    def kill(done, _):
        if done >= 2 * JOB.chunk:
            (worker if lost == "workers" else scheduler).kill()

    try:
        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        with pytest.raises(ValueError, match=r"it broke down, \d+ chunks are left"):
            run_job(JOB, out, cluster=address, progress=kill)
    finally:
        for each in (worker, scheduler):
            each.kill()
            each.wait(60)
    assert len(list(Path(f"{out}.parts").glob("*.parquet"))) >= 2
    pd.testing.assert_frame_equal(run_job(JOB, out, workers=1, resume=True), table, check_exact=True)


def _dask(what, *words):
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{what}", *words, "--no-dashboard"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
