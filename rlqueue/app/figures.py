"""The three figures of the explorer, as plotly dictionaries: wait and idle by split, $/Mtok by split, and the map of waits."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from rlqueue.app.answers import Answer, reported_value
from rlqueue.app.plot import PALETTE
from rlqueue.cost import PARTS

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY, YELLOW = PALETTE
INK = "#1B2733"
WAIT, IDLE, NOW, REPORTED = BLUE, ORANGE, INK, VERMILION
PART_COLOURS = dict(zip(PARTS, (BLUE, SKY, GREEN, PURPLE, ORANGE, GREY), strict=True))
PART_NAMES = {
    "trainer_busy": "trainer busy",
    "trainer_waiting": "trainer waiting",
    "generator_useful": "generator useful",
    "generator_discarded": "discarded",
    "generator_idle": "generator idle",
    "sandbox": "sandboxes",
}
ROOM = 1.15
"""How far a cost axis reaches beyond what it must show."""
NICE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
MARGIN = {"l": 48, "r": 12, "t": 12, "b": 44}


def figures(answer: Answer) -> dict[str, dict[str, Any]]:
    """All figures by name, in the order in which they stand on the page."""
    return {"wait": wait_by_split(answer), "cost": cost_by_split(answer), "map": wait_map(answer)}


def _split_axis(answer: Answer) -> dict[str, Any]:
    splits, step = answer.frame.splits, answer.state.scenario.gpus_per_replica
    return {"title": {"text": f"generator GPUs (of {answer.frame.gpus})", "font": {"size": 13}}, "fixedrange": True,
            "range": [int(splits[0]) - 0.6 * step, int(splits[-1]) + 0.6 * step]}  # fmt: skip


def _upright(x: float) -> dict[str, Any]:
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
            "line": {"color": NOW, "width": 1, "dash": "dot"}}  # fmt: skip


def mark(name: str, shape: str, colour: str) -> dict[str, str]:
    """One entry of the key above a figure."""
    return {"name": name, "shape": shape, "colour": colour}


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
            "xaxis": _split_axis(answer),
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
    ends = _split_axis(answer)["range"]
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
            "xaxis": _split_axis(answer),
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


def wait_map(answer: Answer) -> dict[str, Any]:
    """The trainer's wait over split and concurrency. Rows are evenly spaced in log10, so the picture is one image."""
    state, around, field = answer.state, answer.frame, answer.wait_map
    rows = np.log10(field.concurrency)
    x, z = field.generator_gpus, map_values(answer)
    heat = {
        "type": "heatmap", "x": x, "y": rows, "z": z, "zmin": 0, "zmax": 1, "colorscale": "Cividis",
        "showscale": False,
        "customdata": np.broadcast_to(field.concurrency.round()[:, None], z.shape),
        "hovertemplate": "%{x} generator GPUs, concurrency %{customdata:,.0f}<br>trainer waits %{z:.1%}<extra></extra>",
    }  # fmt: skip
    lines = partial(_contours, x, rows, z, labelled=labels(x, rows, z))
    start, now = state.start, state.scenario
    points = {
        "type": "scatter", "mode": "markers", "x": [start.generator_gpus, now.generator_gpus],
        "y": [math.log10(start.concurrency), math.log10(now.concurrency)],
        "marker": {"symbol": ["diamond", "circle"], "size": [17, 12], "color": [NOW, "white"],
                   "line": {"color": ["white", NOW], "width": 2}},
        "hoverinfo": "skip", "cliponaxis": False, "name": "preset, this scenario",
    }  # fmt: skip
    margin = 0.5 * (rows[1] - rows[0])
    ticks = decades(around.slots_low, around.slots_high)
    return {
        "data": [heat, *lines(LEVELS[:2], "white"), *lines(LEVELS[2:], NOW), points],
        "layout": {
            "title": {
                "text": "Where the trainer stops waiting",
                "subtitle": {"text": _map_method(answer)},
            },
            "xaxis": _split_axis(answer) | {"showgrid": False},
            "yaxis": {"title": {"text": "concurrency (slots)", "font": {"size": 13}}, "showgrid": False, "fixedrange": True,
                      "range": [rows[0] - margin, rows[-1] + margin], "tickvals": [math.log10(tick) for tick in ticks],
                      "ticktext": [f"{tick:,}" for tick in ticks]},
            "showlegend": False,
            "meta": {"key": [
                mark("waits 0 to 100%", "cividis", ""), mark("this scenario", "dot", "white"), mark("preset", "diamond", NOW),
            ]},
            "margin": MARGIN | {"l": 74},
        },
    }  # fmt: skip


