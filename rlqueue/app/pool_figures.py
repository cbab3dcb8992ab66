"""The figures of a pool of prompts: how hard they are, what a group teaches at each solve rate, and how the pool moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlqueue.app.palette import BLUE, GREEN, INK, PURPLE, SKY, mark
from rlqueue.app.walk import Walked
from rlqueue.app.way import BINS, Way
from rlqueue.app.way_figures import MARGIN, dots, line, methods, over_steps, simulated_key
from rlqueue.learning import advantage, signal

EDGES = np.linspace(0.0, 1.0, BINS + 1)
MIDDLES = 0.5 * (EDGES[1:] + EDGES[:-1])
RATES = np.linspace(0.0, 1.0, 81)
PALE = "#A9DAF5"
SHARE_OF_POOL = {
    "title": {"text": "solve rate of a prompt", "font": {"size": 13}},
    "range": [0, 1],
    "tickformat": ".0%",
    "fixedrange": True,
    "dtick": 0.25,
}


def pool(way: Way, walked: Walked | None, step: int) -> dict[str, Any]:
    """How many prompts of the pool have which solve rate at a step, and at the start."""
    now, counted, n = way.shares[way.near(step)], _simulated_shares(walked, step), way.scenario.group_size
    informative = 1.0 - RATES**n - (1.0 - RATES) ** n
    top = 1.12 * float(way.shares.max())
    return {
        "data": [
            {
                "type": "bar",
                "name": "pool now",
                "x": MIDDLES,
                "y": now,
                "width": 0.92 / BINS,
                "marker": {"color": SKY},
                "hovertemplate": "%{y:.1%} of the prompts are solved about %{x:.0%} of the time<extra></extra>",
            },
            line(
                "pool at the start",
                np.repeat(EDGES, 2)[1:-1],
                np.repeat(way.shares[0], 2),
                INK,
                "at the start %{y:.1%}",
                width=1.2,
            ),
            {
                "type": "scatter",
                "mode": "markers",
                "name": "pool now, simulated",
                "x": MIDDLES if counted.size else [],
                "y": counted,
                "marker": {"color": "white", "size": 7, "line": {"color": BLUE, "width": 1.6}},
                "hovertemplate": "simulated: %{y:.1%} of the prompts<extra></extra>",
            },
            line(
                "chance that a group teaches",
                RATES,
                informative,
                GREEN,
                f"a group of {n} at %{{x:.0%}} teaches with chance %{{y:.0%}}",
                yaxis="y2",
                width=1.8,
                dash="dash",
            ),
        ],
        "layout": {
            "title": {
                "text": "How hard the prompts are",
                "subtitle": {
                    "text": f"step {step:,} of {way.scenario.training_steps:,} · bars closed form"
                    f"{', rings simulated' if counted.size else ''} · share of the pool"
                },
            },
            "xaxis": SHARE_OF_POOL,
            "yaxis": {"range": [0, top], "tickformat": ".0%", "fixedrange": True, "nticks": 5},
            "yaxis2": {
                "range": [0, 1.12],
                "overlaying": "y",
                "side": "right",
                "tickformat": ".0%",
                "showgrid": False,
                "fixedrange": True,
                "dtick": 0.5,
            },
            "showlegend": False,
            "margin": MARGIN | {"r": 44},
            "meta": {
                "key": [
                    mark("pool now", "box", SKY),
                    mark("pool at the start", "thin", INK),
                    mark("chance that a group teaches (right)", "dash", GREEN),
                    *simulated_key(walked),
                ]
            },
        },
    }


def _simulated_shares(walked: Walked | None, step: int) -> np.ndarray:
    if walked is None or not walked.steps or np.isnan(walked.shares).any():
        return np.zeros(0)
    return walked.shares[min(step, walked.steps)] if step <= walked.steps else np.zeros(0)


def teaching(way: Way, step: int) -> dict[str, Any]:
    """What a group teaches at each solve rate, over the pool that is there."""
    n, now = way.scenario.group_size, way.shares[way.near(step)]
    reach = 0.42 / max(float(way.shares.max()), 1e-9)
    return {
        "data": [
            {
                "type": "bar",
                "name": "pool now",
                "x": MIDDLES,
                "y": now * reach,
                "customdata": now,
                "width": 0.92 / BINS,
                "marker": {"color": PALE},
                "hovertemplate": "%{customdata:.1%} of the prompts<extra></extra>",
            },
            line("gradient signal", RATES, signal(RATES), GREEN, "signal 4p(1 - p) = %{y:.2f}"),
            line(
                "advantage over its deviation",
                RATES,
                advantage(RATES, n, by_std=True),
                PURPLE,
                "mean |advantage| %{y:.2f}, by deviation",
            ),
            line("advantage", RATES, advantage(RATES, n, by_std=False), BLUE, "mean |advantage| %{y:.2f}", dash="dash"),
        ],
        "layout": {
            "title": {
                "text": "What a group teaches",
                "subtitle": {"text": f"closed form · groups of {n} · the pool at step {step:,} behind, in no unit"},
            },
            "xaxis": SHARE_OF_POOL,
            "yaxis": {"range": [0, 1.05], "fixedrange": True, "dtick": 0.25},
            "showlegend": False,
            "margin": MARGIN,
            "meta": {
                "key": [
                    mark("gradient signal 4p(1−p)", "line", GREEN),
                    mark("|advantage|, divided by deviation", "line", PURPLE),
                    mark("|advantage|, not divided", "dash", BLUE),
                    mark("pool now", "box", PALE),
                ]
            },
        },
    }


def rates(way: Way, walked: Walked | None, step: int) -> dict[str, Any]:
    """How the pool moves: prompts by solve rate over the steps, and their mean."""
    return over_steps(
        way,
        step,
        "How the pool moves",
        methods(walked, "solve rate, and how many prompts have it"),
        data=[
            {
                "type": "heatmap",
                "x": way.steps.astype(float),
                "y": MIDDLES,
                "z": np.sqrt(way.shares.T),
                "zmin": 0,
                "zmax": float(np.sqrt(way.shares.max())),
                "colorscale": "Cividis",
                "showscale": False,
                "customdata": way.shares.T,
                "zsmooth": False,
                "hovertemplate": "step %{x:,}: %{customdata:.1%} of the prompts at %{y:.0%}<extra></extra>",
            },
            line(
                "mean solve rate",
                way.steps,
                way.at["solve_rate"],
                "white",
                "step %{x:,}: mean solve rate %{y:.1%}",
                width=3,
            ),
            line(
                "of the groups tried",
                way.steps,
                way.at["tried_solve_rate"],
                "white",
                "step %{x:,}: tried groups %{y:.1%}",
                dash="dot",
                width=2,
            ),
            dots("mean solve rate", walked, "solve_rate", INK, "mean solve rate %{y:.1%}"),
        ],
        key=[
            mark("none to half of the pool", "cividis", ""),
            mark("mean solve rate (white)", "line", "#9AA5B1"),
            mark("of groups tried (white)", "dash", "#9AA5B1"),
            *simulated_key(walked),
        ],
        xaxis={"showgrid": False},
        upright={"layer": "above", "line": {"color": "white", "width": 1.5, "dash": "dot"}},
        yaxis={"range": [0, 1], "tickformat": ".0%", "fixedrange": True, "dtick": 0.25, "showgrid": False},
    )
