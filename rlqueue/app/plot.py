"""The figures of a page as one thin widget around one plotly.js: they redraw together, in one frame, while a slider moves.

    plots = Plots({"wait": go.Figure(...), "cost": {"data": [...], "layout": {...}}})
    plots.update({"wait": figure}, stamp="trainer_gpus=64")

- A figure is a plain dict (fast: about 0.1 ms each) or a `go.Figure` (some ms: it validates and copies). Give arrays as numpy
  arrays: they travel as binary, and only those that changed since the last update.
- `layout.title.text` and its `subtitle.text` become an HTML heading above the plot, where they can wrap.
- Colours, fonts, margins and grid come from `TEMPLATE` unless the layout says otherwise. Fixed axis ranges redraw faster than
  automatic ones, and don't jump under the reader's eyes.
- The height is the CSS variable `--rlq-plot-height`; the grid is `.rlq-plots` (give `plots.add_class(...)` to restyle it).
- Tests: the element carries `data-revision`, `data-drawn` (redraws so far) and `data-stamp` (what `update` was told, once it is
  drawn); each `figure[data-plot=name]` carries the first two of its own. The event `plots-drawn` bubbles.

Why not FigureWidget: it sends the 5 MB bundle once per figure, echoes each figure's state back, and loses what is set between
construction and the page's opening. Here the state is read when the page asks for it, and a page that missed a message notices.
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import plotly
import traitlets

STATIC = Path(__file__).parent / "static"
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

# Okabe and Ito's eight colours, told apart by colour-blind eyes as well; yellow last, it is weak on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#4D4D4D", "#F0E442")
_AXIS = {
    "ticklabeloverflow": "allow",  # measuring every label for the other choice costs 1 ms per redraw
    "gridcolor": "#E8ECF0",
    "linecolor": "#9AA5B1",
    "ticks": "outside",
    "tickcolor": "#9AA5B1",
    "ticklen": 4,
    "zeroline": False,
    "title": {"standoff": 8},
}
TEMPLATE = {
    "layout": {
        "colorway": list(PALETTE),
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "#1B2733"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 16, "t": 12, "b": 44},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "#FFFFFF", "font": {"color": "#1B2733"}},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "font": {"size": 12}},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "colorscale": {"sequential": "Cividis"},
    }
}
# JavaScript has no numbers for 8-byte integers that plotly could draw.
_DTYPES = {"f4", "f8", "i4", "u1", "i1", "i2", "u2", "u4"}


class Plots(anywidget.AnyWidget):
    """Figures by name, drawn in the order of the mapping they were constructed with."""

    _esm = STATIC / "plots.js"
    _css = STATIC / "plots.css"
    # Never set: `to_json` reads the figures of the moment at which a page asks, so no update is lost before it opens.
    state = traitlets.Any().tag(sync=True, to_json=lambda _, plots: plots.everything())

    def __init__(self, figures: Mapping[str, Any], **layout: Any) -> None:
        self._figures = {name: _normalised(figure) for name, figure in figures.items()}
        self._revision = 0
        self._stamp = ""
        super().__init__(**layout)
        self.on_msg(self._answer)

    def update(self, figures: Mapping[str, Any], stamp: str = "") -> None:
        """Draw these figures; what is equal to what the page shows already isn't sent."""
        changes = {}
        for name, figure in figures.items():
            if name not in self._figures:
                raise ValueError(
                    f"figure {name!r} must be one of {sorted(self._figures)}: the page has no place for it"
                )
            new = _normalised(figure)
            change = _difference(self._figures[name], new)
            self._figures[name] = new
            if change:
                changes[name] = change
        base, self._revision, self._stamp = self._revision, self._revision + 1, stamp
        self._tell({"base": base, "revision": self._revision, "stamp": stamp, "figures": changes})

    def when_opened(self, then: Callable[[], None]) -> None:
        """Have this called whenever a page opens: before that, in a kernel kept warm for a visitor, work would be for nobody."""
        self.on_msg(lambda _, message, __: then() if _kind(message) == "opened" else None)

    def everything(self) -> dict[str, Any]:
        """All figures as they are now, for a page that opens."""
        buffers: list[memoryview] = []
        content = {"revision": self._revision, "stamp": self._stamp, "figures": self._figures}
        return {"content": _encoded(content, buffers), "buffers": buffers}

    def _tell(self, content: dict[str, Any]) -> None:
        buffers: list[memoryview] = []
        self.send({"kind": "figures", "content": _encoded(content, buffers)}, buffers)

    def _answer(self, _: Any, message: Any, __: Any) -> None:
        kind = _kind(message)
        if kind == "all" or (kind == "opened" and message.get("revision") != self._revision):
            self._tell({"revision": self._revision, "stamp": self._stamp, "figures": self._figures})
        elif kind == "bundle":
            self.send({"kind": "bundle"}, [_plotly_gzipped()])


