"""How long answers are at one step of a run, beside how long they were at its start."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlqueue.app.palette import BLUE, INK, VERMILION, mark
from rlqueue.app.way import PERCENTILES, Way
from rlqueue.app.way_figures import MARGIN, STILL, line

TOKENS = 160
"""Points of the density of lengths."""


def lengths(way: Way, step: int) -> dict[str, Any]:
    """How long responses are at a step, and at the start: density per factor of length, and what is cut."""
    longest = way.scenario.max_response_tokens
    ends = [float(way.path["log_median"].min()), float(way.path["log_median"].max())]
    sigma = np.hypot(way.path["sigma_between"], way.path["sigma_within"])
    low = np.log10(np.exp(ends[0] - 3.2 * max(float(sigma.max()), 0.05)))
    high = np.log10(longest)
    x = np.linspace(min(low, high - 0.5), high, TOKENS)
    now, start = way.path[way.near(step)], way.path[0]
    top = 1.15 * max(float(_density(x, row).max()) for row in (now, start, way.path[-1]))
    marks = {name: float(way.percentile(share)[way.near(step)]) for name, share in PERCENTILES.items()}
    marks = {name: value for name, value in marks.items() if value < longest}
    return {
        "data": [
            line("at the start", x, _density(x, start), STILL, "", width=1.8, dash="dash", hoverinfo="skip"),
            line(
                "now",
                x,
                _density(x, now),
                BLUE,
                "",
                fill="tozeroy",
                fillcolor="rgba(86,180,233,0.35)",
                hoverinfo="skip",
            ),
            {
                "type": "bar",
                "name": "cut",
                "x": [high],
                "y": [float(now["truncated_fraction"]) * top],
                "width": 0.03 * (high - x[0]),
                "marker": {"color": VERMILION},
                "customdata": [float(now["truncated_fraction"])],
                "cliponaxis": False,
                "hovertemplate": "%{customdata:.1%} of the responses are cut<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": "percentiles",
                "x": [np.log10(value) for value in marks.values()],
                "y": [0.0] * len(marks),
                "text": [f"{name}<br>{_thousands(value)}" for name, value in marks.items()],
                "textposition": "top center",
                "marker": {"size": 9, "color": "white", "line": {"color": INK, "width": 2}},
                "cliponaxis": False,
                "hoverinfo": "skip",
            },
        ],
        "layout": {
            "title": {
                "text": "How long answers are",
                "subtitle": {
                    "text": (
                        f"closed form, step {step:,} · mean {now['mean_response_tokens']:,.0f} tokens, "
                        f"{now['truncated_fraction']:.1%} cut at {longest:,.0f} (red, as a share of the height)"
                    )
                },
            },
            "xaxis": {
                "title": {"text": "response tokens", "font": {"size": 13}},
                "range": [x[0], high + 0.04 * (high - x[0])],
                "fixedrange": True,
                "showgrid": False,
                **_ticks(x[0], high),
            },
            "yaxis": {
                "range": [-0.02 * top, top],
                "showticklabels": False,
                "ticks": "",
                "fixedrange": True,
                "showgrid": False,
            },
            "showlegend": False,
            "margin": MARGIN | {"l": 16},
            "meta": {
                "key": [mark("now", "line", BLUE), mark("at the start", "dash", STILL), mark("cut", "box", VERMILION)]
            },
        },
    }


def _density(x: np.ndarray, row: np.void) -> np.ndarray:
    """Density of log10 length of the uncut law."""
    sigma = max(float(np.hypot(row["sigma_between"], row["sigma_within"])), 0.02)
    z = (x * np.log(10.0) - float(row["log_median"])) / sigma
    return np.exp(-0.5 * z**2) / sigma


def _thousands(value: float) -> str:
    return f"{value / 1000:.3g}k" if value >= 1000 else f"{value:.0f}"


def _ticks(low: float, high: float) -> dict[str, Any]:
    """1, 2 and 5 times the powers of ten."""
    found = [m * 10.0**p for p in range(int(np.floor(low)), int(np.ceil(high)) + 1) for m in (1, 2, 5)]
    found = [value for value in found if low <= np.log10(value) <= high]
    found = found if len(found) <= 8 else [value for value in found if f"{value:.0e}"[0] == "1"]
    return {"tickvals": [float(np.log10(value)) for value in found], "ticktext": [_thousands(value) for value in found]}
