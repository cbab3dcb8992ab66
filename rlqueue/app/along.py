"""A page over a run's steps: the knobs of one run, a step that is looked at and can be played, and a run simulated at rest.

Two pages are made of it, ``teach`` and ``growth``: each brings its knobs, its figures and its cards. While the hand moves all is
closed form; what was simulated of another scenario is taken away at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from rlqueue.app import against, controls, page_table, share, way_words
from rlqueue.app.banded_way import banded_way, known_way
from rlqueue.app.board import Board
from rlqueue.app.controls import Control
from rlqueue.app.guard import guarded, status_line
from rlqueue.app.moving_knobs import STEPS
from rlqueue.app.page import STATIC, AtRest, box, explained, page_box, played, slider
from rlqueue.app.plot import Plots
from rlqueue.app.runs import workers
from rlqueue.app.sharing import Sharing, scenario_file
from rlqueue.app.state import State, opened, started
from rlqueue.app.walk import Walked, walk
from rlqueue.app.way import POINTS, Way, way
from rlqueue.provenance import quantities
from rlqueue.scenario import Scenario

SEEDS = tuple(range(10))
PUBLISHED_FOLD = 2
FIRST_PLACE = POINTS // 3
"""Place among the steps on offer that is looked at first."""


class Along:
    """The page's widgets around one state, one step and one seed; ``box`` holds them all.

    Attributes:
        name: of the page's class in the style sheet. opening, first: of data/page_openings.csv, and the preset it opens with.
        knobs, minor, more: the controls in sight, in a smaller row below them, and folded away. cards: of the step looked at.
    """

    name = ""
    opening = ""
    first = ""
    knobs: Sequence[Control] = ()
    minor: Sequence[Control] = ()
    more: Sequence[Control] = ()
    cards: Sequence[way_words.Number] = ()
    published: Sequence[against.Series] = ()

    def __init__(self, state: State | None = None) -> None:
        self.state = state or opened(self.first, self.opening)
        self.way: Way = way(self.state)
        self.walked: Walked | None = None
        self.seed, self._loading = SEEDS[0], False
        self.status = status_line()
        self.board = Board(self.state, self.every_knob, self.status, self.go, reset=self._first_seed)
        self.sharing = Sharing(self.status, self._restored)
        self.sharing.offer({"toml": lambda: scenario_file(self.state.scenario), "csv": self._csv})
        self.rest = AtRest(self._failed)
        self._build()
        self.build()
        self.box = page_box(self.arranged(), name="rlq-along", sheet=STATIC / "along.css")
        self.box.add_class(f"rlq-{self.name}")
        self.show()
        guarded(self.scrub, self._scrubbed, self.status)
        guarded(self.seeds, self._reseeded, self.status)
        self.folds.observe(self._unfolded, "selected_index")
        self.plots.when_opened(self._begin)

    # What each page brings

    @property
    def every_knob(self) -> tuple[Control, ...]:
        """All controls of the page, each once."""
        return tuple(dict.fromkeys((*self.knobs, *self.minor, STEPS, *self.more, *controls.MAIN)))

    def figures(self) -> dict[str, Any]:
        """All figures, at the step that is looked at."""
        raise NotImplementedError

    def build(self) -> None:
        """Make what the page has of its own."""

    def arranged(self) -> list[widgets.Widget]:
        """Everything on the page, from top to bottom."""
        raise NotImplementedError

    def shown(self) -> None:
        """Bring what the page has of its own to the state."""

    async def further(self) -> None:
        """What else is computed when the hand rests, after the run."""

    # What happens

    def go(self, state: State, moved: Control | None = None) -> None:
        """Take a new state: compute first, so that a scenario that can't be answered changes nothing."""
        found = way(state)
        self.rest.stop()
        self.state, self.way, self.walked = state, found, None
        self.show(moved)
        self._begin()

    def _scrubbed(self, _: dict[str, Any]) -> None:
        if not self._loading:
            self.draw()

    def _reseeded(self, change: dict[str, Any]) -> None:
        self.seed, self.walked = change["new"], None
        if not self._loading:
            self.draw()
            self._begin()

    def _first_seed(self) -> None:
        self._loading = True
        self.seeds.value = SEEDS[0]
        self._loading = False

    def _restored(self, query: str) -> None:
        """A page has opened at an address that holds a scenario: of this page, or of another, where nothing may have moved."""
        state, own = share.read(query, opening=self.opening, own=(share.PLACE,))
        if own.get(share.PLACE) != self.name and not self.has_what_it_shows(state.scenario):
            state = dataclasses.replace(state, scenario=self._completed(state))
        self.go(state)

    def _completed(self, state: State) -> Scenario:
        """With what the page opens with, where the scenario has the preset's own; its solve rates stay, if it has any."""
        scenario, plain = state.scenario, started(state.preset)
        over = {
            knob: fact.value
            for knob, fact in quantities("page_openings", self.opening).items()
            if getattr(scenario, knob) == getattr(plain, knob)
            and not (scenario.has_solve_rates and knob.startswith("solve_rate_"))
        }
        return dataclasses.replace(scenario, **over)

    def has_what_it_shows(self, scenario: Scenario) -> bool:
        """Whether a scenario from another page has something to show on this one."""
        raise NotImplementedError

    def _csv(self) -> tuple[str, str]:
        return f"{self.sharing.stem}.csv", page_table.csv(page_table.of_way(self.way, self.walked))

    # When the hand rests

    def _begin(self) -> None:
        self.rest.begin(self._longer)

    async def _longer(self) -> None:
        await walk(self.state.scenario, self.seed, self._walked)
        await self._banded()  # after the compiled runs: a sample holds the interpreter for as long as a redraw's tenth
        await self.further()
        self.how.value = way_words.how(self.walked, "done")

    async def _banded(self) -> None:
        await banded_way(self.state)
        self._numbers()

    def _walked(self, walked: Walked) -> None:
        self.walked = walked
        self.draw("" if walked.done else f"{walked.steps / walked.asked:.0%}")

    def _failed(self) -> None:
        self.how.value = way_words.how(self.walked, "what was simulated failed; the server's log has the details")

    def _unfolded(self, change: dict[str, Any]) -> None:
        """The published series are fitted when somebody asks for them, beside the page's own loop."""
        if change["new"] == PUBLISHED_FOLD and not self._against.value:
            self._against.value = "<p>Fitting &hellip;</p>"
            self._fitting.begin(self._fit)

    async def _fit(self) -> None:
        loop = asyncio.get_running_loop()
        self._against.value = await loop.run_in_executor(workers(), against.tables, self.published)

    def _not_fitted(self) -> None:
        self._against.value = "<p>The fit failed; the server's log has the details.</p>"

    # What is shown

    @property
    def step(self) -> int:
        """The step that is looked at."""
        return int(self.scrub.value)

    def show(self, moved: Control | None = None) -> None:
        """Bring everything to the state."""
        self.board.show(self.state, moved)
        self.sharing.query = share.query(self.state, **{share.PLACE: self.name})
        self.sharing.stem = f"{self.state.scenario.name}-{self.name}"
        self._set_steps()
        self.shown()
        self.draw()

    def draw(self, progress: str = "") -> None:
        """Bring numbers and figures to the step that is looked at, and to what was simulated so far."""
        self._numbers()
        self.verdict.value = way_words.verdict(self.way, self.walked)
        self.how.value = way_words.how(self.walked, progress)
        self.plots.update(self.figures(), stamp=self.stamp)

    def _numbers(self) -> None:
        bands = known_way(self.state)
        self.numbers.value = way_words.cards(self.cards, self.way, self.walked, self.step, bands)
        self.whole.value = way_words.whole(self.way, self.walked, bands)

    @property
    def stamp(self) -> str:
        """What the drawn figures carry to say what they show: the scenario, the step and seed, and how much is simulated."""
        s, simulated = self.state.scenario, 0 if self.walked is None else self.walked.steps
        scenario = f"{s.name} {zlib.crc32(repr(s).encode()):08x}"
        return f"{scenario} step={self.step} of {s.training_steps} seed={self.seed} simulated={simulated}"

    def _set_steps(self) -> None:
        """Offer the solved steps; the place along the run stays."""
        steps = self.way.steps.tolist()
        if [value for _, value in self.scrub.options] == steps:
            return
        place = self.scrub.index / max(1, len(self.scrub.options) - 1)
        self._loading = True
        self.scrub.index = 0
        self.scrub.options = _labelled(steps)
        self.scrub.index = round(place * (len(steps) - 1))
        self._loading = False

    # What there is

    def _build(self) -> None:
        steps = self.way.steps.tolist()
        self.scrub = slider("Step looked at", _labelled(steps), steps[min(FIRST_PLACE, len(steps) - 1)])
        self.seeds = slider("Seed", SEEDS, self.seed)
        self.numbers, self.verdict, self.whole, self.how = (widgets.HTML() for _ in range(4))
        self.plots = Plots(self.figures())
        self._against, self._fitting = widgets.HTML(), AtRest(self._not_fitted, rest_s=0.0)

    def folded(self, assumptions: str, *, about: str) -> widgets.Accordion:
        """What is folded away: the rest of the knobs, what is assumed, and the published series."""
        self.folds = widgets.Accordion(
            [self.rest_of_knobs(), widgets.HTML(assumptions), self._against],
            titles=("More knobs of this run", f"What is assumed about {about}", "Against published runs"),
        )
        return self.folds

    def scrubbing(self) -> widgets.Box:
        """The step that is looked at, with its button."""
        words = "of the run, in all figures and numbers; Play walks to the end"
        return box("rlq-scrub", [played(self.scrub, words)])

    def rest_of_knobs(self) -> widgets.Box:
        """The controls that are folded away."""
        seed = explained(self.seeds, "of the simulated run's draws")
        made = self.board.blocks([*self.more, *controls.MAIN], "rlq-more")
        made.children = (*made.children, seed)
        return made


def _labelled(steps: Sequence[int]) -> list[tuple[str, int]]:
    return [(f"{step:,}", int(step)) for step in steps]
