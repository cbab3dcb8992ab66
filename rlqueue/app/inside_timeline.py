"""The two figures over time: what trainer, slots and groups do, and what is in flight and queued."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rlqueue.app.inside_palette import COLOURS, IN_QUEUE, PALE, SAID
from rlqueue.app.inside_runs import Shown
from rlqueue.app.inside_shares import DISCARDED
from rlqueue.app.inside_times import Window, batch, levels, publications, spans, window
from rlqueue.app.palette import BLUE, GREEN, INK, ORANGE, mark


class Clock:
    """Seconds of the run as places on an axis that begins with the window, in a unit that suits its length."""

    def __init__(self, seen: Window) -> None:
        length = seen.end_s - seen.start_s
        self.unit, self.factor = next(
            (unit, factor)
            for unit, factor, least in (("hours", 3600.0, 6 * 3600.0), ("minutes", 60.0, 300.0), ("seconds", 1.0, 0.0))
            if length >= least
        )
        self.begin, self.length = seen.start_s, length / self.factor
        self.axis = {
            "title": {"text": f"{self.unit} since step {seen.first + 1} began", "font": {"size": 13}},
            "range": [0.0, self.length],
            "fixedrange": True,
        }

    def at(self, seconds: Any) -> np.ndarray:
        return (np.asarray(seconds, dtype=float) - self.begin) / self.factor


def _steps_of(seen: Window, shown: Shown) -> str:
    return f"steps {seen.first + 1} to {seen.last + 1} of {shown.done_steps}"


def over_time(shown: Shown, steps: int) -> dict[str, dict[str, Any]]:
    """Both figures, of the last ``steps`` steps."""
    seen = window(shown.run, steps)
    clock, part = Clock(seen), levels(shown.run, seen)
    return {
        "timeline": timeline(shown, seen, clock, part),
        "levels": levels_over_time(shown, seen, clock, part),
    }


def timeline(shown: Shown, seen: Window, clock: Clock, part: pd.DataFrame) -> dict[str, Any]:
    """Trainer, slots and the groups of the last step shown, over the same time."""
    did, last = spans(shown.run, seen), batch(shown.run, seen.last)
    kinds = did["kind"].to_numpy()
    start, end = clock.at(did["start_s"]), clock.at(did["end_s"])
    number = did["step"].to_numpy() + 1
    trainer = [
        {
            "type": "bar",
            "orientation": "h",
            "name": SAID[kind],
            "y": np.zeros(int(now.sum())),
            "visible": bool(now.any()),
            "width": 0.9,
            "base": start[now],
            "x": (end - start)[now],
            "customdata": number[now],
            "xaxis": "x",
            "yaxis": "y3",
            "marker": {"color": COLOURS[kind], "line": {"color": "white", "width": 1}},
            "hovertemplate": f"trainer {SAID[kind]} %{{x:.1f}} {clock.unit}, step %{{customdata}}<extra></extra>",
        }
        for kind in ("train", "sync", "pause", "wait", "hold", "fetch")
        for now in (kinds == kind,)
    ]
    busy = part["in_flight_rollouts"].to_numpy() / shown.run.scenario.concurrency
    when = clock.at(part["time_s"])
    area = {"type": "scatter", "mode": "lines", "x": when, "yaxis": "y2"}
    slots = [
        area
        | {
            "name": "slots used",
            "y": busy,
            "fill": "tozeroy",
            "fillcolor": GREEN,
            "line": {"color": GREEN, "width": 0, "shape": "hv"},
            "hovertemplate": "%{y:.0%} of the slots used<extra></extra>",
        },
        area
        | {
            "name": "slots idle",
            "y": np.ones(len(when)),
            "fill": "tonexty",
            "fillcolor": ORANGE,
            "line": {"color": ORANGE, "width": 0, "shape": "hv"},
            "hoverinfo": "skip",
        },
    ]
    groups = _bars_of_groups(last, clock)
    used = [kind for kind in ("train", "wait", "hold", "fetch", "sync", "pause") if (kinds == kind).any()]
    lost = [fate for fate in DISCARDED if (last["fate"] == fate).any()]
    return {
        "data": [*trainer, *slots, *groups],
        "layout": {
            "title": {
                "text": "What trainer and generator do",
                "subtitle": {
                    "text": f"{_steps_of(seen, shown)} · below: the groups of step {seen.last + 1}, one bar each"
                    f"{', and those thrown away meanwhile' if lost else ''}"
                },
            },
            "barmode": "overlay",
            "bargap": 0,
            "xaxis": clock.axis,
            "yaxis": _row([0.0, 0.5])
            | {
                "range": [-1, max(len(last), 1)],
                "tickvals": [(len(last) - 1) / 2],
                "ticktext": ["groups"],
                "showgrid": False,
            },
            "yaxis2": _row([0.56, 0.82])
            | {"range": [0, 1], "tickvals": [0.5], "ticktext": ["slots"], "showgrid": False},
            "yaxis3": _row([0.88, 1.0])
            | {"range": [-0.5, 0.5], "tickvals": [0], "ticktext": ["trainer"], "showgrid": False},
            "showlegend": False,
            "meta": {
                "key": [
                    *(mark(f"trainer {SAID[kind]}", "box", COLOURS[kind]) for kind in used),
                    mark("slots used, group in flight", "box", GREEN),
                    mark("slots idle", "box", ORANGE),
                    mark("group in queue", "box", IN_QUEUE),
                    *(mark(f"group {SAID[fate]}", "box", COLOURS[fate]) for fate in lost),
                ]
            },
            "margin": {"l": 62, "r": 12, "t": 8, "b": 44},
        },
    }


def _bars_of_groups(last: pd.DataFrame, clock: Clock) -> list[dict[str, Any]]:
    """One thin bar per group, as thick lines: plotly draws these several times faster than bars."""
    fates = last["fate"].astype(str).to_numpy()
    row, number = np.arange(len(last)), last["group"].to_numpy()
    begun, ended, trained = (clock.at(last[name]) for name in ("dispatch_s", "ended_s", "trained_s"))
    kinds = [
        *(("in flight", fate, begun, ended) for fate in ("trained", *DISCARDED)),
        ("in queue", "trained", ended, trained),
    ]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"group {where}, {SAID[fate]}",
            "x": np.stack([start[now], end[now], np.full(now.sum(), np.nan)], axis=1).ravel(),
            "y": np.repeat(row[now], 3).astype(float),
            "customdata": np.repeat(number[now], 3),
            "visible": bool(now.any()),
            "line": {
                "color": IN_QUEUE if where == "in queue" else COLOURS[fate],
                "width": max(2.0, min(9.0, 120.0 / len(last))),
            },
            "hovertemplate": f"group %{{customdata}}, {where}, {SAID[fate]}<extra></extra>",
        }
        for where, fate, start, end in kinds
        for now in (fates == fate,)
    ]


def _row(domain: list[float]) -> dict[str, Any]:
    return {"domain": domain, "fixedrange": True, "ticks": ""}


def levels_over_time(shown: Shown, seen: Window, clock: Clock, part: pd.DataFrame) -> dict[str, Any]:
    """Rollouts in flight and decoding, and below them the queue, with the publications."""
    scenario = shown.run.scenario
    when = clock.at(part["time_s"])
    flight, active = part["in_flight_rollouts"].to_numpy(), part["active_requests"].to_numpy()
    queue = part["queued_groups"].to_numpy()
    top, most = 1.12 * scenario.concurrency, max(1.12 * float(queue.max()), 1.25 * scenario.prompts_per_step)
    published = clock.at(publications(shown.run, seen))
    line = {"type": "scatter", "mode": "lines"}
    return {
        "data": [
            line | _uprights(published, top) | {"yaxis": "y2"},
            line | _uprights(published, most),
            line
            | {
                "name": "in flight",
                "x": when,
                "y": flight,
                "yaxis": "y2",
                "line": {"color": GREEN, "width": 2.5, "shape": "hv"},
                "hovertemplate": "%{y:,.0f} rollouts in flight<extra></extra>",
            },
            line
            | {
                "name": "decoding",
                "x": when,
                "y": active,
                "yaxis": "y2",
                "line": {"color": BLUE, "width": 1.5, "shape": "hv"},
                "hovertemplate": "%{y:,.0f} requests in a batch<extra></extra>",
            },
            line
            | {
                "name": "queue",
                "x": when,
                "y": queue,
                "fill": "tozeroy",
                "fillcolor": "rgba(240,228,66,0.55)",
                "line": {"color": "#8C7F00", "width": 1.5, "shape": "hv"},
                "hovertemplate": "%{y:,.0f} groups queued<extra></extra>",
            },
            line
            | {
                "name": "one update",
                "x": [0.0, clock.length],
                "y": [scenario.prompts_per_step / scenario.updates_per_step] * 2,
                "line": {"color": INK, "width": 1.2, "dash": "dash"},
                "hoverinfo": "skip",
            },
        ],
        "layout": {
            "title": {
                "text": "In flight and queued",
                "subtitle": {"text": f"{_steps_of(seen, shown)} · rollouts above, finished groups below"},
            },
            "xaxis": clock.axis,
            "yaxis": {"range": [0, most], "domain": [0, 0.42], "fixedrange": True, "nticks": 4},
            "yaxis2": {"range": [0, top], "domain": [0.58, 1], "fixedrange": True, "nticks": 4, "tickformat": ",d"},
            "showlegend": False,
            "meta": {
                "key": [
                    mark("rollouts in flight", "line", GREEN),
                    mark("of these decoding", "line", BLUE),
                    mark("groups in the queue", "box", IN_QUEUE),
                    mark("groups of one update", "dash", INK),
                    mark("publication", "line", PALE),
                ]
            },
            "margin": {"l": 52, "r": 12, "t": 8, "b": 44},
        },
    }


def _uprights(at: np.ndarray, top: float) -> dict[str, Any]:
    """Vertical lines from 0 to the top, as one trace."""
    x = np.repeat(at, 3)
    y = np.tile([0.0, top, np.nan], len(at))
    return {"name": "publication", "x": x, "y": y, "line": {"color": PALE, "width": 1}, "hoverinfo": "skip"}
