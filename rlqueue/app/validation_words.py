"""What the page "how accurate is it?" says: figures of merit with their aims, and each case as a table with what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from rlqueue.app.banded import between
from rlqueue.app.cards import NONE, Card, Span, listed
from rlqueue.app.validation_figures import COLOURS
from rlqueue.calibration import Calibration, FittedKnob
from rlqueue.uncertainty import LEVEL
from rlqueue.units import after_number
from rlqueue.validation import Case, CaseResult, Validation
from rlqueue.validation.protocol import AIMS, BESIDE, CALIBRATED, LEFT_OUT, PREDICTED, Comparison, RankedPair
from rlqueue.validation.report import error_words, is_share

MERITS = (
    ("median_error_step", "Step time", "median error"),
    ("median_error_speedup", "Speed-up", "median error"),
    ("median_error_wait_points", "Trainer wait ratio", "median error"),
    ("rankings_right", "Rankings", "pairs of runs in the right order"),
    ("median_error_staleness_versions", "Staleness", "median error"),
    ("median_error_rollout", "Rollout time", "median error"),
)
DRAWS = 200
"""Draws of cases from which the bands of the figures of merit are read."""
MARKS = {PREDICTED: "predicted", CALIBRATED: "calibrates", BESIDE: "beside", LEFT_OUT: "left out"}


def cards(results: Sequence[CaseResult]) -> str:
    """Each figure of merit over the cases computed so far, with its aim, and how far it hangs on which cases there are."""
    validation = Validation(results=results)
    found, missed, drawn = validation.summary(), validation.missed(), _drawn(results)
    made = []
    for name, title, words in MERITS:
        value, aim = found[name], ""
        if name in AIMS:
            verdict = '<b class="rlq-missed">missed</b>' if name in missed else '<b class="rlq-met">met</b>'
            aim = f'<dd class="rlq-means">{_aim(name)} {"" if value is None else verdict}</dd>'
        made.append(
            Card(
                name=title, text=_merit(name, value), kind=_kind(results), means=words, lines=aim,
                spans=() if value is None else (_over_cases(drawn[name], lambda each, name=name: _merit(name, each)),),
            )
        )  # fmt: skip
    return listed(made, note=Span(words=OF_CASES))


OF_CASES = (
    f"cases: where {LEVEL:.0%} of {DRAWS} such figures lie when as many cases are drawn from these, with replacement. "
    "Errors are predicted against published; published numbers have errors of their own, which nobody printed."
)


def _kind(results: Sequence[CaseResult]) -> str:
    return "simulated" if results and all(each.solver == "simulated" for each in results) else "closed form"


def _drawn(results: Sequence[CaseResult]) -> dict[str, list[float]]:
    """Figures of merit of cases drawn with replacement: rows of a case go together, since what errs in one errs in all."""
    alone = [Validation(results=[each]).summary() for each in results]
    several = [name for name, *_ in MERITS if sum(each[name] is not None for each in alone) > 1]
    draws = np.random.default_rng(0).integers(len(results), size=(DRAWS, len(results))) if several else []
    found = [Validation(results=[results[place] for place in draw]).summary() for draw in draws]
    return {name: [each[name] for each in found if name in several and each[name] is not None] for name, *_ in MERITS}


def _over_cases(drawn: Sequence[float], shown: Callable[[float], str]) -> Span:
    if not drawn:
        return Span(words="one case only", title="nothing is known of its spread over cases")
    low, high = np.percentile(drawn, [50.0 * (1.0 - LEVEL), 50.0 * (1.0 + LEVEL)])
    return between("cases", shown(low), shown(high), OF_CASES)


def _merit(name: str, value: float | None) -> str:
    if "versions" in name:
        return _number(value, "{:.2f} versions")
    return _number(value, "{:.1f} points", 100) if "points" in name else _number(value, "{:.1%}")


def _number(value: float | None, form: str, times: float = 1) -> str:
    return NONE if value is None else form.format(times * value)


def _aim(name: str) -> str:
    aim = AIMS[name]
    if name == "rankings_right":
        return f"aim: at least {aim:.0%}"
    return f"aim: at most {100 * aim:.0f} points" if "points" in name else f"aim: at most {aim:.0%}"


def progress(results: Sequence[CaseResult], cases: Sequence[Case], solver: str) -> str:
    """Who computed what is shown, and how far that is."""
    validation = Validation(results=results)
    simulated = sum(result.solver == "simulated" for result in results)
    rows = f"{validation.predicted_rows} rows of {len(results)} published cases predicted blind"
    if len(results) < len(cases):
        return f"<b>{solver.capitalize()}:</b> case {len(results) + 1} of {len(cases)} is being computed ..."
    if simulated < len(cases):
        return f"<b>{rows}</b> · {simulated} of {len(cases)} cases simulated, the others by closed form so far ..."
    return f"<b>{rows}</b> · all simulated: where the two solvers differ, the simulation is to be believed."


def colours(cases: Sequence[Case]) -> str:
    """Which colour of the figures is which case."""
    marks = "".join(
        f'<li><i style="background:{COLOURS[number % len(COLOURS)]}"></i>{escape(case.title)}</li>'
        for number, case in enumerate(cases)
    )
    return f'<ul class="rlq-colours">{marks}</ul>'


def case_title(case: Case, result: CaseResult | None) -> str:
    """What a case is called while it is folded: with its median errors once there are some."""
    return case.title if result is None else " · ".join(filter(None, (case.title, _medians(result), result.solver)))


def case_html(result: CaseResult) -> str:
    """One case: table, fit, rankings and what is missing."""
    case = result.case
    question = f"<p><b>{escape(case.question)}</b></p>" if case.question else ""
    source = escape(f"{case.source.author}: {case.source.title} ({case.source.date}). {case.where}")
    link = f'<a href="{escape(case.source.url)}">{source}</a>' if case.source.url.startswith("https://") else source
    inside = _table(result.comparisons) + _fits(result) + _rankings(result.pairs) + _lacks(case)
    return f'<div class="rlq-case">{question}{inside}<p class="rlq-small">{link}</p></div>'


def _medians(result: CaseResult) -> str:
    found = Validation(results=[result]).summary()
    parts = [f"{title.lower()} {_merit(name, found[name])}" for name, title, _ in MERITS[:3] if found[name] is not None]
    if found["median_error_rollout"] is not None:
        parts.append(f"rollout time {found['median_error_rollout']:.1%}")
    if found["median_error_staleness_versions"] is not None:
        parts.append(f"staleness {found['median_error_staleness_versions']:.2f} versions")
    if found["rankings_right"] is not None:
        parts.append(f"{found['rankings_right']:.0%} of {found['ranked_pairs']} pairs in order")
    return ", ".join(parts)


def _table(comparisons: Sequence[Comparison]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("", "run", "quantity", "published", "predicted", "error"))
    rows = "".join(
        f'<tr class="rlq-{each.role.replace(" ", "-")}"><td><span>{MARKS[each.role]}</span></td>'
        f"<td>{escape(each.title)}</td><td>{escape(each.quantity)}</td>"
        f'<td title="{escape(each.kind + (": " + each.note if each.note else ""))}">{_value(each, each.published)}</td>'
        f"<td>{_value(each, each.predicted)}</td><td>{error_words(each)}</td></tr>"
        for each in comparisons
    )
    return f'<div class="rlq-scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _value(each: Comparison, value: float) -> str:
    if is_share(each.quantity):
        return f"{value:.1%}"
    unit = escape(after_number(each.unit))
    return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"


def _fits(result: CaseResult) -> str:
    if not result.calibrations:
        return "<p>Nothing is fitted: every input is published or follows from what is.</p>"
    items = "".join(
        f"<li>on {escape(', '.join(fit.rows))}: {_knobs(found)}</li>"
        for fit, found in zip(result.case.fits, result.calibrations, strict=True)
    )
    return f"<p>Fitted by least squares, with its 68 % range:</p><ul>{items}</ul>"


def _knobs(found: Calibration) -> str:
    return "; ".join(_knob(each) for each in found.knobs)


def _knob(each: FittedKnob) -> str:
    unit = "" if each.unit in ("1", "") else f" {escape(each.unit)}"
    fixed = math.isfinite(each.high)
    span = f"{each.low:.3g} to {each.high:.3g}" if fixed else "not fixed by these rows"
    return f"{each.knob} {each.value:.4g}{unit} ({span}{', at its limit' if each.at_limit else ''})"


def _rankings(pairs: Sequence[RankedPair]) -> str:
    counted = [pair for pair in pairs if pair.counts]
    if not counted:
        return ""
    wrong = [pair for pair in counted if not pair.right]
    words = f"<p>Rankings: {len(counted) - len(wrong)} of {len(counted)} pairs of runs are in the published order."
    if not wrong:
        return words + "</p>"
    listed = ", ".join(f"{escape(pair.lower)} below {escape(pair.higher)} ({pair.quantity})" for pair in wrong)
    return f"{words} Not so, or not told apart: {listed}.</p>"


def _lacks(case: Case) -> str:
    if not case.lacks:
        return ""
    return f"<p>What the model lacks here:</p><ul>{''.join(f'<li>{escape(words)}</li>' for words in case.lacks)}</ul>"


def protocol_html() -> str:
    """How it is done, for who does not believe it."""
    return (
        '<div class="rlq-prose"><h4>How this is computed</h4><p>For each published case a few rows calibrate: decode rate, '
        "training rate and at most one parameter of the length tail are fitted to them by least squares. Every other row is "
        "predicted with those values and its own knobs, its measurements unread; a test replaces all of them and sees "
        "the same predictions. Errors count predicted rows only.</p><p>Calibration and prediction are first made by closed "
        "form, then simulated with different draws. A pair of runs counts as ranked where the published values differ by "
        "more than the case's own tolerance, and as right where the model has them in that order, a tie being wrong. "
        "<code>rlqueue validate --out DIR</code> gives the same figures as CSV, and a new case is a file: "
        "<code>docs/validation.md</code>.</p></div>"
    )
