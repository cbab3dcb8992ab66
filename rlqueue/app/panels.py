"""What the page says in text: figures of merit with the reported values beside them, the verdict, and what else is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from rlqueue.advice import Move, break_even_usd_per_gpu_hour
from rlqueue.app.answers import Answer, Reported, reported_value
from rlqueue.app.banded import note, of_inputs
from rlqueue.app.cards import NONE, Card, Span, line, listed
from rlqueue.app.formats import as_printed, count, dollars, per_mtok, percent, rate, ratio, seconds, versions
from rlqueue.app.origins import kind_tag
from rlqueue.app.state import kind_of
from rlqueue.app.trust import sentence
from rlqueue.cost import Bill, cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.presets import preset
from rlqueue.uncertainty import Bands

SHOWN = {
    "trainer_wait_ratio": percent, "mfu_computing": percent, "usd_per_mtok": dollars, "hosted_usd_per_mtok": dollars,
    "usd_per_mtok_report_method": dollars, "cost_ratio": ratio, "mean_rollout_s": seconds, "consumption_per_s": rate,
    "production_per_s": rate,
}  # fmt: skip
"""How a quantity of data/reported.csv is written."""


@dataclass(frozen=True, kw_only=True)
class Merit:
    """One number of the page.

    Attributes:
        name: label. text: the number as written, by ``shown``. means: one line.
        rests_on: knob whose value, where assumed, makes this number an assumption as well.
        value, reported: the number and the name in data/reported.csv of what the source says about it; "" where nothing.
        spread: half the distance of the lowest and the highest seed, as written; "" where there is none.
    """

    name: str
    text: str
    means: str
    shown: Callable[[float], str]
    value: float | None = None
    reported: str = ""
    rests_on: str = ""
    spread: str = ""
    unit: str = ""
    strong: bool = False


def merits(answer: Answer) -> list[Merit]:
    """The cards as the closed form has them: what a run is judged by."""
    return _merits(answer.point, answer.bill)


def shown_merits(answer: Answer) -> list[Merit]:
    """The cards as simulated, with their spread over the seeds; the closed form's where no run came to a step."""
    found = _merits(answer.shown_point, answer.shown_bill)
    points = answer.simulated.points
    if len(points) < 2:
        return found
    each = [_merits(point, cost(answer.state.scenario, point)) for point in points]
    return [
        dataclasses.replace(merit, spread=_spread(merit, [one[place] for one in each]))
        for place, merit in enumerate(found)
    ]


def _spread(merit: Merit, seeds: list[Merit]) -> str:
    values = [each.value for each in seeds]
    if merit.value is None or any(value is None for value in values) or merit.name == "Hosted":
        return ""
    half = 0.5 * (max(values) - min(values))
    if merit.text.endswith("%"):
        return f"±{100 * half:.1f}"
    return f"±{count(half) if merit.value >= 100 else f'{half:.2f}'}"


def _merits(point: OperatingPoint, bill: Bill) -> list[Merit]:
    return [
        _merit("Trainer wait ratio", percent, point.trainer_wait_ratio, "of each step's time",
               reported="trainer_wait_ratio", strong=True),
        _merit("Rollout idle ratio", percent, point.rollout_idle_ratio, "of all slot-time"),
        _merit("Staleness", versions, point.staleness_versions, "mean when trained", unit="versions"),
        _merit("Trained tokens", count, point.trained_tokens_per_s, "prompt and response", unit="/s"),
        _merit("Self-built", dollars, bill.usd_per_mtok, "wall-clock GPU-hours", unit="/Mtok", reported="usd_per_mtok",
               rests_on="gpu_hour_usd", strong=True),
        _merit("Hosted", dollars, bill.hosted_usd_per_mtok, "same mix", unit="/Mtok", reported="hosted_usd_per_mtok",
               rests_on="hosted_price"),
        _merit("Self-built / hosted", ratio, bill.cost_ratio, _break_even(bill)),
    ]  # fmt: skip


def _merit(
    name: str, shown: Callable[[float], str], value: float | None, means: str, *, unit: str = "", **more: Any
) -> Merit:
    there = value is not None
    return Merit(
        name=name, shown=shown, value=value, text=shown(value) if there else NONE, unit=unit if there else "", means=means, **more
    )  # fmt: skip


