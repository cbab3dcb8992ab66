"""What the figures over a run's steps share: axis, the mark of the step looked at; and who waits at what cost along the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlqueue.app.figures import nice
from rlqueue.app.palette import (
    BLUE,
    GREEN,
    GREY,
    IDLE,
    INK,
    ORANGE,
    PURPLE,
    REPORTED,
    SKY,
    VERMILION,
    WAIT,
    YELLOW,
    mark,
)
from rlqueue.app.walk import Walked
from rlqueue.app.way import Way
from rlqueue.operating_point import CONSTRAINTS

STILL = "#8A94A0"
"""Of the same run if nothing moved."""
DOT = 6
MARGIN = {"l": 52, "r": 14, "t": 8, "b": 42}
CONSTRAINT_COLOURS = dict(
    zip(
        CONSTRAINTS,
        (BLUE, GREY, GREEN, ORANGE, SKY, "#B98AA6", "#8F4A73", YELLOW, VERMILION, PURPLE, "#A9DAF5", "#7FA6C9"),
        strict=True,
    )
)


def steps_axis(way: Way) -> dict[str, Any]:
    """The steps of the run."""
    last = max(1, int(way.scenario.training_steps))
    return {
        "title": {"text": "training step", "font": {"size": 13}},
        "range": [-0.01 * last, 1.01 * last],
        "fixedrange": True,
        "nticks": 6,
        "tickformat": ",d",
    }


def here(step: int) -> dict[str, Any]:
    """The upright of the step that is looked at."""
    return {
        "type": "line",
        "x0": step,
        "x1": step,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "layer": "below",
        "line": {"color": INK, "width": 1.5, "dash": "dot"},
    }


def over_steps(
    way: Way,
    step: int,
    text: str,
    subtitle: str,
    *,
    data: list[dict[str, Any]],
    key: list[dict[str, str]],
    **layout: Any,
) -> dict[str, Any]:
    """A figure over the run's steps: what is drawn with its key, and the upright of the step that is looked at.

    Args:
        text, subtitle: above it. layout: axes, and what else differs; ``xaxis`` and ``upright`` are laid over the usual ones.
    """
    return {
        "data": data,
        "layout": {
            "title": {"text": text, "subtitle": {"text": subtitle}},
            "xaxis": steps_axis(way) | layout.pop("xaxis", {}),
            "shapes": [here(step) | layout.pop("upright", {})],
            "showlegend": False, "margin": MARGIN, "meta": {"key": key}, **layout,
        },
    }  # fmt: skip


def line(name: str, x: Any, y: Any, colour: str, hover: str, **more: Any) -> dict[str, Any]:
    """A line by closed form."""
    style = {"color": colour, "width": more.pop("width", 2.5), "dash": more.pop("dash", "solid")}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": y,
        "line": style,
        "hovertemplate": hover + "<extra></extra>",
        **more,
    }


def dots(name: str, walked: Walked | None, column: str, colour: str, hover: str, **more: Any) -> dict[str, Any]:
    """What was simulated, one dot a block of steps; an empty trace before that, so that the figure keeps its traces."""
    there = walked is not None and len(walked.blocks)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, simulated",
        "x": walked.blocks["step"].to_numpy(float) if there else [],
        "y": walked.blocks[column].to_numpy(float) if there else [],
        "marker": {"color": "white", "size": DOT, "line": {"color": colour, "width": 1.5}},
        "hovertemplate": f"simulated: {hover}<extra></extra>",
        **more,
    }


def points(name: str, x: Any, y: Any, hover: str, **more: Any) -> dict[str, Any]:
    """Published values; an empty trace where there are none."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        "visible": bool(len(x)),
        "cliponaxis": False,
        "marker": {"symbol": "diamond-open", "size": 11, "color": REPORTED, "line": {"width": 2.2}},
        "hovertemplate": hover + "<extra></extra>",
        **more,
    }


def methods(walked: Walked | None, what: str) -> str:
    """Which of a figure's marks is which, and what they are."""
    return f"lines closed form{', dots simulated' if walked is not None else ''} · {what}"


def simulated_key(walked: Walked | None) -> list[dict[str, str]]:
    """The key's entry for the dots, where there are any."""
    return [mark("simulated", "dot", "white")] if walked is not None else []


