"""Why there is no plan: which limit excludes them, and by how much."""

import dataclasses
from typing import Any

import numpy as np

from rlqueue.planning.goal import LIMITED, Limits
from rlqueue.planning.grid import Grid

FAR = 0.25
"""The closed form is believed that no plan keeps the limits where all miss one by so much."""


def refuse_impossible(found: Grid, limits: Limits) -> None:
    """Raise ValueError if no plan comes near the limits, by closed form."""
    if not limits.kept(found.answers, FAR).any():
        raise ValueError(missed(found.answers, limits, f"{{:,}} plans on {found.gpus} GPUs"))


def missed(answers: dict[str, Any], limits: Limits, whose: str) -> str:
    """Which limit excludes all plans, alone or with the others, and by how much.

    Args:
        answers: of the plans, none of which keeps the limits. whose: what they are, with a place for their number.
    """
    many = whose.format(len(answers["step_s"]))
    alone, together = [], []
    for name, limit in limits.given.items():
        measure = limits.measure(name, answers)
        if measure.min() > limit:
            alone.append(_missed(name, limit, float(measure.min()), f"the best of {many}"))
        others = dataclasses.replace(limits, **{name: None}).kept(answers)
        if others.any():
            best = float(measure[others].min())
            together.append(_missed(name, limit, best, f"the best of {many} that keeps the other limits"))
    if alone:
        return "no plan: " + "; ".join(alone)
    words = "; or ".join(together) or "no one of them can be lifted alone to get one"
    return f"no plan keeps all limits at once: {words}"


def _missed(name: str, limit: float, best: float, who: str) -> str:
    return f"{name}={limit:g} must be >= {_up(best):g}: {LIMITED[name]} of {who} is {best:.3g}, {best - limit:.3g} too much"


def _up(value: float) -> float:
    """Three digits, upwards: a limit that can be kept."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 2) if value > 0 else 1.0
    return float(np.ceil(value / unit) * unit)
