"""Many simulated runs on threads, each with an outcome: an operating point, or why the run came to none."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from rlqueue.operating_point import OperatingPoint
from rlqueue.scenario import Scenario
from rlqueue.simulation import simulate

Progress = Callable[[int, int], None]
"""Is told how many of how many are done."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one run.

    Attributes:
        point: None where no step was completed. settled: the scenario that it is of (``Run.settled``).
        staleness_p95: not a number where no step was completed [version]. events: simulated.
        stalled: why the run ended before its last step; empty where it did not.
    """

    point: OperatingPoint | None
    settled: Scenario
    staleness_p95: float
    events: int
    stalled: str


def trial(scenario: Scenario, seed: int, steps: int, max_events: int | None = None) -> Trial:
    """Simulate one run; a stall is an outcome, not an error."""
    run = simulate(scenario, seed, steps, max_events=max_events)
    stepped = run.world.clock["step"] > 0
    point, settled = (run.operating_point, run.settled) if stepped else (None, scenario)
    return Trial(point=point, settled=settled, staleness_p95=run.staleness_p95, events=run.events, stalled=run.stalled)


def trials(
    asked: Sequence[tuple[Scenario, int]], steps: int | Sequence[int], *, workers: int | None = None,
    progress: Progress | None = None, max_events: int | None = None,
) -> list[Trial]:  # fmt: skip
    """Outcomes of scenarios with their seeds, in the order asked, on several threads.

    Args:
        steps: of every run, or one number for each. workers: threads; all cores. max_events: see ``simulate``.
    """
    lengths = [steps] * len(asked) if isinstance(steps, int) else list(steps)
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures = [
            pool.submit(partial(trial, scenario, seed, count, max_events))
            for (scenario, seed), count in zip(asked, lengths, strict=True)
        ]
        try:
            found = []
            for future in futures:
                found.append(future.result())
                if progress:
                    progress(len(found), len(futures))
            return found
        finally:
            for future in futures:
                future.cancel()
