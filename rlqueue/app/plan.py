"""The page "how do I split my GPUs?": a published run, GPUs, a goal and limits in; the plan, its neighbours and its doubts out.

A plan takes some seconds: it is made when the hand rests, beside the page's own loop, and the next move calls it off. What the
page shows meanwhile is the last plan, marked as such.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import Event
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import page_table, plan_panels, share
from rlqueue.app.board import Board
from rlqueue.app.controls import Control
from rlqueue.app.guard import guarded, status_line
from rlqueue.app.page import STATIC, AtRest, box, choice, explained, page_box, slider
from rlqueue.app.plan_figures import EMPTY, figures
from rlqueue.app.plan_paste import said
from rlqueue.app.plan_work import Asked, Made, make
from rlqueue.app.plot import Plots
from rlqueue.app.sharing import Sharing, scenario_file
from rlqueue.app.state import State, opened
from rlqueue.choices import SCHEDULES
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

NO_LIMIT = ("none", math.inf)
STALENESS = (NO_LIMIT, *((f"{each:g}", each) for each in (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)))
WAIT = (NO_LIMIT, *((f"{each:.0%}", each) for each in (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)))
USD = (
    NO_LIMIT,
    *(
        (f"${each:g}", each)
        for each in (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0)
    ),
)
KV = (NO_LIMIT, *((f"{each:.0%}", each) for each in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)))
GOALS = (("least $/Mtok", "usd-per-mtok"), ("most trained tokens/s", "tokens-per-s"), ("least hours", "hours"))
ANY = ("any schedule", "")
LINKED = {
    "gpus": "gpus", "goal": "goal", "staleness": "staleness", "wait": "wait", "dollars": "usd", "kv": "kv",
    "trainers": "trainers", "only": "schedule",
}  # fmt: skip
"""Keys of a link to this page, and their controls."""
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""GPUs on offer over those of the published run; one replica more and less besides."""


def page(state: State | None = None) -> None:
    """Show the page in a notebook."""
    display(Planned(state).box)


@cache
def _one() -> ThreadPoolExecutor:
    """Plans one after the other: each uses all cores."""
    return ThreadPoolExecutor(1)


def gpus_on_offer(state: State) -> list[int]:
    """Numbers of GPUs in whole replicas, about those of the published run, with room for a trainer."""
    replica = state.start.gpus_per_replica
    own = _gpus(state.start)
    wanted = {round(own * factor / replica) * replica for factor in FACTORS} | {own - replica, own, own + replica}
    return sorted(each for each in wanted if each > replica)


def trainers_on_offer(gpus: int) -> list[int]:
    """GPUs that the trainer may need at least: powers of two below all of them."""
    return [2**place for place in range(gpus.bit_length()) if 2**place < gpus]


def _gpus(scenario: Scenario) -> int:
    return scenario.trainer_gpus + scenario.generator_gpus


def _pairs(options: Sequence[Any]) -> list[tuple[str, Any]]:
    """The options of a control as texts and values."""
    return [each if isinstance(each, tuple) else (str(each), each) for each in options]


def _meant(key: str, text: str, offered: Sequence[Any]) -> Any:
    """The option that a link's text means."""
    found = {str(each): each for each in offered}
    require_known(f"link: {key}", text, found)
    return found[text]


def _limit(control: widgets.SelectionSlider) -> float | None:
    return None if math.isinf(control.value) else control.value


