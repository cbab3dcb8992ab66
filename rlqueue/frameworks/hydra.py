"""YAML configurations that build upon others: Hydra's ``defaults`` list and NeMo-RL's ``defaults: ./base.yaml``."""

from pathlib import PurePosixPath
from typing import Any

from rlqueue.frameworks.entries import Document, Find, flattened
from rlqueue.frameworks.yaml_text import values

MOST_DEEP = 8


def document(text: str, find: Find, file: str = "", depth: int = 0) -> Document:
    """The entries of a YAML text on top of those of the files in its ``defaults``, the later over the earlier.

    ``_self_`` may stand anywhere in the list, and before it is what the text overrides; what is not found is noted.
    """
    own_values, lines = values(text)
    named = own_values.pop("defaults", [])
    own = Document(kind="yaml")
    for entry in flattened(own_values, lines, file):
        own.add(entry)
    whole = Document(kind="yaml")
    placed = False
    for name, package in _bases(named):
        if name == "_self_":
            own.build_upon(whole)
            whole, placed = own, True
            continue
        found = _found(name, find, file) if depth < MOST_DEEP else None
        if found is None:
            whole.missing.append(name)
            continue
        base = document(found[1], find, found[0], depth + 1)
        above = Document(kind="yaml")
        above.build_upon(base, package)
        above.build_upon(whole)
        whole = above
    if not placed:
        own.build_upon(whole)
        whole = own
    return whole


def _bases(named: Any) -> list[tuple[str, str]]:
    """File names and the package that each fills: ``base`` at the top, ``finetune: base`` under ``finetune``."""
    found = []
    for item in named if isinstance(named, list) else [named]:
        if isinstance(item, str):
            name, _, package = item.partition("@")
            found.append((name, package.removeprefix("_here_").removeprefix("_global_").strip(".")))
        elif isinstance(item, dict):
            for group, choice in item.items():
                words = group.removeprefix("optional ").removeprefix("override ").strip()
                folder, at, package = words.partition("@")
                folder = folder.strip("/")
                if isinstance(choice, str) and not folder.startswith("hydra"):
                    place = package.removeprefix("_global_").strip(".") if at else folder.replace("/", ".")
                    found.append((f"{folder}/{choice}", place))
    return found


def _found(name: str, find: Find, file: str) -> tuple[str, str] | None:
    """Name and text of a base: as named, beside the file that names it, and with ``.yaml``."""
    path = name.lstrip("/")
    folder = str(PurePosixPath(file).parent) if file else "."
    for at in (path, f"{folder}/{path}") if folder != "." else (path,):
        for ending in ("", ".yaml", ".yml"):
            text = find(at + ending) if (at + ending).endswith((".yaml", ".yml")) else None
            if text is not None:
                return at + ending, text
    return None
