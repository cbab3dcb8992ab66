"""What the page "your run" says in text. All that a visitor gave is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from html import escape

from rlqueue.app.banded import note, of_chance, of_inputs
from rlqueue.app.cards import Card, Span, line, listed
from rlqueue.app.formats import count, dollars, percent, seconds
from rlqueue.app.origins import kind_tag
from rlqueue.app.your_run_found import Found
from rlqueue.diagnosis import Comparison, Gain
from rlqueue.diagnosis.diagnose import run_steps
from rlqueue.frameworks import Reading
from rlqueue.logs import COLUMNS, Mean, Measured
from rlqueue.logs import Reading as LogReading
from rlqueue.logs.names import title
from rlqueue.operating_point import CONSTRAINTS
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import LEVEL, QUANTITIES
from rlqueue.units import after_number

SHOWN = {
    "trainer_wait_ratio": ("Trainer wait ratio", percent), "step_s": ("Step", seconds), "wait_s": ("Waits", seconds),
    "train_s": ("Trains", seconds), "sync_s": ("Weight sync", seconds), "generator_step_s": ("Step, generation side", seconds),
    "generator_wait_s": ("Waits for weights", seconds), "staleness_versions": ("Staleness", lambda value: f"{value:.2f}"),
    "mean_response_tokens": ("Response", count), "trained_tokens_per_s": ("Trained tokens", lambda value: f"{count(value)}/s"),
    "mfu_computing": ("MFU computing", percent), "reward": ("Reward", lambda value: f"{value:.3g}"),
}  # fmt: skip
UNIT = {"staleness_versions": "versions", "mean_response_tokens": "tokens"}
USES = {
    "value": "read",
    "part": "read, added up",
    "counter": "read, differenced",
    "mark": "recognised by",
    "lies": "not believed",
}
MOST_ROWS = 120


def recognised(found: Found) -> str:
    """What was given, and what it was taken for."""
    said = []
    if found.given.example:
        said.append("<b>An example</b>, until you drop something: a published run of 18 steps.")
    if found.measured is not None:
        said.append(_log_words(found.measured))
    if found.reading is not None:
        said.append(_configuration_words(found))
    elif found.given.preset:
        said.append(f"As its configuration stands the published run <b>{escape(found.given.preset)}</b>.")
    return "".join(f'<p class="rlq-about">{each}</p>' for each in said)


def _log_words(measured: Measured) -> str:
    files = ", ".join(f"{escape(name)} ({form})" for name, form in zip(measured.files, measured.formats, strict=True))
    steps = measured.table.index
    steady = int((measured.table["kind"] == "steady").sum())
    left = ", ".join(
        f"{row.steps} {escape(row.kind)} ({row.share:.0%} of the time)" for row in measured.left_out().itertuples()
    )
    return (
        f"Log of <b>{escape(title(measured.framework))}</b>: {files}. Steps {steps[0]:,} to {steps[-1]:,}, {steady:,} of "
        f"{len(steps):,} go into the means{f'; left out: {left}' if left else ''}."
    )


def _configuration_words(found: Found) -> str:
    reading = found.reading
    kinds = {
        origin: sum(fact.origin == origin for fact in reading.facts) for origin in ("read", "defaulted", "assumed")
    }
    counted = ", ".join(f"{number} {origin}" for origin, number in kinds.items())
    variant = f" ({escape(reading.variant)})" if reading.variant else ""
    text = f"Configuration of <b>{escape(reading.title)}</b>{variant}: {escape(reading.name)}, knobs: {counted}."
    if reading.absent:
        text += f" It builds upon {escape(', '.join(reading.absent))}: drop that as well."
    if found.open:
        text += f' <span role="alert">It makes no scenario yet: {escape(found.open)}</span>'
    return text


def verdict(found: Found) -> str:
    """Who waits, what binds, what to do."""
    diagnosis = found.diagnosis
    if diagnosis is None:
        return ""
    said = diagnosis.verdict
    if diagnosis.scenario is None:
        return f'<p class="rlq-verdict" role="status">{kind_tag("measured")}{escape(said)}</p>'
    waiting = diagnosis.waiting
    first = f'<p class="rlq-verdict">{kind_tag("measured")}{escape(waiting.words)}</p>' if waiting else ""
    return f'{first}<p class="rlq-verdict" role="status">{kind_tag("closed form")}{escape(said)}</p>'


def cards(found: Found) -> str:
    """Means of the steady steps with their chance, how far steps differ, and the model's beside them with its band."""
    if found.measured is None:
        return ""
    means = found.measured.means()
    compared = {each.quantity: each for each in found.diagnosis.comparisons} if found.diagnosis else {}
    said = Span(words=OF_CHANCE) if found.bands is None else note(found.bands, OF_CHANCE)
    made = [_card(name, means[name], compared.get(name), found) for name in SHOWN if name in means]
    return listed(made, note=said)