class Planned:
    """The page's widgets around one question; ``box`` holds them all."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or opened()
        self.made: Made | None = None
        self._loading = False
        self.status = status_line()
        self.rest = AtRest(self._failed)
        self._build()
        self.board = Board(self.state, (), self.status, self.go, reset=self._first)
        self.sharing = Sharing(self.status, self._restored)
        self.sharing.offer({"toml": self._scenario, "csv": self._csv})
        self.box = page_box(self._arranged(), name="rlq-plan", sheet=STATIC / "plan.css")
        for control in self.controls:
            guarded(control, self._moved, self.status)
        self.show()
        self.plots.when_opened(self._begin)

    # What happens

    def go(self, state: State, moved: Control | None = None) -> None:
        """Take another published run."""
        self.rest.stop()
        self.state = state
        self._offer()
        self.board.show(state, moved)
        self.made = None
        self.show()
        self._begin()

    def _moved(self, _: dict[str, Any]) -> None:
        if not self._loading:
            self._about.value = plan_panels.doing(0.0, "waiting for the hand to rest", old=self.made is not None)
            self._link()
            self._begin()

    def _link(self) -> None:
        """Have the address hold the question as it stands, without what nobody changed."""
        asked = {key: getattr(self, name).value for key, name in LINKED.items()}
        plain = {key: _pairs(getattr(self, name).options)[0][1] for key, name in LINKED.items()} | {
            "gpus": _gpus(self.state.start)
        }
        changed = {key: value for key, value in asked.items() if value != plain[key]}
        self.sharing.elsewhere = share.query(self.state)
        self.sharing.query = share.query(self.state, **changed)
        self.sharing.stem = f"{self.state.scenario.name}-plan"

    def _restored(self, query: str) -> None:
        """A page has opened at an address that holds a question, or a scenario from another page."""
        state, own = share.read(query, own=tuple(LINKED))
        offered = {key: [value for _, value in _pairs(getattr(self, name).options)] for key, name in LINKED.items()}
        offered |= {"gpus": gpus_on_offer(state), "trainers": trainers_on_offer(_gpus(state.start))}
        chosen = {key: _meant(key, text, offered[key]) for key, text in own.items()}
        if _gpus(state.scenario) in offered["gpus"]:
            chosen.setdefault("gpus", _gpus(state.scenario))
        self._first()
        self.go(state)
        self._loading = True
        for key, value in chosen.items():
            getattr(self, LINKED[key]).value = value
        self._loading = False
        self._link()

    def _csv(self) -> tuple[str, str]:
        return f"{self.sharing.stem}.csv", page_table.csv([] if self.made is None else plan_panels.rows(self.made))

    def _scenario(self) -> tuple[str, str]:
        """The plan as a scenario; before there is one, what it is asked of."""
        found = None if self.made is None else self.made.plan
        return scenario_file(self.state.scenario if found is None else found.best.scenario, self.sharing.stem)

    def _first(self) -> None:
        self._loading = True
        for control in self.controls[2:]:
            control.index = 0
        self.goal.index = 0
        self._loading = False

    @property
    def asked(self) -> Asked:
        """The question as the controls stand."""
        return Asked(
            scenario=self.state.scenario, preset=self.state.preset, gpus=self.gpus.value, objective=self.goal.value,
            max_staleness_versions=_limit(self.staleness), max_wait_ratio=_limit(self.wait),
            max_usd_per_mtok=_limit(self.usd), max_kv_ratio=_limit(self.kv), min_trainer_gpus=self.trainers.value,
            schedules=(self.schedule.value,) if self.schedule.value else (),
        )  # fmt: skip

    # When the hand rests

    def _begin(self) -> None:
        self.rest.begin(self._plan)

    async def _plan(self) -> None:
        loop, called_off, asked = asyncio.get_running_loop(), Event(), self.asked
        tell = partial(loop.call_soon_threadsafe, self._tell)
        try:
            made = await loop.run_in_executor(_one(), make, asked, called_off, tell)
        finally:
            called_off.set()
        if made is not None:
            self.made = made
            self.show()

    def _tell(self, share: float, what: str) -> None:
        self._about.value = plan_panels.doing(share, what, old=self.made is not None)

    def _failed(self) -> None:
        self._about.value = '<p class="rlq-how" role="alert">The plan failed; the server\'s log has the details.</p>'

    # What is shown

    def show(self) -> None:
        """Bring everything to what was made last."""
        self._link()
        made = self.made
        found = None if made is None else made.plan
        first = plan_panels.doing(0.0, "begins when the page is open", old=False)
        self._about.value = first if made is None else plan_panels.how(made)
        self.words.value = plan_panels.words(made)
        self.cards.value = plan_panels.cards(made)
        self.tables.value = plan_panels.tables(made)
        self.sure.value = plan_panels.sure(made)
        self.said.value = said(made)
        self.plots.layout.display = "none" if made is not None and found is None else ""
        stamp = "" if made is None else plan_panels.stamp(made)
        self.plots.update(figures(made) if found else EMPTY, stamp=stamp)

    # What there is

    def _build(self) -> None:
        offered = gpus_on_offer(self.state)
        own = _gpus(self.state.start)
        self.gpus = slider("GPUs in all", offered, own)
        self.goal = choice("Goal", GOALS, GOALS[0][1])
        self.staleness = slider("Staleness at most", STALENESS, math.inf)
        self.wait = slider("Trainer wait at most", WAIT, math.inf)
        self.usd = slider("$/Mtok at most", USD, math.inf)
        self.kv = slider("KV cache at most", KV, math.inf)
        self.trainers = slider("Trainer GPUs at least", trainers_on_offer(own), 1)
        self.schedule = choice("Schedule", (ANY, *((name, name) for name in SCHEDULES)), "")
        self.controls = (
            self.gpus,
            self.goal,
            self.staleness,
            self.wait,
            self.usd,
            self.kv,
            self.trainers,
            self.schedule,
        )
        self._about, self.words, self.cards, self.tables, self.said, self.sure = (widgets.HTML() for _ in range(6))
        self.plots = Plots(EMPTY)

    def _offer(self) -> None:
        """Offer the GPUs of this published run; a page can send no more than a place among them."""
        self._loading = True
        own = _gpus(self.state.start)
        for control, options, value in (
            (self.gpus, gpus_on_offer(self.state), own),
            (self.trainers, trainers_on_offer(own), 1),
        ):
            control.index = 0
            control.options = options
            control.value = value
        self._loading = False

    def _arranged(self) -> list[widgets.Widget]:
        main = box("rlq-sliders", [
            explained(self.gpus, "trainer and generator together"),
            explained(self.goal, "what is to be best; hours are of the run's training steps"),
            explained(self.staleness, "versions, mean of trained groups"),
            explained(self.schedule, "what your framework can do"),
        ])  # fmt: skip
        limits = box("rlq-plan-limits", [
            explained(self.wait, "share of each step"),
            explained(self.usd, "wall-clock cost"),
            explained(self.kv, "mean share in use: room for bursts"),
            explained(self.trainers, "for the trainer's own memory, which is not modelled"),
        ])  # fmt: skip
        return [
            self.board.header(self.sharing), main, limits, self.status, self._about, self.words, self.cards, self.plots,
            self.tables, self.said, self.sure,
        ]  # fmt: skip
