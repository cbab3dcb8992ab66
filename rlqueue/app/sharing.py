"""The buttons that take a page's content elsewhere, and the link that brings its scenario back.

    share = Sharing(restore, status, {"csv": lambda: ("name.csv", text)})
    share.query = share_module.query(state)       # whenever the state has changed: the address bar follows

A kernel kept warm for a visitor has run its notebook before the visitor's address was known, so the page reads its own query when
it opens and sends it here; ``restore`` gets it as it came, and must check it (``share.read``). Pictures and the page as one file
are made in the browser, from what is drawn there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import ipywidgets
import traitlets

from rlqueue.app.guard import reported
from rlqueue.app.page import STATIC

File = Callable[[], tuple[str, str]]
"""Makes a file: its name and its text."""


class Sharing(anywidget.AnyWidget):
    """Buttons: copy link, CSV, PNG, page; and the address."""

    _esm = STATIC / "sharing.js"
    query = traitlets.Unicode().tag(sync=True)
    elsewhere = traitlets.Unicode(help="what links to other pages carry, where that is not the query").tag(sync=True)
    stem = traitlets.Unicode("rlqueue").tag(sync=True)

    def __init__(self, restore: Callable[[str], None], status: ipywidgets.HTML, files: Mapping[str, File]) -> None:
        super().__init__()
        self._files = dict(files)
        self._restore = restore
        self.on_msg(reported(self._asked, status))

    def set_state(self, sent: dict[str, Any]) -> None:
        """A page sends messages and sets nothing."""

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        kind = message.get("kind") if isinstance(message, dict) else None
        if kind == "open" and isinstance(message.get("query"), str):
            self._restore(message["query"])
        elif kind == "file" and message.get("which") in self._files:
            name, text = self._files[message["which"]]()
            self.send({"kind": "file", "name": name, "text": text})
