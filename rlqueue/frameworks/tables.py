"""The data files on frameworks: their keys, how knobs follow from keys and keys from knobs, and how to tell them apart."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from rlqueue.provenance import parsed, table

ALL = "*"


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of a framework: other spellings, the framework's default (None: it has none), unit and meaning."""

    name: str
    aliases: tuple[str, ...]
    default: Any
    has_default: bool
    unit: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One formula at work: what it gives, its name, its arguments, where it was read, and a remark."""

    target: str
    formula: str
    arguments: tuple[str, ...]
    source: str
    where: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A mode of a framework, and the words and keys that it is told by; none: what is left."""

    framework: str
    name: str
    title: str
    programs: tuple[str, ...]
    keys: tuple[str, ...]


@cache
def frameworks() -> dict[str, str]:
    """Names of the frameworks with their titles, in the order in which they are tried."""
    return {row["framework"]: row["title"] for row in table("frameworks/frameworks")}


@cache
def formats(framework: str) -> tuple[str, ...]:
    """Formats that the framework's configurations come in."""
    return next(tuple(r["formats"].split()) for r in table("frameworks/frameworks") if r["framework"] == framework)


@cache
def program_words(framework: str) -> tuple[str, ...]:
    """Words that only a launch of this framework has."""
    return next(tuple(r["programs"].split()) for r in table("frameworks/frameworks") if r["framework"] == framework)


def _holds(row: dict[str, str], framework: str, variant: str | None) -> bool:
    return framework in row["framework"].split() and (
        variant is None or row["variant"] == ALL or variant in row["variant"].split()
    )


@cache
def keys(framework: str, variant: str | None = None) -> dict[str, Key]:
    """The keys of a framework by name; a row for one variant stands over one for all."""
    rows = [row for row in table("frameworks/keys") if _holds(row, framework, variant)]
    return {
        row["key"]: Key(
            name=row["key"],
            aliases=tuple(row["aliases"].split()),
            default=None if row["default"] in ("", "none") else parsed(row["default"]),
            has_default=row["default"] != "",
            unit=row["unit"],
            meaning=row["meaning"],
        )
        for row in sorted(rows, key=lambda row: row["variant"] != ALL)
    }


@cache
def spellings(framework: str) -> dict[str, str]:
    """Each spelling of a key, with its name."""
    return {word: key.name for key in keys(framework).values() for word in (*key.aliases, key.name)}


@cache
def rules(name: str, framework: str, variant: str | None) -> tuple[Rule, ...]:
    """The rules of ``readings`` (a knob from keys) or ``lines`` (a key from knobs), in their order."""
    target = "knob" if name == "readings" else "key"
    return tuple(
        Rule(target=row[target], formula=row["formula"], arguments=tuple(row["arguments"].split()),
             source=row["source"], where=row["where"], note=row["note"])
        for row in table(f"frameworks/{name}")
        if _holds(row, framework, variant)
    )  # fmt: skip


@cache
def variants(framework: str) -> tuple[Variant, ...]:
    """The modes of a framework in the order in which they are tried; the last one asks for nothing."""
    return tuple(
        Variant(framework=framework, name=row["variant"], title=row["title"], programs=tuple(row["programs"].split()),
                keys=tuple(row["keys"].split()))
        for row in table("frameworks/variants")
        if framework in row["framework"].split()
    )  # fmt: skip
