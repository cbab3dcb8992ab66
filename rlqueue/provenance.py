"""Where every outside number comes from: reads data/ and keeps value, unit, kind, source and place together.

Two shapes of file: *quantities* (long: ``entity, quantity, value, unit, kind, source, where, note``) and
*tables* (wide, the unit in each column's name, ending in ``kind, source, where, note``).
"""

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KINDS = ("datasheet", "printed", "chart-read", "measured", "derived", "calibrated", "assumed")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A document that numbers were taken from."""

    id: str
    title: str
    author: str
    date: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One number (or word) about the world, with its unit and where it was read."""

    value: float | int | str | bool
    unit: str
    kind: str
    source: str
    where: str
    note: str

    def __str__(self) -> str:
        place = f"{self.source}, {self.where}" if self.where else self.source
        return f"{self.value} {self.unit} ({self.kind}: {place}{'; ' + self.note if self.note else ''})"


@cache
def data_folder() -> Path:
    """The folder of data files: inside an installed package, else beside it in the source tree."""
    inside = Path(__file__).parent / "data"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "data"


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """The rows of ``data/<name>.csv`` as dictionaries of text, in the file's order."""
    with (data_folder() / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def parsed(text: str) -> float | int | str | bool:
    """The text of a cell as the value it stands for: whole number, number, true/false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _quantity(row: dict[str, str]) -> Quantity:
    return Quantity(
        value=parsed(row["value"]),
        **{field: row[field] for field in ("unit", "kind", "source", "where", "note")},
    )


@cache
def quantities(name: str, entity: str) -> dict[str, Quantity]:
    """All quantities of one entity in the long file ``data/<name>.csv``; empty where it has none."""
    return {row["quantity"]: _quantity(row) for row in table(name) if row["entity"] == entity}


@cache
def sources() -> dict[str, Source]:
    """The documents named in data/sources.toml, by id."""
    with (data_folder() / "sources.toml").open("rb") as file:
        raw = tomllib.load(file)
    return {
        key: Source(id=key, **{field: str(entry.get(field, "")) for field in ("title", "author", "date", "url")})
        for key, entry in raw.items()
    }
