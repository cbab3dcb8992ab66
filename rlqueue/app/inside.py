"""The page "inside one run": one simulated run looked at step by step, while one drags the same sliders as in the explorer.

A move shows a short run at once. When the hand rests, the full run is simulated on the kernel's own loop in slices of some ten
milliseconds, and the next move calls it off; observers stay synchronous.
"""

from __future__ import annotations

import asyncio
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import controls, inside_panels, share
from rlqueue.app.banded import banded, known
from rlqueue.app.board import Board
from rlqueue.app.guard import guarded, status_line
from rlqueue.app.inside_figures import figures
from rlqueue.app.inside_runs import Shown, short, slices
from rlqueue.app.page import STATIC, AtRest, box, explained, page_box, slider
from rlqueue.app.plot import Plots
from rlqueue.app.runs import workers
from rlqueue.app.sharing import Sharing, scenario_file
from rlqueue.app.state import State, opened
from rlqueue.scenario import Scenario

BREATH_S = 0.004
"""Between two slices of the full run, for what the page sends meanwhile."""
SEEDS = tuple(range(20))
STEPS_SHOWN = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 50, 100)
STEPS_AT_FIRST = 10
SCHEDULE = next(control for control in controls.MORE if control.knob == "schedule")


def stamp(scenario: Scenario, seed: int, steps: int, *, full: bool) -> str:
    """What the drawn figures carry to say which run they show."""
    return (
        f"{scenario.trainer_gpus}:{scenario.generator_gpus} S={scenario.max_staleness:g} C={scenario.concurrency} "
        f"{scenario.schedule} seed={seed} last={steps} {'full' if full else 'short'}"
    )


def page(state: State | None = None) -> None:
    """Show the page in a notebook; with the first preset unless a state is given."""
    display(Inside(state).box)


class Inside:
    """The page's widgets around one scenario, one seed and the run that is shown; ``box`` holds them all."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or opened()
        self.seed, self.steps = SEEDS[0], STEPS_AT_FIRST
        self.shown = short(self.state.scenario, self.seed)
        self._loading = False
        self._status = status_line()
        self._board = Board(self.state, (*controls.MAIN, SCHEDULE), self._status, self._went, reset=self._first_seed)
        self._share = Sharing(self._status, self._restored)
        self._share.offer({"toml": lambda: scenario_file(self.state.scenario), "csv": self._csv})
        self._rest = AtRest(self._failed)
        self._build()
        self._arrange()
        self._show(self.shown)
        guarded(self._seed, self._reseeded, self._status)
        guarded(self._window, self._rewound, self._status)
        self._plots.when_opened(self._begin)

    # What happens

    def _went(self, state: State, moved: controls.Control | None) -> None:
        self._go(state, self.seed, moved)

    def _restored(self, query: str) -> None:
        """A page has opened at an address that holds a scenario, and perhaps a seed."""
        state, own = share.read(query, own=("seed",))
        seed = own.get("seed", str(SEEDS[0]))
        if seed not in map(str, SEEDS):
            raise ValueError(f"seed={seed!r:.20} must be a whole number in [{SEEDS[0]}, {SEEDS[-1]}]")
        self._go(state, int(seed))

    def _csv(self) -> tuple[str, str]:
        text = self.shown.run.steps.to_csv(index=False, lineterminator="\n")
        return f"{self.state.scenario.name}-seed{self.seed}.csv", text

    def _reseeded(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self._go(self.state, change["new"])

    def _first_seed(self) -> None:
        self.seed = SEEDS[0]

    def _rewound(self, change: dict[str, Any]) -> None:
        self.steps = change["new"]
        self._draw()

    def _go(self, state: State, seed: int, moved: controls.Control | None = None) -> None:
        """Take a new state: simulate first, so that a scenario that can't be answered changes nothing."""
        found = short(state.scenario, seed)
        self.state, self.seed = state, seed
        self._show(found, moved)
        self._begin()

    # The full run

    def _begin(self) -> None:
        """Have the full run done, unless the hand moves; without a loop there is only the short run."""
        self._rest.begin(self._simulate)

    async def _simulate(self) -> None:
        tenths = 0
        for found in slices(self.state.scenario, self.seed):
            if isinstance(found, Shown):
                self._show(found)
            elif int(10 * found) > tenths:
                tenths = int(10 * found)
                self._progress(found)
            await asyncio.sleep(BREATH_S)
        await asyncio.get_running_loop().run_in_executor(workers(), banded, self.state)
        if self.shown.done_steps:
            self._cards.value = inside_panels.cards(self.shown, known(self.state))

    def _failed(self) -> None:
        self._about_run.value = (
            '<p class="rlq-run" role="alert">The full run failed; the server\'s log has the details.</p>'
        )

    # What is shown

    def _show(self, found: Shown, moved: controls.Control | None = None) -> None:
        self.shown = found
        self._board.show(self.state, moved)
        self._share.elsewhere = share.query(self.state)  # no other page knows of seeds
        self._share.query, self._share.stem = share.query(self.state, seed=self.seed), self.state.scenario.name
        self._loading = True
        self._seed.value = self.seed
        self._loading = False
        self._stall.value = inside_panels.stall_html(found)
        there = found.done_steps > 0
        for widget in (self._plots, self._cards, self._believe):
            widget.layout.display = "" if there else "none"
        if there:
            self._cards.value = inside_panels.cards(found, known(self.state))
            self._believe.value = inside_panels.believe_html(found)
        self._progress(0.0)
        self._draw()

    def _draw(self) -> None:
        found = self.shown
        named = stamp(found.scenario, self.seed, self.steps, full=found.full)
        self._plots.update(figures(found, self.steps), stamp=named)

    def _progress(self, done: float) -> None:
        words = inside_panels.simulated_words(self.shown, self.seed) + inside_panels.progress_words(done)
        self._about_run.value = f'<p class="rlq-run">{words}</p>'

    # What there is

    def _build(self) -> None:
        self._about_run, self._stall = widgets.HTML(), widgets.HTML()
        self._stall.add_class("rlq-why")
        self._seed = slider("Seed", SEEDS, self.seed)
        self._window = slider("Steps shown", STEPS_SHOWN, self.steps)
        self._cards, self._believe = widgets.HTML(), widgets.HTML()
        self._plots = Plots(figures(self.shown, self.steps))

    def _arrange(self) -> None:
        minor = box(
            "rlq-minor",
            [
                self._board.block(SCHEDULE),
                explained(self._seed, "of the draws: with one seed every setting meets the same prompts"),
                explained(self._window, "the last ones of the run, in the two figures over time"),
            ],
        )
        self.box = page_box(
            [
                self._board.header(self._share),
                self._board.blocks(controls.MAIN),
                minor,
                self._status,
                self._about_run,
                self._stall,
                self._plots,
                self._cards,
                self._believe,
            ],
            name="rlq-inside",
            sheet=STATIC / "inside.css",
        )
