"""What the pages over a run's steps say: numbers at the step looked at, the whole run and its split, and what moving costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from rlqueue.app.formats import count, dollars, duration, percent, seconds, whole_dollars
from rlqueue.app.origins import kind_tag
from rlqueue.app.palette import PART_COLOURS, PART_NAMES
from rlqueue.app.walk import Walked
from rlqueue.app.way import Way
from rlqueue.app.way_figures import flips
from rlqueue.cost import PARTS
from rlqueue.course import WholeRun
from rlqueue.units import TOKENS_PER_MTOK

NOWHERE = "nearly every group is filtered: the run goes no further"


@dataclass(frozen=True, kw_only=True)
class Card:
    """One number at the step that is looked at.

    Attributes:
        name: label. column: of the course, and of the walked blocks where the simulation has it. shown: how it is written.
        means: one line.
    """

    name: str
    column: str
    shown: Callable[[float], str]
    means: str
    simulated: bool = True


WAIT = Card(name="Trainer wait ratio", column="trainer_wait_ratio", shown=percent, means="of each step's time")
COST = Card(
    name="Self-built", column="usd_per_mtok", shown=lambda value: f"{dollars(value)}/Mtok", means="per trained Mtok"
)
STEP = Card(name="Step", column="step_s", shown=seconds, means="wall-clock")
TEACH = (
    Card(name="Mean solve rate", column="solve_rate", shown=percent, means="of the pool"),
    Card(name="Groups that teach", column="informative_fraction", shown=percent, means="of finished groups"),
    WAIT,
    COST,
    Card(
        name="What teaches",
        column="usd_per_informative_mtok",
        shown=lambda value: f"{dollars(value)}/Mtok",
        means="per Mtok of groups that teach",
    ),
    STEP,
)
GROW = (
    Card(
        name="Mean response",
        column="mean_response_tokens",
        shown=lambda value: f"{count(value)} tokens",
        means="after the cut",
    ),
    Card(name="Cut", column="truncated_fraction", shown=percent, means="of the responses, at the maximum"),
    Card(name="Rollout", column="rollout_s", shown=seconds, means="in its slot", simulated=False),
    Card(name="KV cache", column="kv_used_ratio", shown=percent, means="in use", simulated=False),
    WAIT,
    COST,
    STEP,
)


def cards(shown: Sequence[Card], way: Way, walked: Walked | None, step: int) -> str:
    """The numbers at a step: by closed form, simulated where a run has got there, and as they were at the start."""
    place = way.near(step)
    block = None
    if walked is not None and len(walked.blocks) and step <= walked.steps:
        block = walked.blocks.iloc[int((walked.blocks["step"] - step).abs().argmin())]
    blocks = []
    for card in shown:
        simulated = math.nan if block is None or not card.simulated else float(block[card.column])
        other = (
            f'<dd class="rlq-closed"><b>{escape(card.shown(simulated))}</b> {kind_tag("simulated")}</dd>'
            if math.isfinite(simulated)
            else '<dd class="rlq-closed">&nbsp;</dd>'
        )
        value = float(way.at[card.column][place])
        text = card.shown(value) if math.isfinite(value) else "–"
        number, _, unit = text.partition("/") if text.startswith("$") else text.partition(" ")
        unit = f"/{unit}" if text.startswith("$") and unit else unit
        blocks.append(
            f'<div class="rlq-card"><dt>{escape(card.name)}</dt>'
            f'<dd class="rlq-number">{escape(number)}<small>{escape(unit)}</small></dd>'
            f'<dd class="rlq-means">{kind_tag("closed form")} {escape(card.means)}</dd>{other}'
            f'<dd class="rlq-means">at the start {escape(card.shown(float(way.at[card.column][0])))}</dd></div>'
        )
    return f'<dl class="rlq-cards">{"".join(blocks)}</dl>'


def card(way: Way) -> str:
    """The whole run as a card: what it costs, how long it takes, what a host would charge for the same tokens."""
    run = way.whole
    if not run.steps:
        return (
            '<div class="rlq-card rlq-card-run"><dt>Whole run</dt><dd class="rlq-number">–</dd>'
            f'<dd class="rlq-means">{kind_tag("closed form")} {NOWHERE}</dd></div>'
        )
    hosted = "no hosted price chosen" if run.hosted_usd is None else f"hosted {whole_dollars(run.hosted_usd)}"
    parts = "".join(
        f'<i style="width:{100 * getattr(run, f"{part}_usd") / run.usd:.2f}%;background:{PART_COLOURS[part]}" '
        f'title="{PART_NAMES[part]} {whole_dollars(getattr(run, f"{part}_usd"))}"></i>'
        for part in PARTS
    )
    still = f"if nothing moved {whole_dollars(way.whole_still.usd)}" if way.moves and way.whole_still.steps else ""
    return (
        '<div class="rlq-card rlq-card-run"><dt>Whole run</dt>'
        f'<dd class="rlq-number">{whole_dollars(run.usd)}<small>{duration(run.hours)}</small></dd>'
        f'<dd class="rlq-means">{kind_tag("closed form")} {run.steps:,} steps, {count(run.gpu_hours)} GPU-hours</dd>'
        f'<dd class="rlq-split">{parts}</dd><dd class="rlq-means">{hosted}</dd><dd class="rlq-means">{still}</dd></div>'
    )


def whole(way: Way, walked: Walked | None) -> str:
    """What the whole run takes and costs, where the dollars go, what a host would charge, and the same if nothing moved."""
    run, still = way.whole, way.whole_still
    if not run.steps:
        return f'<div class="rlq-whole"><h3>The whole run</h3><p>{kind_tag("closed form")}{NOWHERE}.</p></div>'
    rows = [("this run", "closed form", run)]
    if way.moves and still.steps:
        rows.append(("if nothing moved", "closed form", still))
    most = max(each.usd for _, _, each in rows)
    lines = [_run_row(name, kind, each, most) for name, kind, each in rows]
    if walked is not None and walked.steps:
        part = "" if walked.steps >= walked.asked else f" ({walked.steps:,} of {walked.asked:,} steps)"
        lines.insert(
            1,
            (
                f"<tr><th scope='row'>this run{part} {kind_tag('simulated')}</th><td>{walked.steps:,}</td>"
                f"<td>{duration(walked.hours)}</td><td>{count(walked.hours * _gpus(way))}</td>"
                f"<td>{whole_dollars(walked.usd)}</td>"
                "<td></td><td></td><td></td></tr>"
            ),
        )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("", "steps", "wall-clock", "GPU-hours", "cost", "where it goes", "$/Mtok", "hosted, same tokens")
    )
    key = "".join(
        f'<li><i class="rlq-mark-box" style="--colour:{PART_COLOURS[part]}"></i>{PART_NAMES[part]}</li>'
        for part in PARTS
        if any(getattr(each, f"{part}_usd") > 0.002 * each.usd for _, _, each in rows)
    )
    return (
        f'<div class="rlq-whole"><h3>The whole run</h3><div class="rlq-wide"><table><thead><tr>{head}</tr></thead>'
        f'<tbody>{"".join(lines)}</tbody></table></div><ul class="rlq-key">{key}</ul></div>'
    )


def _gpus(way: Way) -> int:
    return way.scenario.trainer_gpus + way.scenario.generator_gpus


def _run_row(name: str, kind: str, run: WholeRun, most: float) -> str:
    parts = "".join(
        f'<i style="width:{100 * getattr(run, f"{part}_usd") / most:.2f}%;background:{PART_COLOURS[part]}" '
        f'title="{PART_NAMES[part]} {whole_dollars(getattr(run, f"{part}_usd"))}"></i>'
        for part in PARTS
    )
    hosted = "–" if run.hosted_usd is None else f"{whole_dollars(run.hosted_usd)} ({run.usd / run.hosted_usd:.2f}×)"
    return (
        f"<tr><th scope='row'>{escape(name)} {kind_tag(kind)}</th><td>{run.steps:,}</td><td>{duration(run.hours)}</td>"
        f"<td>{count(run.gpu_hours)}</td><td><b>{whole_dollars(run.usd)}</b></td><td class='rlq-split'>{parts}</td>"
        f"<td>{dollars(run.usd / run.trained_tokens * TOKENS_PER_MTOK)}</td><td>{hosted}</td></tr>"
    )


def verdict(way: Way, walked: Walked | None) -> str:
    """Where the bottleneck flips, and whether the simulated run says the same."""
    words = flips(way)
    words = words[0].upper() + words[1:]
    if way.course.stalled_at is not None:
        words += f". By step {way.course.stalled_at:,} {NOWHERE}"
    doubt = ""
    if walked is not None and walked.stalled:
        doubt = f"The run ends after {walked.steps:,} steps: {walked.stalled}."
    elif walked is not None and walked.done and walked.steps < walked.asked:
        doubt = (
            f"Only the first {walked.steps:,} of {walked.asked:,} steps were simulated: more would take too long here."
        )
    if doubt:
        doubt = f'<p class="rlq-doubt">{kind_tag("simulated")}{escape(doubt)}</p>'
    return f'<p class="rlq-verdict" role="status">{kind_tag("closed form")}{escape(words)}.</p>{doubt}'


def how(walked: Walked | None, progress: str = "") -> str:
    """What was simulated, and how far what is under way has got."""
    if walked is None:
        said = "Not simulated yet: all numbers and lines are the closed form's until the hand rests."
    else:
        said = f"Dots and small numbers: {walked.words}, averaged in blocks of steps."
    mark = '<span class="rlq-done">all runs done</span>' if progress == "done" else escape(progress)
    return f'<p class="rlq-how">{kind_tag("simulated")}<span>{escape(said)}</span> {mark}</p>'
