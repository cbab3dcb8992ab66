"""How numbers are written on a page."""

import math


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def as_printed(value: float) -> str:
    """A share with the digits it was printed with: "about 30 %" is not 30.0 %."""
    return f"{100 * value:g}%"


def dollars(value: float) -> str:
    return f"${value:,.2f}"


def per_mtok(value: float) -> str:
    return f"{dollars(value)}/Mtok"


def ratio(value: float) -> str:
    return f"{value:.2f}×"


def versions(value: float) -> str:
    return f"{value:.1f}"


def seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 10 else f"{value:.1f} s"


def count(value: float) -> str:
    return f"{value:,.0f}"


def tokens(value: float) -> str:
    return f"{count(value)} tokens"


def rate(value: float) -> str:
    return f"{value:.2f}/s"


def duration(hours: float) -> str:
    if not math.isfinite(hours):
        return "–"
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"


def whole_dollars(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"${value / 1e6:,.2f}M" if value >= 1e6 else f"${value:,.0f}"
