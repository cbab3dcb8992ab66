"""The report as a live page: assumptions that can be moved, and each section computed when it is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app.controls import options
from rlqueue.app.guard import guarded, status_line
from rlqueue.app.plot import Plots
from rlqueue.provenance import quantities, sources
from rlqueue.report import html
from rlqueue.report.assumptions import Assumptions
from rlqueue.report.build import SECTIONS
from rlqueue.report.content import OWN, Figure, Section
from rlqueue.report.static import PAGE_CSS

AS_PRINTED = "as in the report"
IN_SIGHT = "ownership"
"""The section that is never folded."""


@dataclass(frozen=True, kw_only=True)
class Dial:
    """One assumption of the cost of ownership that the reader may turn: its knob, reach and format; it starts as printed."""

    knob: str
    label: str
    low: float
    high: float
    step: float
    shown: str

    @property
    def printed(self) -> float:
        return float(quantities("h200_tco", "h200")[self.knob.removeprefix("node.")].value)

    @property
    def stops(self) -> list[float]:
        """What the slider stops at: even steps, and the printed value."""
        count = round((self.high - self.low) / self.step)
        return sorted({round(self.low + self.step * k, 9) for k in range(count + 1)} | {self.printed})


DIALS = (
    Dial(knob="node.usd_per_kwh", label="Electricity [$/kWh]", low=0.02, high=0.4, step=0.01, shown=".3f"),
    Dial(knob="node.wacc_per_year", label="Cost of capital [1/year]", low=0.0, high=0.25, step=0.005, shown=".2%"),
    Dial(knob="node.useful_life_years", label="Useful life [years]", low=2, high=10, step=0.5, shown="g"),
    Dial(knob="node.server_usd", label="Server [$]", low=100_000, high=500_000, step=10_000, shown=",.0f"),
    Dial(knob="node.colocation_usd_per_kw_month", label="Colocation [$/kW-month]", low=0, high=400, step=10, shown="g"),
)


def page() -> None:
    """Show the report in a notebook."""
    display(ReportPage().box)


class ReportPage:
    """The page's widgets around one set of assumptions; ``box`` holds them all."""

    def __init__(self) -> None:
        self.assumptions = Assumptions()
        self._status = status_line()
        self._dials = {dial: _slider(dial) for dial in DIALS}
        self._price = widgets.Dropdown(
            options=[(AS_PRINTED, AS_PRINTED), *(each for each in options("hosted_price") if each[1] != "none")],
            description="Hosted price",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="auto"),
        )
        self._changed = widgets.HTML()
        # What the dials move at once stays in sight; an accordion that opens with a fold unfolded would never close it.
        bodies = {name: SectionBody(name, title, make) for name, title, make in SECTIONS}
        self.first = bodies.pop(IN_SIGHT)
        self.folded = list(bodies.values())
        self.folds = widgets.Accordion([body.box for body in self.folded], titles=[body.title for body in self.folded])
        for dial, slider in self._dials.items():
            guarded(slider, self._moved, self._status)
            slider.tooltip = f"{dial.label}, {dial.printed:g} in the source"
        guarded(self._price, self._moved, self._status)
        self.folds.observe(lambda _: self._show(self.assumptions), "selected_index")
        self._show(self.assumptions)
        self.box = self._arranged()

    def _arranged(self) -> widgets.Box:
        opening = widgets.HTML(f"<style>{PAGE_CSS}</style>{html.opening()}")
        dials = widgets.Box([*self._dials.values(), self._price])
        dials.add_class("rlq-dials")
        documents = widgets.HTML(html.listed(name for name in sources() if name != OWN))
        title = widgets.HTML(f"<h2>{escape(self.first.title)}</h2>")
        more = widgets.HTML("<h2>More: each section is computed when it is opened</h2>")
        parts = [opening, dials, self._status, self._changed, title, self.first.box, more, self.folds, documents]
        box = widgets.VBox(parts)
        box.add_class("rlq-report")
        return box

    def _moved(self, _: dict[str, Any]) -> None:
        """Take the assumptions as they are set: compute first, so that what can't be computed changes nothing."""
        settings = {
            dial.knob: f"{slider.value!r}" for dial, slider in self._dials.items() if slider.value != dial.printed
        }
        if self._price.value != AS_PRINTED:
            settings["hosted_price"] = self._price.value
        assumptions = Assumptions.of(settings)
        self._show(assumptions)
        self.assumptions = assumptions
        listed = ", ".join(f"<code>{escape(name)} = {escape(value)}</code>" for name, value in settings.items())
        said = f'<p class="changed">Changed: {listed}. Printed values belong to the unchanged inputs.</p>'
        self._changed.value = said if settings else ""

    def _show(self, assumptions: Assumptions) -> None:
        """Bring what is in sight and the open section to the assumptions; the others are computed when they are opened."""
        self.first.show(assumptions)
        if self.folds.selected_index is not None:
            self.folded[self.folds.selected_index].show(assumptions)