OF_CHANCE = (
    f"chance: where the mean of such steps lies with a confidence of {LEVEL:.0%}, if they hardly depend on each other."
)


def _card(name: str, mean: Mean, beside: Comparison | None, found: Found) -> Card:
    label, written = SHOWN[name]
    steps = f"{mean.rows:,} steps" if mean.rows > 1 else "1 step"
    spread = "" if math.isnan(mean.sd) else f", ±{written(mean.sd)} between steps"
    least = -math.inf if name == "reward" else 0.0
    spans = [of_chance(mean.mean, mean.sd / math.sqrt(mean.rows), mean.rows, written, of="steps", least=least)]
    return Card(
        name=label, text=written(mean.mean), unit=UNIT.get(name, ""), kind="measured", means=f"{steps}{spread}", spans=spans,
        below=_beside(beside, written, found), look="rlq-strong" if name == "trainer_wait_ratio" else "",
    )  # fmt: skip


def _beside(each: Comparison | None, written: Callable[[float], str], found: Found) -> str:
    """The model's number; one that was made to agree has no band of its own."""
    if each is None:
        return ""
    tag = kind_tag("fitted" if each.fitted else "closed form")
    apart = "" if each.fitted or math.isnan(each.error) else f" ({_error(each)})"
    span = (
        "" if each.fitted or each.quantity not in QUANTITIES else line(of_inputs(found.bands, each.quantity, written))
    )
    return f'<dd class="rlq-closed"><b>{escape(written(each.predicted))}</b> {tag}{apart}</dd>{span}'


def _error(each: Comparison) -> str:
    return f"{100 * each.error:+.0f}{' points' if each.unit == '1' else '%'}".replace("-", "−")


def moves(found: Found) -> str:
    """Ranked moves, what each would buy, and the lines to paste."""
    diagnosis = found.diagnosis
    if diagnosis is None or diagnosis.scenario is None:
        return ""
    if not diagnosis.gains:
        return "<h3>What to change</h3><p>No single move of split, concurrency or staleness budget lowers $/Mtok.</p>"
    steps = run_steps(diagnosis.scenario)
    rows = "".join(_move(each) for each in diagnosis.gains)
    return (
        f'<h3>What to change, best first {kind_tag("closed form")}</h3><table class="rlq-moves-table"><thead><tr><th>Move</th>'
        f"<th>Wait</th><th>Tokens/s</th><th>$/Mtok</th><th>Hours of {steps:,} steps</th><th>Lines to paste</th></tr></thead>"
        f'<tbody>{rows}</tbody></table><p class="rlq-small">Each alone, the others as they are. Binding now: '
        f"{escape(diagnosis.point.binding_constraint)} ({escape(CONSTRAINTS[diagnosis.point.binding_constraint])}), then "
        f"{escape(diagnosis.point.next_constraint)}.</p>"
    )


def _move(gain: Gain) -> str:
    after = gain.move
    words = after.words[0].upper() + after.words[1:]
    paste = "\n".join(gain.paste) or "(it has no key for this)"
    cells = (
        ("Wait", percent(after.point.trainer_wait_ratio), f"{100 * gain.wait_change:+.0f} points"),
        ("Tokens/s", count(after.point.trained_tokens_per_s), f"{gain.tokens_per_s_change:+,.0f}"),
        ("$/Mtok", dollars(after.bill.usd_per_mtok), f"{gain.usd_per_mtok_change:+,.2f}"),
        ("Hours", f"{gain.hours:,.1f}", f"{gain.hours_change:+,.1f}"),
    )
    body = "".join(
        f'<td data-label="{label}">{escape(value)} <small>{escape(change.replace("-", "−"))}</small></td>'
        for label, value, change in cells
    )
    return f"<tr><th>{escape(words)}</th>{body}<td><pre>{escape(paste)}</pre></td></tr>"


def fitted(found: Found) -> str:
    """What was taken from the log and what was fitted to it, with how well the log fixes it."""
    diagnosis = found.diagnosis
    if diagnosis is None or found.measured is None or diagnosis.scenario is None:
        return ""
    units = {each.name: each.metadata["unit"] for each in fields(Scenario) if each.metadata}
    items = [
        f"<b>{name}</b> = {value:,.0f} {units[name]}s {kind_tag('measured')}" for name, value in diagnosis.taken.items()
    ]
    for knob in diagnosis.calibration.knobs if diagnosis.calibration else ():
        known = f"{knob.low:.4g} to {knob.high:.4g}" if math.isfinite(knob.spread) else "not fixed by the log"
        limit = ", at its limit" if knob.at_limit else ""
        unit = escape(after_number(knob.unit))
        items.append(
            f"<b>{escape(knob.knob)}</b> = {knob.value:.4g}{unit} ({known}{limit}; before: {knob.start:.4g}) "
            f"{kind_tag('calibrated')}"
        )
    listed = "".join(f"<li>{each}</li>" for each in items)
    return f"<h3>The configuration brought to the log</h3><ul>{listed}</ul>" if items else ""


