"""A whole run simulated while the hand rests, in slices on a thread, and its steps averaged in blocks that one can look at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rlqueue.app.runs import SLICE_EVENTS, expected_events, workers
from rlqueue.cost import PARTS, parts_usd_per_mtok
from rlqueue.scenario import Scenario
from rlqueue.simulation import Run, lumped, parameters
from rlqueue.simulation.run import event_budget, simulate_from
from rlqueue.simulation.state import GOES_ON
from rlqueue.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

BLOCKS = 40
"""Blocks of steps that a run is averaged in; it has as many steps at least."""
MOST_EVENTS = 20_000_000
"""Events of a whole run: two to four seconds of a core. A longer one is simulated as far as they take it."""
SHOW_S = 0.5
"""Between two drawings of what was simulated so far."""


@dataclass(frozen=True, kw_only=True)
class Walked:
    """A run simulated up to some step.

    Attributes:
        blocks: one row per block of steps: step (its middle), hours (at its end) and means over it: trainer_wait_ratio,
            usd_per_mtok, usd_per_informative_mtok, step_s, mean_response_tokens, truncated_fraction, solve_rate,
            informative_fraction, all_solved_fraction, in_flight_rollouts, staleness_versions.
        shares: of the pool in ranges of the solve rate, at the end of each step.
        steps, asked: simulated, and of the whole run. turns: whether tool calls were simulated one by one.
        usd, hours: of the simulated steps.
    """

    scenario: Scenario
    seed: int
    blocks: pd.DataFrame
    shares: np.ndarray
    steps: int
    asked: int
    turns: bool
    usd: float
    hours: float
    stalled: str = ""
    done: bool = False

    @property
    def words(self) -> str:
        """What exactly was simulated."""
        lump = ", tool calls in one piece" if self.scenario.tool_calls and not self.turns else ""
        part = f"{self.steps:,} of {self.asked:,} steps" if self.steps < self.asked else f"{self.steps:,} steps"
        return f"seed {self.seed}, {part}{lump}"


def lumpable(scenario: Scenario) -> bool:
    """Whether tool calls in one piece mean the same for lengths that a law moves: a measured series has lengths of its own.

    Where calls or prompt move, ``lumped`` itself leaves the turns.
    """
    return scenario.drift_law != "series"


def run_as(scenario: Scenario) -> Scenario:
    """The scenario as it is simulated: with its turns where that is affordable, or necessary."""
    whole = expected_events(scenario, scenario.training_steps)
    return lumped(scenario) if whole > MOST_EVENTS / 4 and lumpable(scenario) else scenario


async def walk(scenario: Scenario, seed: int, show: Callable[[Walked], Any], *, most_events: int = MOST_EVENTS) -> None:
    """Simulate the scenario's whole run and show it as it comes; cancelling stops it at the next slice."""
    shortened = run_as(scenario)
    steps = scenario.training_steps
    world = parameters.world(shortened, parameters.parameters(shortened, steps, log_rollouts=False), seed)
    limit = min(event_budget(shortened, steps), most_events)
    loop, shown, events = asyncio.get_running_loop(), time.monotonic(), 0
    while True:
        events = min(limit, events + SLICE_EVENTS)
        run = await loop.run_in_executor(workers(), simulate_from, world, shortened, seed, events)
        done = world.host["status"] != GOES_ON or run.events >= limit
        if done or (time.monotonic() - shown > SHOW_S and int(world.clock["step"]) >= BLOCKS):
            show(walked(run, scenario, done=bool(done)))
            shown = time.monotonic()
            await asyncio.sleep(0)
        if done:
            return


def walked(run: Run, scenario: Scenario, *, done: bool = True) -> Walked:
    """A run's steps in blocks. ``scenario``: what was asked for; the run's own may have its turns in one piece."""
    count = len(run.steps)
    whole = run.world.host["status"] != GOES_ON and run.stalled
    return Walked(
        scenario=scenario, seed=run.seed, blocks=_blocks(run, scenario), shares=run.solve_rate_shares, steps=count,
        asked=run.asked_steps, turns=run.scenario is scenario, stalled=run.stalled if whole else "", done=done,
        hours=float(run.steps["end_s"].iloc[-1]) / SECONDS_PER_HOUR if count else 0.0,
        usd=_usd(run, scenario),
    )  # fmt: skip


