"""The closed form of a scenario: ``solve`` one, or a whole grid of splits, concurrencies and budgets at once."""

import dataclasses

import numpy as np

from rlqueue.operating_point import CONSTRAINTS, OperatingPoint
from rlqueue.rates import GRID_KNOBS, informative_fraction, lengths_of, rates, rates_grid
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

NAMES = tuple(CONSTRAINTS)

ENDLESS = 1e12
LIFTED: dict[str, dict[str, float | str]] = {
    "trainer compute": {"train_gpu_s": 1e-9, "train_fixed_s": 0.0},
    "weight sync": {"sync_s": 0.0},
    "batch fetch": {"fetch_s": 0.0},
    "decode bandwidth": {
        "overhead_s": 0.0,
        "shared_s": 0.0,
        "experts_s": 0.0,
        "kv_s_per_token": 1e-15,
        "compute_s": 0.0,
    },
    "KV memory": {"kv_slots": ENDLESS},
    "concurrency cap": {"concurrency": ENDLESS},
    "sandbox start": {"creates_per_s": np.inf},
    "sandbox cap": {"sandbox_cap": np.inf},
    "staleness budget": {"max_staleness": 1e6},
    "long tail": {"batch_tokens": "response_tokens"},
    "filter": {"filtered": 0.0},
    "prefill": {"prefill_apart_s": 0.0},
}
"""What a record's fields become once a constraint no longer binds (a number, or another field); shows which is behind it."""


def solve(scenario: Scenario) -> OperatingPoint:
    """The long-run operating point by closed form.

    Consumption is samples per step over trainer compute time, production is ``rollouts in flight / mean time in slot``
    (Little's law) times the share accepted, and the trainer wait ratio follows: ``max(0, 1 - production / consumption)``
    where no publication time and no budget interferes. Distributions enter only through means, group maxima and the
    unfinished share at a moment; queueing noise does not (the simulation has it).

    Args:
        scenario: the run. If it drifts, its own lengths hold for good; see ``at_step`` for those of a step (also of the first,
            where a measured series gives them).

    Returns:
        OperatingPoint of kind "closed form", with the binding constraint and the one behind it (the constraint that binds
        once the first is lifted).
    """
    return solve_record(scenario, rates(scenario))


def solve_record(scenario: Scenario, record: np.ndarray) -> OperatingPoint:
    """The same from the scenario's record of rates, in which the share filtered may be another one than its law's."""
    point = _points(scenario, record)[0]
    return _operating_point(scenario, point, _next_constraint(scenario, record, int(point["binding"])))


def solve_grid(scenario: Scenario, **axes: np.ndarray) -> dict[str, np.ndarray]:
    """Operating points of a grid, by field name.

    Args:
        scenario: what is the same in every cell.
        axes: values of trainer_gpus, generator_gpus, concurrency or max_staleness: arrays whose shapes broadcast.

    Returns:
        Arrays of the broadcast shape: the fields of the compiled closed form (those of OperatingPoint that are numbers and
        do not follow from the scenario alone), and ``binding`` as index into ``operating_point.CONSTRAINTS``.

    Raises:
        ValueError: another knob, or a value that no scenario may have.
    """
    for name in axes:
        require_known("axis", name, GRID_KNOBS)
    # Every limit is one knob's own, or a lower one: all smallest values together, then all largest, are refused or nothing is.
    for extreme in (np.min, np.max):
        dataclasses.replace(scenario, cluster_gpus=0, **{name: extreme(values).item() for name, values in axes.items()})
    grid = rates_grid(scenario, axes)
    points = _points(scenario, grid.reshape(-1)).reshape(grid.shape)
    return {name: points[name] for name in points.dtype.names}


def _points(scenario: Scenario, records: np.ndarray) -> np.ndarray:
    from rlqueue.steady import steady_all

    if scenario.tenants > 1:
        raise ValueError(f"tenants={scenario.tenants} must be 1 for the closed form: it knows no other tenants")
    lengths = lengths_of(scenario)
    return steady_all(records, lengths.group_survival, lengths.rollout_survival)


def lifted(record: np.ndarray, constraint: str) -> np.ndarray:
    """A copy of the record in which that constraint does not bind."""
    free = record.copy()
    for name, value in LIFTED[constraint].items():
        free[name] = record[value] if isinstance(value, str) else value
    return free


def _next_constraint(scenario: Scenario, record: np.ndarray, binding: int) -> str:
    return NAMES[int(_points(scenario, lifted(record, NAMES[binding]))[0]["binding"])]


def _operating_point(scenario: Scenario, point: np.void, next_constraint: str) -> OperatingPoint:
    values = {name: float(point[name]) for name in point.dtype.names if name != "binding"}
    colocated = scenario.schedule == "colocated-sync"
    gpus = scenario.trainer_gpus + (scenario.generator_gpus if colocated else 0)
    flops = 6.0 * scenario.llm.active_params * scenario.trained_tokens_per_step
    peak = gpus * scenario.trainer_gpu.dense_bf16_flops_per_s
    return OperatingPoint(
        kind="closed form",
        discarded_ratio=1.0 - values["accepted_ratio"],
        trained_tokens_per_s=scenario.trained_tokens_per_step / values["step_s"],
        informative_ratio=informative_fraction(scenario),
        mfu_computing=flops / (values["train_s"] * peak),
        mfu_wall_clock=flops / (values["step_s"] * peak),
        binding_constraint=NAMES[int(point["binding"])],
        next_constraint=next_constraint,
        **values,
    )
