"""What the page says in words and numbers: what was simulated, both solvers beside each other, and which of them to believe."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np

from rlqueue.app.banded import note, of_chance, of_inputs
from rlqueue.app.cards import Card, Span, listed
from rlqueue.app.formats import count, percent, seconds
from rlqueue.app.inside_runs import FULL_STEPS, Shown
from rlqueue.app.origins import kind_tag
from rlqueue.app.trust import reason
from rlqueue.uncertainty import LEVEL, QUANTITIES, Bands

CHANCE = 2.0
"""Standard errors within which a difference may be chance."""
BATCHES = 10
"""Parts of a run from whose spread the chance of its means is told."""
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


def cards(shown: Shown, known: Bands | None = None) -> str:
    """Each quantity as simulated, by the closed form, how far these are apart, and how far either may be off."""
    return listed((_card(pair, shown, known) for pair in PAIRS), note=note(known, OF_CHANCE))


OF_CHANCE = f"chance: where the mean lies with a confidence of {LEVEL:.0%}, from {BATCHES} parts of this one run;"


def _card(pair: Pair, shown: Shown, known: Bands | None) -> Card:
    simulated, closed = getattr(shown.point, pair.field), getattr(shown.closed, pair.field)
    chance = Span(words="chance unknown", title="a short run begins empty: the full one follows")
    if shown.full:
        chance = of_chance(simulated, error(shown, pair.field), BATCHES, pair.shown, of="parts of this run")
    inputs = [of_inputs(known, pair.field, pair.shown)] if pair.field in QUANTITIES else []
    apart = f'<span class="rlq-apart">{difference(pair, simulated, closed)}</span>'
    return Card(
        name=pair.name, text=pair.shown(simulated), kind="simulated", means=pair.unit, spans=(chance, *inputs),
        lines=f'<dd class="rlq-closed"><b>{pair.shown(closed)}</b> {kind_tag("closed form")} {apart}</dd>',
    )  # fmt: skip


def batched(shown: Shown, field: str) -> tuple[np.ndarray, np.ndarray]:
    """What a mean of the run is made of, step by step: the long-run number is the sum of the first over that of the second."""
    run = shown.run
    steps = run.rows("steps", "step")
    gained = {name: np.diff(steps[name], prepend=0.0)[run.warm_up_steps :] for name in CUMULATIVE}
    kept, length = steps[run.warm_up_steps :], gained["end"]
    each = np.ones(kept.size)
    slots = shown.scenario.concurrency
    return {
        "trainer_wait_ratio": (kept["wait"], length),
        "rollout_idle_ratio": (length - gained["flight_area"] / slots, length),
        "staleness_versions": (kept["staleness"] / shown.scenario.prompts_per_step, each),
        "step_s": (length, each),
        "rollout_s": (gained["rollout_s"], gained["rollouts"]),
        "in_flight_rollouts": (gained["flight_area"], length),
        "queued_groups": (gained["queue_area"], length),
        "trained_tokens_per_s": (kept["tokens"], length),
    }[field]


CUMULATIVE = ("end", "flight_area", "queue_area", "rollout_s", "rollouts")
"""Columns of a run's steps that count from its beginning."""


def error(shown: Shown, field: str) -> float:
    """Standard error of a simulated mean, from batches of steps, which hardly depend on each other."""
    above, below = batched(shown, field)
    if above.size < BATCHES or not below.sum():
        return math.nan
    apart = above - below * above.sum() / below.sum()
    sums = np.array([part.sum() for part in np.array_split(apart, BATCHES)])
    return float(math.sqrt(BATCHES / (BATCHES - 1) * np.sum(sums**2)) / below.sum())


def believe(shown: Shown) -> str:
    """One sentence: which of the two to believe where they differ."""
    gap = shown.point.trainer_wait_ratio - shown.closed.trainer_wait_ratio
    points = f"{100 * abs(gap):.1f} points"
    if not shown.full:
        return (
            f"This short run begins empty and its wait is {points} from the closed form's: "
            "judge neither before the full run is there."
        )
    by_chance = error(shown, "trainer_wait_ratio")
    if abs(gap) <= ALIKE:
        return f"The waits agree to {points}: take means from either, and spread, tails and order of events from the simulation."
    if abs(gap) <= CHANCE * by_chance:
        return (
            f"The waits are {points} apart, which chance alone explains (±{100 * CHANCE * by_chance:.1f} points at "
            f"{shown.done_steps} steps): another seed moves the simulation as far."
        )
    because = reason(shown.scenario, shown.point, shown.closed)
    beyond = f"more than chance (±{100 * CHANCE * by_chance:.1f})"
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
