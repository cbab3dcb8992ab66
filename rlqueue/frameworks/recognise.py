"""Whose file it is, and in which of the framework's modes it runs, told from its keys and programs."""

import re
from collections.abc import Mapping
from typing import Any

from rlqueue.frameworks import hydra, python_text, shell_text, toml_text
from rlqueue.frameworks.entries import Document, Find
from rlqueue.frameworks.tables import Variant, formats, frameworks, program_words, spellings, variants
from rlqueue.refusal import require_known

SURE_OF_PROGRAM = 3
"""A program's name weighs as much as so many keys."""


KINDS = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".sh": "shell", ".py": "python"}
"""Formats by a file's ending; any other text may be any of them."""


def documents(text: str, find: Find, given: Mapping[str, str], ending: str) -> dict[str, Document | ValueError]:
    """The text as each format that it may have by its file's ending, or why it is none."""
    readers = {
        "toml": lambda: toml_text.document(text, find),
        "yaml": lambda: hydra.document(text, find),
        "python": lambda: python_text.document(text),
        "shell": lambda: shell_text.document(text, find, given),
    }
    found: dict[str, Document | ValueError] = {}
    for kind, read in readers.items():
        if KINDS.get(ending, kind) != kind:
            continue
        try:
            found[kind] = read()
        except ValueError as refusal:
            found[kind] = refusal
    return found


def normal(key: str, framework: str) -> str | None:
    """The framework's name of a key as written, or None. A command line writes dashes where a file has underscores."""
    known = spellings(framework)
    return known.get(key) or (known.get(key.replace("-", "_")) if "." in key else None)


def recognised(candidates: Mapping[str, Document | ValueError], framework: str | None) -> tuple[str, Document]:
    """The framework and the document, by the number of its keys that the framework knows.

    Raises:
        ValueError: nobody's file, as far as its keys tell, or not in any of the formats; the message says what was seen.
    """
    if framework is not None:
        require_known("framework", framework, frameworks())
    best: tuple[int, str, Document] | None = None
    for name in frameworks() if framework is None else [framework]:
        for kind in formats(name):
            document = candidates.get(kind)
            if document is None or isinstance(document, ValueError):
                continue
            keys = sum(normal(key, name) is not None for key in document.entries)
            words = {part for program in document.programs for part in re.split(r"[/.]", program)} | {
                program.rsplit("/", 1)[-1] for program in document.programs
            }
            programs = len(words & set(program_words(name)))
            score = keys + SURE_OF_PROGRAM * programs
            if keys and (best is None or score > best[0]):
                best = (score, name, document)
    if best is not None:
        return best[1], best[2]
    refusals = {kind: refusal for kind, refusal in candidates.items() if isinstance(refusal, ValueError)}
    if len(refusals) == len(candidates) == 1:
        raise next(iter(refusals.values()))
    said = "; ".join(
        f"as {kind}: {str(refusal).removeprefix('configuration ')[:100]}" for kind, refusal in refusals.items()
    )
    whose = frameworks()[framework] if framework else "any framework"
    raise ValueError(
        f"configuration is of no known framework: it holds no key of {whose} ({said or 'name one with framework='})"
    )


def variant_of(framework: str, document: Document, value: Any) -> Variant:
    """The framework's mode: the first whose program or key is there. ``value`` gives a key's value, or None."""
    for variant in variants(framework):
        programs = any(word in program for word in variant.programs for program in document.programs)
        if programs or any(_holds(condition, value) for condition in variant.keys):
            return variant
    return variants(framework)[-1]


def _holds(condition: str, value: Any) -> bool:
    for sign in (">=", ">", "=", "~"):
        key, found, wanted = condition.partition(sign)
        if found:
            given = value(key)
            if sign == "~":
                return isinstance(given, str) and wanted in given
            if sign == "=":
                return str(given).lower() == wanted
            number = isinstance(given, int | float) and not isinstance(given, bool)
            return number and (given > float(wanted) or (sign == ">=" and given == float(wanted)))
    given = value(condition)
    return given is not None and given is not False
