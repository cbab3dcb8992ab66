"""Figures as SVG and PNG files, drawn by kaleido in one started browser with the bundled plotly.js: no network is asked."""

import copy
import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlqueue.app.plot import PLOTLY_JS, TEMPLATE
from rlqueue.report.content import Figure, cited

WIDTH, HEIGHT, SCALE = 900, 500, 2
WRAP, FOOT_WRAP = 118, 150
MOST_IN_A_ROW, MOST_ON_TOP = 3, 12
"""Names of a legend that fit into one row above a plot, and into rows there at all."""


def write_images(figures: Sequence[Figure], folder: Path, path: str, said: Callable[[Figure], None]) -> None:
    """Write ``<name>.svg`` and ``<name>.png`` of each figure.

    Args:
        path: the browser. said: told each figure when both its files are there.
    """
    import kaleido

    kaleido.start_sync_server(path=path, plotlyjs=str(PLOTLY_JS), mathjax=False, silence_warnings=True)
    try:
        for figure in figures:
            drawing = alone(figure)
            size = {"width": WIDTH, "height": drawing["layout"]["height"]}
            for form, scale in (("svg", 1), ("png", SCALE)):
                image = kaleido.calc_fig_sync(drawing, opts={"format": form, "scale": scale, **size})
                (folder / f"{figure.name}.{form}").write_bytes(image)
            said(figure)
    finally:
        kaleido.stop_sync_server(silence_warnings=True)


def alone(figure: Figure) -> dict[str, Any]:
    """The plot with what the page says around it: title, units, kind and sources."""
    made = copy.deepcopy(dict(figure.plot))
    layout = made["layout"]
    margin = layout.get("margin", {})
    units = wrapped(figure.units)
    label = "model only" if figure.model_only else "with the source's values"
    foot = wrapped(
        f"rlqueue · {label} · {figure.kind} · {'; '.join(cited(name) for name in figure.sources)}", FOOT_WRAP
    )
    names = sum(trace.get("showlegend", True) for trace in made["data"])
    aside = names > MOST_ON_TOP
    rows = 0 if aside else 1 if names <= MOST_IN_A_ROW else math.ceil(names / 2)
    top = 72 + 15 * units.count("<br>") + 19 * rows
    bottom = 74 + 14 * foot.count("<br>")
    plot = layout.get("height", HEIGHT - 80) - margin.get("t", 0) - margin.get("b", 0)
    if aside:
        layout["legend"] = {
            "orientation": "v",
            "x": 1.02,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "font": {"size": 10},
        }
    layout |= {
        "template": TEMPLATE,
        "paper_bgcolor": "#FFFFFF",
        "height": plot + top + bottom,
        "title": {"text": figure.title, "x": 0.01, "xanchor": "left", "y": 0.985, "yanchor": "top", "font": {"size": 18},
                  "subtitle": {"text": units, "font": {"size": 12, "color": "#56636F"}}},
        "margin": {**margin, "l": max(margin.get("l", 0), 70), "t": top, "b": bottom},
        "annotations": [
            *layout.get("annotations", ()),
            {"text": foot, "x": 0, "xref": "paper", "xanchor": "left", "xshift": -50, "y": 0, "yref": "paper", "yanchor": "top",
             "yshift": -48, "showarrow": False, "align": "left", "font": {"size": 10, "color": "#56636F"}},
        ],
    }  # fmt: skip
    return made


def wrapped(text: str, width: int = WRAP) -> str:
    """Lines of at most so many characters."""
    return "<br>".join(textwrap.wrap(text, width))
