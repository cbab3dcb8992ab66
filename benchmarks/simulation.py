"""The simulation: events a second, whole runs, learning over a pool of prompts, growth to ten million rollouts, a heatmap, a
second process, and simpy beside it.

    python -m benchmarks simulation

One core's work is measured in its own processor time, which a busy machine does not stretch; medians of five. What both
programs run is measured in turns. The scenario is the Qwen3-235B run of prime-rl with 512 rollouts a step in 1,024 slots, no
sandboxes, and everything that is generated wanted.
"""

import dataclasses
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY / "tests")]

from simpy_run import run as run_on_simpy  # noqa: E402

from benchmarks import Timing  # noqa: E402
from rlqueue import Run, Scenario, simulate  # noqa: E402
from rlqueue.simulation import lumped, simulate_grid  # noqa: E402

PRESET = Scenario.from_data("prime-rl-qwen3-235b")
SINGLE_TURN = dataclasses.replace(
    PRESET, tool_calls=0.0, sandbox_start_s=0.0, surplus_fraction=0.0, filtered_fraction=0.0, concurrency=1024
)
TOOLS = dataclasses.replace(SINGLE_TURN, tool_calls=20.0, tool_call_s=2.0)
CURRICULUM = {
    "solve_rate_mean": 0.4, "solve_rate_concentration": 2.0, "pool_prompts": 10_000, "sampler": "retire-solved",
    "retire_above": 0.9, "learning_logit_per_step": 0.005, "learning_transfer": 0.5, "drift_law": "linear",
    "drift_steps": 1000, "drift_length_factor": 1.5,
}  # fmt: skip
PER_STEP = SINGLE_TURN.samples_per_step
HEATMAP = 40
WIDTH = 50  # characters of the plot

IN_A_NEW_PROCESS = """
import resource, time
begin = time.perf_counter()
from rlqueue import Scenario, simulate
import dataclasses
scenario = dataclasses.replace(Scenario.from_data("prime-rl-qwen3-235b"), tool_calls=0.0, sandbox_start_s=0.0,
                               surplus_fraction=0.0, concurrency=1024)
simulate(scenario, steps=1)
print(time.perf_counter() - begin)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
simulate(scenario, steps=200)
print(before / 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def timings() -> Iterator[Timing]:
    simulate(SINGLE_TURN, steps=1)  # compiles, or loads what was compiled
    single, run = median_of(5, lambda: simulate(SINGLE_TURN, steps=200))
    start_s, before_mb, after_mb = new_process()
    rollouts = 200 * PER_STEP
    yield Timing(
        name=f"200 steps, {rollouts:,} single-turn rollouts", seconds=single, limit_s=0.05,
        note=f"{rates(single, run)}; process grows from {before_mb:.0f} to {after_mb:.0f} MB (200 allowed)",
    )  # fmt: skip
    tools, run = median_of(5, lambda: simulate(TOOLS, steps=200))
    yield Timing(name="the same with 20 tool calls each", seconds=tools, limit_s=0.6, note=rates(tools, run))
    yield Timing(
        name="10 million events on one core", seconds=1e7 * tools / run.events, limit_s=1.0,
        note=f"from the {run.events:,} events of the run above",
    )  # fmt: skip
    for name, scenario, limit_s in (("single-turn", SINGLE_TURN, 0.5), ("20 tool calls", TOOLS, None)):
        asked = dataclasses.replace(scenario, **CURRICULUM)
        taken, run = median_of(3, lambda asked=asked: simulate(asked, steps=1000))
        groups = int(run.world.clock["judged"])
        yield Timing(
            name=f"1,000 steps over 10,000 prompts that are learned, {name}", seconds=taken, limit_s=limit_s,
            note=f"{rates(taken, run)}, {groups:,} groups for 32,000 trained",
        )  # fmt: skip
    for name, scenario, steps in (("single-turn", SINGLE_TURN, 20), ("20 tool calls", TOOLS, 4)):
        yield beside_simpy(name, scenario, steps)
    yield Timing(
        name="first run in a second process", seconds=start_s, limit_s=2.0, note="imports and one step, wall clock"
    )
    yield from heatmaps()
    yield from growth()


def median_of(times: int, work: Callable[[], Run]) -> tuple[float, Run]:
    """Median processor time, and what the last one gave."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        run = work()
        taken.append(time.process_time() - begin)
    return statistics.median(taken), run


