"""What the reader has chosen: one frozen scenario, and the published run it started from. No widget is known here."""

import dataclasses
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from rlqueue.advice import splits
from rlqueue.app.linked import LINKED
from rlqueue.at_step import at_step
from rlqueue.presets import preset, preset_names
from rlqueue.provenance import Quantity, quantities, table
from rlqueue.rates import rates
from rlqueue.scenario import Scenario

BEYOND_FULL = 1.25
"""The largest concurrency on offer over the slots at which the KV cache of the largest generator is full."""


@dataclass(frozen=True, kw_only=True)
class State:
    """The scenario as it stands, and the name of the preset it is compared with.

    ``opening``: an entity of data/page_openings.csv, whose knobs a page puts over every preset's; "" for none.
    """

    preset: str
    scenario: Scenario
    opening: str = ""

    @property
    def start(self) -> Scenario:
        """The preset's scenario as the page opens with it, before anything was moved."""
        return started(self.preset, self.opening)

    @property
    def facts(self) -> dict[str, Quantity]:
        """The knobs that ``start`` names, with their sources."""
        return preset(self.preset) | quantities("page_openings", self.opening)

    @property
    def first(self) -> "State":
        """The state as it is at the first step of its run, if it stayed so: what a point and its cards are about."""
        scenario = at_first_step(self.scenario)
        return self if scenario is self.scenario else dataclasses.replace(self, scenario=scenario)

    @property
    def untouched(self) -> bool:
        return self.scenario == self.start


@lru_cache(maxsize=64)
def at_first_step(scenario: Scenario) -> Scenario:
    """The scenario that would stay as this one begins; itself, where nothing moves."""
    moves = scenario.drift_law != "constant" or scenario.learning_logit_per_step > 0
    return at_step(scenario, 0.0) if moves else scenario


@cache
def started(name: str, opening: str = "") -> Scenario:
    """The scenario of a preset, with a page's opening over it. Raises ValueError for an unknown one."""
    over = {knob: fact.value for knob, fact in quantities("page_openings", opening).items()}
    return dataclasses.replace(Scenario.from_data(name), **over)


def opened(name: str = "", opening: str = "") -> State:
    """The state a page opens with: a preset, the first one unless named."""
    name = name or preset_names()[0]
    return State(preset=name, scenario=started(name, opening), opening=opening)


@cache
def preset_row(name: str) -> dict[str, str]:
    """Title, description and source of a preset."""
    return next(row for row in table("presets") if row["preset"] == name)


def value_of(scenario: Scenario, knob: str) -> Any:
    """A knob's value; ``node.usd_per_kwh`` reaches into a part, and an entry of a data file is its key."""
    head, _, inner = knob.partition(".")
    part = getattr(scenario, head)
    if inner:
        return getattr(part, inner)
    return getattr(part, "key", part)


def with_value(scenario: Scenario, knob: str, value: Any) -> Scenario:
    """The scenario with one knob moved, and with it those that can't stay as they are (``linked``).

    Raises:
        ValueError: the scenario would be impossible; the message names field, value and limit.
    """
    head, _, inner = knob.partition(".")
    if inner:
        return dataclasses.replace(scenario, **{head: dataclasses.replace(getattr(scenario, head), **{inner: value})})
    together = LINKED.get(knob)
    return dataclasses.replace(scenario, **{knob: value} | (together(scenario, value) if together else {}))


def kind_of(state: State, knob: str) -> str:
    """Where the knob's value comes from, in a word: its kind in the data, ``changed`` by the reader, or ``default``."""
    if value_of(state.scenario, knob) != value_of(state.start, knob):
        return "changed"
    head, _, inner = knob.partition(".")
    if inner:
        return quantities("h200_tco", value_of(state.start, head))[inner].kind
    facts = state.facts
    return facts[knob].kind if knob in facts else "default"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What stays in place while the three main sliders move: the splits there are, and the range of concurrency.

    Attributes:
        corner: the scenario with the largest generator, fewest slots and no staleness: the same for all that the sliders reach.
        splits: generator GPUs of each possible split [GPU]. gpus: trainer and generator together [GPU].
        slots_low, slots_high: one slot per replica of the largest generator (or one group); beyond where its KV cache is full
            [rollout].
    """

    corner: Scenario
    splits: np.ndarray
    gpus: int
    slots_low: int
    slots_high: int


@lru_cache(maxsize=256)
def frame(scenario: Scenario) -> Frame:
    """The frame of a scenario; one and the same for all its splits, concurrencies and staleness budgets."""
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    most = int(splits(scenario)[-1])
    return _frame(
        dataclasses.replace(
            scenario,
            generator_gpus=most,
            trainer_gpus=gpus - most,
            concurrency=scenario.fewest_slots,
            max_staleness=0.0,
        )
    )


@lru_cache(maxsize=64)
def _frame(corner: Scenario) -> Frame:
    full = corner.replicas * float(rates(corner)["kv_slots"][0])
    low = max(corner.replicas, corner.fewest_slots)
    return Frame(
        corner=corner,
        splits=splits(corner),
        gpus=corner.trainer_gpus + corner.generator_gpus,
        slots_low=low,
        slots_high=_rounded_up(max(BEYOND_FULL * full, 8.0 * low)),
    )


def _rounded_up(value: float) -> int:
    """Two leading digits, upwards: the end of a slider, not a measurement."""
    unit = 10 ** max(0, len(str(int(value))) - 2)
    return int(-(-value // unit) * unit)
