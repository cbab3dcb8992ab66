"""The few marks that the report's figures are made of, as plotly dictionaries in the colours of the pages."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlqueue.app.plot import PALETTE

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY, YELLOW = PALETTE
INK = "#1B2733"
PRINTED = {"symbol": "diamond-open", "size": 10, "color": VERMILION, "line": {"width": 2}}
"""How a value of the source looks, in every figure."""

Values = Sequence[float] | np.ndarray


def listed(values: Any) -> list:
    """Plain numbers, rounded far below what is known: the bytes of a figure don't depend on the last bits of a sum."""
    return [
        float(f"{each:.10g}") if isinstance(each, int | float | np.number) else each
        for each in np.asarray(values).tolist()
    ]


def line(name: str, x: Values, y: Values, colour: str = BLUE, dash: str = "solid", **more: Any) -> dict[str, Any]:
    """A computed curve."""
    return {"type": "scatter", "mode": "lines", "name": name, "x": listed(x), "y": listed(y),
            "line": {"color": colour, "width": 2.5, "dash": dash}, **more}  # fmt: skip


def dotted(name: str, x: Values, y: Values, colour: str = BLUE, **more: Any) -> dict[str, Any]:
    """A computed curve known at few places: each is marked."""
    return line(name, x, y, colour, **more) | {"mode": "lines+markers", "marker": {"size": 6, "color": colour}}


def points(
    name: str, x: Any, y: Values, colour: str = VERMILION, symbol: str = "diamond-open", **more: Any
) -> dict[str, Any]:
    """Values of the source."""
    marker = PRINTED | {"color": colour, "symbol": symbol}
    return {"type": "scatter", "mode": "markers", "name": name, "x": listed(x), "y": listed(y), "marker": marker,
            "cliponaxis": False, **more}  # fmt: skip


def bars(name: str, x: Any, y: Values, colour: str, **more: Any) -> dict[str, Any]:
    """Computed bars."""
    return {"type": "bar", "name": name, "x": listed(x), "y": listed(y), "marker": {"color": colour}, **more}


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with its title, unit included."""
    return {"title": {"text": title}, "automargin": True, **more}


def plot(data: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], **layout: Any) -> dict[str, Any]:
    """A figure of one pair of axes."""
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "margin": {"l": 64, "r": 20, "t": 12, "b": 52}} | layout}


def upright(x: float, text: str, colour: str = INK) -> dict[str, Any]:
    """A thin vertical line with a word, as ``shapes`` and ``annotations`` of a layout."""
    return {
        "shapes": [{"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
                    "line": {"color": colour, "width": 1, "dash": "dot"}}],
        "annotations": [{"x": x, "y": 1, "yref": "paper", "text": text, "showarrow": False, "xanchor": "left", "yanchor": "top",
                         "xshift": 4, "font": {"size": 11, "color": colour}}],
    }  # fmt: skip


def stacked(x: dict[str, Any], upper: dict[str, Any], lower: dict[str, Any], **layout: Any) -> dict[str, Any]:
    """The layout of two plots above each other on one x axis: the second one's traces say ``yaxis="y2"``."""
    return {
        "xaxis": x | {"anchor": "y2"},
        "yaxis": upper | {"domain": [0.56, 1.0]},
        "yaxis2": lower | {"domain": [0.0, 0.44]},
        "margin": {"l": 64, "r": 20, "t": 12, "b": 52},
        "height": 520,
    } | layout
