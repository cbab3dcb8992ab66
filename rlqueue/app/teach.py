"""The page "which prompts teach?": a pool of prompts while a run goes on, what its groups teach, what choosing is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue import published
from rlqueue.app import strategies, teach_words
from rlqueue.app.along import Along
from rlqueue.app.guard import guarded
from rlqueue.app.moving_knobs import (
    CHOOSING,
    DIFFICULTY,
    GROUP_SIZE,
    LEARNING,
    MORE_OF_CURRICULUM,
    OF_SAMPLERS,
    PROMPTS,
    STEPS,
)
from rlqueue.app.page import box, choice, explained, slider
from rlqueue.app.state import State
from rlqueue.app.teach_figures import figures
from rlqueue.app.walk import Reached
from rlqueue.app.way_words import TEACH
from rlqueue.scenario import Scenario

TARGETS = [round(0.05 * place, 2) for place in range(1, 20)]
FIRST_TARGET = 0.6


def page(state: State | None = None) -> None:
    """Show the page in a notebook."""
    display(Teach(state).box)


class Teach(Along):
    """Knobs of the pool and of learning, figures of what groups teach, and the strategies side by side."""

    name = "teach"
    opening = "which_prompts_teach"
    first = "slime-qwen3-235b"
    knobs = (*DIFFICULTY, *LEARNING, GROUP_SIZE)
    minor = (*CHOOSING, *OF_SAMPLERS, STEPS)
    more = (*MORE_OF_CURRICULUM, PROMPTS)
    cards = TEACH
    published = (published.dapo_all_solved,)

    def figures(self) -> dict[str, Any]:
        return figures(self.way, self.walked, self.step, teach_words.published(self.against.value))

    def _build(self) -> None:
        self.against = choice("Published series", teach_words.published_names(), "")
        super()._build()

    def build(self) -> None:
        self.target = slider("Target solve rate", [(f"{each:.0%}", each) for each in TARGETS], FIRST_TARGET)
        self.ways = widgets.HTML()
        self._came: Mapping[Any, Reached] = {}
        self._found: list[strategies.Strategy] = []
        guarded(self.target, self._aimed, self.status)
        guarded(self.against, lambda _: self.draw(), self.status)

    def arranged(self) -> list[widgets.Widget]:
        aim = box("rlq-minor", [
            explained(self.target, "mean of the pool; the table below is how each way gets there"),
            explained(self.against, "share of all-solved prompts or groups over the steps, drawn beside"),
        ])  # fmt: skip
        return [
            self.board.header(self.sharing),
            self.board.blocks(self.knobs), self.board.blocks(self.minor, "rlq-minor"), self.status,
            self.scrubbing(), self.how, self.numbers, self.verdict, self.plots, aim, self.ways, self.whole,
            self.folded(teach_words.assumptions(), about="learning"),
        ]  # fmt: skip

    def has_what_it_shows(self, scenario: Scenario) -> bool:
        return scenario.learning_logit_per_step > 0

    def _aimed(self, _: dict[str, Any]) -> None:
        self._came, self._found = {}, []
        self._begin()

    def shown(self) -> None:
        """The strategies are another eight runs: they are computed when the hand rests."""
        self._came, self._found = {}, []
        self.ways.value = teach_words.waiting(self.ways.value)

    async def further(self) -> None:
        scenario = self.state.scenario
        if not scenario.has_solve_rates:
            self.ways.value = ""
            return
        self._found = strategies.strategies(scenario, self.target.value)
        self._list({})
        await strategies.simulated(self._found, self.target.value, self.seed, self._list)

    def _list(self, came: Mapping[Any, Reached]) -> None:
        self._came = came
        self.ways.value = strategies.table(self._found, came, self.state.scenario, self.target.value)
