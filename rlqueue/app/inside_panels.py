"""What the page says in words and numbers: what was simulated, both solvers beside each other, and which of them to believe."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np

from rlqueue.app.formats import count, percent, seconds
from rlqueue.app.inside_runs import FULL_STEPS, Shown
from rlqueue.app.trust import reason

CHANCE = 2.0
"""Standard errors within which a difference may be chance."""
ALIKE = 0.01
"""Wait ratios closer than this are the same for any purpose."""


def simulated_words(shown: Shown, seed: int) -> str:
    """What the figures show: how long a run, whose draws, and what was left out to be quick."""
    run = shown.run
    trained = shown.done_steps * shown.scenario.samples_per_step
    size = f"{shown.done_steps} steps, {trained:,} rollouts trained, {run.events:,} events in {run.seconds:.2g} s, seed {seed}"
    if shown.full:
        return f"<b>The full run:</b> {size}."
    lump = f" with the {shown.scenario.tool_calls:g} tool calls of a rollout in one piece" if shown.lumped else ""
    return f"<b>A short run{lump}:</b> {size}. The full one, {FULL_STEPS} steps, follows when the hand rests."


def progress_words(done: float) -> str:
    """How far the full run is."""
    return f" Full run: {done:.0%}." if done else ""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One quantity by both solvers. ``share``: whether they differ by points instead of percent."""

    name: str
    field: str
    shown: Callable[[float], str]
    unit: str = ""
    share: bool = False


PAIRS = (
    Pair(name="Trainer wait ratio", field="trainer_wait_ratio", shown=percent, unit="of each step's time", share=True),
    Pair(name="Rollout idle ratio", field="rollout_idle_ratio", shown=percent, unit="of all slot-time", share=True),
    Pair(name="Staleness", field="staleness_versions", shown="{:.2f}".format, unit="versions, mean when trained"),
    Pair(name="Step", field="step_s", shown=seconds, unit="wall-clock"),
    Pair(name="Rollout", field="rollout_s", shown=seconds, unit="in its slot"),
    Pair(name="In flight", field="in_flight_rollouts", shown=count, unit="rollouts that hold a slot"),
    Pair(name="Queue", field="queued_groups", shown="{:.1f}".format, unit="finished groups"),
    Pair(name="Trained tokens", field="trained_tokens_per_s", shown=count, unit="a second"),
)


def difference(pair: Pair, simulated: float, closed: float) -> str:
    """Simulated less closed form: in points for a share, else in percent of the closed form, or as it is where that is 0."""
    if not pair.share and not closed:
        return f"+{pair.shown(simulated)}" if simulated else "the same"
    apart = 100.0 * (simulated - closed if pair.share else simulated / closed - 1.0)
    if abs(apart) < 0.05:
        return "the same"
    return f"{apart:+.1f}{' points' if pair.share else '%'}".replace("-", "−")


def cards(shown: Shown) -> str:
    """Each quantity as simulated, by the closed form, and how far these are apart."""
    blocks = []
    for pair in PAIRS:
        simulated = getattr(shown.point, pair.field)
        closed = getattr(shown.closed, pair.field)
        blocks.append(
            f'<div class="rlq-card"><dt>{pair.name}</dt>'
            f'<dd class="rlq-number">{pair.shown(simulated)}<small>simulated</small></dd>'
            f'<dd class="rlq-number rlq-closed">{pair.shown(closed)}<small>closed form</small></dd>'
            f'<dd class="rlq-means">{pair.unit}</dd><dd class="rlq-apart">{difference(pair, simulated, closed)}</dd></div>'
        )
    return f'<dl class="rlq-cards">{"".join(blocks)}</dl>'


def chance(shown: Shown, batches: int = 10) -> float:
    """Standard error of the simulated wait ratio, from batches of steps, which hardly depend on each other."""
    kept = shown.run.steps.iloc[shown.run.warm_up_steps :]
    wait, length = kept["wait_s"].to_numpy(), (kept["end_s"] - kept["start_s"]).to_numpy()
    if wait.size < batches:
        return math.nan
    apart = wait - length * wait.sum() / length.sum()
    sums = np.array([part.sum() for part in np.array_split(apart, batches)])
    return float(math.sqrt(batches / (batches - 1) * np.sum(sums**2)) / length.sum())


def believe(shown: Shown) -> str:
    """One sentence: which of the two to believe where they differ."""
    gap = shown.point.trainer_wait_ratio - shown.closed.trainer_wait_ratio
    points = f"{100 * abs(gap):.1f} points"
    if not shown.full:
        return (
            f"This short run begins empty and its wait is {points} from the closed form's: "
            "judge neither before the full run is there."
        )
    error = chance(shown)
    if abs(gap) <= ALIKE:
        return f"The waits agree to {points}: take means from either, and spread, tails and order of events from the simulation."
    if abs(gap) <= CHANCE * error:
        return (
            f"The waits are {points} apart, which chance alone explains (±{100 * CHANCE * error:.1f} points at "
            f"{shown.done_steps} steps): another seed moves the simulation as far."
        )
    because = reason(shown.scenario, shown.point, shown.closed)
    beyond = f"more than chance (±{100 * CHANCE * error:.1f})"
    return f"The waits are {points} apart, {beyond}: believe the simulation, since {because}."


def believe_html(shown: Shown) -> str:
    return f'<p class="rlq-verdict" role="status">{escape(believe(shown))}</p>'


def stall_html(shown: Shown) -> str:
    """Why the run could not go on, in place of figures that would be empty."""
    if not shown.cause:
        return ""
    run = shown.run
    fates = run.groups["fate"].value_counts()
    counted = ", ".join(f"{number:,} {fate}" for fate, number in fates.items() if number)
    return (
        f'<p class="rlq-stall" role="alert"><b>This run stalled after {shown.done_steps} of {run.asked_steps} steps:</b> '
        f"{escape(run.stalled)}. Groups so far: {escape(counted) or 'none'}.</p>"
    )
