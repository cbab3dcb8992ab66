"""Where these numbers come from: every knob of the scenario at hand with value, unit, kind, source, place and note."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import Any

from rlqueue.app.state import State, kind_of, value_of
from rlqueue.provenance import Quantity, Source, quantities, sources, table
from rlqueue.scenario import Scenario

OWN = "rlqueue"
"""The source of what we assume ourselves."""
DEFAULT = Quantity(value="", unit="", kind="default", source="", where="", note="")
CHANGED = Quantity(value="", unit="", kind="changed", source="", where="", note="set on this page")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. ``fact`` holds kind, source, place and note."""

    name: str
    meaning: str
    value: Any
    unit: str
    fact: Quantity


def knob_rows(state: State) -> list[Row]:
    """Every knob of the scenario, in the scenario's order."""
    facts, rows = state.facts, []
    for each in fields(Scenario):
        if each.name == "name":
            continue
        kind = kind_of(state, each.name)
        was = value_of(state.start, each.name)
        if kind == "changed":
            note = f"set on this page; the preset has {written(was)}"
            fact = Quantity(value="", unit="", kind="changed", source="", where="", note=note)
        else:
            fact = facts.get(each.name, DEFAULT)
        rows.append(
            Row(
                name=each.name,
                meaning=each.metadata["meaning"],
                value=value_of(state.scenario, each.name),
                unit=each.metadata["unit"],
                fact=fact,
            )
        )
    return rows


def part_rows(state: State) -> Iterator[tuple[str, list[Row]]]:
    """What the LLM, the GPUs, the node and the price row consist of: title and rows of each."""
    scenario = state.scenario
    yield f"LLM {scenario.llm.key}", _wide(scenario.llm, "llms")
    for name in dict.fromkeys((scenario.trainer_gpu, scenario.generator_gpu)):
        facts = quantities("hardware", name.key)
        yield f"GPU {name.key}", _long(name, facts)
    if scenario.gpu_hour_usd is None:
        yield (
            f"Cost of ownership of {scenario.node.key}",
            _long(scenario.node, quantities("h200_tco", scenario.node.key)),
        )
    if scenario.hosted_price is not None:
        yield f"Price row {scenario.hosted_price.key}", _wide(scenario.hosted_price, "hosted_prices")


def _wide(thing: Any, name: str) -> list[Row]:
    """A row of a table: one source for all its numbers."""
    row = next(each for each in table(name) if each["key"] == thing.key)
    fact = Quantity(value="", unit="", **{key: row[key] for key in ("kind", "source", "where", "note")})
    return [
        Row(name=each.name, meaning="", value=getattr(thing, each.name), unit=_unit_in(each.name), fact=fact)
        for each in fields(thing)
        if each.name != "key"
    ]


def _long(thing: Any, facts: dict[str, Quantity]) -> list[Row]:
    """Quantities with a source each; one that the reader changed says so."""
    rows = []
    for each in fields(thing):
        if each.name == "key":
            continue
        value, fact = getattr(thing, each.name), facts.get(each.name, DEFAULT)
        unit = fact.unit
        if fact is not DEFAULT and value != fact.value:
            fact = CHANGED
        rows.append(Row(name=each.name, meaning="", value=value, unit=unit, fact=fact))
    return rows


def _unit_in(name: str) -> str:
    """The unit that a column's name ends in."""
    endings = {"_usd_per_mtok": "USD/Mtok", "_bytes_per_token_bf16": "byte/token", "_tokens": "token"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")


def written(value: Any) -> str:
    """A value as the table shows it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isinf(value):
        return "no limit"
    if isinstance(value, int | float):
        if abs(value) >= 1e9:
            return f"{value:.4g}"
        return f"{value:,}" if isinstance(value, int) or not value.is_integer() else f"{int(value):,}"
    return str(value) or "none"


def kind_tag(kind: str, note: str = "") -> str:
    """The kind as a small label; an assumed or changed value stands out by more than its colour."""
    return f'<span class="rlq-tag rlq-{escape(kind.replace(" ", "-"))}" title="{escape(note)}">{escape(kind)}</span>'


def origins(state: State) -> str:
    """The whole table as HTML, then the documents."""
    rows = knob_rows(state)
    stated = [row for row in rows if row.fact.kind != "default"]
    off = [row for row in rows if row.fact.kind == "default"]
    counts = Counter(row.fact.kind for row in stated)
    kinds = " ".join(f"{kind_tag(kind)}{number}" for kind, number in counts.most_common())
    parts = dict(part_rows(state))
    tables = [
        _table("The scenario", stated),
        *(_table(title, found) for title, found in parts.items()),
        _table("Switched off, or without limit", off),
    ]
    cited = {row.fact.source: None for found in (stated, *parts.values()) for row in found if row.fact.source}
    return (
        f'<div class="rlq-origins"><p class="rlq-kinds">Knobs of this scenario: {kinds}</p>{"".join(tables)}'
        f"{_documents(cited)}</div>"
    )


def _table(title: str, rows: list[Row]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Quantity", "Value", "Kind", "Source", "Note"))
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(map(_line, rows))}</tbody></table>"
    )


def _line(row: Row) -> str:
    fact, value = row.fact, written(row.value)
    bare = row.unit in ("", "1", "text") or value in ("none", "no limit")
    unit = "" if bare else f" <small>{escape(row.unit)}</small>"
    meaning = f"<small>{escape(row.meaning)}</small>" if row.meaning else ""
    return (
        f'<tr class="rlq-row-{escape(fact.kind)}"><th scope="row"><code>{escape(row.name)}</code>{meaning}</th>'
        f"<td>{escape(value)}{unit}</td><td>{kind_tag(fact.kind)}</td>"
        f"<td>{_source(fact)}</td><td>{escape(fact.note)}</td></tr>"
    )


def _source(fact: Quantity) -> str:
    """Who says so, as a link, and where in the document."""
    if not fact.source or fact.source == OWN:
        return "our assumption" if fact.source else ""
    document = sources()[fact.source]
    who, where = escape(document.author), f", {escape(fact.where)}" if fact.where else ""
    if not document.url.startswith("https://"):
        return f'<span title="{escape(document.title)}">{who}</span>{where}'
    return f"{_link(document, who)}{where}"


def _documents(cited: Iterable[str]) -> str:
    """The documents that the table cites, in full."""
    lines = "".join(
        f"<li>{source_link(name)}{f', {escape(sources()[name].date)}' if sources()[name].date else ''}</li>"
        for name in cited
        if name != OWN
    )
    return f"<h4>Documents</h4><ul>{lines}</ul>"


def source_link(name: str) -> str:
    """The source's author and title, as a link where an address is known."""
    document = sources()[name]
    who, title = escape(document.author), escape(document.title)
    if not document.url.startswith("https://"):
        return f"{who}: {title}"
    return f"{who}: {_link(document, title)}"


def _link(document: Source, text: str) -> str:
    return (
        f'<a href="{escape(document.url)}" title="{escape(document.title)}" target="_blank" rel="noopener noreferrer">'
        f"{text}</a>"
    )
