"""The three figures of the explorer, as plotly dictionaries: wait and idle by split, $/Mtok by split, and the map of waits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlqueue.app.answers import Answer, reported_value
from rlqueue.app.map_figure import wait_map
from rlqueue.app.palette import (
    IDLE,
    MARGIN,
    NOW,
    PART_COLOURS,
    PART_NAMES,
    REPORTED,
    WAIT,
    mark,
    split_axis,
)
from rlqueue.cost import PARTS

ROOM = 1.15
"""How far a cost axis reaches beyond what it must show."""
NICE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)


def figures(answer: Answer) -> dict[str, dict[str, Any]]:
    """All figures by name, in the order in which they stand on the page."""
    return {"wait": wait_by_split(answer), "cost": cost_by_split(answer), "map": wait_map(answer)}


def _upright(x: float) -> dict[str, Any]:
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
            "line": {"color": NOW, "width": 1, "dash": "dot"}}  # fmt: skip


CURVES = (
    ("trainer_wait_ratio", "trainer waits", WAIT, "solid", "rgba(0, 114, 178, 0.2)"),
    ("rollout_idle_ratio", "rollout slots idle", IDLE, "dash", "rgba(230, 159, 0, 0.25)"),
)
THIN = 1.3
CLOSED = ", closed form"


def wait_by_split(answer: Answer) -> dict[str, Any]:
    """Who waits: both ratios against the split, simulated and by closed form, with the present point and the reported one."""
    state, point, splits = answer.state, answer.shown_point, answer.frame.splits
    curve, trainer = answer.simulated.curve, answer.frame.gpus - answer.frame.splits
    lines = [
        {"type": "scatter", "mode": "lines", "name": name, "x": splits, "y": curve.by_split[field], "customdata": trainer,
         "line": {"color": colour, "width": 2.5, "dash": dash},
         "hovertemplate": f"%{{x}} generator, %{{customdata}} trainer GPUs<br>{name} %{{y:.1%}}<extra></extra>"}
        for field, name, colour, dash, _ in CURVES
    ]  # fmt: skip
    thin = [
        {"type": "scatter", "mode": "lines", "name": name + CLOSED, "x": splits, "y": answer.by_split[field],
         "hoverinfo": "skip", "line": {"color": colour, "width": THIN, "dash": dash}}
        for field, name, colour, dash, _ in CURVES
    ]  # fmt: skip
    places = np.searchsorted(splits, curve.simulated)
    dots = {
        "type": "scatter", "mode": "markers", "name": "simulated splits", "hoverinfo": "skip", "x": np.tile(curve.simulated, 2),
        "y": np.concatenate([curve.by_split[field][places] for field, *_ in CURVES]), "cliponaxis": False,
        "marker": {"size": 6, "color": [colour for _, _, colour, *_ in CURVES for _ in places]},
    }  # fmt: skip
    now = {
        "type": "scatter", "mode": "markers", "name": "this scenario", "x": [state.scenario.generator_gpus] * 2,
        "y": [point.trainer_wait_ratio, point.rollout_idle_ratio], "cliponaxis": False, "hoverinfo": "skip",
        "marker": {"size": 12, "color": [WAIT, IDLE], "line": {"color": NOW, "width": 2}},
    }  # fmt: skip
    found = reported_value(state.preset, "trainer_wait_ratio")
    there = found is not None and state.start.generator_gpus in splits
    reach = 0.5 * (found.high - found.low) if there else 0.0
    reported = {
        "type": "scatter", "mode": "markers", "name": "reported wait", "visible": there,
        "x": [state.start.generator_gpus] if there else [], "y": [found.middle] if there else [],
        "marker": {"symbol": "diamond-open", "size": 13, "color": REPORTED, "line": {"width": 2.5}},
        "error_y": {"type": "constant", "value": reach, "color": REPORTED, "thickness": 2, "visible": reach > 0},
        "hovertemplate": _reported_hover(answer), "cliponaxis": False,
    }  # fmt: skip
    bands = [_band(answer, field, fill) for field, _, _, _, fill in CURVES]
    return {
        "data": [*bands, *thin, *lines, dots, now, reported],
        "layout": {
            "title": {
                "text": "Who waits at each split",
                "subtitle": {"text": _method(answer, "share of a step, of slot-time")},
            },
            "xaxis": split_axis(answer),
            "yaxis": {"range": [-0.02, 1.02], "tickformat": ".0%", "fixedrange": True, "dtick": 0.25},
            "showlegend": False,
            "meta": {
                "key": [
                    mark("trainer waits", "line", WAIT),
                    mark("rollout slots idle", "dash", IDLE),
                    mark("closed form", "thin", WAIT),
                    mark("this scenario", "dot", WAIT),
                    *([mark("reported wait", "diamond", REPORTED)] if there else []),
                ]
            },
            "shapes": [_upright(state.scenario.generator_gpus)],
            "margin": MARGIN,
        },
    }


def _method(answer: Answer, what: str) -> str:
    """The kind of the figure's numbers, how they were got, and what they are."""
    if not len(answer.simulated.curve.simulated):
        return f"closed form · {what}"
    return f"simulated, {answer.simulated.curve_fidelity.words} · {what}"