def _break_even(bill: Bill) -> str:
    at = break_even_usd_per_gpu_hour(bill)
    if at is None:
        return "no hosted price chosen"
    return f"equal at {dollars(at)}/GPU-h"


def lesser_merits(answer: Answer) -> list[Merit]:
    """Numbers that explain the cards, in one compact line."""
    point, bill = answer.point, answer.bill
    return [
        _merit("Step", seconds, point.step_s, "wall-clock, one optimizer step"),
        _merit("Consumption", rate, point.consumption_per_s, "rollouts the trainer takes while computing",
               reported="consumption_per_s"),
        _merit("Production", rate, point.production_per_s, "rollouts the generator can deliver",
               reported="production_per_s"),
        _merit("In flight", count, point.in_flight_rollouts, "rollouts that hold a slot"),
        _merit("Rollout", seconds, point.rollout_s, "mean time in its slot", reported="mean_rollout_s"),
        _merit("MFU computing", percent, point.mfu_computing, "of the dense bf16 peak", reported="mfu_computing"),
        _merit("MFU wall-clock", percent, point.mfu_wall_clock, "the same over the whole step"),
        _merit("Report's method", per_mtok, bill.usd_per_mtok_report_method, "see Two costs, below",
               reported="usd_per_mtok_report_method"),
    ]  # fmt: skip


def reported_words(answer: Answer, merit: Merit) -> str:
    """``reported 30% (printed), here −0.9 points``: the source's value, its kind, and how far the answer is from it.

    Once something was moved the two are no longer about the same run, and the deviation is left out.
    """
    if not merit.reported:
        return ""
    found = reported_value(answer.state.preset, merit.reported)
    if found is None:
        return ""
    shown = as_printed if SHOWN[merit.reported] is percent else SHOWN[merit.reported]
    value = shown(found.low) if found.low == found.high else f"{shown(found.low)} to {shown(found.high)}"
    apart = f", {deviation(merit, found)}" if answer.state.untouched and merit.value is not None else ""
    return f"reported {value} ({found.fact.kind}){apart}"


def deviation(merit: Merit, found: Reported) -> str:
    """How far the answer is from what is reported: points for a share, percent for the rest."""
    if found.low < found.high and found.low <= merit.value <= found.high:
        return "here inside"
    nearest = min(max(merit.value, found.low), found.high)
    share = SHOWN[merit.reported] is percent
    apart = 100 * (merit.value - nearest if share else merit.value / nearest - 1)
    if abs(apart) < 0.05:
        return "here the same"
    return f"here {apart:+.1f}{' points' if share else '%'}".replace("-", "−")


BANDED = {
    "Trainer wait ratio": "trainer_wait_ratio", "Rollout idle ratio": "rollout_idle_ratio", "Staleness": "staleness_versions",
    "Trained tokens": "trained_tokens_per_s", "Self-built": "usd_per_mtok", "Self-built / hosted": "cost_ratio",
    "Step": "step_s", "Consumption": "consumption_per_s", "Production": "production_per_s",
    "In flight": "in_flight_rollouts", "Rollout": "rollout_s", "MFU computing": "mfu_computing",
    "MFU wall-clock": "mfu_wall_clock", "Report's method": "usd_per_mtok_report_method",
}  # fmt: skip
"""Quantity of each number's band; the hosted price has none."""


def band(merit: Merit, bands: Bands | None) -> Span:
    """How far a number may be off, for what its inputs are known to."""
    return of_inputs(bands, BANDED[merit.name], merit.shown)


def cards(answer: Answer, further: str = "", bands: Bands | None = None) -> str:
    """The figures of merit as HTML: simulated, the closed form's beside each, and its band where the inputs' are known.

    ``further``: cards of the page's own.
    """
    simulated = answer.simulated.point is not None
    kind = answer.shown_point.kind
    made = []
    for merit, closed in zip(shown_merits(answer), merits(answer), strict=True):
        exact = merit.name == "Hosted"  # a price list's, and nobody's model
        lines = "" if exact or not simulated else closed_form(closed.text)
        beside = f'<dd class="rlq-reported">{escape(reported_words(answer, merit))}</dd>'
        made.append(
            Card(
                name=merit.name, text=merit.text, kind="list price" if exact else kind, means=merit.means, unit=merit.unit,
                spread=merit.spread, marks=_assumed(answer, merit), lines=lines, below=beside,
                spans=() if exact or merit.text == NONE else (band(merit, bands),),
                look="rlq-strong" if merit.strong else "",
            )
        )  # fmt: skip
    return listed(made, further=further, note=note(bands))


