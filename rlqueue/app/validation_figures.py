"""The figures of the page "how accurate is it?": what was predicted over what was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlqueue.app.palette import GREY, INK, MARGIN, mark
from rlqueue.app.plot import PALETTE
from rlqueue.validation import CaseResult
from rlqueue.validation.protocol import AIMS, BESIDE, CALIBRATED, LEFT_OUT, PREDICTED, Comparison
from rlqueue.validation.report import error_words

COLOURS = (*PALETTE[:6], "#8F4A73", "#6B4E16", "#4D4D4D", "#B8860B", "#1B4F3A", "#A3B18A")
"""Of the cases, in their order."""
SHAPES = {PREDICTED: "circle", CALIBRATED: "diamond-open", BESIDE: "triangle-down", LEFT_OUT: "triangle-down"}
BAND = "rgba(0, 158, 115, 0.13)"
Point = tuple[float, float, Comparison]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One figure of ratios: which comparisons it shows, and the aim that is its band."""

    title: str
    words: str
    unit: str
    aim: float
    of: Callable[[CaseResult], list[Point]]


def figures(results: Sequence[CaseResult], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """All figures by name. ``names``: of all cases, so that a case keeps its colour while others are still computed."""
    return {
        "times": _ratios(results, names, TIMES),
        "wait": _shares(results, names, AIMS["median_error_wait_points"]),
        "speedups": _ratios(results, names, SPEEDUPS),
        "staleness": _ratios(results, names, STALENESS),
    }


def _of(*quantities: str) -> Callable[[CaseResult], list[Point]]:
    return lambda result: [
        (each.published, each.predicted, each) for each in result.comparisons if each.quantity in quantities
    ]


def _times(result: CaseResult) -> list[Point]:
    """Step and rollout times; where only tokens per second are published, the step time that these stand for."""
    scenarios = {row.key: row.scenario for row in result.case.rows}
    points = _of("step_s", "rollout_s")(result)
    for published, predicted, each in _of("trained_tokens_per_s")(result):
        tokens = scenarios[each.row].trained_tokens_per_step
        points.append((tokens / published, tokens / predicted, each))
    return points


TIMES = Panel(
    title="Step and rollout times", words="where tokens per second are published, the step time they stand for", unit="s",
    aim=AIMS["median_error_step"], of=_times,
)  # fmt: skip
SPEEDUPS = Panel(
    title="Speed-ups", words="step time of a run over that of another, such as colocated over asynchronous", unit="×",
    aim=AIMS["median_error_speedup"], of=_of("speedup_ratio"),
)  # fmt: skip
STALENESS = Panel(
    title="Mean staleness", words="of trained groups, by their oldest token", unit="versions",
    aim=AIMS["median_error_step"], of=_of("staleness_versions"),
)  # fmt: skip


def _ratios(results: Sequence[CaseResult], names: Sequence[str], panel: Panel) -> dict[str, Any]:
    """Predicted over published on logarithmic axes, with the band of the aim."""
    traces, values = _traces(results, names, panel.of)
    low, high = (min(values) / 1.3, max(values) * 1.3) if values else (1.0, 10.0)
    ends = np.array([low, high])
    axis = {
        "type": "log",
        "range": [float(np.log10(low)), float(np.log10(high))],
        "fixedrange": True,
        "tickformat": "~s" if high > 1000 else "~g",
        "tickvals": _ticks(low, high),
    }
    return {
        "data": [*_band(ends, ends * (1 + panel.aim), ends / (1 + panel.aim)), *traces],
        "layout": _layout(
            panel.title,
            f"{panel.words}; band: {panel.aim:.0%} either way",
            axis | {"title": {"text": f"published [{panel.unit}]", "font": {"size": 13}}},
            axis | {"title": {"text": f"predicted [{panel.unit}]", "font": {"size": 13}}},
        ),
    }


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers along a logarithmic axis, few enough to be read."""
    parts = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 5, 7)
    return [part * 10.0**power for power in range(-3, 7) for part in parts if low <= part * 10.0**power <= high]


def _shares(results: Sequence[CaseResult], names: Sequence[str], aim: float) -> dict[str, Any]:
    traces, _ = _traces(results, names, _of("trainer_wait_ratio"))
    ends = np.array([0.0, 1.0])
    axis = {"range": [-0.04, 0.9], "fixedrange": True, "tickformat": ".0%", "dtick": 0.2}
    return {
        "data": [*_band(ends, ends + aim, ends - aim), *traces],
        "layout": _layout(
            "Trainer wait ratio",
            f"share of a step in which the trainer waits; band: {100 * aim:.0f} points either way",
            axis | {"title": {"text": "published", "font": {"size": 13}}},
            axis | {"title": {"text": "predicted", "font": {"size": 13}}},
        ),
    }


def _layout(title: str, words: str, x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": {"text": title, "subtitle": {"text": words}}, "xaxis": x, "yaxis": y, "showlegend": False,
        "margin": MARGIN | {"l": 58},
        "meta": {"key": [
            mark("predicted blind", "dot", INK), mark("calibrates", "diamond", INK), mark("not counted", "triangle", INK),
        ]},
    }  # fmt: skip


def _band(x: np.ndarray, upper: np.ndarray, lower: np.ndarray) -> list[dict[str, Any]]:
    plain = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "x": x}
    return [
        plain | {"y": lower, "line": {"width": 0}},
        plain | {"y": upper, "line": {"width": 0}, "fill": "tonexty", "fillcolor": BAND},
        plain | {"y": x, "line": {"width": 1, "color": GREY, "dash": "dot"}},
    ]


def _traces(
    results: Sequence[CaseResult], names: Sequence[str], of: Callable[[CaseResult], list[Point]]
) -> tuple[list[dict[str, Any]], list[float]]:
    """One trace for each case, empty while it is computed, and all values."""
    found = {result.case.name: of(result) for result in results}
    traces, values = [], []
    for number, name in enumerate(names):
        points = found.get(name, [])
        values += [value for published, predicted, _ in points for value in (published, predicted) if value > 0]
        colour = COLOURS[number % len(COLOURS)]
        traces.append({
            "type": "scatter", "mode": "markers", "name": name,
            "x": np.array([point[0] for point in points], float), "y": np.array([point[1] for point in points], float),
            "text": [f"{name}<br>{each.title}, {each.quantity}<br>{each.role}: {error_words(each)}" for *_, each in points],
            "hovertemplate": "%{text}<br>published %{x:.4~g}, predicted %{y:.4~g}<extra></extra>",
            "marker": {
                "size": 9, "color": colour, "symbol": [SHAPES[each.role] for *_, each in points],
                "line": {"width": 1.5, "color": colour},
            },
        })  # fmt: skip
    return traces, values
