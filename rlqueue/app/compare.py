"""The page "side by side": two to four scenarios, what knobs and numbers differ by with one of them as 1.00×, and their curves.

A link to this page may hold the scenarios themselves (``a``, ``b``, ...: queries of their own), or one scenario as any other page
writes it, which is then compared with its published run.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import compare_words, controls, page_table, share
from rlqueue.app.answers import Answer, answer
from rlqueue.app.banded import Known, banded, known
from rlqueue.app.banded_way import WayBands, banded_way, known_way
from rlqueue.app.board import Board
from rlqueue.app.compare_figures import figures
from rlqueue.app.explorer import stamp
from rlqueue.app.guard import guarded, status_line
from rlqueue.app.page import STATIC, AtRest, box, choice, explained, page_box
from rlqueue.app.plot import Plots
from rlqueue.app.refining import SEEDS, point_fidelity
from rlqueue.app.runs import outcome, workers
from rlqueue.app.sharing import Sharing, scenario_file
from rlqueue.app.simulated import gathered
from rlqueue.app.state import State, opened
from rlqueue.app.way import Way, way
from rlqueue.presets import preset_names

LETTERS = ("a", "b", "c", "d")
LEAST = 2
PATIENCE = 4_000_000
"""Events after which a run without a step is given up."""


def page(states: Sequence[State] = ()) -> None:
    """Show the page in a notebook; with the first published runs unless states are given."""
    display(Compare(states).box)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One scenario with what is known about it. ``known``, ``run``: bands of its point, and of its whole run."""

    letter: str
    state: State
    found: Answer
    way: Way
    known: Known | None
    run: WayBands | None

    @property
    def name(self) -> str:
        changed = "" if self.state.untouched else ", changed"
        return f"{self.letter.upper()} · {self.state.preset}{changed}"


