"""What ipywidgets leaves out for keyboards and screen readers, and the style of a page; the same in Voila and JupyterLab."""

from pathlib import Path

import anywidget

STATIC = Path(__file__).parent / "static"


class Aids(anywidget.AnyWidget):
    """An invisible widget: put it first into the box of a page that carries the class ``rlq-explorer``."""

    _esm = STATIC / "aids.js"
    _css = STATIC / "explorer.css"
