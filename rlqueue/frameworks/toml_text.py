"""prime-rl's TOML: tomllib gives the values, a glance at the lines their places, ``@ file`` and ``toml_files`` the bases."""

import re
import tomllib
from typing import Any

from rlqueue.frameworks.entries import Document, Find, flattened

MOST_DEEP = 8
"""Files that build upon each other, at most."""
MOST_SQUARED_DOTS = 2_000_000
_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]#]+?)\s*\]\]?")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*)\s*=""")
_BASE = re.compile(r"@\s*(\S+\.toml)\s*$")


def document(text: str, find: Find, file: str = "", depth: int = 0) -> Document:
    """The entries of a TOML text on top of those of the files that it names. Raises ValueError where it is not TOML."""
    lines = text.split("\n")
    names = []
    for number, line in enumerate(lines):
        # `@ base.toml` heads a command line; kept in front of a file it says what the file is laid over.
        base = _BASE.match(line)
        if base:
            names.append(base[1])
            lines[number] = ""
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    values = _values("\n".join(lines))
    more = values.pop("toml_files", [])
    names += [name for name in more if isinstance(name, str)] if isinstance(more, list) else []
    own = Document(kind="toml")
    for entry in flattened(values, _line_numbers(lines), file):
        own.add(entry)
    below = Document(kind="toml")
    for name in names:
        base_text = find(name) if depth < MOST_DEEP else None
        if base_text is None:
            own.missing.append(name)
            continue
        above = document(base_text, find, name, depth + 1)
        above.build_upon(below)
        below = above
    own.build_upon(below)
    return own


def _values(text: str) -> dict[str, Any]:
    # tomllib's time and memory grow with the square of a key's parts.
    if sum(line.count(".") ** 2 for line in text.split("\n")) > MOST_SQUARED_DOTS:
        raise ValueError("configuration is not bearable TOML: its keys have too many parts")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"configuration is not valid TOML: {reason}") from None


def _line_numbers(lines: list[str]) -> dict[str, int]:
    """The line of each key, found by its shape: tomllib keeps none. A key inside an inline table has its table's."""
    numbers: dict[str, int] = {}
    table = ""
    for number, line in enumerate(lines, 1):
        if len(line) > 1000:
            continue
        header = _HEADER.match(line)
        if header and "=" not in line.split("#")[0]:
            table = _plain(header[1]) + "."
            numbers.setdefault(table[:-1], number)
        elif key := _KEY.match(line):
            numbers.setdefault(table + _plain(key[1]), number)
    return numbers


def _plain(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))
