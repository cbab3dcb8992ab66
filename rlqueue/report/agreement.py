"""How a computed number stands to a printed one: exact, within some per cent, reconciled, or not computable."""

from dataclasses import dataclass
from typing import Any

from rlqueue.provenance import Quantity

EXACT = "exact"
IN_RANGE = "in the printed range"
RECONCILED = "reconciled"
NOT_COMPUTABLE = "not computable"
CLOSE = 0.25
"""Beyond this relative error a number counts as missed, and the table says so."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One row of the key data.

    Attributes:
        run, quantity, unit: what it is. printed: as the source has it; high: upper end where it prints a range.
        kind, source, where: of the printed number.
        computed: ours; None where it can't be computed.
        how: how it was computed. test: ``prediction``, ``arithmetic`` (on printed inputs), ``input`` (taken from the source) or
            ``calibrated`` (fitted to this very number): the last two test nothing.
        explanation: why they differ, or what is missing; empty where nothing is to be said.
        reconciled: the explanation accounts for the whole difference.
        band: how far ``computed`` may be off for what its inputs are known to; None for arithmetic and for what was put in.
    """

    run: str
    quantity: str
    unit: str
    printed: float
    kind: str
    source: str
    where: str
    computed: float | None
    how: str
    test: str
    explanation: str = ""
    reconciled: bool = False
    high: float | None = None
    band: tuple[float, float] | None = None

    @property
    def status(self) -> str:
        """In the words of the key-data table."""
        if self.computed is None:
            return NOT_COMPUTABLE
        if self.high is not None and self.printed <= self.computed <= self.high:
            return IN_RANGE
        if self.high is None and rounds_to(self.computed, self.printed, self.unit):
            return RECONCILED if self.reconciled else EXACT
        return RECONCILED if self.reconciled else within(self.relative_error)

    @property
    def relative_error(self) -> float:
        """Computed over printed (or the nearer end of the range), less 1; NaN where nothing was computed."""
        if self.computed is None:
            return float("nan")
        ends = (self.printed,) if self.high is None else (self.printed, self.high)
        nearest = min(ends, key=lambda end: abs(end - self.computed))
        return self.computed / nearest - 1.0


def within(relative_error: float) -> str:
    """``within x %``, x rounded up to two digits; ``missed by x %`` where that is no agreement."""
    error = abs(relative_error)
    percent = 100 * error
    shown = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}" if percent >= 0.1 else f"{percent:.2g}"
    return f"within {shown} %" if error <= CLOSE else f"missed by {shown} %"


def decimals(value: float, unit: str) -> int:
    """Digits after the point of a printed number; a share counts as printed in whole per cent at least."""
    text = f"{value:.10f}".rstrip("0")
    printed = len(text.partition(".")[2])
    return max(printed, 2) if unit == "1" else printed


def rounds_to(computed: float, printed: float, unit: str) -> bool:
    """Whether the computed number, rounded as the printed one is, is the printed one (a tie may go either way)."""
    half = 0.5 * 10.0 ** -decimals(printed, unit)
    return abs(computed - printed) <= half * (1.0 + 1e-6)


def row(  # noqa: PLR0917  the order of a row of the table
    run: str, quantity: str, fact: Quantity, computed: float | None, how: str, test: str, **more: Any
) -> Agreement:
    """An agreement from a row of the data files."""
    return Agreement(
        run=run, quantity=quantity, unit=fact.unit, printed=float(fact.value), kind=fact.kind, source=fact.source,
        where=fact.where, computed=computed, how=how, test=test, **more,
    )  # fmt: skip
