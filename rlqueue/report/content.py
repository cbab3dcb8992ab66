"""What a report consists of: tables and figures that say their units, sources and kind; no layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlqueue.provenance import Quantity, sources

REPORT = "semianalysis-rl-gap"
NODE = "semianalysis-h200-tco"
OWN = "rlqueue"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        name: header in the CSV, unit included. title, unit: on the page. digits: after the point, at most, on the page.
        prose: sentences, which want room. joins: on the page it stands small under the column before it.
    """

    name: str
    title: str
    unit: str = ""
    digits: int = 2
    prose: bool = False
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of numbers and words.

    Attributes:
        says: a paragraph above it. sources: ids of data/sources.toml.
        folded: the page shows it on demand. grouped: rows with the same first cell stand under it as a heading.
    """

    name: str
    title: str
    says: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    sources: tuple[str, ...]
    folded: bool = False
    grouped: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One plot.

    Attributes:
        name: of its files. title: what is asked. units: one line under it: axes, units, kind of the numbers.
        says: what it shows, with the error against the overlaid points where there are some.
        kind: how the curves were computed (``closed form``, ``simulation``, ``arithmetic``, ``fit``).
        overlay: series of the source that lie over the curves as points: (file or figure, series); empty = model only.
        fitted: what of it is calibrated or assumed, so that agreement with it tests nothing.
        plot: the plotly figure as a dictionary.
    """

    name: str
    title: str
    units: str
    says: str
    kind: str
    sources: tuple[str, ...]
    plot: Mapping[str, Any]
    overlay: tuple[tuple[str, str], ...] = ()
    fitted: str = ""

    @property
    def model_only(self) -> bool:
        """Whether the source gives no values to lay over it."""
        return not self.overlay


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with paragraphs, a list of points, figures and tables below it."""

    name: str
    title: str
    says: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it, and what was changed against the source's assumptions."""

    sections: tuple[Section, ...]
    changed: tuple[tuple[str, str], ...] = field(default=())

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure for section in self.sections for figure in section.figures)


def mean_error(computed: Sequence[float] | np.ndarray, given: Sequence[float] | np.ndarray) -> float:
    """Mean absolute error relative to the given values [1]."""
    computed, given = np.asarray(computed, float), np.asarray(given, float)
    return float(np.mean(np.abs(computed - given) / np.abs(given)))


def cited(name: str) -> str:
    """A source as words: author, title, date; our own assumptions are called so."""
    if name == OWN:
        return "assumed by this project"
    source = sources()[name]
    return f"{source.author}: {source.title} ({source.date})"


def value_of(fact: Quantity) -> float:
    """The number of a quantity. Raises ValueError where it is a word."""
    return float(fact.value)