def map_values(answer: Answer) -> np.ndarray:
    """Simulated cells where there are any, the closed form's elsewhere."""
    closed, so_far = answer.wait_map.trainer_wait_ratio, answer.map_so_far
    if so_far is None:
        return closed
    return np.where(np.isfinite(so_far.cells), so_far.cells, closed)


def _map_method(answer: Answer) -> str:
    what, so_far = "wait by split and concurrency", answer.map_so_far
    done = 0 if so_far is None else int((~np.isnan(so_far.cells)).sum())
    if not done:
        return f"closed form · {what}"
    if done == so_far.cells.size:
        return f"simulated, {so_far.fidelity.words} · {what}"
    return f"simulated in {done} of {so_far.cells.size} cells, else closed form · {what}"


LEVELS = (0.01, 0.25, 0.5, 0.75)
ALONG = (0.5, 0.15, 0.85, 0.3, 0.7)
"""Where along a line its label may stand, the best place first."""
APART = (0.14, 0.1)
"""Labels keep this share of the axes between them, across and up; one that finds no such place is left out."""


def labels(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> dict[float, tuple[float, float]]:
    """Where the lines of equal wait are labelled, so that no label meets another."""
    found: dict[float, tuple[float, float]] = {}
    across, up = APART[0] * (x[-1] - x[0]), APART[1] * (y[-1] - y[0])
    for level in reversed(LEVELS):
        for along in ALONG:
            place = on_line(x, y, z, level, along)
            if place is None:
                break
            if all(abs(place[0] - a) >= across or abs(place[1] - b) >= up for a, b in found.values()):
                found[level] = place
                break
    return found


def _contours(
    x: Any, y: Any, z: Any, levels: tuple[float, float], colour: str, *, labelled: dict[float, tuple[float, float]]
) -> list[dict[str, Any]]:
    """Two lines of equal wait, in a colour that stands out from the map where they run, and what they are lines of.

    The labels are a trace of their own: placing those of a contour costs plotly 20 ms for every redraw.
    """
    low, high = levels
    places = [(level, *labelled[level]) for level in levels if level in labelled]
    return [
        {
            "type": "contour", "x": x, "y": y, "z": z, "showscale": False, "hoverinfo": "skip", "autocontour": False,
            "contours": {"coloring": "none", "start": low, "end": high, "size": high - low},
            "line": {"color": colour, "width": 1.5},
        },
        {
            "type": "scatter", "mode": "text", "x": [x for _, x, _ in places], "y": [y for _, _, y in places],
            "text": [f"{level:.0%}" for level, _, _ in places], "textposition": "bottom left", "hoverinfo": "skip",
            "showlegend": False,
            "textfont": {"color": colour, "size": 12, "weight": 700},
        },
    ]  # fmt: skip


def on_line(x: np.ndarray, y: np.ndarray, z: np.ndarray, level: float, along: float) -> tuple[float, float] | None:
    """A point of the line where ``z`` falls through a level upwards, a share ``along`` of the columns it crosses; else None."""
    columns, rows = np.nonzero((z[:-1] > level).T & (z[1:] <= level).T)
    if not len(columns):
        return None
    place = round(along * (len(columns) - 1))
    row, column = rows[place], columns[place]
    upper, lower = z[row, column], z[row + 1, column]
    share = (upper - level) / (upper - lower)
    return float(x[column]), float(y[row] + share * (y[row + 1] - y[row]))


def decades(low: int, high: int) -> list[int]:
    """1, 2 and 5 times the powers of ten between two numbers; without the fives or twos where they would be many."""
    powers = range(int(math.log10(low)), int(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10**power for power in powers for step in steps if low <= step * 10**power <= high]
        if len(ticks) <= 8:
            return ticks
    return ticks
