"""What the pages over a run's steps say: numbers at the step looked at, the whole run and its split, and what moving costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rlqueue.app.banded import note, of_inputs
from rlqueue.app.banded_way import WayBands
from rlqueue.app.cards import NONE, Card, Span, html, inside, listed
from rlqueue.app.formats import count, dollars, duration, per_mtok, percent, ratio, seconds, tokens, whole_dollars
from rlqueue.app.origins import kind_tag
from rlqueue.app.palette import PART_COLOURS, PART_NAMES
from rlqueue.app.walk import Walked
from rlqueue.app.way import Way
from rlqueue.app.way_figures import flips
from rlqueue.cost import PARTS
from rlqueue.course import WholeRun
from rlqueue.uncertainty import Bands
from rlqueue.units import TOKENS_PER_MTOK

if TYPE_CHECKING:
    import pandas as pd

NOWHERE = "nearly every group is filtered: the run goes no further"


@dataclass(frozen=True, kw_only=True)
class Number:
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


WAIT = Number(name="Trainer wait ratio", column="trainer_wait_ratio", shown=percent, means="of each step's time")
COST = Number(name="Self-built", column="usd_per_mtok", shown=per_mtok, means="per trained Mtok")
STEP = Number(name="Step", column="step_s", shown=seconds, means="wall-clock")
TEACH = (
    Number(name="Mean solve rate", column="solve_rate", shown=percent, means="of the pool"),
    Number(name="Groups that teach", column="informative_fraction", shown=percent, means="of finished groups"),
    WAIT,
    COST,
    Number(
        name="What teaches", column="usd_per_informative_mtok", shown=per_mtok, means="per Mtok of groups that teach"
    ),
    STEP,
)
GROW = (
    Number(name="Mean response", column="mean_response_tokens", shown=tokens, means="after the cut"),
    Number(name="Cut", column="truncated_fraction", shown=percent, means="of the responses, at the maximum"),
    Number(name="Rollout", column="rollout_s", shown=seconds, means="in its slot", simulated=False),
    Number(name="KV cache", column="kv_used_ratio", shown=percent, means="in use", simulated=False),
    WAIT,
    COST,
    STEP,
)


def cards(shown: Sequence[Number], way: Way, walked: Walked | None, step: int, bands: WayBands | None = None) -> str:
    """The numbers at a step: by closed form with their bands, simulated where a run has got there, and those of the start."""
    place = way.near(step)
    block = None
    if walked is not None and len(walked.blocks) and step <= walked.steps:
        block = walked.blocks.iloc[int((walked.blocks["step"] - step).abs().argmin())]
    found = None if bands is None else bands.at(place)
    return listed((_card(each, way, place, block, found) for each in shown), note=note(found))


def _card(number: Number, way: Way, place: int, block: pd.Series | None, bands: Bands | None) -> Card:
    simulated = math.nan if block is None or not number.simulated else float(block[number.column])
    other = (
        f"<b>{escape(number.shown(simulated))}</b> {kind_tag('simulated')}" if math.isfinite(simulated) else "&nbsp;"
    )
    along = way.at
    start, value = (float(along[number.column][each]) for each in (0, place))
    text, unit = _parted(number.shown(value)) if math.isfinite(value) else (NONE, "")
    return Card(
        name=number.name, text=text, unit=unit, kind="closed form", means=number.means,
        lines=f'<dd class="rlq-closed">{other}</dd>',
        spans=(of_inputs(bands, number.column, lambda value: _parted(number.shown(value))[0]),),
        below=f'<dd class="rlq-means">at the start {escape(number.shown(start))}</dd>',
    )  # fmt: skip


def _parted(text: str) -> tuple[str, str]:
    """A written number without its unit, and the unit."""
    number, mark, unit = text.partition("/" if text.startswith("$") else " ")
    return number, mark.strip() + unit


def card(way: Way, bands: WayBands | None = None) -> str:
    """The whole run as a card: what it costs, how long it takes, what a host would charge for the same tokens."""
    run = way.whole
    if not run.steps:
        return html(Card(name="Whole run", text=NONE, kind="closed form", means=NOWHERE, look="rlq-card-run"))
    hosted = "no hosted price chosen" if run.hosted_usd is None else f"hosted {whole_dollars(run.hosted_usd)}"
    parts = "".join(
        f'<i style="width:{100 * getattr(run, f"{part}_usd") / run.usd:.2f}%;background:{PART_COLOURS[part]}" '
        f'title="{PART_NAMES[part]} {whole_dollars(getattr(run, f"{part}_usd"))}"></i>'
        for part in PARTS
    )
    still = f"if nothing moved {whole_dollars(way.whole_still.usd)}" if way.moves and way.whole_still.steps else ""
    return html(
        Card(
            name="Whole run", text=whole_dollars(run.usd), unit=duration(run.hours), kind="closed form",
            means=f"{run.steps:,} steps, {count(run.gpu_hours)} GPU-hours", look="rlq-card-run",
            spans=(of_whole(bands, "usd", whole_dollars), of_whole(bands, "hours", duration)),
            below=f'<dd class="rlq-split">{parts}</dd><dd class="rlq-means">{hosted}</dd><dd class="rlq-means">{still}</dd>',
        )
    )  # fmt: skip


def of_whole(bands: WayBands | None, quantity: str, shown: Callable[[float], str]) -> Span:
    """How far a number of the whole run may be off."""
    return of_inputs(None if bands is None else bands.whole, quantity, shown)


def whole(way: Way, walked: Walked | None, bands: WayBands | None = None) -> str:
    """What the whole run takes and costs, where the dollars go, what a host would charge, and the same if nothing moved.

    ``bands``: of the run; the others move with it.
    """
    run, still = way.whole, way.whole_still
    if not run.steps:
        return f'<div class="rlq-whole"><h3>The whole run</h3><p>{kind_tag("closed form")}{NOWHERE}.</p></div>'
    rows = [("this run", "closed form", run)]
    if way.moves and still.steps:
        rows.append(("if nothing moved", "closed form", still))
    most = max(each.usd for _, _, each in rows)
    lines = [_run_row(name, kind, each, most, bands if each is run else None) for name, kind, each in rows]
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


def _run_row(name: str, kind: str, run: WholeRun, most: float, bands: WayBands | None) -> str:
    parts = "".join(
        f'<i style="width:{100 * getattr(run, f"{part}_usd") / most:.2f}%;background:{PART_COLOURS[part]}" '
        f'title="{PART_NAMES[part]} {whole_dollars(getattr(run, f"{part}_usd"))}"></i>'
        for part in PARTS
    )
    hosted = NONE if run.hosted_usd is None else f"{whole_dollars(run.hosted_usd)} ({ratio(run.usd / run.hosted_usd)})"
    spans = (of_whole(bands, quantity, shown) for quantity, shown in WHOLE.items())
    hours, gpu_hours, usd, usd_per_mtok, times = map(inside, spans)
    return (
        f"<tr><th scope='row'>{escape(name)} {kind_tag(kind)}</th><td>{run.steps:,}</td><td>{duration(run.hours)}{hours}</td>"
        f"<td>{count(run.gpu_hours)}{gpu_hours}</td><td><b>{whole_dollars(run.usd)}</b>{usd}</td>"
        f"<td class='rlq-split'>{parts}</td>"
        f"<td>{dollars(run.usd / run.trained_tokens * TOKENS_PER_MTOK)}{usd_per_mtok}</td><td>{hosted}{times}</td></tr>"
    )


WHOLE = {"hours": duration, "gpu_hours": count, "usd": whole_dollars, "usd_per_mtok": dollars, "hosted_ratio": ratio}
"""What of the table has a band, and how its ends are written."""


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
