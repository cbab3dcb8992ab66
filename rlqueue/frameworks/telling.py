"""A reading in words and as plain data, for the command line and whoever else shows it."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from rlqueue.frameworks.facts import ORIGINS, Fact, Given
from rlqueue.frameworks.reading import Reading

_WORDS = {
    "read": "read in the file",
    "defaulted": "not in the file: the framework's default",
    "assumed": "assumed by us",
}


def plain(reading: Reading) -> dict[str, Any]:
    """The reading as JSON takes it; ``facts`` by knob."""
    return {
        "name": reading.name,
        "framework": reading.framework,
        "variant": reading.variant,
        "facts": {fact.knob: _plain_fact(fact) for fact in reading.facts},
        "reported": {fact.knob: _plain_fact(fact) for fact in reading.reported},
        "unknown": [{"key": key, "value": value, "place": place} for key, value, place in reading.unknown],
        "unused": [{"key": key, "value": value, "place": place} for key, value, place in reading.unused],
        "unresolved": dict(reading.unresolved),
        "absent": list(reading.absent),
        "missing": list(reading.missing),
    }


def _plain_fact(fact: Fact) -> dict[str, Any]:
    return {
        "value": fact.value,
        "origin": fact.origin,
        "from": [dataclasses.asdict(given) | {"value": _bare(given.value)} for given in fact.givens],
        "formula": fact.formula,
        "source": fact.source,
        "where": fact.where,
        "note": fact.note,
    }


def _bare(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | None) else str(value)[:200]


def told(reading: Reading) -> Iterator[str]:
    """The reading as lines of text: each knob with its origin, the keys it was made of, and their places."""
    yield f"{reading.title} configuration {reading.name!r}, {reading.variant}"
    for origin in ORIGINS:
        facts = [fact for fact in reading.facts if fact.origin == origin]
        if facts:
            yield f"{_WORDS[origin]}:"
        for fact in facts:
            yield f"  {fact.knob} = {_shown(fact.value)}{_made_of(fact)}"
    for fact in reading.reported:
        yield f"{fact.knob} = {_shown(fact.value)}{_made_of(fact)}"
    for key, reason in reading.unresolved:
        yield f"not known without running it: {key}: {reason}"
    if reading.absent:
        yield f"builds upon files that are not here, and may say otherwise than the defaults: {', '.join(reading.absent)}"
    if reading.unused:
        yield f"known, but no knob follows from: {', '.join(key for key, _, _ in reading.unused)}"
    if reading.unknown:
        yield f"unknown keys ({len(reading.unknown)}): {', '.join(key for key, _, _ in reading.unknown[:20])}" + (
            ", ..." if len(reading.unknown) > 20 else ""
        )
    for sentence in reading.missing:
        yield f"missing: {sentence}"


def _made_of(fact: Fact) -> str:
    parts = [", ".join(map(_given, fact.givens)), "" if fact.formula == "as given" else fact.formula, fact.note]
    return "".join(f"  <- {part}" if at == 0 else f"  ({part})" for at, part in enumerate(parts) if part)


def _given(given: Given) -> str:
    place = f" [{given.place}]" if given.place else ""
    return f"{given.written or given.key}={_shown(given.value)}{place}"


def _shown(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return " ".join(text.split())[:80]
