"""What a page is made of besides figures and knobs: its outer box, controls of its own, and work for when the hand rests.

A page is a class that holds one frozen state, computes everything from it, and shows that; ``inside.py`` is a whole one. The
parts, and where they are::

    class Growth:
        def __init__(self) -> None:
            self._status = status_line()                                   # guard: refusals and errors appear here
            self._board = Board(opened(), KNOBS, self._status, self._go)   # board: preset picker, reset, knobs with hints
            self._seed = slider("Seed", range(20), 0)                      # a control that is no knob of the scenario
            self._plots = Plots(figures(self._found))                      # plot: all figures, redrawn together
            self._rest = AtRest(self._failed)                              # longer work, called off by the next move
            self.box = page_box([self._board.header(), self._board.blocks(KNOBS), self._status, self._plots])
            guarded(self._seed, self._reseeded, self._status)              # never a bare observe()
            self._plots.when_opened(self._begin)                           # a kernel kept warm works for nobody

        def _go(self, state: State, moved: Control | None = None) -> None:
            found = answer(state)             # first: a ValueError here is shown, and nothing has changed
            self._board.show(state, moved)    # controls, hints, source; the one under the hand is left alone
            self._plots.update(figures(found), stamp=...)
            self._begin()

A knob becomes a control by a row of ``controls.Control``: unit, meaning and limits are the scenario's. The notebook has two cells
(a title, and ``page()``) and two names in its metadata: ``title`` of the browser's tab, and ``nav``, the two or three words by
which other pages link to it; the order of the links is in ``server.ORDER``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets

STATIC = Path(__file__).parent / "static"
REST_S = 0.3
"""The hand rests when nothing has moved for so long."""
log = logging.getLogger(__name__)


class Aids(anywidget.AnyWidget):
    """What ipywidgets leaves out for keyboards and screen readers, and the style of a page; the same in Voila and JupyterLab."""

    _esm = STATIC / "aids.js"
    _css = STATIC / "sheet.css"


def box(name: str, children: Iterable[widgets.Widget]) -> widgets.Box:
    """A box that CSS lays out under a class name."""
    made = widgets.Box(list(children))
    made.add_class(name)
    return made


def page_box(children: Iterable[widgets.Widget], *, name: str = "", sheet: Path | None = None) -> widgets.Box:
    """The outermost box. ``name``: a class of the page's own, for the style sheet that it brings."""
    style = [] if sheet is None else [widgets.HTML(f"<style>{sheet.read_text()}</style>", layout={"display": "none"})]
    made = box("rlq-page", [Aids(), *style, *children])
    if name:
        made.add_class(name)
    return made


WIDE = {"style": {"description_width": "initial"}}


def slider(label: str, stops: Sequence[Any], value: Any) -> widgets.SelectionSlider:
    """A control of the page's own: a page can send no more than a place among the stops (values, or texts with values)."""
    return widgets.SelectionSlider(options=stops, value=value, description=label, layout=_whole_width(), **WIDE)


def choice(label: str, options: Sequence[Any], value: Any) -> widgets.Dropdown:
    """A choice of the page's own among options (values, or texts with values)."""
    return widgets.Dropdown(options=options, value=value, description=label, layout=_whole_width(), **WIDE)


def _whole_width() -> widgets.Layout:
    return widgets.Layout(width="auto", margin="0")


def explained(holder: widgets.Widget, words: str = "") -> widgets.Box:
    """A control with a line of text below it."""
    return box("rlq-control", [holder, widgets.HTML(f'<p class="rlq-hint"><span>{escape(words)}</span></p>')])


def played(holder: widgets.SelectionSlider, words: str = "") -> widgets.Box:
    """A slider with a button that walks it to its end; each step waits for the drawing of the one before (aids.js)."""
    button = widgets.Button(description="Play", tooltip="Walk this slider to its end")
    button.add_class("rlq-play")
    made = explained(holder, words)
    made.children = (*made.children, button)
    made.add_class("rlq-played")
    return made


class AtRest:
    """One piece of work that begins when nothing has moved for a while, and that the next move calls off.

    It runs on the kernel's own loop, so it must be short between two ``await``; where there is no loop (a plain interpreter)
    nothing happens, and the page keeps what it showed at once.
    """

    def __init__(self, failed: Callable[[], None], rest_s: float | None = None) -> None:
        self._failed, self._rest_s = failed, rest_s
        self.task: asyncio.Task | None = None

    def begin(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have this done when the hand rests; what was under way is called off."""
        self.stop()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self.task = loop.create_task(self._work(work))

    def stop(self) -> None:
        """Call off what is under way."""
        if self.task is not None:
            self.task.cancel()
            self.task = None

    async def _work(self, work: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(REST_S if self._rest_s is None else self._rest_s)
        try:
            await work()
        except Exception:
            log.exception("what was begun when the hand rested failed")  # what was there at once is still on the page
            self._failed()
