"""Sandboxes: what a cap on the account does from 96 to 960 rollouts in flight, and what their CPUs cost."""

import numpy as np

from rlqueue.presets import reported
from rlqueue.queueing import solve
from rlqueue.report.assumptions import VERL, Assumptions
from rlqueue.scenario import Scenario


def crowded(assumptions: Assumptions) -> Scenario:
    """The verl run whose concurrency is pushed up: its last phase."""
    return assumptions.scenario(VERL[-1])


def start_delay_s(slots: np.ndarray | float, cap: float, rollout_s: float) -> np.ndarray | float:
    """Mean time that a rollout waits for a sandbox when the account runs at most ``cap`` [s].

    By Little's law: the slots beyond the cap hold waiting rollouts, and ``cap / rollout_s`` sandboxes become free a second.
    ``rollout_s`` is the time that a sandbox is held.
    """
    return np.maximum(0.0, np.asarray(slots, float) - cap) * rollout_s / cap


def cap_that_explains(assumptions: Assumptions) -> float:
    """The account's cap at which the longest printed start is the mean wait at the highest concurrency tried [sandbox].

    The source prints starts of *up to* an hour, so the cap was this or somewhat more.
    """
    import dataclasses

    facts = reported("verl-qwen3-235b")
    slots, wanted = float(facts["concurrency_high"].value), float(facts["straggler_start_s"].value)
    scenario = crowded(assumptions)
    low, high = 1.0, slots
    while high - low > 0.01:
        cap = 0.5 * (low + high)
        capped = dataclasses.replace(scenario, concurrency=int(slots), sandbox_cap=cap)
        point = solve(capped)
        held = point.rollout_s
        low, high = (cap, high) if start_delay_s(slots, cap, held) > wanted else (low, cap)
    return 0.5 * (low + high)
