"""The explorer page: a published run, three sliders and the rest of its knobs, and what follows from them while one drags.

The state is one frozen scenario. A control's move makes a new one, ``answer`` computes everything the page says about it, and
the page shows that; widgets hold nothing that the scenario does not.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
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
from rlqueue.app.refining import known_map, refine
from rlqueue.app.state import State, kind_of, opened, preset_row, with_value
from rlqueue.cost import usd_per_gpu_hour
from rlqueue.presets import preset, preset_names
from rlqueue.scenario import Scenario
from rlqueue.tco import tco

MOVES = 3
log = logging.getLogger(__name__)


def stamp(scenario: Scenario) -> str:
    """What the drawn figures carry to say which scenario they show."""
    return f"{scenario.trainer_gpus}:{scenario.generator_gpus} S={scenario.max_staleness:g} C={scenario.concurrency}"


def page(state: State | None = None) -> None:
    """Show the explorer in a notebook; with the first preset unless a state is given."""
    display(Explorer(state).box)


class Explorer:
    """The page's widgets around one state; ``box`` holds them all."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or opened()
        self._found = answered(self.state)
        self._refining: asyncio.Task | None = None
        self._loading = False
        self._status = status_line()
        self._build()
        self._arrange()
        self._show(self._found)
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
        found = self._found.moves
        if place < len(found):
            self._go(State(preset=self.state.preset, scenario=found[place].scenario))

    def _go(self, state: State, moved: controls.Control | None = None) -> None:
        """Take a new state: compute first, so that a scenario that can't be answered changes nothing."""
        self._stop_refining()
        found = answered(state)
        self.state = state
        self._show(found, moved)
        self._rest()

    # What happens when the hand rests

    def _rest(self) -> None:
        """Begin the longer runs, on the kernel's own loop; where there is none (a plain interpreter), the short ones stay."""
        self._stop_refining()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._refining = loop.create_task(self._refine(self._found))

    def _stop_refining(self) -> None:
        if self._refining is not None:
            self._refining.cancel()
            self._refining = None

    async def _refine(self, found: Answer) -> None:
        try:
            await refine(found, self._refined)
        except Exception:
            log.exception("the longer runs failed")  # the short ones are still on the page
            self._how.value = panels.how(self._found)

    def _refined(self, found: Answer, progress: float) -> None:
        """Show what the longer runs have given so far: the state is the same, so nothing but numbers and figures changes."""
        self._found = found
        self._numbers(found, progress)

    # What is shown

    def _show(self, found: Answer, moved: controls.Control | None = None) -> None:
        state = found.state
        self._found = found
        self._set_controls(moved)
        self._numbers(found)
        for place, button in enumerate(self._moves):
            there = place < len(found.moves)
            button.layout.display = "" if there else "none"
            if there:
                button.description = panels.move_words(found.moves[place])
        self._download.value = download(state)
        self._about.value = about(state)
        self._hints_now(found)
        self._unfolded(found)

    def _numbers(self, found: Answer, progress: float | None = None) -> None:
        self._cards.value = panels.cards(found)
        self._lesser.value = panels.lesser(found)
        self._verdict.value = panels.verdict_html(found)
        self._how.value = panels.how(found, progress)
        self._figures = figures(found)
        self._plots.update(self._figures, stamp=stamp(found.state.scenario))

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
        self._cards, self._lesser, self._verdict, self._how = (widgets.HTML() for _ in range(4))
        self._moves = [widgets.Button() for _ in range(MOVES)]
        self._plots = Plots(figures(self._found))
        self._texts = [widgets.HTML(), widgets.HTML()]

    def _arrange(self) -> None:
        header = box("rlq-header", [self._preset, self._again, self._download, self._about])
        sliders = box("rlq-sliders", [self._block(control) for control in controls.MAIN])
        more = box("rlq-more", [self._block(control) for control in controls.MORE])
        heading = widgets.HTML(f"<h3>Best single moves {origins.kind_tag('closed form')}</h3>")
        moves = box("rlq-moves", [heading, *self._moves])
        self._folds = widgets.Accordion(
            [more, *self._texts],
            titles=("More knobs of this run", "Two costs, and facts that don't agree", "Where these numbers come from"),
        )
        self.box = box(
            "rlq-explorer",
            [
                Aids(),
                header,
                sliders,
                self._status,
                self._how,
                self._cards,
                self._verdict,
                self._plots,
                moves,
                self._lesser,
                self._folds,
            ],
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
        self._folds.observe(lambda _: self._unfolded(self._found), "selected_index")
        self._plots.on_msg(self._opened)

    def _opened(self, _: Any, message: Any, __: Any) -> None:
        """A page has opened: before that, in a kernel kept warm for a visitor, the longer runs would be for nobody."""
        if isinstance(message, dict) and message.get("kind") == "opened":
            self._rest()


def answered(state: State) -> Answer:
    """The answer while the hand moves, with the cells of the map that were simulated before."""
    found = answer(state)
    return dataclasses.replace(found, map_so_far=known_map(found))


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
