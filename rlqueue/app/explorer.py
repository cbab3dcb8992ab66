"""The explorer page: a published run, three sliders and the rest of its knobs, and what follows from them while one drags.

The state is one frozen scenario. A control's move makes a new one, ``answer`` computes everything the page says about it, and
the page shows that; widgets hold nothing that the scenario does not.
"""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any
from urllib.parse import quote

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import controls, findings, origins, panels
from rlqueue.app.aids import Aids
from rlqueue.app.answers import Answer, answer
from rlqueue.app.figures import figures
from rlqueue.app.guard import guarded, reported, status_line
from rlqueue.app.plot import Plots
from rlqueue.app.state import State, kind_of, opened, preset_row, with_value
from rlqueue.cost import usd_per_gpu_hour
from rlqueue.presets import preset, preset_names
from rlqueue.scenario import Scenario
from rlqueue.tco import tco

MOVES = 3


def stamp(scenario: Scenario) -> str:
    """What the drawn figures carry to say which scenario they show."""
    return f"{scenario.trainer_gpus}:{scenario.generator_gpus} S={scenario.max_staleness:g} C={scenario.concurrency}"


def page() -> None:
    """Show the explorer in a notebook."""
    display(Explorer().box)


class Explorer:
    """The page's widgets around one state; ``box`` holds them all."""

    def __init__(self) -> None:
        self.state = opened()
        self._loading = False
        self._status = status_line()
        self._build()
        self._arrange()
        self._show(answer(self.state))
        self._listen()

    # What happens

    def _moved(self, control: controls.Control, change: dict[str, Any]) -> None:
        if self._loading:
            return
        value = controls.meant(control, change["new"])
        scenario = with_value(self.state.scenario, control.knob, value)
        self._go(State(preset=self.state.preset, scenario=scenario), moved=control)

    def _chosen(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self._go(opened(change["new"]))

    def _reset(self, _: Any) -> None:
        self._go(opened(self.state.preset))

    def _apply(self, place: int, _: Any) -> None:
        found = answer(self.state).moves
        if place < len(found):
            self._go(State(preset=self.state.preset, scenario=found[place].scenario))

    def _go(self, state: State, moved: controls.Control | None = None) -> None:
        """Take a new state: compute first, so that a scenario that can't be answered changes nothing."""
        found = answer(state)
        self.state = state
        self._show(found, moved)

    # What is shown

    def _show(self, found: Answer, moved: controls.Control | None = None) -> None:
        state = found.state
        self._set_controls(moved)
        self._cards.value = panels.cards(found)
        self._lesser.value = panels.lesser(found)
        self._verdict.value = panels.verdict_html(found)
        for place, button in enumerate(self._moves):
            there = place < len(found.moves)
            button.layout.display = "" if there else "none"
            if there:
                button.description = panels.move_words(found.moves[place])
        self._figures = figures(found)
        self._plots.update(self._figures, stamp=stamp(state.scenario))
        self._download.value = download(state)
        self._about.value = about(state)
        self._hints_now(found)
        self._unfolded(found)

    def _set_controls(self, moved: controls.Control | None) -> None:
        self._loading = True
        try:
            self._preset.value = self.state.preset
            for control, holder in self._holders.items():
                if control is not moved:
                    controls.show(control, holder, self.state)
        finally:
            self._loading = False

    def _hints_now(self, found: Answer) -> None:
        for control, line in self._hints.items():
            line.value = hint(control, found.state)
        price = usd_per_gpu_hour(found.state.scenario)
        self._holders[controls.PRICE].placeholder = f"{price:.2f} (cost of ownership)"

    def _unfolded(self, found: Answer) -> None:
        """The long texts are written only while somebody reads them."""
        unfolded = self._folds.selected_index
        texts = (None, lambda: costs_and_facts(found), lambda: origins.origins(found.state))
        if unfolded is not None and texts[unfolded] is not None:
            self._texts[unfolded - 1].value = texts[unfolded]()

    # What there is

    def _build(self) -> None:
        titles = [(preset_row(name)["title"], name) for name in preset_names()]
        self._preset = widgets.Dropdown(options=titles, value=self.state.preset, description="Published run",
                                        style={"description_width": "initial"}, layout=widgets.Layout(width="auto"))  # fmt: skip
        self._again = widgets.Button(description="Reset", tooltip="Back to the published run", icon="")
        self._download, self._about = widgets.HTML(), widgets.HTML()
        self._holders = {control: controls.widget(control, self.state) for control in (*controls.MAIN, *controls.MORE)}
        self._hints = {control: widgets.HTML() for control in self._holders}
        self._cards, self._lesser, self._verdict = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._moves = [widgets.Button() for _ in range(MOVES)]
        self._plots = Plots(figures(answer(self.state)))
        self._texts = [widgets.HTML(), widgets.HTML()]

    def _arrange(self) -> None:
        header = box("rlq-header", [self._preset, self._again, self._download, self._about])
        sliders = box("rlq-sliders", [self._block(control) for control in controls.MAIN])
        more = box("rlq-more", [self._block(control) for control in controls.MORE])
        heading = widgets.HTML("<h3>Best single moves</h3>")
        moves = box("rlq-moves", [heading, *self._moves])
        said = box("rlq-said", [self._verdict, moves])
        self._folds = widgets.Accordion(
            [more, *self._texts],
            titles=("More knobs of this run", "Two costs, and facts that don't agree", "Where these numbers come from"),
        )
        self.box = box(
            "rlq-explorer",
            [Aids(), header, sliders, self._status, self._cards, said, self._plots, self._lesser, self._folds],
        )

    def _block(self, control: controls.Control) -> widgets.Box:
        return box("rlq-control", [self._holders[control], self._hints[control]])

    def _listen(self) -> None:
        guarded(self._preset, self._chosen, self._status)
        for control, holder in self._holders.items():
            guarded(holder, partial(self._moved, control), self._status, controls.checked(control, holder))
        self._again.on_click(reported(self._reset, self._status))
        for place, button in enumerate(self._moves):
            button.on_click(reported(partial(self._apply, place), self._status))
        self._folds.observe(lambda _: self._unfolded(answer(self.state)), "selected_index")


def box(name: str, children: list[widgets.Widget]) -> widgets.Box:
    """A box that CSS lays out under a class name."""
    made = widgets.Box(children)
    made.add_class(name)
    return made


def about(state: State) -> str:
    """What the published run was, and who published it."""
    row = preset_row(state.preset)
    return f'<p class="rlq-about">{escape(row["description"])}. {origins.source_link(row["source"])}</p>'


def download(state: State) -> str:
    """A link that holds the scenario itself, so that saving it asks nobody."""
    name = escape(f"{state.scenario.name}.toml")
    address = "data:application/toml;charset=utf-8," + quote(state.scenario.to_toml())
    changed = "" if state.untouched else origins.kind_tag("changed", "no longer the published run")
    return f'<a class="rlq-download" download="{name}" href="{address}">Download scenario (TOML)</a> {changed}'


def hint(control: controls.Control, state: State) -> str:
    """Under a control: what its value means, what the knob is, and where the value comes from."""
    kind = kind_of(state, control.knob)
    tag = ""
    if kind in {"assumed", "calibrated", "changed"}:
        fact = preset(state.preset).get(control.knob)
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


def costs_and_facts(found: Answer) -> str:
    """The second fold."""
    return (
        f'<div class="rlq-prose"><h4>Why two costs of a trained Mtok</h4>{findings.two_costs(found)}'
        f"{findings.open_facts(found.state.preset)}</div>"
    )
