"""Where a visitor drops files: they go into the kernel's memory in pieces, and nowhere else.

    drop = Drop(taken, status)      # taken(name, content) is called with each whole file; a ValueError from it is shown

Why not ipywidgets' FileUpload: it is a button that nothing can be dropped on, and sends a file as one message, which the
server's websocket cuts off at 10 MB, and with it the page. Here the page refuses what is too large before it sends anything,
and the kernel, which believes no page, counts again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from rlqueue.app.guard import reported
from rlqueue.app.page import STATIC

LARGEST = 64 << 20
"""Bytes of one file: beyond, the command line reads it, with a bar and in bounded memory."""
PIECE = 1 << 19
MOST_FILES = 4
LONGEST_NAME = 200
log = logging.getLogger(__name__)


class Drop(anywidget.AnyWidget):
    """A field for files, and for choosing them; ``label`` is its title, ``hint`` the line below."""

    _esm = STATIC / "drop.js"
    label = traitlets.Unicode("").tag(sync=True)
    hint = traitlets.Unicode("").tag(sync=True)
    largest = traitlets.Int(LARGEST).tag(sync=True)
    piece = traitlets.Int(PIECE).tag(sync=True)
    most_files = traitlets.Int(MOST_FILES).tag(sync=True)

    def __init__(self, taken: Callable[[str, bytes], None], status: widgets.HTML, **texts: str) -> None:
        super().__init__(**texts)
        self._taken = taken
        self._name: str | None = None
        self._size = 0
        self._content = bytearray()
        self.on_msg(reported(self._receive, status))

    def set_state(self, sent: dict[str, Any]) -> None:
        """Texts and limits are ours: a page can set none of them."""
        if sent:
            log.warning("a page tried to set %s of a drop field", ", ".join(map(str, sent))[:200])
            self.send_state()

    def _receive(self, _: Any, message: Any, buffers: Any) -> None:
        try:
            self._take(message if isinstance(message, dict) else {}, buffers)
        except ValueError:
            self._forget()
            self.send({"kind": "stop"})
            raise
        if self._name is not None and len(self._content) == self._size:
            name, content = self._name, bytes(self._content)
            self._forget()
            self.send({"kind": "reading"})
            try:
                self._taken(name, content)
            finally:
                self.send({"kind": "done"})
        else:
            self.send({"kind": "more", "at": len(self._content)})

    def _take(self, message: dict[str, Any], buffers: Any) -> None:
        kind = message.get("kind")
        if kind == "begin":
            self._begin(message.get("name"), message.get("size"))
        elif kind == "piece":
            self._add(buffers)
        else:
            why = message.get("why")
            raise ValueError(f"Refused: {why[:300] if isinstance(why, str) else 'the page sent what is no file'}")

    def _begin(self, name: Any, size: Any) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise ValueError(f"Refused: a file's name must be text of 1 to {LONGEST_NAME} characters")
        if type(size) is not int or not 0 < size <= LARGEST:
            raise ValueError(too_large(name, size))
        self._name, self._size, self._content = name, size, bytearray()

    def _add(self, buffers: Any) -> None:
        if self._name is None or not buffers or len(buffers) != 1:
            raise ValueError("Refused: a piece of no file")
        piece = bytes(buffers[0])
        if not 0 < len(piece) <= PIECE or len(self._content) + len(piece) > self._size:
            raise ValueError(f"Refused: {self._name!r:.80} sends more than the {self._size:,} bytes it said")
        self._content += piece

    def _forget(self) -> None:
        self._name, self._size, self._content = None, 0, bytearray()


def too_large(name: str, size: Any) -> str:
    """The refusal of a file of the wrong size."""
    if size == 0:
        return f"{name!r:.80} is empty"
    said = f"{size / 1e6:,.0f} MB" if type(size) is int and size > 0 else "no size"
    return f"{name!r:.80} has {said}, must be at most {LARGEST >> 20} MB here; of any size in a terminal: rlqueue diagnose LOG"
