"""How the closed form's curves over the splits are bent to meet what was simulated; in between they keep its shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlqueue.app.state import State, frame
from rlqueue.cost import PARTS, parts_usd_per_mtok
from rlqueue.operating_point import OperatingPoint

SHARES = ("trainer_wait_ratio", "rollout_idle_ratio", "accepted_ratio")
AMOUNTS = ("step_s", "in_flight_rollouts", "trained_tokens_per_s")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Answers over all splits that go through what was simulated.

    Attributes:
        simulated: the splits that were simulated [GPU]. by_split: arrays over ``frame.splits``: step_s, both ratios, the parts of
            the bill and their sum. low, high: of the trainer's and the slots' ratio over the seeds; None with one seed.
    """

    simulated: np.ndarray
    by_split: dict[str, Any]
    low: dict[str, np.ndarray] | None = None
    high: dict[str, np.ndarray] | None = None


def bent(state: State, closed: Mapping[str, Any], along: Mapping[int, Sequence[OperatingPoint]]) -> Curve:
    """The closed form's curves, shifted (shares) or scaled (amounts) so that they go through what was simulated.

    Between two simulated splits shift and factor change evenly, beyond the last they stay.
    """
    around = frame(state.scenario)
    splits = around.splits
    closed = {"trained_tokens_per_s": state.scenario.trained_tokens_per_step / closed["step_s"]} | dict(closed)
    there = np.array(sorted(split for split, points in along.items() if points), dtype=int)
    curves = {name: np.broadcast_to(np.asarray(closed[name], dtype=float), splits.shape) for name in SHARES + AMOUNTS}
    low = high = None
    if there.size:
        places = np.searchsorted(splits, there)
        values = {
            name: np.array([[getattr(point, name) for point in along[split]][:_fewest(along, there)] for split in there])
            for name in SHARES + AMOUNTS
        }  # fmt: skip
        base = curves

        def through(name: str, wanted: np.ndarray) -> np.ndarray:
            if name in SHARES:
                shift = np.interp(splits, there, wanted - base[name][places])
                return _exactly(np.clip(base[name] + shift, 0.0, 1.0), places, wanted)
            factor = np.interp(splits, there, wanted / np.maximum(base[name][places], 1e-300))
            return _exactly(base[name] * factor, places, wanted)

        curves = {name: through(name, values[name].mean(axis=1)) for name in values}
        if next(iter(values.values())).shape[1] > 1:
            low = {name: through(name, values[name].min(axis=1)) for name in SHARES[:2]}
            high = {name: through(name, values[name].max(axis=1)) for name in SHARES[:2]}
    parts = parts_usd_per_mtok(state.scenario, curves, around.gpus - splits, splits)
    whole = {"usd_per_mtok": sum(parts[part] for part in PARTS)}
    return Curve(simulated=there, by_split=curves | parts | whole, low=low, high=high)


def _fewest(along: Mapping[int, Sequence[OperatingPoint]], there: Iterable[int]) -> int:
    """Seeds that all of them have: a band over more seeds here than there would show that and nothing else."""
    return min(len(along[split]) for split in there)


def _exactly(values: np.ndarray, places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    made = values.copy()
    made[places] = wanted
    return made