class Compare:
    """The page's widgets around two to four states; ``box`` holds them all."""

    def __init__(self, states: Sequence[State] = ()) -> None:
        names = preset_names()
        states = [*states, *(opened(names[k % len(names)]) for k in range(len(states), len(LETTERS)))]
        self.count, self.base = LEAST, 0
        self._loading = False
        self._status = status_line()
        self.columns = [column(letter, state) for letter, state in zip(LETTERS, states, strict=True)]
        self._boards = [
            Board(each.state, controls.MAIN, self._status, partial(self._go, place))
            for place, each in enumerate(self.columns)
        ]
        self._share = Sharing(self._status, self._restored)
        self._rest = AtRest(self._failed)
        self._build()
        self._show()
        guarded(self._how_many, self._counted, self._status)
        guarded(self._which, self._based, self._status)
        self._plots.when_opened(self._begin)

    @property
    def shown(self) -> list[Column]:
        """The columns in sight."""
        return self.columns[: self.count]

    # What happens

    def _go(self, place: int, state: State, moved: controls.Control | None = None) -> None:
        """Take a new state for one column: compute first, so that a scenario that can't be answered changes nothing."""
        self.columns[place] = column(LETTERS[place], state)
        self._boards[place].show(state, moved)
        self._show()
        self._begin()

    def _counted(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self.count = change["new"]
            self.base = min(self.base, self.count - 1)
            self._show()
            self._begin()

    def _based(self, change: dict[str, Any]) -> None:
        if not self._loading:
            self.base = min(LETTERS.index(change["new"]), self.count - 1)
            self._show()

    def _restored(self, query: str) -> None:
        """A page has opened at an address: with scenarios of this page, or with one of another."""
        states = read(query)
        self.columns[: len(states)] = [column(letter, state) for letter, state in zip(LETTERS, states, strict=False)]
        self.count, self.base = len(states), 0
        for board, each in zip(self._boards, self.columns, strict=True):
            board.show(each.state)
        self._show()
        self._begin()

    def _csv(self) -> tuple[str, str]:
        rows = []
        for each in self.shown:
            made = page_table.of_answer(each.found, each.known) + page_table.of_way(each.way)
            rows += [(f"{each.letter}: {name}", *rest) for name, *rest in made]
        return "side-by-side.csv", page_table.csv(rows)

    def _scenario(self, place: int) -> tuple[str, str]:
        each = self.columns[place]
        return scenario_file(each.state.scenario, f"{each.letter}-{each.state.scenario.name}")

    # When the hand rests

    def _begin(self) -> None:
        self._rest.begin(self._longer)

    async def _longer(self) -> None:
        """Several seeds of each scenario, then the bands of its inputs."""
        loop = asyncio.get_running_loop()
        for place, each in enumerate(self.shown):
            self.columns[place] = await loop.run_in_executor(workers(), seeds, each)
            self._show_numbers()
            await asyncio.sleep(0)
        for place, each in enumerate(self.shown):
            found = await loop.run_in_executor(workers(), banded, each.state.first)
            run = await banded_way(each.state)
            self.columns[place] = dataclasses.replace(self.columns[place], known=found, run=run)
            self._show_numbers()
        self._how.value = compare_words.how(self.shown, done=True)

    def _failed(self) -> None:
        self._how.value = compare_words.how(self.shown, done=False)

    # What is shown

    def _show(self) -> None:
        self._loading = True
        self._how_many.value = self.count
        self._which.index = self.base
        self._loading = False
        for place, holder in enumerate(self._holders):
            holder.layout.display = "" if place < self.count else "none"
        query = urlencode({each.letter: share.query(each.state) for each in self.shown})
        self._share.elsewhere = share.query(self.shown[-1].state)
        self._share.query, self._share.stem = query, "side-by-side"
        scenarios = {f"toml-{each.letter}": partial(self._scenario, place) for place, each in enumerate(self.shown)}
        self._share.offer(scenarios | {"csv": self._csv})
        self._show_numbers()

    def _show_numbers(self) -> None:
        self._numbers.value = compare_words.numbers(self.shown, self.base)
        self._knobs.value = compare_words.knobs(self.shown, self.base)
        self._how.value = compare_words.how(self.shown, done=False)
        self._plots.update(figures(self.shown), stamp=self.stamp)

    @property
    def stamp(self) -> str:
        """What the drawn figures carry to say which scenarios they show."""
        return " ".join(f"{each.letter}={each.state.preset} {stamp(each.state.scenario)}" for each in self.shown)

    # What there is

    def _build(self) -> None:
        self._how_many = choice("Scenarios", [(str(k), k) for k in range(LEAST, len(LETTERS) + 1)], self.count)
        self._which = choice("1.00× is", [(letter.upper(), letter) for letter in LETTERS], LETTERS[0])
        self._numbers, self._knobs, self._how = (widgets.HTML() for _ in range(3))
        self._holders = [self._column(place) for place in range(len(LETTERS))]
        self._plots = Plots(figures(self.columns))
        minor = box(
            "rlq-minor",
            [explained(self._how_many, "side by side"), explained(self._which, "what the others are measured by")],
        )
        self.box = page_box(
            [
                box("rlq-header", [self._share, widgets.HTML()]), minor, self._status, box("rlq-columns", self._holders),
                self._how, self._numbers, self._plots, self._knobs,
            ],
            name="rlq-compare", sheet=STATIC / "compare.css",
        )  # fmt: skip

    def _column(self, place: int) -> widgets.Box:
        title = widgets.HTML(f'<h3 class="rlq-letter rlq-letter-{LETTERS[place]}">{LETTERS[place].upper()}</h3>')
        board = self._boards[place]
        return box(
            "rlq-column", [title, board.preset, board.again, *(board.block(control) for control in controls.MAIN)]
        )


def column(letter: str, state: State) -> Column:
    """A scenario answered by closed form and a short run, and its whole run."""
    return Column(
        letter=letter,
        state=state,
        found=answer(state.first),
        way=way(state),
        known=known(state.first),
        run=known_way(state),
    )


def seeds(each: Column) -> Column:
    """The same with several seeds of a longer run in the place of the short one."""
    found, scenario = each.found, each.found.state.scenario
    fidelity = point_fidelity(scenario)
    came = [outcome(scenario, fidelity, seed, 2 * PATIENCE, patience=PATIENCE) for seed in range(SEEDS)]
    simulated = gathered(
        found.state,
        found.by_split,
        fidelity=fidelity,
        outcomes=came,
        curve_fidelity=fidelity,
        along={scenario.generator_gpus: came},
    )
    return dataclasses.replace(each, found=dataclasses.replace(found, simulated=simulated))


def read(query: str) -> list[State]:
    """The scenarios that a query means: its own ones, or one and the published run it comes from. Raises ValueError."""
    from urllib.parse import parse_qsl

    if len(query) > len(LETTERS) * share.LONGEST:
        raise ValueError(f"link: {len(query)} characters must be <= {len(LETTERS) * share.LONGEST}")
    pairs = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=share.MOST))
    if set(pairs) and set(pairs) <= set(LETTERS):
        wanted = LETTERS[: len(pairs)]
        if set(pairs) != set(wanted) or len(pairs) < LEAST:
            raise ValueError(f"link: scenarios {', '.join(sorted(pairs))} must be {LEAST} to {len(LETTERS)}, from a on")
        return [share.read(pairs[letter])[0] for letter in wanted]
    state, _ = share.read(query, own=("seed",))
    return [opened(state.preset), state]