def traps(found: Found) -> str:
    """Which metrics of this log read like something else, and what they were taken for."""
    if found.measured is None:
        return ""
    met = found.measured.traps
    if not met:
        return '<h3>Traps avoided</h3><p class="rlq-small">This log has no metric that is known to mislead.</p>'
    items = "".join(
        f"<li><b>{escape(trap.reads_like)}</b> {escape(trap.taken_as)} <small>{escape(trap.where)}</small></li>"
        for trap in met
    )
    return f'<h3>Traps avoided</h3><ul class="rlq-traps">{items}</ul>'


def missing(found: Found) -> str:
    """What would tell more, and what was decided while reading."""
    notes = found.measured.notes if found.measured is not None else ()
    wanted = found.diagnosis.missing if found.diagnosis is not None else ()
    return _list("Decided while reading", notes) + _list("What would tell more", wanted)


def _list(heading: str, items: Iterable[str]) -> str:
    found = "".join(f"<li>{escape(each)}</li>" for each in items)
    return f"<h3>{heading}</h3><ul>{found}</ul>" if found else ""


def log_values(found: Found) -> str:
    """Every metric that was read: its key, what it became, where it stood."""
    if found.measured is None:
        return "<p>No log.</p>"
    rows = "".join(
        f"<tr><th><code>{escape(each.key)}</code>{f' <small>{escape(each.role)}</small>' if each.role else ''}</th>"
        f"<td>{escape(_became(each.column))}</td><td>{USES[each.use]}</td>"
        f"<td>{escape(each.file)} {_lines(each)}, {each.count:,} value{'s' if each.count > 1 else ''}</td></tr>"
        for each in sorted(found.measured.readings, key=lambda each: (each.use == "mark", each.use == "lies"))[
            :MOST_ROWS
        ]
    )
    unknown = found.measured.unknown
    others = ""
    if unknown:
        some = ", ".join(unknown[:40])
        others = f'<p class="rlq-small">Not used: {len(unknown):,} other names, such as {escape(some[:1500])}.</p>'
    heads = "<tr><th>Key</th><th>Ours</th><th>Kind</th><th>Where</th></tr>"
    return f'<div class="rlq-origins"><table><thead>{heads}</thead><tbody>{rows}</tbody></table></div>{others}'


def _lines(each: LogReading) -> str:
    return f"line {each.first_line:,}" if each.count == 1 else f"lines {each.first_line:,} to {each.last_line:,}"


def _became(column: str) -> str:
    if not column:
        return "–"
    return f"{column} ({COLUMNS[column][1]})" if column in COLUMNS else f"{column} (an intermediate)"


def configuration_values(reading: Reading | None) -> str:
    """Every knob with its origin: read in the file (key, line), the framework's default, or assumed."""
    if reading is None:
        return "<p>No configuration.</p>"
    rows = "".join(
        f'<tr class="rlq-row-{fact.origin}"><th>{escape(fact.knob)}</th><td>{escape(str(fact.value)[:120])}</td>'
        f"<td>{kind_tag(fact.origin)}</td><td>{_givens(fact)}{escape(fact.formula)}"
        f"{f' <small>{escape(fact.note)}</small>' if fact.note else ''}</td></tr>"
        for fact in reading.facts[:MOST_ROWS]
    )
    heads = "<tr><th>Knob</th><th>Value</th><th>Kind</th><th>From</th></tr>"
    others = _list("Known keys that no knob follows from", _keys(reading.unused))
    others += _list("Unknown keys", _keys(reading.unknown))
    others += _list("Not resolved", [f"{key}: {why}" for key, why in reading.unresolved[:60]])
    return f'<div class="rlq-origins"><table><thead>{heads}</thead><tbody>{rows}</tbody></table></div>{others}'


def _keys(found: Iterable[tuple[str, str, str]]) -> list[str]:
    return [f"{key} = {value:.120} ({place})" for key, value, place in list(found)[:60]]


def _givens(fact: object) -> str:
    said = [
        f"<code>{escape(each.written or each.key)}</code> = {escape(str(each.value)[:80])}"
        f"{f' ({escape(each.place)})' if each.place else ''}"
        for each in fact.givens
    ]
    return "; ".join(said) + (": " if said and fact.formula else "")
