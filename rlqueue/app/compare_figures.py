"""The figures of the page "side by side": waits over the share of GPUs that generate, where the dollars go, and the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlqueue.app.figures import nice
from rlqueue.app.palette import BLUE, GREEN, PART_COLOURS, PART_NAMES, PURPLE, REPORTED, VERMILION, mark
from rlqueue.app.way_figures import MARGIN
from rlqueue.cost import PARTS

if TYPE_CHECKING:
    from rlqueue.app.compare import Column

COLOURS = {"a": BLUE, "b": VERMILION, "c": GREEN, "d": PURPLE}
DASHES = {"a": "solid", "b": "dash", "c": "dot", "d": "dashdot"}


def figures(columns: Sequence[Column]) -> dict[str, dict[str, Any]]:
    """All figures by name."""
    return {"waits": waits(columns), "parts": parts(columns), "runs": runs(columns)}


def _keys(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [mark(each.name, "line" if each.letter == "a" else "dash", COLOURS[each.letter]) for each in columns]


def waits(columns: Sequence[Column]) -> dict[str, Any]:
    """The trainer's wait over the split, as a share of each scenario's own GPUs."""
    lines, dots = [], []
    for each in columns:
        share, curve = each.found.frame.splits / each.found.frame.gpus, each.found.by_split["trainer_wait_ratio"]
        scenario, colour = each.found.state.scenario, COLOURS[each.letter]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": each.name,
                "x": share,
                "y": curve,
                "line": {"color": colour, "width": 2.5, "dash": DASHES[each.letter]},
                "hovertemplate": f"{each.letter.upper()}: %{{x:.0%}} generate, the trainer waits %{{y:.1%}}<extra></extra>",
            }
        )
        dots.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{each.name}, {each.found.shown_point.kind}",
                "cliponaxis": False,
                "x": [scenario.generator_gpus / each.found.frame.gpus],
                "y": [each.found.shown_point.trainer_wait_ratio],
                "marker": {"size": 13, "color": colour, "line": {"color": "white", "width": 2}},
                "hovertemplate": f"{each.letter.upper()} ({each.found.shown_point.kind}): %{{y:.1%}}<extra></extra>",
            }
        )
    return {
        "data": [*lines, *dots],
        "layout": {
            "title": {
                "text": "Who waits at each split",
                "subtitle": {"text": "lines closed form, dots simulated at each one's split · share of a step"},
            },
            "xaxis": {
                "title": {"text": "share of GPUs that generate", "font": {"size": 13}},
                "range": [0, 1],
                "tickformat": ".0%",
                "fixedrange": True,
                "dtick": 0.25,
            },
            "yaxis": {"range": [-0.02, 1.02], "tickformat": ".0%", "fixedrange": True, "dtick": 0.25},
            "showlegend": False,
            "margin": MARGIN,
            "meta": {"key": _keys(columns)},
        },
    }


def parts(columns: Sequence[Column]) -> dict[str, Any]:
    """Where the dollars of a trained Mtok go in each, and what a host would charge."""
    names = [each.letter.upper() for each in columns]
    bills = [each.found.shown_bill for each in columns]
    hosted = [bill.hosted_usd_per_mtok for bill in bills]
    top = nice(1.12 * max(*(bill.usd_per_mtok for bill in bills), *(value or 0.0 for value in hosted)))
    bars = [
        {
            "type": "bar",
            "name": PART_NAMES[part],
            "x": names,
            "y": np.array([getattr(bill, f"{part}_usd_per_mtok") for bill in bills]),
            "marker": {"color": PART_COLOURS[part]},
            "hovertemplate": f"%{{x}}: {PART_NAMES[part]} $%{{y:.2f}}<extra></extra>",
        }
        for part in PARTS
    ]
    price = {
        "type": "scatter",
        "mode": "markers",
        "name": "hosted",
        "x": names,
        "y": [np.nan if value is None else value for value in hosted],
        "marker": {"symbol": "line-ew", "size": 60, "line": {"color": REPORTED, "width": 3}},
        "hovertemplate": "%{x}: hosted $%{y:.2f}<extra></extra>",
    }
    there = [bar for bar in bars if float(bar["y"].max()) > 5e-4 * top]
    kinds = " and ".join(dict.fromkeys(each.found.shown_point.kind for each in columns))
    return {
        "data": [*bars, price],
        "layout": {
            "title": {
                "text": "What a trained Mtok costs",
                "subtitle": {"text": f"{kinds} · $/Mtok by wall-clock GPU-hours"},
            },
            "barmode": "stack",
            "xaxis": {"type": "category", "fixedrange": True, "range": [-0.6, len(names) - 0.4]},
            "yaxis": {"range": [0, top], "tickprefix": "$", "fixedrange": True, "nticks": 6},
            "showlegend": False,
            "margin": MARGIN,
            "meta": {
                "key": [
                    *(mark(bar["name"], "box", bar["marker"]["color"]) for bar in there),
                    *([mark("hosted", "line", REPORTED)] if any(hosted) else []),
                ]
            },
        },
    }


def runs(columns: Sequence[Column]) -> dict[str, Any]:
    """Dollars spent over the hours of the whole run."""
    lines = []
    for each in columns:
        at, whole = each.way.at, each.way.whole
        lines.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": each.name,
                "x": np.append(at["hours"], whole.hours),
                "y": np.append(at["usd"], whole.usd),
                "line": {"color": COLOURS[each.letter], "width": 2.5, "dash": DASHES[each.letter]},
                "marker": {"size": [0] * len(at["hours"]) + [11], "color": COLOURS[each.letter]},
                "hovertemplate": f"{each.letter.upper()}: $%{{y:,.0f}} after %{{x:.1f}} h<extra></extra>",
            }
        )
    return {
        "data": lines,
        "layout": {
            "title": {
                "text": "The whole run",
                "subtitle": {
                    "text": "closed form · dollars over hours, each to its last step ("
                    + ", ".join(f"{each.letter.upper()} {each.way.whole.steps:,}" for each in columns)
                    + " steps)"
                },
            },
            "xaxis": {
                "title": {"text": "hours", "font": {"size": 13}},
                "fixedrange": True,
                "rangemode": "tozero",
                "range": [0, 1.04 * max(1e-9, *(each.way.whole.hours for each in columns))],
            },
            "yaxis": {
                "tickprefix": "$",
                "fixedrange": True,
                "range": [0, nice(1.05 * max(1.0, *(each.way.whole.usd for each in columns)))],
            },
            "showlegend": False,
            "margin": MARGIN | {"l": 64},
            "meta": {"key": _keys(columns)},
        },
    }
