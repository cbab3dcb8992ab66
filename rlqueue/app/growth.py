"""The page "what if answers grow?": lengths that move while a run goes on, and what that does to memory, waiting and cost."""

from __future__ import annotations

import dataclasses
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue import published
from rlqueue.app import controls, growth_words
from rlqueue.app.along import Along
from rlqueue.app.growth_figures import figures
from rlqueue.app.guard import guarded
from rlqueue.app.moving_knobs import BETWEEN, GROWTH, KV_PRECISION, LENGTH, LONGEST, MORE_OF_GROWTH, STEPS, WITHIN
from rlqueue.app.page import box, choice, explained
from rlqueue.app.state import State
from rlqueue.app.way_words import GROW
from rlqueue.scenario import Scenario


def page(state: State | None = None) -> None:
    """Show the page in a notebook."""
    display(Growth(state).box)


class Growth(Along):
    """Knobs of length and its growth, published growths to pick, and figures of lengths, memory, time and cost."""

    name = "growth"
    opening = "what_if_answers_grow"
    first = "verl-qwen3-235b-c360"
    knobs = (GROWTH[0], LENGTH, LONGEST, BETWEEN, WITHIN, controls.CONCURRENCY)
    minor = (*GROWTH[1:], STEPS, KV_PRECISION)
    more = MORE_OF_GROWTH
    cards = GROW
    published = (published.prime_rollout_time, published.glm_rollout_time)

    def figures(self) -> dict[str, Any]:
        key = self.drifts.value
        return figures(
            self.way, self.walked, self.step, growth_words.published(key, self.state.scenario), growth_words.title(key)
        )

    def _build(self) -> None:
        self.drifts = choice("Published growth", growth_words.names(), "")
        super()._build()

    def build(self) -> None:
        guarded(self.drifts, self._picked, self.status)

    def arranged(self) -> list[widgets.Widget]:
        pick = box(
            "rlq-minor",
            [explained(self.drifts, "sets growth, law and steps as that run had them; its values are drawn beside")],
        )
        return [
            self.board.header(self.sharing), pick,
            self.board.blocks(self.knobs), self.board.blocks(self.minor, "rlq-minor"), self.status,
            self.scrubbing(), self.how, self.numbers, self.verdict, self.plots, self.whole,
            self.folded(growth_words.assumptions(), about="growth"),
        ]  # fmt: skip

    def has_what_it_shows(self, scenario: Scenario) -> bool:
        return scenario.drift_law != "constant"

    def _picked(self, change: dict[str, Any]) -> None:
        if self._loading:
            return
        if change["new"]:
            knobs = growth_words.knobs(change["new"], self.state.scenario)
            self.go(dataclasses.replace(self.state, scenario=dataclasses.replace(self.state.scenario, **knobs)))
        else:
            self.draw()

    def go(self, state: State, moved: Any = None) -> None:
        """Another run has another growth."""
        if state.preset != self.state.preset and self.drifts.value:
            self._loading = True
            self.drifts.value = ""
            self._loading = False
        super().go(state, moved)
