"""The buttons that take a page's content elsewhere, and the link that brings its scenario back.

    share = Sharing(status, restore)
    share.offer({"toml": lambda: scenario_file(state.scenario), "csv": lambda: ("name.csv", text)})
    share.query = share_module.query(state)       # whenever the state has changed: the address bar follows

A kernel kept warm for a visitor has run its notebook before the visitor's address was known, so the page reads its own query when
it opens and sends it here; ``restore`` gets it as it came, and must check it (``share.read``). Files are made here when they are
asked for; pictures and the page as one file in the browser, from what is drawn there. All but the link works in JupyterLab too,
whose address is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import ipywidgets
import traitlets

from rlqueue.app.guard import reported
from rlqueue.app.page import STATIC
from rlqueue.scenario import Scenario

File = Callable[[], tuple[str, str]]
"""Makes a file: its name and its text."""
SCENARIO = "toml"
"""What the keys of scenario files begin with."""
LABELS = {
    SCENARIO: ("Scenario (TOML)", "The scenario as a file, for Python and the command line: rlqueue solve FILE"),
    "csv": ("CSV", "The numbers of this page as a table"),
}


def scenario_file(scenario: Scenario, name: str = "") -> tuple[str, str]:
    """A scenario as a file. ``name``: other than its own."""
    return f"{name or scenario.name}.toml", scenario.to_toml()


class Sharing(anywidget.AnyWidget):
    """Buttons: copy link, files, PNG, page; and the address.

    Attributes:
        query: of the link; a page that cannot be restored has none. elsewhere: what links to other pages carry, where that is not
            the query. stem: name of pictures and pages.
        files: key, label and title of each file that may be asked for.
    """

    _esm = STATIC / "sharing.js"
    query = traitlets.Unicode().tag(sync=True)
    elsewhere = traitlets.Unicode().tag(sync=True)
    stem = traitlets.Unicode("rlqueue").tag(sync=True)
    files = traitlets.List().tag(sync=True)

    def __init__(self, status: ipywidgets.HTML, restore: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self._files: dict[str, File] = {}
        self._restore = restore
        self.on_msg(reported(self._asked, status))

    def set_state(self, sent: dict[str, Any]) -> None:
        """A page sends messages and sets nothing."""

    def offer(self, files: Mapping[str, File]) -> None:
        """Have these files on offer; of several scenarios each has its letter in the key: ``toml-a``."""
        self._files = dict(files)
        listed = []
        for key in files:
            kind, _, letter = key.partition("-")
            label, title = LABELS[kind]
            listed.append([key, f"{letter.upper()} (TOML)" if letter else label, title])
        self.files = listed

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        kind = message.get("kind") if isinstance(message, dict) else None
        if kind == "open" and isinstance(message.get("query"), str) and self._restore is not None:
            self._restore(message["query"])
        elif kind == "file" and isinstance(message.get("which"), str) and message["which"] in self._files:
            name, text = self._files[message["which"]]()
            self.send({"kind": "file", "which": message["which"], "name": name, "text": text})
