"""Cards: one headline number each, with its kind in a word and how far it may be off; the same on every page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from rlqueue.app.origins import kind_tag

BARE = ("list price", "exact", "printed")
"""Kinds of numbers that no model and no measurement made: they have no band."""
NONE = "–"


@dataclass(frozen=True, kw_only=True)
class Span:
    """How far a number may be off: ``words`` as they stand on the page, empty until they are known; ``title``: what it is of."""

    words: str = ""
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One number of a page.

    Attributes:
        name: label. text, unit: the number as written, and what it is in. kind: how it was got, in a word. means: one line.
        spans: how far it may be off; a number of a kind outside ``BARE`` has at least one, whose line is kept free until then.
        spread: beside the number. marks, lines, below: HTML after the kind, and before and after the spans.
    """

    name: str
    text: str
    kind: str
    means: str
    unit: str = ""
    spans: Sequence[Span] = ()
    spread: str = ""
    marks: str = ""
    lines: str = ""
    below: str = ""
    look: str = ""

    def __post_init__(self) -> None:
        if not self.spans and self.kind not in BARE and self.text != NONE:
            raise ValueError(f"card {self.name!r}: spans must say how far a number may be off that is {self.kind}")


def html(card: Card) -> str:
    """One card."""
    spread = f"<small>{escape(card.spread)}</small>" if card.spread else ""
    return (
        f'<div class="rlq-card{" " + card.look if card.look else ""}"><dt>{escape(card.name)}</dt>'
        f'<dd class="rlq-number">{escape(card.text)}{spread}<small>{escape(card.unit)}</small></dd>'
        f'<dd class="rlq-means">{kind_tag(card.kind)}{card.marks} {escape(card.means)}</dd>{card.lines}'
        f"{''.join(map(line, card.spans))}{card.below}</div>"
    )


def listed(cards: Iterable[Card], *, further: str = "", note: Span | None = None) -> str:
    """Cards side by side. ``further``: others as HTML. ``note``: what their bands are of, for who has no mouse to point with."""
    below = "" if note is None else f'<p class="rlq-of-bands" title="{escape(note.title)}">{escape(note.words)}</p>'
    return f'<dl class="rlq-cards">{"".join(map(html, cards))}{further}</dl>{below}'


def line(span: Span) -> str:
    """A span as a line of a card."""
    return f'<dd class="rlq-band" title="{escape(span.title)}">{escape(span.words) or "&nbsp;"}</dd>'


def inside(span: Span) -> str:
    """A span below a number in the cell of a table; nothing until it is known."""
    if not span.words:
        return ""
    return f'<br><small class="rlq-band" title="{escape(span.title)}">{escape(span.words)}</small>'
