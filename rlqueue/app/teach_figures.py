"""The figures of the page "which prompts teach?": those of the pool, what its groups come to, and what a signal costs."""

from __future__ import annotations

from typing import Any

from rlqueue.app.palette import GREEN, INK, ORANGE, PURPLE, mark
from rlqueue.app.pool_figures import pool, rates, teaching
from rlqueue.app.walk import Walked
from rlqueue.app.way import Way
from rlqueue.app.way_figures import dots, line, methods, over_steps, points, simulated_key, wait_and_cost

NAMES = ("pool", "signal", "outcomes", "worth", "course", "rates")
ALL, NONE, TEACH = ORANGE, "#C9D1D9", GREEN


def figures(way: Way, walked: Walked | None, step: int, published: Any = None) -> dict[str, dict[str, Any]]:
    """All figures by name at the step that is looked at; empty where the scenario has no solve rates."""
    if not len(way.shares):
        return {name: {"data": [], "layout": {}} for name in NAMES}
    return {
        "pool": pool(way, walked, step),
        "signal": teaching(way, step),
        "outcomes": outcomes(way, walked, step, published),
        "worth": worth(way, step),
        "course": wait_and_cost(way, walked, step, informative=True),
        "rates": rates(way, walked, step),
    }


def outcomes(way: Way, walked: Walked | None, step: int, published: Any) -> dict[str, Any]:
    """What finished groups come to: all solved, none solved, or in between, where they teach."""
    table, x = way.at, way.steps
    stacked = {"type": "scatter", "mode": "lines", "stackgroup": "all", "x": x, "line": {"width": 0}}
    areas = (
        ("all_solved_fraction", "all solved", ALL),
        ("informative_fraction", "teaches", TEACH),
        ("none_solved_fraction", "none solved", NONE),
    )
    below = (
        None
        if walked is None or not len(walked.blocks)
        else walked.blocks["all_solved_fraction"] + walked.blocks["informative_fraction"]
    )
    upper = dots("none solved from", walked, "all_solved_fraction", INK, "%{y:.1%} are not unsolved")
    if below is not None:
        upper["y"] = below.to_numpy(float)
    xs, ys, name = ([], [], "") if published is None else published
    return over_steps(
        way,
        step,
        "What finished groups come to",
        methods(walked, "share of finished groups"),
        data=[
            *(
                stacked
                | {
                    "name": name,
                    "y": table[column],
                    "fillcolor": colour,
                    "hovertemplate": f"step %{{x:,}}: {name} %{{y:.1%}}<extra></extra>",
                }
                for column, name, colour in areas
            ),
            dots("all solved", walked, "all_solved_fraction", INK, "all solved %{y:.1%}"),
            upper,
            points(f"{name}: all solved", xs, ys, f"{name}: %{{y:.0%}} all solved at step %{{x:,}}"),
        ],
        key=[
            *(mark(name, "box", colour) for _, name, colour in areas),
            *simulated_key(walked),
            *([mark(f"{name}, all solved", "diamond", "#D55E00")] if len(xs) else []),
        ],
        upright={"layer": "above"},
        yaxis={"range": [0, 1], "tickformat": ".0%", "fixedrange": True, "dtick": 0.25},
    )


def worth(way: Way, step: int) -> dict[str, Any]:
    """Signal of a step, in groups that would teach the most, and what a dollar buys of it."""
    table, groups = way.at, way.scenario.prompts_per_step
    per_step = groups * table["signal"]
    per_dollar = per_step / table["usd_per_step"]
    return over_steps(
        way,
        step,
        "Signal of a step, and of a dollar",
        "closed form · in groups at a solve rate of one half, which teach the most",
        data=[
            line(
                "per step",
                way.steps,
                per_step,
                GREEN,
                "step %{x:,}: worth %{y:.1f} groups at a solve rate of one half",
                yaxis="y2",
            ),
            line("per dollar", way.steps, per_dollar, PURPLE, "step %{x:,}: %{y:.3g} such groups per dollar"),
        ],
        key=[mark(f"per step, of {groups} groups", "line", GREEN), mark("per dollar", "line", PURPLE)],
        xaxis={"anchor": "y"},
        yaxis={
            "range": [0, 1.15 * max(float(per_dollar.max()), 1e-12)],
            "domain": [0, 0.44],
            "fixedrange": True,
            "nticks": 4,
        },
        yaxis2={
            "range": [0, 1.15 * max(float(per_step.max()), 1e-9)],
            "domain": [0.56, 1],
            "fixedrange": True,
            "nticks": 4,
        },
    )
