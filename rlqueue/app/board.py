"""The published run and the knobs of a page: picker, reset, source, and a hint under each control that says what its value means.

    board = Board(opened(), (*MAIN, *MORE), status, go)
    box = page_box([board.header(), board.blocks(MAIN), status, ...])

``go(state, moved)`` is the page's: it computes what the new state gives (a ValueError refuses it, and everything stays),
then calls ``board.show(state, moved)``. The board holds no other truth than that state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets

from rlqueue.app import controls, origins
from rlqueue.app.controls import Control
from rlqueue.app.guard import guarded, reported
from rlqueue.app.moving_knobs import applies
from rlqueue.app.page import box, choice
from rlqueue.app.state import State, kind_of, opened, preset_row, value_of, with_value
from rlqueue.cost import usd_per_gpu_hour
from rlqueue.presets import preset_names
from rlqueue.scenario import Scenario
from rlqueue.tco import tco

Go = Callable[[State, Control | None], None]
MANY_SIDED = {"generator_gpus", "concurrency", "max_staleness", "node.usd_per_kwh", "gpu_hour_usd"}
"""Knobs whose control or hint depends on other knobs too."""


class Board:
    """Preset picker, reset and knobs around one state.

    Attributes:
        state: what the controls show. holders, hints: by control, the widget and the text below it.
    """

    def __init__(
        self,
        state: State,
        knobs: Iterable[Control],
        status: widgets.HTML,
        go: Go,
        *,
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        """``reset``: brings back what is the page's own, before its ``go`` gets the preset's scenario."""
        self.state, self._go, self._reset = state, go, reset
        self._shown: dict[Control, tuple[Any, ...]] = {}
        self._loading = False
        titles = [(preset_row(name)["title"], name) for name in preset_names()]
        self.preset = choice("Published run", titles, state.preset)
        self.again = widgets.Button(description="Reset", tooltip="Back to the published run", icon="")
        self._about = widgets.HTML()
        self.holders = {control: controls.widget(control, state) for control in knobs}
        self.hints = {control: widgets.HTML() for control in self.holders}
        self._blocks = {
            control: box("rlq-control", [self.holders[control], self.hints[control]]) for control in self.holders
        }
        self.show(state)
        guarded(self.preset, self._chosen, status)
        for control, holder in self.holders.items():
            guarded(holder, partial(self._moved, control), status, controls.checked(control, holder))
        self.again.on_click(reported(self._back, status))

    def header(self, *more: widgets.Widget) -> widgets.Box:
        """Picker, reset, whatever else belongs there, and the run's source."""
        return box("rlq-header", [self.preset, self.again, *more, self._about])

    def block(self, control: Control) -> widgets.Box:
        """One control with its hint; it is left out while its knob has no say."""
        return self._blocks[control]

    def blocks(self, knobs: Sequence[Control], name: str = "rlq-sliders") -> widgets.Box:
        """Some controls side by side, where the page is wide enough."""
        return box(name, [self.block(control) for control in knobs])

    def show(self, state: State, moved: Control | None = None) -> None:
        """Bring every control to the state; ``moved`` is under the reader's hand and stands where it should."""
        self.state = state
        stale = self._stale(state)
        self._loading = True
        try:
            self.preset.value = state.preset
            for control in stale:
                if control is not moved:
                    controls.show(control, self.holders[control], state)
        finally:
            self._loading = False
        for control in stale:
            self.hints[control].value = hint(control, state)
        for control, block in self._blocks.items():
            block.layout.display = "" if applies(control, state.scenario) else "none"
        if controls.PRICE in self.holders:
            price = usd_per_gpu_hour(state.scenario)
            self.holders[controls.PRICE].placeholder = f"{price:.2f} (cost of ownership)"
        self._about.value = about(state)

    def _stale(self, state: State) -> list[Control]:
        """The controls that don't show the state: most say nothing but their own knob, and only few knobs move at once."""
        found = []
        for control in self.holders:
            shown = (state.preset, state.opening, value_of(state.scenario, control.knob))
            if control.knob in MANY_SIDED or self._shown.get(control) != shown:
                self._shown[control] = shown
                found.append(control)
        return found

    def _moved(self, control: Control, change: dict[str, Any]) -> None:
        if self._loading:
            return
        scenario = with_value(self.state.scenario, control.knob, controls.meant(control, change["new"]))
        self._go(dataclasses.replace(self.state, scenario=scenario), control)

    def _chosen(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self._go(opened(change["new"], self.state.opening), None)

    def _back(self, _: Any) -> None:
        self._reset()
        self._go(opened(self.state.preset, self.state.opening), None)


def about(state: State) -> str:
    """What the published run was, and who published it."""
    row = preset_row(state.preset)
    return f'<p class="rlq-about">{escape(row["description"])}. {origins.source_link(row["source"])}</p>'


def hint(control: Control, state: State) -> str:
    """Under a control: what its value means, what the knob is, and where the value comes from."""
    kind = kind_of(state, control.knob)
    tag = ""
    if kind in {"assumed", "calibrated", "changed"}:
        fact = state.facts.get(control.knob)
        tag = origins.kind_tag(kind, fact.note if fact and kind != "changed" else "set on this page")
    strong = price_words(state.scenario) if control is controls.PRICE else controls.effect(control, state)
    strong = f"<b>{escape(strong)}</b>" if strong else ""
    return f'<p class="rlq-hint">{strong}<span>{tag}{escape(control.explained)}</span></p>'


def price_words(scenario: Scenario) -> str:
    """What a GPU-hour costs at the moment, and why."""
    owned = tco(scenario.node).total_usd_per_gpu_hour
    if scenario.gpu_hour_usd is None:
        return f"${owned:.4f} from the cost of ownership"
    return f"set to ${scenario.gpu_hour_usd:g}; {scenario.node.key} would cost ${owned:.4f}"
