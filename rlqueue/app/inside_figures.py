"""The five figures of one run, as plotly dictionaries: two over time, where everything went, staleness, and durations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlqueue.app.inside_palette import COLOURS, EDGE, IN_FLIGHT, IN_QUEUE, PALE, SAID
from rlqueue.app.inside_runs import Shown
from rlqueue.app.inside_shares import FATES, TRAINER, generator_shares, token_shares, trainer_shares
from rlqueue.app.inside_timeline import over_time
from rlqueue.app.inside_times import durations, staleness, survival
from rlqueue.app.palette import BLUE, INK, VERMILION, mark
from rlqueue.choices import IN_STEP

RULES = {
    "admission": "admission: holds back what begins, so it bounds the mean",
    "drop": "drop: nothing older is trained",
    "targeted": "targeted: each group has its step",
}
DARK = {"train", "sync", "stale"}
"""Colours on which white reads better."""
NAMED_FROM = 0.07
"""Shares from this on carry their number inside the bar."""


NAMES = ("timeline", "levels", "spent", "staleness", "durations")
"""The figures in the order in which they stand on the page."""


def figures(shown: Shown, steps: int) -> dict[str, dict[str, Any]]:
    """All figures by name, empty for a run without a step; ``steps``: how many the first two show."""
    if not shown.done_steps:
        return {name: {"data": [], "layout": {}} for name in NAMES}
    return {
        **over_time(shown, steps),
        "spent": where_it_went(shown),
        "staleness": staleness_parts(shown),
        "durations": durations_tail(shown),
    }


def staleness_parts(shown: Shown) -> dict[str, Any]:
    """How stale what is trained is, and where it got so."""
    found, scenario = staleness(shown.run), shown.run.scenario
    bound = None if scenario.schedule in IN_STEP else scenario.max_staleness
    reach = max(float(found.versions[-1]), bound or 0.0, 3.0) + 1.0
    top = 1.15 * float(found.share.max())
    bars = [
        {
            "type": "bar",
            "name": name,
            "x": found.versions,
            "y": part,
            "width": 0.86,
            "marker": {"color": colour, "line": EDGE if colour == IN_QUEUE else {"width": 0}},
            "hovertemplate": f"staleness %{{x}}: %{{y:.1%}} of the groups, {name}<extra></extra>",
        }
        for name, part, colour in (
            ("in flight", found.in_flight, IN_FLIGHT),
            ("in queue", found.in_queue, IN_QUEUE),
            ("fresh", found.fresh, BLUE),
        )
    ]
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [at, at],
            "y": [0.0, top],
            "visible": at is not None,
            "line": {"color": colour, "width": 2.5, "dash": dash},
            "hovertemplate": f"{name} %{{x:.2f}}<extra></extra>",
        }
        for name, at, colour, dash in (("mean", found.mean, INK, "solid"), ("budget", bound, VERMILION, "dash"))
    ]
    rule = "" if bound is None else f" · budget {bound:g} ({RULES[scenario.staleness_family]})"
    return {
        "data": [*bars, *lines],
        "layout": {
            "title": {
                "text": "How stale the trained groups are",
                "subtitle": {
                    "text": f"mean {found.mean:.2f} versions, {found.mean_in_flight:.2f} of them while in flight{rule}"
                },
            },
            "barmode": "stack",
            "xaxis": {
                "title": {"text": "staleness when trained (versions)", "font": {"size": 13}},
                "range": [-0.7, reach],
                "fixedrange": True,
                "dtick": math.ceil(reach / 12),
            },
            "yaxis": {"range": [0, top], "tickformat": ".0%", "fixedrange": True, "nticks": 6},
            "showlegend": False,
            "meta": {
                "key": [
                    mark("share of groups: in-flight part", "box", IN_FLIGHT),
                    mark("in-queue part", "box", IN_QUEUE),
                    *([mark("fresh", "box", BLUE)] if found.fresh.any() else []),
                    mark("mean", "line", INK),
                    *([mark("budget", "dash", VERMILION)] if bound is not None else []),
                ]
            },
            "margin": {"l": 48, "r": 12, "t": 8, "b": 44},
        },
    }


def durations_tail(shown: Shown) -> dict[str, Any]:
    """The share of rollouts, and of groups, that take longer than a time: the tail on a logarithmic axis."""
    found = durations(shown.run)
    marks = found.marks if found.rollouts_s.size else {}
    unit, factor = ("minutes", 60.0) if marks and marks["max"] > 600 else ("seconds", 1.0)
    x, y = survival(found.rollouts_s)
    group_x, group_y = survival(found.groups_s)
    low = 1.0 / max(found.rollouts_s.size, 10)
    places = [max(1.0 - q, low) for q in (0.5, 0.95, 0.99, 1.0)][: len(marks)]
    longest = max([*marks.values(), *group_x[-1:]], default=1.0)
    line = {"type": "scatter", "mode": "lines"}
    return {
        "data": [
            line
            | {
                "name": "groups",
                "x": group_x / factor,
                "y": group_y,
                "line": {"color": PALE, "width": 2.5},
                "hovertemplate": f"%{{y:.2%}} of the groups take longer than %{{x:.1f}} {unit}<extra></extra>",
            },
            line
            | {
                "name": "rollouts",
                "x": x / factor,
                "y": y,
                "line": {"color": BLUE, "width": 2.5},
                "hovertemplate": f"%{{y:.2%}} of the rollouts take longer than %{{x:.1f}} {unit}<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": "percentiles",
                "x": [value / factor for value in marks.values()],
                "y": places,
                "text": [f"{name} {value / factor:,.3g}\u2002" for name, value in marks.items()],
                "textposition": ["bottom left"] * 3 + ["middle left"],
                "marker": {"size": 10, "color": "white", "line": {"color": INK, "width": 2}},
                "cliponaxis": False,
                "hoverinfo": "skip",
            },
        ],
        "layout": {
            "title": {
                "text": "How long rollouts take",
                "subtitle": {
                    "text": f"share that takes longer · {found.cut:.1%} of the rollouts were cut at "
                    f"{shown.run.scenario.max_response_tokens:,.0f} tokens"
                },
            },
            "xaxis": {
                "title": {"text": f"{unit} in its slot", "font": {"size": 13}},
                "range": [0, 1.06 * longest / factor],
                "fixedrange": True,
            },
            "yaxis": {
                "type": "log",
                "range": [np.log10(low) - 0.15, 0.1],
                "fixedrange": True,
                "tickvals": [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6],
                "ticktext": ["100%", "10%", "1%", "0.1%", "0.01%", "0.001%", "0.0001%"],
            },
            "showlegend": False,
            "meta": {
                "key": [
                    mark("rollouts", "line", BLUE),
                    mark("groups, to their last rollout", "line", PALE),
                    mark("percentiles of rollouts", "dot", "white"),
                ]
            },
            "margin": {"l": 62, "r": 12, "t": 8, "b": 44},
        },
    }


def where_it_went(shown: Shown) -> dict[str, Any]:
    """Three rows of 100 %: the trainer's and the generator's GPU-seconds, and the sampled tokens."""
    run, scenario = shown.run, shown.run.scenario
    trainer, generator, tokens = trainer_shares(run), generator_shares(run), token_shares(run)
    rows = [
        *((kind, f"trainer {SAID[kind]}", [2], [trainer[kind]]) for kind in TRAINER),
        *((fate, SAID[fate], [1, 0], [generator[fate], tokens[fate]]) for fate in FATES),
        ("idle", "slots idle", [1], [generator["idle"]]),
    ]
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": y,
            "x": x,
            "width": 0.74,
            "marker": {"color": COLOURS[kind]},
            "visible": max(x) > 0.0,
            "hovertemplate": f"%{{x:.1%}} {name}<extra></extra>",
        }
        for kind, name, y, x in rows
    ]
    names = _numbers_in_bars(rows)
    there = [row for row in rows if max(row[3]) >= 0.0005]
    both = scenario.trainer_gpus + scenario.generator_gpus
    first, second = scenario.trainer_gpus, scenario.generator_gpus
    if scenario.schedule == "colocated-sync":
        first = second = both
    return {
        "data": [*bars, names],
        "layout": {
            "title": {
                "text": "Where each GPU-second and each token went",
                "subtitle": {
                    "text": "GPU-seconds after the warm-up, the generator's by slot-time · tokens sampled in the whole run"
                },
            },
            "barmode": "stack",
            "xaxis": {"range": [0, 1], "tickformat": ".0%", "fixedrange": True, "nticks": 6},
            "yaxis": {
                "range": [-0.5, 2.5],
                "tickvals": [2, 1, 0],
                "showgrid": False,
                "ticks": "",
                "fixedrange": True,
                "ticktext": [f"Trainer<br>{first} GPUs", f"Generator<br>{second} GPUs", "Sampled<br>tokens"],
            },
            "showlegend": False,
            "meta": {"key": [mark(name, "box", COLOURS[kind]) for kind, name, _, _ in there]},
            "margin": {"l": 86, "r": 24, "t": 8, "b": 32},
        },
    }


def _numbers_in_bars(rows: list[tuple[str, str, list[int], list[float]]]) -> dict[str, Any]:
    """The shares as a trace of text: fitting texts into bars costs plotly more than all the bars do."""
    ends = {0: 0.0, 1: 0.0, 2: 0.0}
    x, y, words, colours = [], [], [], []
    for kind, _, places, shares in rows:
        for place, share in zip(places, shares, strict=True):
            if share >= NAMED_FROM:
                x.append(ends[place] + share / 2.0)
                y.append(place)
                words.append(f"{share:.0%}")
                colours.append("white" if kind in DARK else INK)
            ends[place] += share
    return {
        "type": "scatter",
        "mode": "text",
        "name": "shares",
        "x": x,
        "y": y,
        "text": words,
        "textfont": {"color": colours, "size": 13},
        "hoverinfo": "skip",
    }
