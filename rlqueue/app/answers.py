"""What the scenario at hand answers: operating point, bill, verdict and moves, and the curves that the figures draw."""

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rlqueue.advice import Move, moves, verdict
from rlqueue.app.runs import Fidelity
from rlqueue.app.simulated import Simulated, quick
from rlqueue.app.state import Frame, State, frame
from rlqueue.cost import Bill, cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.presets import reported
from rlqueue.provenance import Quantity
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario
from rlqueue.sweep import split_grid

MAP_ROWS = 16
"""Concurrencies of the map of split and concurrency."""
MAP_COLUMNS = 16
"""Splits of the map at most; with more, they are thinned out evenly."""


@dataclass(frozen=True, kw_only=True)
class WaitMap:
    """Trainer wait ratio over split (columns) and concurrency (rows)."""

    generator_gpus: np.ndarray
    concurrency: np.ndarray
    trainer_wait_ratio: np.ndarray


@dataclass(frozen=True, kw_only=True)
class MapSoFar:
    """Simulated cells of the map, not a number where nothing was simulated yet, infinite where a run came to no step."""

    fidelity: Fidelity
    cells: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One scenario, answered twice: by the closed form, and by what there was time to simulate.

    Attributes:
        point, bill, moves, verdict, by_split, wait_map: the closed form's. by_split: arrays over ``frame.splits``, the fields of
            ``sweep.split_grid``. start_bill: of the preset, to compare with.
        simulated, map_so_far: the simulation's.
    """

    state: State
    frame: Frame
    point: OperatingPoint
    bill: Bill
    start_bill: Bill
    moves: list[Move]
    verdict: str
    by_split: dict[str, Any]
    wait_map: WaitMap
    simulated: Simulated
    map_so_far: MapSoFar | None = None

    @property
    def shown_point(self) -> OperatingPoint:
        """The point that the page shows large: the simulated one, where a run came to one."""
        return self.simulated.point or self.point

    @property
    def shown_bill(self) -> Bill:
        return self.simulated.bill or self.bill


def answer(state: State) -> Answer:
    """All that the page says about a state while the hand moves: the closed form, and a few short runs."""
    scenario = state.scenario
    point = solve(scenario)
    bill = cost(scenario, point)
    found = moves(scenario, point)
    around = frame(scenario)
    by_split = split_grid(scenario, generator_gpus=around.splits, trainer_gpus=around.gpus - around.splits)
    return Answer(
        state=state,
        frame=around,
        point=point,
        bill=bill,
        start_bill=_start_bill(state.start),
        moves=found,
        verdict=verdict(point, found, bill),
        by_split=by_split,
        wait_map=wait_map(scenario),
        simulated=quick(state, by_split),
    )


@lru_cache(maxsize=16)
def _start_bill(scenario: Scenario) -> Bill:
    return cost(scenario, solve(scenario))


def wait_map(scenario: Scenario) -> WaitMap:
    """The map around a scenario. It doesn't depend on the split and concurrency chosen, so that these move on it for free."""
    return _wait_map(frame(scenario).corner, scenario.max_staleness)


@lru_cache(maxsize=256)
def _wait_map(corner: Scenario, max_staleness: float) -> WaitMap:
    around = frame(corner)
    every = np.linspace(0, len(around.splits) - 1, min(len(around.splits), MAP_COLUMNS)).round().astype(int)
    generator = around.splits[every]
    slots = np.geomspace(around.slots_low, around.slots_high, MAP_ROWS)
    grid = split_grid(
        dataclasses.replace(corner, max_staleness=max_staleness),
        generator_gpus=generator[None, :],
        trainer_gpus=around.gpus - generator[None, :],
        concurrency=slots.round()[:, None],
    )
    return WaitMap(generator_gpus=generator, concurrency=slots, trainer_wait_ratio=grid["trainer_wait_ratio"])


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the source says about a quantity: one value, or a range where ``low < high``."""

    low: float
    high: float
    fact: Quantity

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)


def reported_value(preset: str, quantity: str) -> Reported | None:
    """The reported value or range of a quantity of that run; None where the source gives none."""
    facts = reported(preset)
    if quantity in facts:
        fact = facts[quantity]
        return Reported(low=float(fact.value), high=float(fact.value), fact=fact)
    low, high = facts.get(f"{quantity}_low"), facts.get(f"{quantity}_high")
    if low is None or high is None:
        return None
    return Reported(low=float(low.value), high=float(high.value), fact=low)
