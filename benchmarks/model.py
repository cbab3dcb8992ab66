"""How fast the closed form is: one scenario, and a grid."""

import dataclasses
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import Timing
from rlqueue import Scenario, solve
from rlqueue.advice import moves
from rlqueue.queueing import solve_grid


def timings() -> Iterator[Timing]:
    """Medians over repeated runs, after the compiled code is loaded."""
    scenario = Scenario.from_data("prime-rl-qwen3-235b")
    solve(scenario)
    slots = iter(range(1, 10**6))
    yield Timing(
        name="solve, a scenario never seen before",
        seconds=_median(lambda: solve(dataclasses.replace(scenario, concurrency=next(slots))), 500),
        limit_s=0.001,
    )
    generator = np.linspace(8, 248, 100).astype(int)[:, None]
    concurrency = np.linspace(64, 4096, 100).astype(int)
    axes = {"generator_gpus": generator, "trainer_gpus": 256 - generator, "concurrency": concurrency}
    for family, budget in (("drop", 16.0), ("admission", 2.0)):
        each = dataclasses.replace(scenario, staleness_family=family, max_staleness=budget)
        yield Timing(
            name=f"grid of 100 x 100 operating points, {family} {budget:g}",
            seconds=_median(lambda each=each: solve_grid(each, **axes), 9),
            limit_s=0.3,
        )
    yield Timing(name="best single moves of a scenario", seconds=_median(lambda: moves(scenario), 50))
    code = [sys.executable, "-m", "rlqueue.cli", "solve", scenario.name]
    yield Timing(
        name="`rlqueue solve` as a process, compiled code cached",
        seconds=_median(lambda: subprocess.run(code, check=True, capture_output=True), 5),  # noqa: S603  our own program
        limit_s=2.0,
    )


def _median(work: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
