"""What the page says in text: figures of merit with the reported values beside them, the verdict, and what else is known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from html import escape

from rlqueue.advice import Move, break_even_usd_per_gpu_hour
from rlqueue.app.answers import Answer, Reported, reported_value
from rlqueue.app.banded import band_of
from rlqueue.app.formats import as_printed, count, dollars, percent, rate, ratio, seconds, versions
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
        name: label. text: the number as written. means: one line.
        rests_on: knob whose value, where assumed, makes this number an assumption as well.
        value, reported: the number and the name in data/reported.csv of what the source says about it; "" where nothing.
        spread: half the distance of the lowest and the highest seed, as written; "" where there is none.
    """

    name: str
    text: str
    means: str
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
    hosted, cost_ratio = bill.hosted_usd_per_mtok, bill.cost_ratio
    return [
        Merit(name="Trainer wait ratio", text=percent(point.trainer_wait_ratio), value=point.trainer_wait_ratio,
              reported="trainer_wait_ratio", means="of each step's time", strong=True),
        Merit(name="Rollout idle ratio", text=percent(point.rollout_idle_ratio), value=point.rollout_idle_ratio,
              means="of all slot-time"),
        Merit(name="Staleness", text=versions(point.staleness_versions), value=point.staleness_versions, unit="versions",
              means="mean when trained"),
        Merit(name="Trained tokens", text=count(point.trained_tokens_per_s), value=point.trained_tokens_per_s, unit="/s",
              means="prompt and response"),
        Merit(name="Self-built", text=dollars(bill.usd_per_mtok), unit="/Mtok", value=bill.usd_per_mtok,
              reported="usd_per_mtok", means="wall-clock GPU-hours", rests_on="gpu_hour_usd", strong=True),
        Merit(name="Hosted", text="–" if hosted is None else dollars(hosted), unit="" if hosted is None else "/Mtok",
              value=hosted, reported="hosted_usd_per_mtok", means="same mix", rests_on="hosted_price"),
        Merit(name="Self-built / hosted", text="–" if cost_ratio is None else ratio(cost_ratio), value=cost_ratio,
              means=_break_even(bill)),
    ]  # fmt: skip


def _break_even(bill: Bill) -> str:
    at = break_even_usd_per_gpu_hour(bill)
    if at is None:
        return "no hosted price chosen"
    return f"equal at {dollars(at)}/GPU-h"


def lesser_merits(answer: Answer) -> list[Merit]:
    """Numbers that explain the cards, in one compact line."""
    point, bill = answer.point, answer.bill
    return [
        Merit(name="Step", text=seconds(point.step_s), means="wall-clock, one optimizer step"),
        Merit(name="Consumption", text=rate(point.consumption_per_s), value=point.consumption_per_s,
              reported="consumption_per_s", means="rollouts the trainer takes while computing"),
        Merit(name="Production", text=rate(point.production_per_s), value=point.production_per_s,
              reported="production_per_s", means="rollouts the generator can deliver"),
        Merit(name="In flight", text=count(point.in_flight_rollouts), means="rollouts that hold a slot"),
        Merit(name="Rollout", text=seconds(point.rollout_s), value=point.rollout_s, reported="mean_rollout_s",
              means="mean time in its slot"),
        Merit(name="MFU computing", text=percent(point.mfu_computing), value=point.mfu_computing,
              reported="mfu_computing", means="of the dense bf16 peak"),
        Merit(name="MFU wall-clock", text=percent(point.mfu_wall_clock), means="the same over the whole step"),
        Merit(name="Report's method", text=f"{dollars(bill.usd_per_mtok_report_method)}/Mtok",
              value=bill.usd_per_mtok_report_method, reported="usd_per_mtok_report_method",
              means="see Two costs, below"),
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
    "Trainer wait ratio": ("trainer_wait_ratio", percent), "Rollout idle ratio": ("rollout_idle_ratio", percent),
    "Staleness": ("staleness_versions", versions), "Trained tokens": ("trained_tokens_per_s", count),
    "Self-built": ("usd_per_mtok", dollars), "Self-built / hosted": ("cost_ratio", ratio),
}  # fmt: skip
"""Cards with a band: its quantity, and how its ends are written."""


def band(merit: Merit, bands: Bands | None) -> str:
    """How far a card's number may be off, for what its inputs are known to; a line is kept free until that is known."""
    if merit.name not in BANDED:
        return ""
    quantity, shown = BANDED[merit.name]
    found = band_of(bands, quantity)
    if found is None:
        return '<dd class="rlq-band">&nbsp;</dd>'
    title = f"{bands.level:.0%} of {bands.samples} samples of the inputs that are assumed or fitted, by closed form"
    return f'<dd class="rlq-band" title="{title}">inputs {shown(found.low)}–{shown(found.high)}</dd>'


def cards(answer: Answer, further: str = "", bands: Bands | None = None) -> str:
    """The figures of merit as HTML: simulated, the closed form's beside each, and its band where the inputs' are known.

    ``further``: cards of the page's own.
    """
    blocks = []
    simulated = answer.simulated.point is not None
    kind = answer.shown_point.kind
    for merit, closed in zip(shown_merits(answer), merits(answer), strict=True):
        beside = reported_words(answer, merit)
        spread = f"<small>{merit.spread}</small>" if merit.spread else ""
        exact = merit.name == "Hosted"  # a price list's, and nobody's model
        tag = kind_tag("list price" if exact else kind)
        other = (
            ""
            if exact or not simulated
            else (f'<dd class="rlq-closed"><b>{escape(closed.text)}</b> {kind_tag(answer.point.kind)}</dd>')
        )
        blocks.append(
            f'<div class="rlq-card{" rlq-strong" if merit.strong else ""}"><dt>{escape(merit.name)}</dt>'
            f'<dd class="rlq-number">{escape(merit.text)}{spread}<small>{escape(merit.unit)}</small></dd>'
            f'<dd class="rlq-means">{tag}{_assumed(answer, merit)} {escape(merit.means)}</dd>{other}'
            f'{band(merit, bands)}<dd class="rlq-reported">{escape(beside)}</dd></div>'
        )
    return f'<dl class="rlq-cards">{"".join(blocks)}{further}</dl>'


def _assumed(answer: Answer, merit: Merit) -> str:
    """The mark of a number that rests on a price nobody printed for this run."""
    if not merit.rests_on or kind_of(answer.state, merit.rests_on) != "assumed":
        return ""
    note = f"{merit.rests_on}: {preset(answer.state.preset)[merit.rests_on].note}"
    return f'<span class="rlq-tag rlq-assumed" title="{escape(note)}">assumed price</span>'


def lesser(answer: Answer) -> str:
    """The numbers behind the cards, as HTML."""
    blocks = []
    for merit in lesser_merits(answer):
        beside = reported_words(answer, merit)
        note = f'<dd class="rlq-reported">{escape(beside)}</dd>' if beside else ""
        blocks.append(
            f"<div><dt>{escape(merit.name)}</dt><dd>{escape(merit.text)}</dd>"
            f'<dd class="rlq-means">{escape(merit.means)}</dd>{note}</div>'
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
