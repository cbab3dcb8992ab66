"""Where a configuration's text comes from: a file and its neighbours, or text alone, which opens no file at all."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from rlqueue.frameworks.entries import Find

MOST_CHARACTERS = 250_000
"""Real configurations have some ten thousand characters; parsers of what people write need a bound."""
SUFFIXES = (".toml", ".yaml", ".yml", ".sh", ".py", ".txt")
_INCLUDED = (".toml", ".yaml", ".yml")


def checked_text(text: str, name: str = "text") -> str:
    """The text with plain line ends, if it is text of a bearable size; ValueError otherwise."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"configuration {name}: {len(text):,} characters must be <= {MOST_CHARACTERS:,}")
    if "\0" in text:
        raise ValueError(f"configuration {name} is not text: it holds a zero byte")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"configuration {name} is not text: it holds half a character") from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def file_text(path: Path) -> str:
    """The text of a file in UTF-8 or, with its mark, UTF-16; refused by name where it is none, or too long."""
    try:
        with path.open("rb") as file:
            raw = file.read(4 * MOST_CHARACTERS + 1)
        encoding = "utf-16" if raw[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"
        text = raw.decode(encoding) if len(raw) <= 4 * MOST_CHARACTERS else None
    except (OSError, UnicodeError) as error:
        reason = f"not {error.encoding} text" if isinstance(error, UnicodeError) else error.strerror
        raise ValueError(f"configuration {path.name}: cannot be read ({reason})") from None
    if text is None:
        raise ValueError(f"configuration {path.name}: it must have <= {MOST_CHARACTERS:,} characters")
    return checked_text(text, path.name)


def as_path(path_or_text: str | Path) -> Path | None:
    """The path that is meant, or None where it is the text itself: text has line ends, spaces, or no known ending."""
    if isinstance(path_or_text, Path):
        return path_or_text
    if "\n" in path_or_text or len(path_or_text) > 4096 or "\0" in path_or_text:
        return None
    named = path_or_text.endswith(SUFFIXES) and " " not in path_or_text.strip()
    try:
        return Path(path_or_text) if named or Path(path_or_text).is_file() else None
    except OSError:
        return None


def beside(path: Path) -> Find:
    """Finds what a file names: TOML and YAML, from the file's own folder, and the shell's working folder for a script."""

    def find(name: str) -> str | None:
        if not name.endswith(_INCLUDED):
            return None
        for folder in (path.parent, Path.cwd()):
            try:
                wanted = (folder / name).resolve()
                if wanted.is_file():
                    return file_text(wanted)
            except OSError:
                continue
        return None

    return find


def at_most(find: Find, count: int) -> Find:
    """The same, for so many files; configurations that name each other by the hundred are refused."""
    found = 0

    def counted(name: str) -> str | None:
        nonlocal found
        text = find(name)
        found += text is not None
        if found > count:
            raise ValueError(f"a configuration must build upon <= {count} files: this one names more")
        return text

    return counted


def among(files: Mapping[str, str]) -> Find:
    """Finds only among texts that were handed over, by name with or without folders."""
    by_name = {PurePosixPath(name).name: text for name, text in files.items()}

    def find(name: str) -> str | None:
        text = files.get(name, by_name.get(PurePosixPath(name).name))
        return None if text is None else checked_text(text, name)

    return find
