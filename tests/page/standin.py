"""A page of the explorer's size, with a made-up model: what the browser tests and the benchmark drive."""

import ipywidgets as widgets
import numpy as np
from IPython.display import display

from rlqueue.app.guard import guarded, reported, status_line
from rlqueue.app.plot import Plots

X = np.linspace(0.0, 1.0, 30)
NAMES = ["one", "two", "three", "four", "five", "six"]


def figures(level: int, depth: int, width: int) -> dict:
    """Six lines, five stacked areas, and a 40 x 40 heatmap, all of which change with every argument."""
    swing = level / 100
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": X,
            "y": np.clip(swing * np.sin((k + depth) * X + 1) ** 2, 0, 1),
        }
        for k, name in enumerate(NAMES)
    ]
    lines.append(
        {"type": "scatter", "mode": "markers", "name": "now", "x": [swing], "y": [0.5], "marker": {"size": 12}}
    )
    areas = [
        {
            "type": "scatter",
            "mode": "lines",
            "stackgroup": "all",
            "name": name,
            "x": X,
            "y": 1 + width * X**k * swing / 10,
        }
        for k, name in enumerate(NAMES[:5])
    ]
    grid = np.linspace(0, 1, 40)
    heat = np.sin(depth * grid[:, None] + swing) * np.cos(width / 10 * grid[None, :])
    unit = {"range": [0, 1]}
    return {
        "lines": {
            "data": lines,
            "layout": {
                "title": {
                    "text": "Six lines against their share",
                    "subtitle": {"text": "The marker is where the level stands now"},
                },
                "xaxis": unit | {"title": {"text": "share"}},
                "yaxis": unit | {"title": {"text": "ratio"}, "tickformat": ".0%"},
            },
        },
        "areas": {
            "data": areas,
            "layout": {
                "title": {"text": "Five areas, stacked"},
                "xaxis": unit | {"title": {"text": "share"}},
                "yaxis": {"range": [0, 60], "title": {"text": "$/Mtok"}},
            },
        },
        "heat": {
            "data": [
                {"type": "heatmap", "x": grid, "y": grid, "z": heat, "zmin": -1, "zmax": 1, "colorscale": "Cividis"}
            ],
            "layout": {
                "title": {"text": "A field of 40 by 40"},
                "xaxis": {"title": {"text": "share"}},
                "yaxis": {"title": {"text": "depth"}},
            },
        },
    }


def merit(level: int, depth: int, width: int) -> str:
    cells = "".join(
        f"<div class='merit'><dt>{name}</dt><dd>{value}</dd></div>"
        for name, value in (("level", level), ("depth", depth), ("width", width), ("product", level * depth * width))
    )
    style = "<style>.merits{display:flex;flex-wrap:wrap;gap:.75rem;margin:0}"
    style += (
        ".merit{flex:1 1 8rem;padding:.6rem .9rem;background:#fff;border:1px solid var(--rlq-line);border-radius:10px}"
    )
    style += ".merit dd{margin:0;font-size:1.4rem;font-weight:600}</style>"
    return f"{style}<dl class='merits'>{cells}</dl>"


def page() -> None:
    wide = widgets.Layout(width="min(26rem, 100%)")
    level = widgets.IntSlider(50, 1, 99, description="Level", layout=wide)
    depth = widgets.IntSlider(4, 1, 9, description="Depth", layout=wide)
    width = widgets.SelectionSlider(options=[1, 2, 4, 8, 16, 32], value=8, description="Width", layout=wide)
    more = [widgets.FloatSlider(0.5, min=0, max=1, step=0.01, description=f"Knob {k}", layout=wide) for k in range(8)]
    more += [widgets.Dropdown(options=["a", "b", "c"], description=f"Choice {k}", layout=wide) for k in range(4)]
    reset = widgets.Button(description="Reset")
    status = status_line()

    def values() -> tuple[int, int, int]:
        return level.value, depth.value, width.value

    panel = widgets.HTML(merit(*values()))
    plots = Plots({name: {"data": [], "layout": {}} for name in figures(*values())})
    plots.update(figures(*values()), stamp="opening")  # before any page is open: FigureWidget would lose it

    def redraw(_: object) -> None:
        if depth.value == 6:
            raise RuntimeError("what only the server may know")
        if width.value == 32:
            raise ValueError("width=32 must be less than 32: no wider page is drawn")
        panel.value = merit(*values())
        plots.update(figures(*values()), stamp="level={} depth={} width={}".format(*values()))

    def back(_: object) -> None:
        level.value, depth.value, width.value = 50, 4, 8

    for control in (level, depth, width, *more):
        guarded(control, redraw, status)
    reset.on_click(reported(back, status))
    flow = widgets.Layout(display="flex", flex_flow="row wrap")
    accordion = widgets.Accordion([widgets.Box(more, layout=flow)], titles=("More",))
    heading = widgets.HTML("<h1 style='margin:0'>A page of the explorer's size</h1>")
    controls = widgets.Box([level, depth, width, reset], layout=flow)
    display(widgets.VBox([heading, controls, status, panel, plots, accordion]))
