"""The explorer page: a published run, three sliders and the rest of its knobs, and what follows from them while one drags.

The state is one frozen scenario. A control's move makes a new one, ``answer`` computes everything the page says about it, and
the page shows that; widgets hold nothing that the scenario does not.
"""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import controls, findings, moving_knobs, origins, page_table, panels, share, way_words
from rlqueue.app.answers import Answer, answer
from rlqueue.app.banded import banded, known
from rlqueue.app.banded_way import banded_way, known_way
from rlqueue.app.board import Board
from rlqueue.app.figures import figures
from rlqueue.app.guard import reported, status_line
from rlqueue.app.page import AtRest, box, page_box
from rlqueue.app.plot import Plots
from rlqueue.app.refining import known_map, refine
from rlqueue.app.runs import workers
from rlqueue.app.sharing import Sharing, scenario_file
from rlqueue.app.state import State, opened
from rlqueue.app.way import way
from rlqueue.app.whole_run import WholeRun
from rlqueue.scenario import Scenario

MOVES = 3
MOVING = (
    *moving_knobs.DIFFICULTY, *moving_knobs.LEARNING, *moving_knobs.CHOOSING, *moving_knobs.OF_SAMPLERS,
    *moving_knobs.MORE_OF_CURRICULUM, *moving_knobs.GROWTH, *moving_knobs.MORE_OF_GROWTH,
)  # fmt: skip
KNOBS = (*controls.MAIN, *controls.MORE, moving_knobs.STEPS, *MOVING)
KNOB_FOLDS = 2
"""Folds that hold controls; texts follow."""


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
        self._found = answered(self.state.first)
        self._status = status_line()
        self._board = Board(self.state, KNOBS, self._status, self._go)
        self._whole = WholeRun(self._board, self._status, self._go)
        self._share = Sharing(self._status, self._restored)
        self._share.offer({"toml": lambda: scenario_file(self.state.scenario), "csv": self._csv})
        self._rest = AtRest(self._not_refined)
        self._build()
        self._arrange()
        self._show(self._found)
        self._listen()

    # What happens

    def _apply(self, place: int, _: Any) -> None:
        found = self._found.moves
        if place < len(found):
            self._go(dataclasses.replace(self.state, scenario=applied(self.state, found[place].scenario)))

    def _go(self, state: State, moved: controls.Control | None = None) -> None:
        """Take a new state: compute first, so that a scenario that can't be answered changes nothing."""
        self._rest.stop()
        found = answered(state.first)
        way(state)
        self.state = state
        self._show(found, moved)
        self._begin()

    def _restored(self, query: str) -> None:
        """A page has opened at an address that holds a scenario."""
        self._go(share.read(query)[0])

    def _csv(self) -> tuple[str, str]:
        rows = page_table.of_answer(self._found, known(self._found.state)) + page_table.of_way(self._way)
        return f"{self.state.scenario.name}.csv", page_table.csv(rows)

    # What happens when the hand rests

    def _begin(self) -> None:
        """Have the longer runs done; where there is no loop for them, the short ones stay."""
        self._rest.begin(self._longer)

    async def _longer(self) -> None:
        found = self._found
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(workers(), banded, found.state)
        self._whole.band(self._way, await banded_way(self.state))
        await refine(found, self._refined)

    def _refined(self, found: Answer, progress: float) -> None:
        """Show what the longer runs have given so far: the state is the same, so nothing but numbers and figures changes."""
        self._found = found
        self._numbers(found, progress)

    def _not_refined(self) -> None:
        self._how.value = panels.how(self._found)

    # What is shown

    def _show(self, found: Answer, moved: controls.Control | None = None) -> None:
        self._found = found
        self._board.show(self.state, moved)
        self._way = self._whole.show(self.state)
        self._numbers(found)
        for place, button in enumerate(self._moves):
            there = place < len(found.moves)
            button.layout.display = "" if there else "none"
            if there:
                button.description = panels.move_words(found.moves[place])
        self._changed.value = "" if self.state.untouched else origins.kind_tag("changed", "no longer the published run")
        self._share.query, self._share.stem = share.query(self.state), self.state.scenario.name
        self._unfolded(found)

    def _numbers(self, found: Answer, progress: float | None = None) -> None:
        bands = known(found.state)
        self._cards.value = panels.cards(found, way_words.card(self._way, known_way(self.state)), bands)
        self._lesser.value = panels.lesser(found, bands)
        self._verdict.value = panels.verdict_html(found)
        self._how.value = panels.how(found, progress)
        self._plots.update(figures(found), stamp=stamp(found.state.scenario))

    def _unfolded(self, found: Answer) -> None:
        """The long texts are written only while somebody reads them."""
        unfolded = self._folds.selected_index
        texts = {KNOB_FOLDS: lambda: costs_and_facts(found), KNOB_FOLDS + 1: lambda: origins.origins(self.state)}
        if unfolded in texts:
            self._texts[unfolded - KNOB_FOLDS].value = texts[unfolded]()

    # What there is

    def _build(self) -> None:
        self._changed = widgets.HTML()
        self._cards, self._lesser, self._verdict, self._how = (widgets.HTML() for _ in range(4))
        self._moves = [widgets.Button() for _ in range(MOVES)]
        self._plots = Plots(figures(self._found))
        self._texts = [widgets.HTML(), widgets.HTML()]

    def _arrange(self) -> None:
        heading = widgets.HTML(f"<h3>Best single moves {origins.kind_tag('closed form')}</h3>")
        self._folds = widgets.Accordion(
            [self._board.blocks(controls.MORE, "rlq-more"), self._board.blocks(MOVING, "rlq-more"), *self._texts],
            titles=(
                "More knobs of this run",
                "What moves during the run",
                "Two costs, and facts that don't agree",
                "Where these numbers come from",
            ),
        )
        self.box = page_box(
            [
                self._board.header(self._changed, self._share),
                self._board.blocks(controls.MAIN),
                self._status,
                self._how,
                self._cards,
                self._verdict,
                self._plots,
                box("rlq-moves", [heading, *self._moves]),
                self._whole.box,
                self._lesser,
                self._folds,
            ]
        )

    def _listen(self) -> None:
        for place, button in enumerate(self._moves):
            button.on_click(reported(partial(self._apply, place), self._status))
        self._folds.observe(lambda _: self._unfolded(self._found), "selected_index")
        self._plots.when_opened(self._begin)


def applied(state: State, move: Scenario) -> Scenario:
    """The state's scenario with what a move changes of its first step; drift and learning stay."""
    first = state.first.scenario
    names = (each.name for each in dataclasses.fields(Scenario))
    changes = {name: getattr(move, name) for name in names if getattr(move, name) != getattr(first, name)}
    return dataclasses.replace(state.scenario, **changes)


def answered(state: State) -> Answer:
    """The answer while the hand moves, with the cells of the map that were simulated before."""
    found = answer(state)
    return dataclasses.replace(found, map_so_far=known_map(found))


def costs_and_facts(found: Answer) -> str:
    """The second fold."""
    return (
        f'<div class="rlq-prose"><h4>Why two costs of a trained Mtok</h4>{findings.two_costs(found)}'
        f"{findings.open_facts(found.state.preset)}</div>"
    )
