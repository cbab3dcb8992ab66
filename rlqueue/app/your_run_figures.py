"""The three figures of a measured run: where each step's time went, how long the answers were, how stale what was trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rlqueue.app.palette import BLUE, GREEN, INK, MARGIN, ORANGE, PURPLE, SKY, VERMILION, mark
from rlqueue.app.your_run_found import Found

MOST_BARS = 300
"""Of a longer run each bar is the mean of as many steps as it takes."""
PARTS = (
    ("wait_s", "trainer waits", BLUE),
    ("train_s", "trains", ORANGE),
    ("sync_s", "weight sync", VERMILION),
    ("offload_s", "offload", PURPLE),
    ("evaluation_s", "evaluation", GREEN),
    ("checkpoint_s", "checkpoint", SKY),
    ("other_s", "other", "#B8C2CC"),
)
FAINT = 0.35
"""Opacity of steps that no mean holds."""
ROOM = 1.12
TALL = 2.5
"""A step of more than so many medians is cut off, so that the others can be read; its time stands above it."""


def figures(found: Found) -> dict[str, dict[str, Any]]:
    """All figures by name, in the order in which they stand on the page."""
    table, each = _binned(found.measured.table) if found.measured is not None else (pd.DataFrame(), 1)
    return {"times": times(table, found, each), "lengths": lengths(table), "staleness": staleness(table)}


def _binned(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The table, or means of so many neighbouring steady steps that it has no more than ``MOST_BARS`` rows."""
    if len(table) <= MOST_BARS:
        return table, 1
    each = -(-len(table) // MOST_BARS)
    steady = table[table["kind"] == "steady"]
    groups = np.arange(len(steady)) // each
    means = steady.drop(columns="kind").groupby(groups).mean()
    means.index = pd.Index(steady.index.to_numpy()[::each], name="step")
    means.insert(0, "kind", "steady")
    return means, each


def _column(table: pd.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(dtype=float) if name in table else np.full(len(table), np.nan)


def _has(table: pd.DataFrame, *names: str) -> bool:
    return any(name in table and table[name].notna().any() for name in names)


def _x(table: pd.DataFrame) -> dict[str, Any]:
    steps = table.index.to_numpy(dtype=float) if len(table) else np.array([0.0, 1.0])
    space = max(1.0, 0.02 * float(steps[-1] - steps[0]))
    return {"title": {"text": "step", "font": {"size": 13}}, "fixedrange": True,
            "range": [float(steps[0]) - space, float(steps[-1]) + space]}  # fmt: skip


def _base(
    title: str, subtitle: str, table: pd.DataFrame, *, unit: str, top: float, key: list[dict[str, str]]
) -> dict[str, Any]:
    return {
        "title": {"text": title, "subtitle": {"text": subtitle}},
        "xaxis": _x(table),
        "yaxis": {
            "title": {"text": unit, "font": {"size": 13}},
            "range": [0, top if top > 0 else 1],
            "fixedrange": True,
            "nticks": 6,
        },
        "showlegend": False,
        "meta": {"key": key},
        "margin": MARGIN | {"l": 58},
    }


def _nothing(title: str, why: str) -> dict[str, Any]:
    """A figure that says why it is empty."""
    return {
        "data": [],
        "layout": {
            "title": {"text": title, "subtitle": {"text": why}}, "xaxis": {"visible": False}, "yaxis": {"visible": False},
            "showlegend": False, "meta": {"key": []}, "margin": MARGIN,
        },
    }  # fmt: skip


def times(table: pd.DataFrame, found: Found, each: int) -> dict[str, Any]:
    """Wait, training and sync of each step stacked, with the whole step as logged and as predicted."""
    title = "Where each step's time went"
    if not _has(table, "step_s", "generator_step_s", "wait_s", "train_s"):
        return _nothing(title, "no log, or no times in it")
    shown = [part for part in PARTS if _has(table, part[0]) and float(np.nanmax(_column(table, part[0]))) > 0]
    steps = table.index.to_numpy(dtype=float)
    steady = (table["kind"] == "steady").to_numpy()
    whole = np.fmax(_column(table, "step_s"), _column(table, "generator_step_s"))
    whole = np.fmax(whole, sum((np.nan_to_num(_column(table, name)) for name, *_ in shown), np.zeros(len(table))))
    usual = float(np.nanmedian(whole))
    tall = whole > TALL * usual
    top = ROOM * float(np.nanmax(np.where(tall, 0, whole), initial=usual)) * (1.1 if tall.any() else 1.0)
    opacity = np.where(steady, 1.0, FAINT)
    bars = [
        {"type": "bar", "name": name, "x": steps, "y": np.nan_to_num(_column(table, column)),
         "customdata": table["kind"].tolist(), "marker": {"color": colour, "opacity": opacity},
         "hovertemplate": f"step %{{x}} (%{{customdata}}): {name} %{{y:,.1f}} s<extra></extra>"}
        for column, name, colour in shown
    ]  # fmt: skip
    lines = [
        _line(steps, _below(_column(table, column), top), name, colour, dash)
        for column, name, colour, dash in _wholes(table, shown)
    ]
    predicted = found.diagnosis.steps if found.diagnosis is not None else None
    if predicted is not None and len(predicted):
        lines.append(
            _line(
                predicted.index.to_numpy(dtype=float),
                predicted["predicted_step_s"].to_numpy(),
                "step as predicted",
                INK,
                "dot",
            )
        )
    cut = {
        "type": "scatter", "mode": "text", "name": "cut off", "x": steps[tall], "y": np.full(int(tall.sum()), 0.97 * top),
        "text": [f"▲ {value:,.0f} s" for value in whole[tall]] if tall.sum() <= 12 else ["▲"] * int(tall.sum()),
        "textfont": {"size": 11, "color": INK}, "hoverinfo": "skip",
    }  # fmt: skip
    key = [mark(name, "box", colour) for _, name, colour in shown]
    key += [
        mark(line["name"], "dash" if line["line"]["dash"] != "solid" else "line", line["line"]["color"])
        for line in lines
    ]
    faint = " · pale: left out of the means" if not steady.all() else ""
    bins = f"each bar the mean of {each} steady steps" if each > 1 else "one bar a step"
    layout = _base(title, f"{bins}{faint}", table, unit="seconds", top=top, key=key) | {
        "barmode": "stack",
        "bargap": 0.1,
    }
    return {"data": [*bars, *lines, cut], "layout": layout}


def _below(values: np.ndarray, top: float) -> np.ndarray:
    """Holes where a value lies above the axis: its bar says so."""
    return np.where(values > top, np.nan, values)


def _wholes(table: pd.DataFrame, shown: list[tuple[str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Whole steps as lines: the generation side's, and the trainer's where its parts aren't logged."""
    found = [("step_s", "trainer's step", INK, "solid")] if not shown and _has(table, "step_s") else []
    if _has(table, "generator_step_s"):
        found.append(("generator_step_s", "step of the generation side", PURPLE, "dash"))
    return found


def _line(x: np.ndarray, y: np.ndarray, name: str, colour: str, dash: str = "solid") -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines+markers" if len(x) <= 60 else "lines", "name": name, "x": x, "y": y,
            "connectgaps": True, "line": {"color": colour, "width": 2, "dash": dash}, "marker": {"size": 4, "color": colour},
            "hovertemplate": f"step %{{x}}: {name} %{{y:,.4g}}<extra></extra>"}  # fmt: skip


def _lines(table: pd.DataFrame, wanted: tuple[tuple[str, str, str, str], ...]) -> tuple[list[dict], list[dict], float]:
    steps = table.index.to_numpy(dtype=float)
    there = [each for each in wanted if _has(table, each[0])]
    drawn = [_line(steps, _column(table, column), name, colour, dash) for column, name, colour, dash in there]
    key = [mark(name, "line" if dash == "solid" else "dash", colour) for _, name, colour, dash in there]
    top = max((float(np.nanmax(_column(table, column))) for column, *_ in there), default=1.0)
    return drawn, key, ROOM * top


def lengths(table: pd.DataFrame) -> dict[str, Any]:
    """Mean prompt, response and sequence over the steps."""
    title = "How long prompts and responses were"
    wanted = (
        ("mean_response_tokens", "mean response", BLUE, "solid"),
        ("mean_prompt_tokens", "mean prompt", ORANGE, "solid"),
        ("mean_sequence_tokens", "both", INK, "dash"),
    )
    if not _has(table, *(name for name, *_ in wanted)):
        return _nothing(title, "the log has no lengths")
    if _has(table, "mean_prompt_tokens", "mean_response_tokens"):
        wanted = wanted[:2]
    drawn, key, top = _lines(table, wanted)
    cut = (
        f"{table['truncated_ratio'].mean():.1%} cut at the maximum length"
        if _has(table, "truncated_ratio")
        else "means of each step"
    )
    return {"data": drawn, "layout": _base(title, cut, table, unit="tokens", top=top, key=key)}


def staleness(table: pd.DataFrame) -> dict[str, Any]:
    """Staleness of what was trained, in versions."""
    title = "How stale what was trained was"
    wanted = (
        ("staleness_versions", "mean", BLUE, "solid"),
        ("staleness_max_versions", "oldest", VERMILION, "dash"),
        ("offered_staleness_versions", "mean as offered, recycled groups included", PURPLE, "dash"),
        ("lead_versions", "lead of generation over the weights", INK, "dot"),
    )
    if not _has(table, *(name for name, *_ in wanted)):
        return _nothing(title, "the log has no staleness")
    drawn, key, top = _lines(table, wanted)
    return {
        "data": drawn,
        "layout": _base(
            title, "versions between sampling and training", table, unit="versions", top=max(top, 1.2), key=key
        ),
    }
