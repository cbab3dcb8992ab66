"""Opening what was given: a path, a text, or bytes; refused by name where it can hold no log, read in bounded memory."""

import codecs
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

Progress = Callable[[int, int], None]
"""Told how many bytes are read, of how many."""
LONGEST_LINE = 1 << 20
"""What a line has beyond so many bytes is not read: no step of any framework comes near it."""
OFTEN = 4 << 20
"""Bytes between two tellings of the progress."""
BINARY = {
    b"\x1f\x8b": "gzip: unpack it first",
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"\x28\xb5\x2f\xfd": "zstd: unpack it first",
    b":W&B": "a .wandb file: export the run's history as CSV, or run `wandb export`",
    b"PAR1": "parquet: export the history as CSV or JSON lines",
}
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig",
}  # fmt: skip
EXPECTED = (
    "a log of one of the known frameworks: its console output, metrics as JSON lines, or a W&B history exported as CSV"
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """One log: where it lies, or what it holds. ``encoding`` is utf-8 unless a mark at its beginning says otherwise."""

    name: str
    path: Path | None
    content: bytes
    size: int
    encoding: str

    def open(self) -> BinaryIO:
        return io.BytesIO(self.content) if self.path is None else self.path.open("rb")

    def head(self, size: int = 1 << 16) -> str:
        with self.open() as file:
            return file.read(size).decode(self.encoding, errors="replace")


def source(given: object, name: str = "") -> Source:
    """The log that a path, a text or bytes stand for; ValueError where there is none.

    A text with a line break, a brace or a colon followed by a blank is the log itself; any other is a path.
    """
    if isinstance(given, bytes | bytearray | memoryview):
        return _checked(name or "the data", None, bytes(given))
    if isinstance(given, os.PathLike):
        return _from_path(Path(given))
    if not isinstance(given, str):
        raise ValueError(f"log={given!r:.60} must be a path, a text or bytes: {EXPECTED}")
    if not given.strip():
        raise ValueError(f"the log is empty: expected {EXPECTED}")
    if len(given) < 4096 and "\n" not in given and "\0" not in given:
        path = Path(given)
        if _is_there(path) or not any(each in given for each in ("{", ": ", " - ", "│", " | ", "•")):
            return _from_path(path)
    return _checked(name or "the text", None, given.encode("utf-8", errors="replace"))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _from_path(path: Path) -> Source:
    if not _is_there(path):
        raise ValueError(f"log file {str(path)!r:.200} is not there")
    if not path.is_file():
        raise ValueError(f"log file {str(path)!r} is no file: name {EXPECTED}")
    try:
        return _checked(path.name, path, b"")
    except OSError as error:
        raise ValueError(f"log file {str(path)!r} cannot be read: {error.strerror or error}") from None


def _checked(name: str, path: Path | None, content: bytes) -> Source:
    plain = Source(name=name, path=path, content=content, size=0, encoding="utf-8")
    with plain.open() as file:
        head = file.read(1 << 16)
        size = file.seek(0, io.SEEK_END)
    if not head.strip():
        raise ValueError(f"{name} is empty: expected {EXPECTED}")
    for magic, what in BINARY.items():
        if head.startswith(magic):
            raise ValueError(f"{name} is {what}")
    encoding = next((each for bom, each in BOMS.items() if head.startswith(bom)), "")
    if not encoding and b"\0" in head:
        raise ValueError(f"{name} holds binary data: expected {EXPECTED}")
    return Source(name=name, path=path, content=content, size=size, encoding=encoding or "utf-8")


def lines(log: Source, progress: Progress | None = None) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line as utf-8 without its end) of each line; of an overlong line the beginning."""
    with log.open() as file:
        wide = log.encoding not in ("utf-8", "utf-8-sig")
        text = io.TextIOWrapper(file, encoding=log.encoding, errors="replace") if wide else None
        read = (lambda: text.readline(LONGEST_LINE).encode()) if wide else (lambda: file.readline(LONGEST_LINE))
        told, number = 0, 0
        while line := read():
            number += 1
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = read()
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            yield number, line.rstrip(b"\r\n")
            if progress and number % 1024 == 0 and (done := file.tell()) - told >= OFTEN:
                told = done
                progress(done, log.size)
        if progress:
            progress(log.size, log.size)
