"""What a file says, before anybody knows whose file it is: keys with their values, places and doubts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_ENTRIES = 20_000
"""A file that says more than this is no configuration, or one made to exhaust whoever reads it."""

Find = Callable[[str], str | None]
"""Gives the text of a file that another one names, or None where there is none."""


@dataclass(frozen=True, kw_only=True)
class Unresolved:
    """A value that only running the file would give: an unset variable, a command's output; ``text`` is what is sure of it."""

    reason: str
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One key as written.

    Attributes:
        key: as the file spells it, parents joined by dots, without leading dashes.
        value: number, text, truth value, None, list, or ``Unresolved``.
        line: from 1; 0 where the format does not tell. file: name of the file it stands in; empty for the text itself.
        note: a doubt about it, such as a branch that may not run.
    """

    key: str
    value: Any
    line: int
    file: str = ""
    note: str = ""

    @property
    def place(self) -> str:
        """Where it stands: ``line 12``, ``base.yaml line 3``."""
        return f"{self.file} line {self.line}".strip() if self.line else self.file


@dataclass(kw_only=True)
class Document:
    """A file's entries by key, and the programs it would start.

    Attributes:
        kind: ``toml``, ``yaml``, ``shell`` or ``python``.
        variables: of a shell script, by name; they are no keys, but some frameworks read them.
        programs: words that name what is launched or sourced.
        missing: files that it builds upon and that were not at hand.
    """

    kind: str
    entries: dict[str, Entry] = field(default_factory=dict)
    variables: dict[str, Entry] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """The last one wins, as in every one of these formats."""
        if entry.key not in self.entries and len(self.entries) >= MOST_ENTRIES:
            raise ValueError(f"a configuration must have <= {MOST_ENTRIES:,} values: this one has more")
        self.entries.pop(entry.key, None)
        self.entries[entry.key] = entry

    def build_upon(self, base: "Document", prefix: str = "") -> None:
        """Take from another document what this one does not say itself, its keys under ``prefix``."""
        own, self.entries = self.entries, {}
        for entry in base.entries.values():
            key = f"{prefix}.{entry.key}" if prefix else entry.key
            self.add(Entry(key=key, value=entry.value, line=entry.line, file=entry.file, note=entry.note))
        for entry in own.values():
            self.add(entry)
        self.missing += base.missing


def flattened(values: Mapping[str, Any], lines: Mapping[str, int], file: str = "") -> list[Entry]:
    """Nested tables as entries with dotted keys; a list is one value. What has no line of its own has its table's."""
    found, left = [], [("", 0, values)]
    while left:
        prefix, above, table = left.pop()
        for name, value in table.items():
            key = f"{prefix}{name}"
            line = lines.get(key, above)
            if isinstance(value, Mapping) and value:
                left.append((f"{key}.", line, value))
            else:
                found.append(Entry(key=key, value=value, line=line, file=file))
    return sorted(found, key=lambda entry: (entry.line, entry.key))