def _band(answer: Answer, field: str, fill: str) -> dict[str, Any]:
    """From the lowest to the highest seed, as one closed line; empty while there is one seed."""
    curve, splits = answer.simulated.curve, answer.frame.splits
    there = curve.low is not None
    return {
        "type": "scatter", "mode": "lines", "name": f"seeds, {field}", "hoverinfo": "skip", "visible": there, "fill": "toself",
        "x": np.concatenate([splits, splits[::-1]]) if there else [], "fillcolor": fill, "line": {"width": 0},
        "y": np.concatenate([curve.low[field], curve.high[field][::-1]]) if there else [],
    }  # fmt: skip


def _reported_hover(answer: Answer) -> str:
    found = reported_value(answer.state.preset, "trainer_wait_ratio")
    if found is None:
        return ""
    value = f"{found.low:.0%}" if found.low == found.high else f"{found.low:.0%} to {found.high:.0%}"
    return f"reported: the trainer waits {value} ({found.fact.kind})<extra></extra>"


def cost_by_split(answer: Answer) -> dict[str, Any]:
    """Where the dollars of a trained Mtok go at each split, beside the hosted price."""
    state, splits, bill, by_split = (
        answer.state,
        answer.frame.splits,
        answer.shown_bill,
        answer.simulated.curve.by_split,
    )
    top, step = cost_ceiling(answer), state.scenario.gpus_per_replica
    trainer = answer.frame.gpus - splits
    bars = [
        {"type": "bar", "name": PART_NAMES[part], "x": splits, "y": _everywhere(by_split[part], splits),
         "customdata": trainer, "width": 0.86 * step, "marker": {"color": PART_COLOURS[part]},
         "visible": bool(np.max(by_split[part]) > 5e-4 * top),
         "hovertemplate": f"%{{x}} generator, %{{customdata}} trainer GPUs<br>{PART_NAMES[part]} $%{{y:.2f}}<extra></extra>"}
        for part in PARTS
    ]  # fmt: skip
    hosted = bill.hosted_usd_per_mtok
    ends = split_axis(answer)["range"]
    line = {
        "type": "scatter", "mode": "lines", "name": f"hosted ${hosted or 0:.2f}", "visible": hosted is not None,
        "x": ends, "y": [hosted, hosted],
        "line": {"color": REPORTED, "width": 2.5, "dash": "dash"}, "hovertemplate": "hosted $%{y:.2f}<extra></extra>",
    }  # fmt: skip
    closed = {
        "type": "scatter", "mode": "lines", "name": "in sum" + CLOSED, "x": splits, "y": answer.by_split["usd_per_mtok"],
        "hoverinfo": "skip", "line": {"color": NOW, "width": THIN},
    }  # fmt: skip
    now = {
        "type": "scatter", "mode": "markers", "name": "this scenario", "x": [state.scenario.generator_gpus],
        "y": [bill.usd_per_mtok], "cliponaxis": False, "showlegend": False,
        "marker": {"symbol": "triangle-down", "size": 14, "color": NOW, "line": {"color": "white", "width": 1.5}},
        "hovertemplate": "this scenario $%{y:.2f}/Mtok<extra></extra>",
    }  # fmt: skip
    return {
        "data": [*bars, closed, line, now],
        "layout": {
            "title": {
                "text": "What a trained Mtok costs",
                "subtitle": {"text": _method(answer, "$/Mtok by wall-clock GPU-hours")},
            },
            "barmode": "stack",
            "xaxis": split_axis(answer),
            "yaxis": {"range": [0, top], "tickprefix": "$", "fixedrange": True},
            "shapes": [_upright(state.scenario.generator_gpus)],
            "showlegend": False,
            "meta": {
                "key": [
                    *(mark(bar["name"], "box", bar["marker"]["color"]) for bar in bars if bar["visible"]),
                    *([mark(line["name"], "dash", REPORTED)] if hosted is not None else []),
                    mark("closed form", "thin", NOW),
                    mark("this scenario", "triangle", NOW),
                ]
            },
            "margin": MARGIN,
        },
    }


def _everywhere(values: Any, splits: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.asarray(values, dtype=float), splits.shape)


def cost_ceiling(answer: Answer) -> float:
    """End of the cost axis: where the preset and the hosted price have room. It stays there until the present cost is higher."""
    calm = 1.6 * max(answer.start_bill.usd_per_mtok, answer.bill.hosted_usd_per_mtok or 0.0)
    return nice(max(calm, ROOM * answer.shown_bill.usd_per_mtok))


def nice(value: float) -> float:
    """The next round number upwards."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in NICE if power * step >= value * (1 - 1e-12))
