"""The page "inside one run": one simulated run looked at step by step, while one drags the same sliders as in the explorer.

A move shows a short run at once. When the hand rests, the full run is simulated on the kernel's own loop in slices of some ten
milliseconds, and the next move calls it off; observers stay synchronous.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import anywidget
import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import controls, inside_panels
from rlqueue.app.explorer import about, box, hint
from rlqueue.app.guard import guarded, reported, status_line
from rlqueue.app.inside_figures import figures
from rlqueue.app.inside_runs import Shown, short, slices
from rlqueue.app.plot import STATIC, Plots
from rlqueue.app.state import State, opened, preset_row, with_value
from rlqueue.presets import preset_names
from rlqueue.scenario import Scenario

REST_S = 0.35
"""How long nothing must have moved before the full run begins."""
BREATH_S = 0.004
"""Between two slices of it, for what the page sends meanwhile."""
SEEDS = tuple(range(20))
STEPS_SHOWN = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 50, 100)
STEPS_AT_FIRST = 10
SCHEDULE = next(control for control in controls.MORE if control.knob == "schedule")
log = logging.getLogger(__name__)


def stamp(scenario: Scenario, seed: int, steps: int, *, full: bool) -> str:
    """What the drawn figures carry to say which run they show."""
    return (
        f"{scenario.trainer_gpus}:{scenario.generator_gpus} S={scenario.max_staleness:g} C={scenario.concurrency} "
        f"{scenario.schedule} seed={seed} last={steps} {'full' if full else 'short'}"
    )


def page() -> None:
    """Show the page in a notebook."""
    display(Inside().box)


class Aids(anywidget.AnyWidget):
    """The explorer's aids and style, and this page's own."""

    _esm = STATIC / "aids.js"
    _css = "\n".join((STATIC / name).read_text() for name in ("explorer.css", "inside.css"))


class Inside:
    """The page's widgets around one scenario, one seed and the run that is shown; ``box`` holds them all."""

    def __init__(self) -> None:
        self.state = opened()
        self.seed, self.steps = SEEDS[0], STEPS_AT_FIRST
        self.shown = short(self.state.scenario, self.seed)
        self._loading = False
        self._task: asyncio.Task | None = None
        self._status = status_line()
        self._build()
        self._arrange()
        self._show(self.shown)
        self._listen()
        self._rest()

    # What happens

    def _moved(self, control: controls.Control, change: dict[str, Any]) -> None:
        if self._loading:
            return
        value = controls.meant(control, change["new"])
        scenario = with_value(self.state.scenario, control.knob, value)
        self._go(State(preset=self.state.preset, scenario=scenario), self.seed, moved=control)

    def _chosen(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self._go(opened(change["new"]), self.seed)

    def _reseeded(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self._go(self.state, change["new"])

    def _rewound(self, change: dict[str, Any]) -> None:
        self.steps = change["new"]
        self._draw()

    def _reset(self, _: Any) -> None:
        self._go(opened(self.state.preset), SEEDS[0])

    def _go(self, state: State, seed: int, moved: controls.Control | None = None) -> None:
        """Take a new state: simulate first, so that a scenario that can't be answered changes nothing."""
        found = short(state.scenario, seed)
        self._stop()
        self.state, self.seed = state, seed
        self._show(found, moved)
        self._rest()

    # The full run

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _rest(self) -> None:
        """Begin the full run, unless the hand moves; without a loop (a plain Python program) there is only the short run."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._task = loop.create_task(self._simulate())
        self._task.add_done_callback(self._ended)

    async def _simulate(self) -> None:
        await asyncio.sleep(REST_S)
        tenths = 0
        for found in slices(self.state.scenario, self.seed):
            if isinstance(found, Shown):
                self._show(found)
            elif int(10 * found) > tenths:
                tenths = int(10 * found)
                self._progress(found)
            await asyncio.sleep(BREATH_S)

    def _ended(self, task: asyncio.Task) -> None:
        if not task.cancelled() and task.exception():
            log.error("the full run failed", exc_info=task.exception())
            self._about_run.value = (
                '<p class="rlq-run" role="alert">The full run failed; the server\'s log has the details.</p>'
            )

    # What is shown

    def _show(self, found: Shown, moved: controls.Control | None = None) -> None:
        self.shown = found
        self._set_controls(moved)
        self._stall.value = inside_panels.stall_html(found)
        there = found.done_steps > 0
        for widget in (self._plots, self._cards, self._believe):
            widget.layout.display = "" if there else "none"
        if there:
            self._cards.value = inside_panels.cards(found)
            self._believe.value = inside_panels.believe_html(found)
        self._progress(0.0)
        self._about.value = about(self.state)
        for control, line in self._hints.items():
            line.value = hint(control, self.state)
        self._draw()

    def _draw(self) -> None:
        found = self.shown
        named = stamp(found.scenario, self.seed, self.steps, full=found.full)
        self._plots.update(figures(found, self.steps) if found.done_steps else {}, stamp=named)

    def _progress(self, done: float) -> None:
        words = inside_panels.simulated_words(self.shown, self.seed) + inside_panels.progress_words(done)
        self._about_run.value = f'<p class="rlq-run">{words}</p>'

    def _set_controls(self, moved: controls.Control | None) -> None:
        self._loading = True
        try:
            self._preset.value = self.state.preset
            self._seed.value = self.seed
            for control, holder in self._holders.items():
                if control is not moved:
                    controls.show(control, holder, self.state)
        finally:
            self._loading = False

    # What there is

    def _build(self) -> None:
        wide = {"style": {"description_width": "initial"}, "layout": widgets.Layout(width="auto", margin="0")}
        titles = [(preset_row(name)["title"], name) for name in preset_names()]
        self._preset = widgets.Dropdown(options=titles, value=self.state.preset, description="Published run", **wide)
        self._again = widgets.Button(description="Reset", tooltip="Back to the published run", icon="")
        self._about, self._about_run, self._stall = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._stall.add_class("rlq-why")
        self._holders = {control: controls.widget(control, self.state) for control in (*controls.MAIN, SCHEDULE)}
        self._hints = {control: widgets.HTML() for control in self._holders}
        self._seed = widgets.SelectionSlider(options=SEEDS, value=self.seed, description="Seed", **wide)
        self._window = widgets.SelectionSlider(options=STEPS_SHOWN, value=self.steps, description="Steps shown", **wide)
        self._cards, self._believe = widgets.HTML(), widgets.HTML()
        self._plots = Plots(figures(self.shown, self.steps))

    def _arrange(self) -> None:
        header = box("rlq-header", [self._preset, self._again, self._about])
        sliders = box("rlq-sliders", [_block(self._holders[each], self._hints[each]) for each in controls.MAIN])
        minor = box("rlq-minor", [
            _block(self._holders[SCHEDULE], self._hints[SCHEDULE]),
            _block(self._seed, _said("of the draws: with one seed every setting meets the same prompts")),
            _block(self._window, _said("the last ones of the run, in the two figures over time")),
        ])  # fmt: skip
        self.box = box(
            "rlq-explorer",
            [
                Aids(),
                header,
                sliders,
                minor,
                self._status,
                self._about_run,
                self._stall,
                self._plots,
                self._cards,
                self._believe,
            ],
        )
        self.box.add_class("rlq-inside")

    def _listen(self) -> None:
        guarded(self._preset, self._chosen, self._status)
        guarded(self._seed, self._reseeded, self._status)
        guarded(self._window, self._rewound, self._status)
        for control, holder in self._holders.items():
            guarded(holder, partial(self._moved, control), self._status, controls.checked(control, holder))
        self._again.on_click(reported(self._reset, self._status))


def _said(words: str) -> widgets.HTML:
    return widgets.HTML(f'<p class="rlq-hint"><span>{words}</span></p>')


def _block(holder: widgets.Widget, words: widgets.HTML) -> widgets.Box:
    return box("rlq-control", [holder, words])
