"""The explorer's part about the whole run: how many steps, whether answers grow and the policy learns, what it costs in all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from rlqueue.app import growth_words, way_words
from rlqueue.app.banded_way import WayBands, known_way
from rlqueue.app.board import Board
from rlqueue.app.controls import Control
from rlqueue.app.guard import guarded
from rlqueue.app.moving_knobs import STEPS
from rlqueue.app.page import box, choice, explained
from rlqueue.app.state import State
from rlqueue.app.way import Way, way
from rlqueue.at_step import NO_DRIFT, without_drift, without_learning
from rlqueue.provenance import quantities
from rlqueue.scenario import Scenario

CURRICULUM = ("solve_rate_", "learning_", "filtered_fraction", "pool_prompts", "sampler", "gate", "band_", "retire_")
"""How the names of curriculum knobs begin."""


def _opening(page: str) -> dict[str, Any]:
    return {knob: fact.value for knob, fact in quantities("page_openings", page).items()}


def grows(scenario: Scenario) -> bool:
    """Whether lengths move."""
    return scenario.drift_law != "constant"


def learns(scenario: Scenario) -> bool:
    """Whether solve rates move."""
    return scenario.learning_logit_per_step > 0


def growing(scenario: Scenario, kept: dict[str, Any]) -> Scenario:
    """The scenario with the drift that it had, or else the one that the page about growth opens with, over its own steps."""
    if kept:
        return dataclasses.replace(scenario, **kept)
    opening = {knob: value for knob, value in _opening("what_if_answers_grow").items() if knob in NO_DRIFT}
    return dataclasses.replace(scenario, **opening | {"drift_steps": max(1, scenario.training_steps - 1)})


def learning(scenario: Scenario, kept: dict[str, Any]) -> Scenario:
    """The scenario with the learning speed that it had, or else with what the page about prompts opens with."""
    if kept:
        return dataclasses.replace(scenario, **kept)
    opening = {knob: value for knob, value in _opening("which_prompts_teach").items() if knob.startswith(CURRICULUM)}
    if scenario.has_solve_rates:
        opening = {knob: value for knob, value in opening.items() if knob.startswith("learning_")}
    return dataclasses.replace(scenario, **opening)


class WholeRun:
    """Controls and table of the whole run; ``box`` holds them. ``go`` is the page's."""

    def __init__(self, board: Board, status: widgets.HTML, go: Callable[[State, Control | None], None]) -> None:
        self._board, self._go = board, go
        self._loading = False
        self._drift: dict[str, Any] = {}
        self._speed: dict[str, Any] = {}
        self.grow = widgets.Checkbox(description="Answers grow", indent=False)
        self.learn = widgets.Checkbox(description="The policy learns", indent=False)
        self.pick = choice("Published growth", growth_words.names(), "")
        self.table = widgets.HTML()
        guarded(self.grow, self._grown, status)
        guarded(self.learn, self._learned, status)
        guarded(self.pick, self._picked, status)
        self.box = box(
            "rlq-run-of-all",
            [
                box(
                    "rlq-minor",
                    [
                        board.block(STEPS),
                        explained(self.pick, "lengths as they moved in that run, over as many steps"),
                        explained(self.grow, "off: lengths stay as they are at the start"),
                        explained(self.learn, "off: solve rates stay as they are at the start"),
                    ],
                ),
                self.table,
            ],
        )

    def show(self, state: State) -> Way:
        """Bring controls and table to a state; the run along its way."""
        found = way(state)
        self._loading = True
        self.grow.value, self.learn.value = grows(state.scenario), learns(state.scenario)
        if not grows(state.scenario):
            self.pick.value = ""
        self._loading = False
        self.band(found, known_way(state))
        return found

    def band(self, found: Way, bands: WayBands | None) -> None:
        """Show the table with how far its numbers may be off, where that is known."""
        self.table.value = way_words.whole(found, None, bands)

    def _with(self, scenario: Scenario) -> None:
        self._go(dataclasses.replace(self._board.state, scenario=scenario), None)

    def _grown(self, change: dict[str, Any]) -> None:
        if self._loading:
            return
        scenario = self._board.state.scenario
        if change["new"]:
            self._with(growing(scenario, self._drift))
        else:
            self._drift = {knob: getattr(scenario, knob) for knob in NO_DRIFT}
            self._with(without_drift(scenario))

    def _learned(self, change: dict[str, Any]) -> None:
        if self._loading:
            return
        scenario = self._board.state.scenario
        if change["new"]:
            self._with(learning(scenario, self._speed))
        else:
            self._speed = {"learning_logit_per_step": scenario.learning_logit_per_step}
            self._with(without_learning(scenario))

    def _picked(self, change: dict[str, Any]) -> None:
        if self._loading:
            return
        scenario = self._board.state.scenario
        knobs = growth_words.knobs(change["new"], scenario) if change["new"] else dict(NO_DRIFT)
        self._with(dataclasses.replace(scenario, **knobs))
