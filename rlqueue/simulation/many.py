"""Many runs at once: seeds of one scenario, or a grid of scenarios; the compiled loop lets other threads run."""

import dataclasses
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from rlqueue.operating_point import CONSTRAINTS, OperatingPoint
from rlqueue.scenario import Scenario
from rlqueue.simulation.run import simulate

CONSTRAINT_FIELDS = ("binding_constraint", "next_constraint")


def operating_points(
    asked: Iterable[tuple[Scenario, int]], steps: int = 200, *, workers: int | None = None
) -> Iterator[OperatingPoint]:
    """Operating points of scenarios with their seeds, in the order asked, on several threads.

    They come one by one as they are ready, so that a band over seeds can fill in; whoever stops asking (closes the generator)
    also stops what has not begun. A run that stalls without completing a step raises ValueError.
    """
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures = [pool.submit(_point, scenario, seed, steps) for scenario, seed in asked]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _point(scenario: Scenario, seed: int, steps: int) -> OperatingPoint:
    return simulate(scenario, seed, steps).operating_point


def simulate_grid(
    scenario: Scenario, *, seed: int = 0, steps: int = 30, workers: int | None = None, **axes: Any
) -> dict[str, np.ndarray]:
    """Operating points of a grid, by field name; every cell meets the same prompts.

    Args:
        scenario: what is the same in every cell. seed: of all cells. steps: of each run. workers: threads; all cores.
        axes: values of any knobs: arrays whose shapes broadcast together.

    Returns:
        Arrays of the broadcast shape: the fields of OperatingPoint but ``kind``; the two constraints as index into
        ``operating_point.CONSTRAINTS``.

    Raises:
        ValueError: an unknown knob or an impossible value.
    """
    shape = np.broadcast_shapes(*(np.shape(values) for values in axes.values()))
    columns = {name: np.broadcast_to(values, shape).ravel().tolist() for name, values in axes.items()}
    cells = [
        (dataclasses.replace(scenario, cluster_gpus=0, **dict(zip(columns, values, strict=True))), seed)
        for values in zip(*columns.values(), strict=True)
    ]
    points = list(operating_points(cells, steps, workers=workers))
    names = [field.name for field in dataclasses.fields(OperatingPoint) if field.name != "kind"]
    order = list(CONSTRAINTS)
    return {
        name: np.array(
            [order.index(getattr(each, name)) if name in CONSTRAINT_FIELDS else getattr(each, name) for each in points]
        ).reshape(shape)
        for name in names
    }
