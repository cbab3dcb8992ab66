"""The numbers of a page as one tidy table, for a file: what, of which kind, at which place, and how much."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rlqueue.app.answers import Answer
from rlqueue.app.walk import Walked
from rlqueue.app.way import Way
from rlqueue.uncertainty import Band, Bands

COLUMNS = ("scenario", "kind", "quantity", "along", "at", "value")


def csv(rows: Iterable[tuple[Any, ...]]) -> str:
    """Rows of ``COLUMNS`` as CSV text."""
    text = io.StringIO()
    pd.DataFrame(list(rows), columns=list(COLUMNS)).to_csv(text, index=False, lineterminator="\n")
    return text.getvalue()


def of_answer(found: Answer, bands: Bands | None = None) -> list[tuple[Any, ...]]:
    """The point by both solvers with its bands where they are known, and the curves over the splits."""
    name = found.state.scenario.name
    rows = _numbers(name, "closed form", vars(found.point) | vars(found.bill))
    if found.simulated.point is not None:
        rows += _numbers(name, "simulated", vars(found.simulated.point) | vars(found.simulated.bill))
    for band in bands.rows if bands else ():
        rows += of_band(name, band)
    splits = found.frame.splits
    for kind, curves in (("closed form", found.by_split), ("simulated", found.simulated.curve.by_split)):
        if kind == "simulated" and not len(found.simulated.curve.simulated):
            continue
        for quantity, values in curves.items():
            along = np.broadcast_to(np.asarray(values), splits.shape)
            rows += [
                (name, kind, quantity, "generator_gpus", int(split), value)
                for split, value in zip(splits, along, strict=True)
            ]
    return rows


def of_way(way: Way, walked: Walked | None = None) -> list[tuple[Any, ...]]:
    """The run along its steps, and as a whole."""
    name, rows = way.scenario.name, []
    for quantity, values in way.at.items():
        if quantity != "step":
            rows += [
                (name, "closed form", quantity, "step", int(step), value)
                for step, value in zip(way.steps, values, strict=True)
            ]
    if walked is not None:
        for quantity in walked.blocks.columns:
            if quantity != "step":
                rows += [
                    (name, "simulated", quantity, "step", float(step), value)
                    for step, value in zip(walked.blocks["step"], walked.blocks[quantity], strict=True)
                ]
    return rows + _numbers(name, "closed form", vars(way.whole), "whole run")


def of_band(name: str, band: Band) -> list[tuple[Any, ...]]:
    """How far a number may be off, for what its inputs are known to."""
    ends = (("low", band.low), ("median", band.median), ("high", band.high))
    return [(name, band.kind, band.quantity, "inputs", at, value) for at, value in ends]


def _numbers(name: str, kind: str, values: Mapping[str, Any], along: str = "") -> list[tuple[Any, ...]]:
    return [(name, kind, quantity, along, "", value) for quantity, value in values.items() if quantity != "kind"]
