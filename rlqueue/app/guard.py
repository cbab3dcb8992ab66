"""Nothing that a browser sends is believed: one place where a control's value is checked, and where an error becomes visible.

    status = status_line()
    guarded(slider, redraw, status)          # instead of slider.observe(redraw, "value")
    button.on_click(reported(reset, status))

A visitor may set any synced trait of any widget to anything, through the websocket. ipywidgets clamps some of that in silence,
lets the limits themselves be moved, and swallows what a handler raises, so that the plots go stale without a word. A guarded
control takes one trait, inside the limits it has; anything else is refused by name, value and limit in the status
line, and the control goes back to its last good value. So does a value that the handler refuses with a ValueError.
"""

from __future__ import annotations

import functools
import html
import logging
import math
from collections.abc import Callable
from typing import Any

import ipywidgets

log = logging.getLogger(__name__)
Check = Callable[[Any], str]


def status_line() -> ipywidgets.HTML:
    """An empty line that speaks up, for screen readers too, when something was refused."""
    line = ipywidgets.HTML()
    line.add_class("rlq-status")
    return line


def guarded(
    control: ipywidgets.Widget,
    handler: Callable[[dict[str, Any]], None],
    status: ipywidgets.HTML,
    check: Check | None = None,
) -> None:
    """Observe `control.value` with `handler`, and refuse what is outside the control's limits.

    `check` returns what is wrong with a value, or "": it is needed where the control has no limits of its own (a text).
    """
    trait = "index" if control.has_trait("index") else "value"
    name = getattr(control, "description", "") or type(control).__name__
    check = check or _limits(control)
    receive = control.set_state
    good = control.value
    restoring = False

    def set_state(sent: dict[str, Any]) -> None:
        problems = [f"{name}: {key} must not be set by a page" for key in sent if key != trait]
        if trait in sent and (problem := check(sent[trait])):
            problems.append(f"{name}={sent[trait]!r:.60} {problem}")
        if problems:
            _say(status, "Refused: " + "; ".join(problems))
            control.send_state()  # the browser shows again what holds here
        else:
            receive(sent)

    def observer(change: dict[str, Any]) -> None:
        nonlocal good, restoring
        if restoring:
            handler(change)
            return
        error = _attempt(handler, change)
        if error:
            restoring = True
            try:
                control.value = good
            except Exception:
                log.exception("the last good value of %s was refused as well", name)
            finally:
                restoring = False
            error = f"{name}={change['new']!r:.60} refused: {error}"
        else:
            good = change["new"]
        _say(status, error)

    control.set_state = set_state
    control.observe(observer, "value")


def reported(handler: Callable[..., None], status: ipywidgets.HTML) -> Callable[..., None]:
    """`handler`, whose exceptions appear in the status line instead of nowhere."""

    @functools.wraps(handler)
    def wrapped(*args: Any) -> None:
        _say(status, _attempt(handler, *args))

    return wrapped


def _attempt(handler: Callable[..., None], *args: Any) -> str:
    try:
        handler(*args)
    except ValueError as refusal:
        return str(refusal)
    except Exception as error:
        log.exception("a handler failed")  # the server's log; a visitor learns no more than that
        return f"unexpected {type(error).__name__}; the server's log has the details"
    return ""


def _say(status: ipywidgets.HTML, text: str) -> None:
    message = f'<p role="alert">{html.escape(text)}</p>' if text else ""
    if status.value != message:
        status.value = message


def _limits(control: ipywidgets.Widget) -> Check:
    """The limits of the moment: the page's own code may move them, and a browser cannot, since it may set one trait only."""
    if control.has_trait("index") and control.has_trait("options"):
        return lambda sent: _place_among(sent, len(control.options))
    if control.has_trait("min") and control.has_trait("max") and not isinstance(control.value, tuple):
        return lambda sent: _number_between(sent, control.min, control.max, whole=isinstance(control.value, int))
    if isinstance(control.value, bool):
        return lambda sent: "" if isinstance(sent, bool) else "must be true or false"
    raise TypeError(f"{type(control).__name__} has no limits of its own: guarded() needs a check for it")


def _place_among(sent: Any, count: int) -> str:
    fits = type(sent) is int and 0 <= sent < count
    return "" if fits else f"must be a whole number in [0, {count - 1}]"


def _number_between(sent: Any, low: float, high: float, *, whole: bool) -> str:
    number = type(sent) is int or (type(sent) is float and math.isfinite(sent) and (not whole or sent.is_integer()))
    return "" if number and low <= sent <= high else f"must be {'a whole' if whole else 'a'} number in [{low}, {high}]"
