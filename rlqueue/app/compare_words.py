"""What the page "side by side" says: numbers of each scenario with one as 1.00×, and the knobs in which they differ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rlqueue.app.banded import note, of_inputs, of_seeds
from rlqueue.app.cards import NONE, inside
from rlqueue.app.formats import count, dollars, duration, percent, ratio, seconds, whole_dollars
from rlqueue.app.origins import kind_tag, written
from rlqueue.app.state import value_of
from rlqueue.cost import cost
from rlqueue.scenario import Scenario

if TYPE_CHECKING:
    from rlqueue.app.compare import Column


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of each scenario.

    Attributes:
        name: label. of: where it is found, from the point, the bill or the whole run. shown: how it is written.
        share: whether scenarios differ in points. band: its name in ``uncertainty.QUANTITIES``.
    """

    name: str
    of: str
    field: str
    shown: Callable[[float], str]
    unit: str = ""
    share: bool = False

    def value(self, column: Column, *, closed: bool = False) -> float:
        """Simulated where there is a run, or by closed form."""
        if self.of == "whole":
            found = getattr(column.way.whole, self.field)
        elif self.of == "bill":
            found = getattr(column.found.bill if closed else column.found.shown_bill, self.field)
        else:
            found = getattr(column.found.point if closed else column.found.shown_point, self.field)
        return math.nan if found is None else float(found)

    def seeds(self, column: Column) -> list[float]:
        """What each seed gave."""
        if self.of == "whole":
            return []
        scenario, points = column.found.state.scenario, column.found.simulated.points
        return [getattr(cost(scenario, each) if self.of == "bill" else each, self.field) for each in points]


ROWS = (
    Row(name="Trainer wait ratio", of="point", field="trainer_wait_ratio", shown=percent, share=True),
    Row(name="Rollout idle ratio", of="point", field="rollout_idle_ratio", shown=percent, share=True),
    Row(name="Step", of="point", field="step_s", shown=seconds),
    Row(name="Staleness", of="point", field="staleness_versions", shown="{:.2f}".format, unit=" versions"),
    Row(name="Trained tokens", of="point", field="trained_tokens_per_s", shown=count, unit="/s"),
    Row(name="Self-built", of="bill", field="usd_per_mtok", shown=dollars, unit="/Mtok"),
    Row(name="Hosted", of="bill", field="hosted_usd_per_mtok", shown=dollars, unit="/Mtok"),
    Row(name="Self-built / hosted", of="bill", field="cost_ratio", shown=ratio),
    Row(name="Whole run", of="whole", field="usd", shown=whole_dollars),
    Row(name="Whole run takes", of="whole", field="hours", shown=duration),
    Row(name="GPU-hours", of="whole", field="gpu_hours", shown=count),
)


def numbers(columns: Sequence[Column], base: int) -> str:
    """The difference table: one row a number, one column a scenario; the base's cells are 1.00×."""
    head = "".join(f'<th scope="col" class="rlq-letter-{each.letter}">{escape(each.name)}</th>' for each in columns)
    rows = [_binding(columns)]
    for row in ROWS:
        cells = "".join(_cell(row, each, columns[base], first=each is columns[base]) for each in columns)
        rows.append(f"<tr><th scope='row'>{escape(row.name)}</th>{cells}</tr>")
    notes = "".join(
        f'<li title="{escape(note(each.known).title)}">{each.letter.upper()}: {escape(note(each.known).words)}</li>'
        for each in columns
    )
    notes = f'<ul class="rlq-small"><li>seeds: lowest and highest of the simulated runs.</li>{notes}</ul>'
    return (
        '<div class="rlq-whole"><h3>Numbers</h3><div class="rlq-wide"><table>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{notes}</div>"
    )


def _binding(columns: Sequence[Column]) -> str:
    cells = "".join(
        f"<td>{escape(each.found.point.binding_constraint)}, then {escape(each.found.point.next_constraint)}"
        f"<br>{kind_tag('closed form')}</td>"
        for each in columns
    )
    return f"<tr><th scope='row'>What binds</th>{cells}</tr>"


def _cell(row: Row, column: Column, base: Column, *, first: bool) -> str:
    value, reference = row.value(column), row.value(base)
    if not math.isfinite(value):
        return f"<td>{NONE}</td>"
    priced = row.name == "Hosted"  # a price list's, and nobody's model
    kind = "closed form" if row.of == "whole" else "list price" if priced else column.found.shown_point.kind
    closed = row.value(column, closed=True)
    beside = f"<br><small>{row.shown(closed)} {kind_tag('closed form')}</small>" if kind == "simulated" else ""
    known = column.known if row.of != "whole" else None if column.run is None else column.run.whole
    span = (
        ""
        if priced
        else "".join(map(inside, (of_seeds(row.seeds(column), row.shown), of_inputs(known, row.field, row.shown))))
    )
    return (
        f"<td><b>{row.shown(value)}{row.unit}</b> <em>{_times(row, value, reference, first=first)}</em> "
        f"{kind_tag(kind)}{beside}{span}</td>"
    )


def _times(row: Row, value: float, reference: float, *, first: bool) -> str:
    """How a value stands to the base's: points for a share, else a factor."""
    if row.share:
        return "base" if first else f"{100 * (value - reference):+.1f} points".replace("-", "−")
    if not math.isfinite(reference) or not reference:
        return ""
    return f"{value / reference:.2f}×"


def knobs(columns: Sequence[Column], base: int) -> str:
    """The knobs in which the scenarios differ; those of the base stand first and the others are marked where they part."""
    names = [
        each.name for each in dataclasses.fields(Scenario)
        if each.name != "name" and len({repr(getattr(column.state.scenario, each.name)) for column in columns}) > 1
    ]  # fmt: skip
    if not names:
        return '<div class="rlq-whole"><h3>Knobs</h3><p>The scenarios are the same.</p></div>'
    meaning = {each.name: each.metadata for each in dataclasses.fields(Scenario)}
    head = "".join(f'<th scope="col" class="rlq-letter-{each.letter}">{escape(each.name)}</th>' for each in columns)
    rows = []
    for name in names:
        unit = meaning[name]["unit"]
        unit = "" if unit in {"", "1"} else f" [{escape(unit)}]"
        reference = value_of(columns[base].state.scenario, name)
        cells = "".join(
            f"<td{'' if value == reference else ' class=rlq-parts'}>{escape(written(value))[:80]}</td>"
            for value in (value_of(each.state.scenario, name) for each in columns)
        )
        rows.append(
            f'<tr><th scope="row" title="{escape(meaning[name]["meaning"])}"><code>{name}</code>{unit}</th>{cells}</tr>'
        )
    return (
        f'<div class="rlq-whole"><h3>Knobs that differ ({len(names)})</h3><div class="rlq-wide"><table>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def how(columns: Sequence[Column], *, done: bool) -> str:
    """What was simulated of each."""
    parts = [
        f"{each.letter.upper()}: {each.found.simulated.fidelity.words}"
        if each.found.simulated.point is not None
        else f"{each.letter.upper()}: none ({each.found.simulated.stalled or 'it takes too long'})"
        for each in columns
    ]
    mark = '<span class="rlq-done">all runs done</span>' if done else ""
    return f'<p class="rlq-how">{kind_tag("simulated")}<span>{escape("; ".join(parts))}.</span> {mark}</p>'