def _blocks(run: Run, scenario: Scenario) -> pd.DataFrame:
    """Means of blocks of steps: of times by sums, of shares of groups by the steps they were counted in."""
    steps = run.steps
    if not len(steps):
        return pd.DataFrame()
    per_block = max(1, run.asked_steps // BLOCKS)
    block = steps["step"].to_numpy() // per_block
    full = block < len(steps) // per_block if len(steps) >= per_block else np.ones(len(steps), bool)
    kept, block = steps[full], block[full]
    tokens = kept["trained_tokens"].to_numpy() * _more(run, scenario, kept)
    length = (kept["end_s"] - kept["start_s"]).to_numpy()
    usd = _step_usd(scenario, kept)
    informative = kept["informative_tokens"].to_numpy() / np.maximum(kept["trained_tokens"].to_numpy(), 1e-300)
    sums = pd.DataFrame(
        {"length": length, "wait": kept["wait_s"].to_numpy(), "tokens": tokens, "usd": usd, "informative": tokens * informative}
    ).groupby(block).sum()  # fmt: skip
    names = (
        "mean_response_tokens", "truncated_fraction", "informative_fraction", "all_solved_fraction", "in_flight_rollouts",
        "staleness_versions",
    )  # fmt: skip
    means = (
        kept[[*names, "mean_solve_rate", "step"]]
        .groupby(block)
        .mean()
        .rename(columns={"mean_solve_rate": "solve_rate"})
    )
    return means.assign(
        hours=kept["end_s"].groupby(block).last() / SECONDS_PER_HOUR,
        step_s=sums["length"] / np.bincount(block)[: len(sums)],
        trainer_wait_ratio=sums["wait"] / sums["length"],
        usd_per_mtok=sums["usd"] / sums["tokens"] * TOKENS_PER_MTOK,
        usd_per_informative_mtok=sums["usd"] / sums["informative"].replace(0.0, np.nan) * TOKENS_PER_MTOK,
    )


def _more(run: Run, scenario: Scenario, steps: pd.DataFrame) -> np.ndarray:
    """Trained tokens of the scenario over those of the run, whose prompt may be the mean over its turns."""
    response = steps["mean_response_tokens"].to_numpy()
    whole = steps["trained_tokens"].to_numpy() / scenario.samples_per_step
    shorter = scenario.mean_prompt_tokens / max(run.scenario.mean_prompt_tokens, 1e-300)
    return (response + shorter * np.maximum(whole - response, 0.0)) / np.maximum(whole, 1e-300)


def _step_usd(scenario: Scenario, steps: pd.DataFrame) -> np.ndarray:
    """What each step cost [$]: all GPUs for as long as it took, and the sandboxes of the rollouts in flight."""
    length = (steps["end_s"] - steps["start_s"]).to_numpy()
    zeros = np.zeros(len(steps))
    answers = {
        "step_s": length, "trainer_wait_ratio": steps["wait_s"].to_numpy() / np.maximum(length, 1e-300),
        "rollout_idle_ratio": zeros, "accepted_ratio": zeros, "in_flight_rollouts": steps["in_flight_rollouts"].to_numpy(),
    }  # fmt: skip
    parts = parts_usd_per_mtok(scenario, answers, scenario.trainer_gpus, scenario.generator_gpus)
    return sum(parts[part] for part in PARTS) * scenario.trained_tokens_per_step / TOKENS_PER_MTOK


def _usd(run: Run, scenario: Scenario) -> float:
    return float(_step_usd(scenario, run.steps).sum()) if len(run.steps) else 0.0


@dataclass(frozen=True, kw_only=True)
class Reached:
    """When a simulated run's mean solve rate got to a target: None for steps where it did not, and why."""

    steps: int | None
    hours: float = 0.0
    usd: float = 0.0
    why: str = ""


async def reach(scenario: Scenario, seed: int, target: float, *, most_events: int = MOST_EVENTS) -> Reached:
    """Simulate a scenario until the mean solve rate of its pool gets to a target, or the run ends."""
    shortened, steps = run_as(scenario), scenario.training_steps
    world = parameters.world(shortened, parameters.parameters(shortened, steps, log_rollouts=False), seed)
    limit, events = min(event_budget(shortened, steps), most_events), 0
    loop = asyncio.get_running_loop()
    while True:
        events = min(limit, events + SLICE_EVENTS)
        run = await loop.run_in_executor(workers(), simulate_from, world, shortened, seed, events)
        there = run.solve_rate_means >= target
        if there.any():
            return _reached(run, scenario, int(there.argmax()))
        if world.host["status"] != GOES_ON:
            why = run.stalled.rpartition(": ")[2] if run.stalled else f"ends at {run.solve_rate_means[-1]:.0%}"
            return Reached(steps=None, why=why)
        if run.events >= limit:
            return Reached(steps=None, why=f"not within {len(run.steps):,} simulated steps")


def _reached(run: Run, scenario: Scenario, steps: int) -> Reached:
    if steps == 0:
        return Reached(steps=0)
    done = run.steps.iloc[:steps]
    return Reached(
        steps=steps,
        hours=float(done["end_s"].iloc[-1]) / SECONDS_PER_HOUR,
        usd=float(_step_usd(scenario, done).sum()),
    )