def wait_and_cost(way: Way, walked: Walked | None, step: int, *, informative: bool) -> dict[str, Any]:
    """Who waits, what binds and what a trained Mtok costs along the way, and what it would be if nothing moved.

    ``informative``: whether the cost of tokens that teach is drawn as well.
    """
    table, x = way.at, way.steps
    ends, still = [0, way.scenario.training_steps], way.still_at
    usd, hosted = table["usd_per_mtok"], table["hosted_usd_per_mtok"]
    teaching = np.where(np.isfinite(table["usd_per_informative_mtok"]), table["usd_per_informative_mtok"], np.nan)
    priced = way.scenario.hosted_price is not None
    top = _ceiling(way, usd, teaching if informative else usd, hosted if priced else None)
    moves = way.moves
    return over_steps(
        way,
        step,
        "Who waits, what binds, what it costs",
        methods(walked, flips(way)),
        data=[
            _binding(way),
            line(
                "wait if nothing moved",
                ends,
                [float(still["trainer_wait_ratio"][-1])] * 2,
                STILL,
                "if nothing moved: %{y:.1%}",
                yaxis="y2",
                width=1.3,
                dash="dash",
                visible=moves,
            ),
            line(
                "trainer waits",
                x,
                table["trainer_wait_ratio"],
                WAIT,
                "step %{x:,}: the trainer waits %{y:.1%}",
                yaxis="y2",
            ),
            line(
                "rollout slots idle",
                x,
                table["rollout_idle_ratio"],
                IDLE,
                "step %{x:,}: slots idle %{y:.1%}",
                yaxis="y2",
                dash="dash",
            ),
            dots("wait", walked, "trainer_wait_ratio", WAIT, "the trainer waits %{y:.1%}", yaxis="y2"),
            line(
                "cost if nothing moved",
                ends,
                [float(still["usd_per_mtok"][-1])] * 2,
                STILL,
                "if nothing moved: $%{y:.2f}",
                width=1.3,
                dash="dash",
                visible=moves,
            ),
            line(
                "$ per informative Mtok",
                x,
                teaching,
                PURPLE,
                "step %{x:,}: $%{y:.2f} per Mtok that teaches",
                visible=informative,
            ),
            line("$ per trained Mtok", x, usd, GREEN, "step %{x:,}: $%{y:.2f} per trained Mtok"),
            dots("cost", walked, "usd_per_mtok", GREEN, "$%{y:.2f} per trained Mtok"),
            line(
                "hosted",
                x if priced else [],
                hosted if priced else [],
                REPORTED,
                "hosted $%{y:.2f}",
                dash="dash",
                width=1.8,
                visible=priced,
            ),
        ],
        key=[
            mark("trainer waits", "line", WAIT),
            mark("slots idle", "dash", IDLE),
            mark("$/Mtok", "line", GREEN),
            *([mark("$ per informative Mtok", "line", PURPLE)] if informative else []),
            *([mark("hosted", "dash", REPORTED)] if priced else []),
            *([mark("if nothing moved", "thin", STILL)] if moves else []),
            *simulated_key(walked),
            *(
                mark(f"binds: {name}", "box", CONSTRAINT_COLOURS[name])
                for name in dict.fromkeys([table["binding_constraint"][0], *way.course.flips["becomes"]])
            ),
        ],
        xaxis={"anchor": "y"},
        yaxis={"range": [0, top], "domain": [0, 0.4], "tickprefix": "$", "fixedrange": True, "nticks": 5},
        yaxis2={
            "range": [-0.03, 1.03],
            "domain": [0.56, 1],
            "tickformat": ".0%",
            "fixedrange": True,
            "dtick": 0.25,
        },
        yaxis3={
            "range": [0, 1],
            "domain": [0.45, 0.51],
            "fixedrange": True,
            "tickvals": [],
            "showgrid": False,
            "ticks": "",
        },
        barmode="overlay",
        bargap=0,
    )


def _ceiling(way: Way, usd: np.ndarray, teaching: np.ndarray, hosted: Any) -> float:
    """End of the cost axis: beyond what is paid for a token; what teaches may leave it where hardly anything teaches."""
    calm = 1.6 * max(float(way.still_at["usd_per_mtok"][0]), 0.0 if hosted is None else float(hosted.max()))
    return nice(
        max(calm, 1.1 * float(usd.max()), min(1.1 * float(np.nanmax(teaching, initial=0.0)), 3.0 * float(usd.max())))
    )


def _binding(way: Way) -> dict[str, Any]:
    """A strip of what binds, one bar from flip to flip, in one trace: each trace costs a redraw a millisecond."""
    begins = [0, *way.course.flips["step"].tolist()]
    names = [way.at["binding_constraint"][0], *way.course.flips["becomes"].tolist()]
    ends = [*begins[1:], way.scenario.training_steps]
    return {
        "type": "bar",
        "orientation": "h",
        "name": "binds",
        "xaxis": "x",
        "yaxis": "y3",
        "width": 1,
        "y": [0.5] * len(names),
        "base": begins,
        "x": [end - begin for begin, end in zip(begins, ends, strict=True)],
        "marker": {"color": [CONSTRAINT_COLOURS[name] for name in names]},
        "customdata": [f"{name}<br>{CONSTRAINTS[name]}" for name in names],
        "hovertemplate": "binds: %{customdata}<extra></extra>",
    }


def flips(way: Way) -> str:
    """Where the bottleneck changes, in words."""
    found = way.course.flips
    if found.empty:
        return f"{way.at['binding_constraint'][0]} binds from first step to last"
    return "; ".join(
        f"from step {row.step:,} on {row.becomes} binds, before that {row.was}" for row in found.itertuples()
    )
