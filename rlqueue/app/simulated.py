"""What is simulated of a scenario while the hand moves, and how the closed form's curves are bent to meet it.

While dragging there is time for a handful of short runs: the present point, and a few splits that stay the same ones. They have
one seed, so that a move shows the lever and not the noise, and the tool calls lumped. Between the simulated splits a curve keeps
the shape of the closed form.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from rlqueue.app.state import Frame, State, frame, with_value
from rlqueue.cost import PARTS, Bill, cost, parts_usd_per_mtok
from rlqueue.operating_point import OperatingPoint
from rlqueue.rates import prefilled_tokens
from rlqueue.scenario import Scenario
from rlqueue.simulation import parameters
from rlqueue.simulation.run import event_budget, simulate_from
from rlqueue.simulation.state import GOES_ON

WORKERS = 2
"""Threads that simulate; the compiled loop lets the page's own go on meanwhile."""
SLICE_EVENTS = 150_000
"""Events between two looks at whether somebody still wants to know: 15 to 30 ms."""
QUICK_EVENTS = 60_000
"""Events that one run may take while dragging: about 8 ms. Where they are used up before the last step, it has fewer steps."""
GIVEN_UP = 1.5
"""A run is cut off at so many times its share of events."""
LEAST_STEPS = 4
"""A run cut off before so many steps says nothing."""
QUICK_STEPS = (24, 20, 16, 12, 8)
LONG_EVENTS = 30_000
QUICK_SPLITS = (3, 2)
"""Splits that are simulated while dragging, besides the present one: of short runs, and of those above ``LONG_EVENTS``."""
KEPT = 512
"""Short runs that are kept."""
_quick: OrderedDict[tuple[Scenario, Fidelity], Outcome] = OrderedDict()


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """How well something was simulated; ``cut``: some of the runs have fewer steps, since they took too many events."""

    steps: int
    lumped: bool
    seeds: int = 1
    cut: bool = False

    @property
    def words(self) -> str:
        seeds = "seed 0" if self.seeds == 1 else f"{self.seeds} seeds"
        turns = ", tool calls lumped" if self.lumped else ""
        return f"{seeds}, {'up to ' if self.cut else ''}{self.steps} steps{turns}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one run: an operating point, or why there is none: the cause of a stall, or ``cut``: it takes too long."""

    point: OperatingPoint | None
    stalled: str = ""
    cut: bool = False


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Answers over all splits that go through what was simulated.

    Attributes:
        simulated: the splits that were simulated [GPU]. by_split: arrays over ``frame.splits``: step_s, both ratios, the parts of
            the bill and their sum. low, high: of the trainer's and the slots' ratio over the seeds; None with one seed.
    """

    simulated: np.ndarray
    by_split: dict[str, Any]
    low: dict[str, np.ndarray] | None = None
    high: dict[str, np.ndarray] | None = None


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """All that was simulated around one scenario.

    Attributes:
        fidelity, points, point, bill: of the scenario itself; one point per seed, and their mean: None without a step.
        stalled: why a run ended early, empty where it did not. cut: it was given up because it takes too long.
        curve_fidelity, curve: over the splits.
    """

    fidelity: Fidelity
    points: Sequence[OperatingPoint]
    point: OperatingPoint | None
    bill: Bill | None
    stalled: str
    cut: bool
    curve_fidelity: Fidelity
    curve: Curve

    def spread(self, field: str) -> tuple[float, float] | None:
        """Lowest and highest value of the seeds; None with one."""
        values = [getattr(each, field) for each in self.points]
        return (min(values), max(values)) if len(values) > 1 else None


def lumped(scenario: Scenario) -> Scenario:
    """The single-turn equivalent: all time of the tool calls in one piece, the prompt at once and as long as it is on average.

    A context grows turn by turn; here it is from the start as long as it is in the mean over the turns (see
    ``rates.mean_context_tokens``), so that the decode batches are as heavy. MFU and prefill rate are set so that the trainer
    takes as long for a step, and the generator for all prefill.
    """
    if not scenario.tool_calls:
        return scenario
    s, turns = scenario, scenario.tool_calls + 1.0
    prompt = s.mean_prompt_tokens * (turns + 1.0) / (2.0 * turns)
    whole = s.mean_prompt_tokens + s.mean_response_tokens
    made = dataclasses.replace(
        s, mean_prompt_tokens=prompt, tool_calls=0.0, reward_s=s.reward_s + s.tool_calls * s.tool_call_s,
        mfu=s.mfu * (prompt + s.mean_response_tokens) / whole,
    )  # fmt: skip
    before, after = prefilled_tokens(s), prefilled_tokens(made)
    return dataclasses.replace(made, prefill_mfu=min(1.0, s.prefill_mfu * after / before)) if before and after else made


def unlumped(point: OperatingPoint, scenario: Scenario) -> OperatingPoint:
    """The point of a scenario's single-turn equivalent, with the scenario's own tokens."""
    if not scenario.tool_calls:
        return point
    more = scenario.trained_tokens_per_step / lumped(scenario).trained_tokens_per_step
    names = ("trained_tokens_per_s", "mfu_computing", "mfu_wall_clock")
    return dataclasses.replace(point, **{name: getattr(point, name) * more for name in names})


def expected_events(scenario: Scenario, steps: int) -> float:
    """About how many events a run takes."""
    s = scenario
    per_rollout = 2.0 * (s.tool_calls + 1.0) + 2.0
    kept = (1.0 - s.surplus_fraction) * (1.0 - s.filtered_fraction)
    return per_rollout * (s.samples_per_step * s.oversampling_factor * steps / kept + s.concurrency)


def outcome(
    scenario: Scenario,
    fidelity: Fidelity,
    seed: int,
    most_events: float = math.inf,
    wanted: Callable[[], bool] | None = None,
    *,
    patience: float = 0.0,
) -> Outcome | None:
    """Run a scenario once, in slices: None as soon as ``wanted`` says that nobody wants to know any more.

    A run that has used up ``most_events`` ends there, with the steps that it has by then; with too few of them it goes on up to
    ``patience``, and without any it counts as stalled there.
    """
    run_as = lumped(scenario) if fidelity.lumped else scenario
    world = parameters.world(run_as, parameters.parameters(run_as, fidelity.steps, log_rollouts=False), seed)
    limit = event_budget(run_as, fidelity.steps)
    while True:
        run = simulate_from(world, run_as, seed, int(min(limit, most_events, world.pool["events"] + SLICE_EVENTS)))
        going_on, steps = world.pool["status"] == GOES_ON, int(world.clock["step"])
        if not going_on or run.events >= limit:
            break
        if run.events >= most_events:
            if steps >= LEAST_STEPS or run.events >= patience:
                break
            most_events = min(patience, run.events + SLICE_EVENTS)
        if wanted is not None and not wanted():
            return None
    cut = bool(going_on and run.events < limit)
    if steps == 0 and cut and patience:
        why = run.stalled.rpartition(": ")[2]
        return Outcome(point=None, stalled=f"no step ended within {run.events:,} events ({why})")
    if steps == 0 or (cut and steps < LEAST_STEPS):
        return Outcome(point=None, stalled="" if cut else run.stalled, cut=cut)
    point = run.operating_point
    return Outcome(
        point=unlumped(point, scenario) if fidelity.lumped else point, stalled="" if cut else run.stalled, cut=cut
    )


@cache
def workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="simulate")


# While dragging


def quick_fidelity(state: State) -> Fidelity:
    """As many steps as there is time for. Split, budget and concurrency have no say, lest a move change more than its lever."""
    return _quick_fidelity(frame(state.scenario).corner, state.start.concurrency)


@lru_cache(maxsize=256)
def _quick_fidelity(corner: Scenario, concurrency: int) -> Fidelity:
    short = dataclasses.replace(lumped(corner), concurrency=concurrency)
    return Fidelity(steps=affordable(short, QUICK_STEPS, QUICK_EVENTS), lumped=corner.tool_calls > 0)


@lru_cache(maxsize=256)
def _quick_events(corner: Scenario, concurrency: int, fidelity: Fidelity) -> float:
    return expected_events(dataclasses.replace(lumped(corner), concurrency=concurrency), fidelity.steps)


def affordable(scenario: Scenario, ladder: Sequence[int], events: float) -> int:
    """The most steps of a ladder that take no more than so many events; the fewest where none does."""
    return next((each for each in ladder if expected_events(scenario, each) <= events), ladder[-1])


def some_splits(around: Frame, most: int) -> np.ndarray:
    """A few of the splits, evenly apart; the ends, where runs are long and nobody wants to be, are left out."""
    count = len(around.splits)
    every = np.floor((np.arange(most) + 0.5) * count / most).astype(int) if count > most else np.arange(count)
    return around.splits[every]


def quick_outcomes(asked: Sequence[Scenario], fidelity: Fidelity) -> list[Outcome]:
    """The short runs of some scenarios, or that they were given up; from memory where they were asked for before.

    The first that is not known runs here, since a thread takes its time to begin, and the others on threads meanwhile.
    """
    unknown = [each for each in dict.fromkeys(asked) if (each, fidelity) not in _quick]
    others = [workers().submit(quick_outcome, each, fidelity) for each in unknown[1:]]
    for each in unknown[:1]:
        _quick[each, fidelity] = quick_outcome(each, fidelity)
    for each, other in zip(unknown[1:], others, strict=True):
        _quick[each, fidelity] = other.result()
    found = [_quick[each, fidelity] for each in asked]
    while len(_quick) > KEPT:
        _quick.popitem(last=False)
    return found


def quick_outcome(scenario: Scenario, fidelity: Fidelity) -> Outcome:
    """One short run."""
    return outcome(scenario, fidelity, 0, GIVEN_UP * QUICK_EVENTS)


def quick(state: State, closed: Mapping[str, Any]) -> Simulated:
    """What can be simulated between two moves of a slider.

    Args:
        closed: the closed form over ``frame.splits``, as ``sweep.split_grid`` gives it.
    """
    scenario, around, fidelity = state.scenario, frame(state.scenario), quick_fidelity(state)
    most = QUICK_SPLITS[_quick_events(around.corner, state.start.concurrency, fidelity) > LONG_EVENTS]
    others = [int(each) for each in some_splits(around, most) if each != scenario.generator_gpus]
    found = quick_outcomes([scenario, *(at_split(scenario, each) for each in others)], fidelity)
    return gathered(
        state, closed, fidelity=fidelity, outcomes=found[:1], curve_fidelity=fidelity,
        along={split: [each] for split, each in zip([scenario.generator_gpus, *others], found, strict=True)},
    )  # fmt: skip


@lru_cache(maxsize=1024)
def at_split(scenario: Scenario, generator_gpus: int) -> Scenario:
    """The scenario at another split. Kept, so that what was simulated there is found again."""
    return with_value(dataclasses.replace(scenario, cluster_gpus=0), "generator_gpus", generator_gpus)


# Putting together


def gathered(
    state: State,
    closed: Mapping[str, Any],
    *,
    fidelity: Fidelity,
    outcomes: Sequence[Outcome],
    curve_fidelity: Fidelity,
    along: Mapping[int, Sequence[Outcome]],
) -> Simulated:
    """What was simulated so far, as the page shows it.

    Args:
        outcomes: of the scenario itself, one per seed. along: by split, one per seed.
    """
    points = [each.point for each in outcomes if each.point is not None]
    point = mean_point(points) if points else None
    return Simulated(
        fidelity=dataclasses.replace(fidelity, seeds=max(1, len(outcomes)), cut=any(each.cut for each in outcomes)),
        points=points,
        point=point,
        bill=None if point is None else cost(state.scenario, point),
        stalled=next((each.stalled for each in outcomes if each.stalled), ""),
        cut=point is None and any(each.cut for each in outcomes),
        curve_fidelity=dataclasses.replace(
            curve_fidelity,
            seeds=min(len(each) for each in along.values()),
            cut=any(each.cut for found in along.values() for each in found),
        ),
        curve=bent(
            state, closed, {split: [each.point for each in found if each.point] for split, found in along.items()}
        ),
    )


def mean_point(points: Sequence[OperatingPoint]) -> OperatingPoint:
    """The mean of every number; what binds is what binds with the first seed."""
    names = [
        each.name for each in dataclasses.fields(OperatingPoint) if isinstance(getattr(points[0], each.name), float)
    ]
    means = {name: sum(getattr(each, name) for each in points) / len(points) for name in names}
    return dataclasses.replace(points[0], **means)


SHARES = ("trainer_wait_ratio", "rollout_idle_ratio", "accepted_ratio")
AMOUNTS = ("step_s", "in_flight_rollouts")


def bent(state: State, closed: Mapping[str, Any], along: Mapping[int, Sequence[OperatingPoint]]) -> Curve:
    """The closed form's curves, shifted (shares) or scaled (amounts) so that they go through what was simulated.

    Between two simulated splits shift and factor change evenly, beyond the last they stay.
    """
    around = frame(state.scenario)
    splits = around.splits
    there = np.array(sorted(split for split, points in along.items() if points), dtype=int)
    curves = {name: np.broadcast_to(np.asarray(closed[name], dtype=float), splits.shape) for name in SHARES + AMOUNTS}
    low = high = None
    if there.size:
        places = np.searchsorted(splits, there)
        values = {
            name: np.array([[getattr(point, name) for point in along[split]][:_fewest(along, there)] for split in there])
            for name in SHARES + AMOUNTS
        }  # fmt: skip
        base = curves

        def through(name: str, wanted: np.ndarray) -> np.ndarray:
            if name in SHARES:
                shift = np.interp(splits, there, wanted - base[name][places])
                return _exactly(np.clip(base[name] + shift, 0.0, 1.0), places, wanted)
            factor = np.interp(splits, there, wanted / np.maximum(base[name][places], 1e-300))
            return _exactly(base[name] * factor, places, wanted)

        curves = {name: through(name, values[name].mean(axis=1)) for name in values}
        if next(iter(values.values())).shape[1] > 1:
            low = {name: through(name, values[name].min(axis=1)) for name in SHARES[:2]}
            high = {name: through(name, values[name].max(axis=1)) for name in SHARES[:2]}
    parts = parts_usd_per_mtok(state.scenario, curves, around.gpus - splits, splits)
    whole = {"usd_per_mtok": sum(parts[part] for part in PARTS)}
    return Curve(simulated=there, by_split=curves | parts | whole, low=low, high=high)


def _fewest(along: Mapping[int, Sequence[OperatingPoint]], there: Iterable[int]) -> int:
    """Seeds that all of them have: a band over more seeds here than there would show that and nothing else."""
    return min(len(along[split]) for split in there)


def _exactly(values: np.ndarray, places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    made = values.copy()
    made[places] = wanted
    return made