def closed_form(text: str) -> str:
    """What the closed form says, below a simulated number."""
    return f'<dd class="rlq-closed"><b>{escape(text)}</b> {kind_tag("closed form")}</dd>'


def _assumed(answer: Answer, merit: Merit) -> str:
    """The mark of a number that rests on a price nobody printed for this run."""
    if not merit.rests_on or kind_of(answer.state, merit.rests_on) != "assumed":
        return ""
    note = f"{merit.rests_on}: {preset(answer.state.preset)[merit.rests_on].note}"
    return f'<span class="rlq-tag rlq-assumed" title="{escape(note)}">assumed price</span>'


def lesser(answer: Answer, bands: Bands | None = None) -> str:
    """The numbers behind the cards, as HTML."""
    blocks = []
    for merit in lesser_merits(answer):
        beside = reported_words(answer, merit)
        said = f'<dd class="rlq-reported">{escape(beside)}</dd>' if beside else ""
        blocks.append(
            f"<div><dt>{escape(merit.name)}</dt><dd>{escape(merit.text)}</dd>"
            f'<dd class="rlq-means">{escape(merit.means)}</dd>{line(band(merit, bands))}{said}</div>'
        )
    heading = f"<h3>Behind the cards {kind_tag(answer.point.kind)}</h3>"
    return f'{heading}<dl class="rlq-lesser">{"".join(blocks)}</dl>{fitted(answer)}'


def fitted(answer: Answer) -> str:
    """Which knobs were chosen so that the run comes out: agreement with what they were chosen for shows nothing."""
    names = [knob for knob, fact in preset(answer.state.preset).items() if fact.kind == "calibrated"]
    if not names:
        return ""
    return (
        f'<p class="rlq-small">Fitted to this run: {escape(", ".join(names))}. That the numbers they were fitted to agree is no '
        "test of the model; the folds below say which.</p>"
    )


def verdict_html(answer: Answer) -> str:
    """The sentence that names the bottleneck, and where the two answers differ, which of them to believe."""
    doubt = sentence(answer)
    doubt = f'<p class="rlq-doubt">{escape(doubt)}</p>' if doubt else ""
    return f'<p class="rlq-verdict" role="status">{kind_tag(answer.point.kind)}{escape(answer.verdict)}</p>{doubt}'


def how(answer: Answer, progress: float | None = None) -> str:
    """What exactly was simulated for what the page shows, and how far the longer runs are (None: they have not begun)."""
    found = answer.simulated
    if found.point is None:
        said = f"No step simulated ({found.stalled or 'it takes too long while dragging'}): all numbers are the closed form's."
    else:
        said = f"Cards: {found.fidelity.words}."
        if len(found.curve.simulated):
            said += f" Curves through {len(found.curve.simulated)} splits: {found.curve_fidelity.words}."
        if found.fidelity.seeds > 1:
            said += " Bands and ±: lowest to highest seed."
    bar = "" if progress is None else (
        '<span class="rlq-done">all runs done</span>' if progress >= 1 else
        f'<progress max="100" value="{100 * progress:.0f}" aria-label="longer runs"></progress> {progress:.0%}'
    )  # fmt: skip
    return f'<p class="rlq-how">{kind_tag("simulated")}<span>{escape(said)}</span> {bar}</p>'


def move_words(move: Move) -> str:
    """One row of the list of moves: the move, and what it gives."""
    words = move.words[0].upper() + move.words[1:]
    change = f"{round(100 * move.wait_change) or 0:+d}".replace("-", "−")
    usd = f"{move.usd_per_mtok_change:+.2f}".replace("-", "−")
    return (
        f"{words}: wait {percent(move.point.trainer_wait_ratio)} ({change} points), "
        f"{dollars(move.bill.usd_per_mtok)}/Mtok ({usd})"
    )