class SectionBody:
    """One fold of the page: empty until it is opened, then updated in place."""

    def __init__(self, name: str, title: str, make: Callable[[Assumptions, str, str], Section]) -> None:
        self.name, self.title, self._make = name, title, make
        self._shown: Assumptions | None = None
        self.box = widgets.VBox()
        self.plots: dict[str, Plots] = {}
        self._captions: dict[str, widgets.HTML] = {}
        self._words, self._tables = widgets.HTML(), widgets.HTML()

    def show(self, assumptions: Assumptions) -> None:
        """Compute the section, unless it stands as it is asked for."""
        if self._shown == assumptions:
            return
        section = self._make(assumptions, self.name, self.title)
        for figure in section.figures:
            if figure.name in self.plots:
                self.plots[figure.name].update({figure.name: drawn(figure)}, stamp=str(assumptions.settings))
            else:
                self._add(figure)
            self._captions[figure.name].value = f"{_tall(figure)}<figcaption>{html.caption(figure)}</figcaption>"
        self._words.value = html.words(section)
        self._tables.value = "".join(map(html.table, section.tables))
        self._shown = assumptions
        if not self.box.children:
            middle = [widget for name in self.plots for widget in (self.plots[name], self._captions[name])]
            self.box.children = [self._words, *middle, self._tables]

    def _add(self, figure: Figure) -> None:
        plots = Plots({figure.name: drawn(figure)})
        plots.add_class(f"rlq-height-{_height(figure)}")
        self.plots[figure.name] = plots
        self._captions[figure.name] = widgets.HTML()


def _height(figure: Figure) -> int:
    return figure.plot["layout"].get("height", html.HEIGHT)


def _tall(figure: Figure) -> str:
    """The height of a plot belongs to CSS."""
    return f"<style>.rlq-height-{_height(figure)} {{ --rlq-plot-height: {_height(figure)}px }}</style>"


def drawn(figure: Figure) -> dict[str, Any]:
    """The plot as the page's widget draws it: title, units and key become HTML around it."""
    layout = dict(figure.plot["layout"])
    layout["title"] = {"text": figure.title, "subtitle": {"text": figure.units}}
    layout["showlegend"] = False
    layout["meta"] = {"key": [_key(trace) for trace in figure.plot["data"] if trace.get("showlegend", True)]}
    return {"data": list(figure.plot["data"]), "layout": layout}


def _key(trace: dict[str, Any]) -> dict[str, str]:
    """What a trace looks like in the key."""
    marker, line = trace.get("marker", {}), trace.get("line", {})
    if trace["type"] == "bar":
        return {"name": trace["name"], "shape": "box", "colour": marker["color"]}
    if "lines" in trace["mode"]:
        shape = "line" if line.get("dash", "solid") == "solid" else "dash"
        return {"name": trace["name"], "shape": shape, "colour": line["color"]}
    shape = {"diamond-open": "diamond", "triangle-up-open": "triangle"}.get(marker.get("symbol", ""), "dot")
    return {"name": trace["name"], "shape": shape, "colour": marker["color"]}


def _slider(dial: Dial) -> widgets.SelectionSlider:
    return widgets.SelectionSlider(
        options=[(format(stop, dial.shown), stop) for stop in dial.stops],
        value=dial.printed,
        description=dial.label,
        style={"description_width": "initial"},
        layout=widgets.Layout(width="auto"),
        continuous_update=False,
    )