def _kind(message: Any) -> Any:
    return message.get("kind") if isinstance(message, dict) else None


@functools.cache
def _plotly_gzipped() -> bytes:
    return gzip.compress(PLOTLY_JS.read_bytes(), compresslevel=6)


def _normalised(figure: Any) -> dict[str, Any]:
    """One form for dicts and `go.Figure`s: our template, the title taken out, arrays copied lest later edits hide a change."""
    plain = figure if isinstance(figure, Mapping) else figure.to_plotly_json()
    layout = dict(plain.get("layout", {}))
    title = layout.pop("title", {})
    title = title if isinstance(title, Mapping) else {"text": title}
    if isinstance(figure, Mapping):
        layout.setdefault("template", TEMPLATE)
    else:
        layout["template"] = TEMPLATE  # plotly.py puts its own, 7 kB, into every go.Figure
    layout.setdefault("uirevision", "kept")  # a reader's zoom survives the next redraw
    return {
        "title": title.get("text") or "",
        "subtitle": (title.get("subtitle") or {}).get("text") or "",
        "data": [_frozen(trace) for trace in plain.get("data", ())],
        "layout": _frozen(layout),
    }


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _frozen(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim in (1, 2):
        name = f"{value.dtype.kind}{value.dtype.itemsize}"
        return np.array(value, dtype=name if name in _DTYPES else "f8", order="C")
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_frozen(item) for item in value]
    return value


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, np.ndarray) or isinstance(new, np.ndarray):
        alike = type(old) is type(new) and old.dtype == new.dtype and old.shape == new.shape
        return alike and old.tobytes() == new.tobytes()  # bytes: NaN is equal to NaN
    if isinstance(old, dict) and isinstance(new, dict):
        return old is new or (old.keys() == new.keys() and all(_same(old[key], new[key]) for key in old))
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return type(old) is type(new) and old == new


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What the page has to be told: changed keys of traces, or the whole figure where its traces aren't the same ones."""
    if [trace.keys() for trace in old["data"]] != [trace.keys() for trace in new["data"]]:
        return new
    change = {key: new[key] for key in ("title", "subtitle", "layout") if not _same(old[key], new[key])}
    traces = {}
    for index, (before, after) in enumerate(zip(old["data"], new["data"], strict=True)):
        keys = {key: after[key] for key in after if not _same(before[key], after[key])}
        if keys:
            traces[str(index)] = keys
    return {**change, "traces": traces} if traces else change


def _encoded(value: Any, buffers: list[memoryview]) -> Any:
    if isinstance(value, np.ndarray):
        buffers.append(memoryview(value).cast("B"))
        return {"@": len(buffers) - 1, "dtype": f"{value.dtype.kind}{value.dtype.itemsize}", "shape": list(value.shape)}
    if isinstance(value, dict):
        return {key: _encoded(item, buffers) for key, item in value.items()}
    if isinstance(value, list):
        return [_encoded(item, buffers) for item in value]
    return value
