"""The map of waits over split and concurrency, with lines of equal wait and their labels."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from rlqueue.app.answers import Answer
from rlqueue.app.palette import MARGIN, NOW, mark, split_axis


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
            "xaxis": split_axis(answer) | {"showgrid": False},
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
