"""Whole runs by closed form, as a page redraws them while a slider is dragged."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Timing
from rlqueue import Scenario
from rlqueue.at_step import drift_path
from rlqueue.course import course

MOVING = replace(
    Scenario.from_data("prime-rl-glm-5"), training_steps=1000, filtered_fraction=0.0, solve_rate_mean=0.5,
    solve_rate_concentration=2.0, learning_logit_per_step=0.002, pool_prompts=10_000, drift_law="logistic", drift_steps=800,
    drift_length_factor=1.6, drift_tool_calls_factor=2.0,
)  # fmt: skip


def timings() -> Iterator[Timing]:
    for sampler in ("uniform", "adaptive"):
        moves = [replace(MOVING, sampler=sampler, drift_length_factor=1.5 + 0.02 * i) for i in range(16)]
        seconds = _median(course, moves)
        yield Timing(
            name=f"a course of 40 moments, sampler {sampler}", seconds=seconds, limit_s=0.02, note="each not met before"
        )
    points = ", ".join(f"{i}: {8000 + 10 * i}" for i in range(1000))
    series = [replace(MOVING, drift_law="series", drift_steps=0, drift_length_factor=1.0, drift_tool_calls_factor=1.0,
                      drift_series=points, response_sigma_within_group=0.2 + 0.001 * i) for i in range(16)]  # fmt: skip
    seconds = _median(lambda scenario: drift_path(scenario, 1000), series)
    yield Timing(name="medians of 1,000 measured means", seconds=seconds, limit_s=0.005)


def _median(work: Callable[[Scenario], object], inputs: list[Scenario]) -> float:
    """Median of the processor time of each but the first, which may compile."""
    taken = []
    for each in inputs:
        begin = time.process_time()
        work(each)
        taken.append(time.process_time() - begin)
    return float(np.median(taken[1:]))