def rates(seconds: float, run: Run) -> str:
    done = int(run.world.clock["rollouts_done"])
    return f"{run.events / seconds / 1e6:.1f} M events/s, {seconds / done * 1e9:.0f} ns a rollout"


def beside_simpy(name: str, scenario: Scenario, steps: int) -> Timing:
    """Both programs on the same scenario in turns; the limit is a fiftieth of simpy's time."""
    ours, theirs = [], []
    for _ in range(3):
        theirs.append(median_of(1, lambda: run_on_simpy(scenario, steps=steps))[0])
        ours.append(median_of(5, lambda: simulate(scenario, steps=steps))[0])
    plain, compiled = statistics.median(theirs), statistics.median(ours)
    return Timing(
        name=f"{steps} steps, {name}, beside simpy", seconds=compiled, limit_s=plain / 50,
        note=f"simpy {plain:.2f} s: {plain / compiled:.0f} times",
    )  # fmt: skip


def new_process() -> tuple[float, float, float]:
    """Seconds to the end of a first short run, and the peak memory before and after a long one [MB]."""
    command = [sys.executable, "-c", IN_A_NEW_PROCESS]
    answers = []
    for _ in range(4):
        done = subprocess.run(  # noqa: S603
            command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(REPOSITORY)}
        )
        answers.append([float(word) for word in done.stdout.split()])
    return statistics.median(each[0] for each in answers[1:]), answers[0][1], answers[0][2]


def heatmaps() -> Iterator[Timing]:
    """Wait ratio over trainer GPUs and concurrency, 30-step runs with the turns lumped."""
    axes = {
        "trainer_gpus": np.linspace(8, 128, HEATMAP).astype(int)[:, None],
        "concurrency": np.linspace(64, 512, HEATMAP).astype(int)[None, :],
    }
    for name in ("slime-qwen3-235b", "verl-qwen3-235b-c256"):
        wall, used = time.perf_counter(), time.process_time()
        simulate_grid(lumped(Scenario.from_data(name)), steps=30, workers=2, **axes)
        wall, used = time.perf_counter() - wall, time.process_time() - used
        yield Timing(
            name=f"{HEATMAP} x {HEATMAP} runs of 30 steps, {name}", seconds=used / 2, limit_s=3.0,
            note=f"processor time over two cores; wall {wall:.2f} s here and now",
        )  # fmt: skip


def growth() -> Iterator[Timing]:
    """Ten thousand to ten million rollouts, and how much more than proportionally they take."""
    counts = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
    taken = []
    for count in counts:
        taken.append(
            median_of(3 if count <= 1_000_000 else 1, lambda n=count: simulate(SINGLE_TURN, steps=n // PER_STEP))[0]
        )
        yield Timing(
            name=f"{count:,} single-turn rollouts", seconds=taken[-1],
            limit_s=None if len(taken) == 1 else 2 * taken[0] * of_n_log_n(count, counts[0]),
            note=f"{taken[-1] / count * 1e9:.0f} ns each; {taken[-1] / taken[0] / of_n_log_n(count, counts[0]):.2f} of n log n",
        )  # fmt: skip
    print(plot(counts, taken))


def of_n_log_n(count: int, first: int) -> float:
    """How many times n log n grows from one count to another."""
    return count * math.log(count) / (first * math.log(first))


def plot(counts: list[int], seconds: list[float]) -> str:
    """Time over rollouts, both axes logarithmic: * measured, . n log n through the first."""
    low, high = math.log(seconds[0] / 2), math.log(2 * max(seconds[-1], seconds[0] * of_n_log_n(counts[-1], counts[0])))
    lines = []
    for count, taken in zip(counts, seconds, strict=True):
        line = [" "] * (WIDTH + 1)
        for mark, value in ((".", seconds[0] * of_n_log_n(count, counts[0])), ("*", taken)):
            line[round(WIDTH * (math.log(value) - low) / (high - low))] = mark
        lines.append(f"{count:>12,} |{''.join(line)}| {taken:.3g} s")
    return "\n".join(["    rollouts  time, logarithmic: * measured, . n log n through the first", *lines])
