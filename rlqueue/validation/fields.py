"""Fields of a case file, each read with a refusal that names it, its value and its limit."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rlqueue.provenance import KINDS, Quantity, Source, sources
from rlqueue.refusal import require_known

FACT = ("value", "unit", "kind", "source", "where", "note")
"""Fields of a fact that is more than its value."""


def require_fields(at: str, given: object, known: Collection[str], needed: Collection[str] = ()) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(f"{at}={given!r} must be a table with {', '.join(known)}")
    for field in given:
        require_known(f"{at}: field", field, known)
    if missing := [field for field in needed if field not in given]:
        raise ValueError(f"{at} lacks {', '.join(missing)}")


def text_of(at: str, given: Mapping[str, Any], field: str) -> str:
    value = given.get(field, "")
    if not isinstance(value, str):
        raise ValueError(f"{at}: {field}={value!r} must be text")
    return value


def list_of_text(at: str, value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{at}: {field}={value!r} must be a list of texts")
    return value


def tables_of(at: str, given: Mapping[str, Any], field: str) -> Iterator[tuple[str, Any]]:
    """Each entry of a list of tables, none if it is not there, with the words that say which it is."""
    value = given.get(field, [])
    if not isinstance(value, list):
        raise ValueError(f"{at}: {field}={value!r} must be a list of tables, [[{field}]]")
    for number, each in enumerate(value, start=1):
        yield f"{at}: {field}: number {number}", each


def number_of(at: str, given: Mapping[str, Any], field: str, *, high: float, default: float) -> float:
    """A number from 0 to ``high``."""
    value = given.get(field, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= high:
        raise ValueError(f"{at}: {field}={value!r} must be a number in [0, {high:g}]")
    return float(value)


def source_of(at: str, given: object) -> Source:
    """A key of data/sources.toml, or a document of one's own."""
    if isinstance(given, str):
        require_known(f"{at}: source", given, sources())
        return sources()[given]
    fields = [each.name for each in dataclasses.fields(Source)]
    require_fields(f"{at}: source", given, fields, needed=("title",))
    return Source(**{field: str(given.get(field, "")) for field in fields})


def fact_of(at: str, given: object, unit: str, source: Source, where: str) -> Quantity:
    """A plain value is printed by the case's source; a table says otherwise."""
    table = given if isinstance(given, Mapping) else {"value": given}
    if "key" in table:  # a part of a scenario, such as a GPU, by its fields
        table = {"value": dict(table)}
    require_fields(at, table, FACT, needed=("value",))
    kind = table.get("kind", "printed")
    require_known(f"{at}: kind", kind, KINDS)
    of = table.get("source", source.id if kind != "assumed" else "rlqueue")
    if of != source.id:
        require_known(f"{at}: source", of, sources())
    return Quantity(
        value=table["value"], unit=table.get("unit", unit), kind=kind, source=of,
        where=text_of(at, table, "where") or where, note=text_of(at, table, "note"),
    )  # fmt: skip
