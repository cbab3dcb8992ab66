"""The figures of the page "what if answers grow?": the tail over the steps, what the KV cache holds, how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlqueue.app.figures import nice
from rlqueue.app.length_figure import lengths
from rlqueue.app.palette import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, mark
from rlqueue.app.walk import Walked
from rlqueue.app.way import PERCENTILES, Way
from rlqueue.app.way_figures import dots, line, methods, over_steps, points, simulated_key, wait_and_cost

NAMES = ("course", "lengths", "tail", "memory", "seconds")
Published = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Steps and values of a published run: ``mean_response_tokens``, ``rollout_s``; what it does not have is left out."""


def figures(way: Way, walked: Walked | None, step: int, published: Published, source: str) -> dict[str, dict[str, Any]]:
    """All figures by name at the step that is looked at. ``source``: whose published values are drawn."""
    return {
        "course": wait_and_cost(way, walked, step, informative=False),
        "lengths": lengths(way, step),
        "tail": tail(way, walked, step, published, source),
        "memory": memory(way, walked, step),
        "seconds": seconds(way, walked, step, published, source),
    }


def tail(way: Way, walked: Walked | None, step: int, published: Published, source: str) -> dict[str, Any]:
    """Mean and percentiles of the response length over the steps, and the share that is cut."""
    x, longest = way.steps, way.scenario.max_response_tokens
    measured = published.get("mean_response_tokens", (np.zeros(0), np.zeros(0)))
    cut = way.path["truncated_fraction"]
    shades = {"median": (GREEN, "dash"), "90%": (ORANGE, "dash"), "99%": (PURPLE, "dash")}
    simulated_cut = (
        0.0 if walked is None or not len(walked.blocks) else float(walked.blocks["truncated_fraction"].max())
    )
    return over_steps(
        way,
        step,
        "The tail, and what is cut",
        methods(walked, "response tokens; below, share of them cut"),
        data=[
            *(
                line(
                    name,
                    x,
                    way.percentile(share),
                    shades[name][0],
                    f"step %{{x:,}}: {name} %{{y:,.0f}} tokens",
                    yaxis="y2",
                    width=1.8,
                    dash=shades[name][1],
                )
                for name, share in PERCENTILES.items()
            ),
            line("mean", x, way.path["mean_response_tokens"], BLUE, "step %{x:,}: mean %{y:,.0f} tokens", yaxis="y2"),
            dots("mean", walked, "mean_response_tokens", BLUE, "mean %{y:,.0f} tokens", yaxis="y2"),
            points(source, *measured, f"{source}: %{{y:,.0f}} tokens at step %{{x:,}}", yaxis="y2"),
            line(
                "longest",
                [0, way.scenario.training_steps],
                [longest] * 2,
                INK,
                "cut at %{y:,.0f} tokens",
                yaxis="y2",
                width=1.2,
            ),
            line(
                "cut",
                x,
                cut,
                VERMILION,
                "step %{x:,}: %{y:.1%} are cut",
                fill="tozeroy",
                fillcolor="rgba(213,94,0,0.15)",
            ),
            dots("cut", walked, "truncated_fraction", VERMILION, "%{y:.1%} are cut"),
        ],
        key=[
            mark("mean", "line", BLUE),
            *(mark(name, "dash", shades[name][0]) for name in PERCENTILES),
            mark("maximum length", "thin", INK),
            mark("cut", "line", VERMILION),
            *simulated_key(walked),
            *([mark(source, "diamond", VERMILION)] if len(measured[0]) else []),
        ],
        xaxis={"anchor": "y"},
        yaxis={
            "range": [0, nice(max(0.02, 1.15 * float(cut.max()), 1.15 * simulated_cut))],
            "domain": [0, 0.28],
            "tickformat": ".0%",
            "fixedrange": True,
            "nticks": 4,
        },
        yaxis2={
            "range": [0, 1.06 * longest],
            "domain": [0.38, 1],
            "fixedrange": True,
            "nticks": 6,
            "tickformat": "~s",
        },
    )


def memory(way: Way, walked: Walked | None, step: int) -> dict[str, Any]:
    """How many rollouts the KV cache holds at once, how many slots there are, and how many are used."""
    x, slots = way.steps, way.slots
    cap, used = way.scenario.concurrency, way.at["kv_used_ratio"]
    flight = way.at["in_flight_rollouts"]
    return over_steps(
        way,
        step,
        "What the KV cache holds",
        methods(walked, "rollouts; below, share of the cache in use"),
        data=[
            line(
                "slots of the KV cache",
                x,
                slots,
                PURPLE,
                "step %{x:,}: the KV cache holds %{y:,.0f} rollouts",
                yaxis="y2",
            ),
            line(
                "concurrency",
                [0, way.scenario.training_steps],
                [cap] * 2,
                INK,
                "concurrency %{y:,}",
                yaxis="y2",
                width=1.5,
                dash="dash",
            ),
            line("in flight", x, flight, GREEN, "step %{x:,}: %{y:,.0f} in flight", yaxis="y2"),
            dots("in flight", walked, "in_flight_rollouts", GREEN, "%{y:,.0f} in flight", yaxis="y2"),
            line(
                "KV cache used",
                x,
                used,
                SKY,
                "step %{x:,}: %{y:.0%} of the KV cache used",
                fill="tozeroy",
                fillcolor="rgba(86,180,233,0.25)",
            ),
        ],
        key=[
            mark("KV cache holds", "line", PURPLE),
            mark("concurrency", "dash", INK),
            mark("in flight", "line", GREEN),
            mark("KV cache used", "line", SKY),
            *simulated_key(walked),
        ],
        xaxis={"anchor": "y"},
        yaxis={"range": [0, 1.05], "domain": [0, 0.28], "tickformat": ".0%", "fixedrange": True, "dtick": 0.5},
        yaxis2={
            "range": [0, nice(1.1 * max(cap, float(flight.max()), min(float(slots.max()), 3.0 * cap)))],
            "domain": [0.38, 1],
            "fixedrange": True,
            "nticks": 5,
            "tickformat": "~s",
        },
    )


def seconds(way: Way, walked: Walked | None, step: int, published: Published, source: str) -> dict[str, Any]:
    """How long a rollout and a step take."""
    x, table = way.steps, way.at
    measured = published.get("rollout_s", (np.zeros(0), np.zeros(0)))
    top = max(float(table["rollout_s"].max()), float(table["step_s"].max()), float(np.max(measured[1], initial=0.0)))
    simulated = 0.0 if walked is None or not len(walked.blocks) else float(walked.blocks["step_s"].max())
    return over_steps(
        way,
        step,
        "How long it takes",
        methods(walked, "seconds"),
        data=[
            line("rollout", x, table["rollout_s"], BLUE, "step %{x:,}: a rollout takes %{y:,.0f} s"),
            line("step", x, table["step_s"], ORANGE, "step %{x:,} takes %{y:,.0f} s"),
            dots("step", walked, "step_s", ORANGE, "a step takes %{y:,.0f} s"),
            points(source, *measured, f"{source}: %{{y:,.0f}} s a rollout at step %{{x:,}}"),
        ],
        key=[
            mark("a rollout, in its slot", "line", BLUE),
            mark("a step, wall-clock", "line", ORANGE),
            *simulated_key(walked),
            *([mark(source, "diamond", VERMILION)] if len(measured[0]) else []),
        ],
        yaxis={"range": [0, nice(1.1 * max(top, min(simulated, 2.0 * top)))], "fixedrange": True, "nticks": 6},
    )
