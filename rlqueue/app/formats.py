"""How numbers are written on a page."""


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def as_printed(value: float) -> str:
    """A share with the digits it was printed with: "about 30 %" is not 30.0 %."""
    return f"{100 * value:g}%"


def dollars(value: float) -> str:
    return f"${value:,.2f}"


def ratio(value: float) -> str:
    return f"{value:.2f}×"


def versions(value: float) -> str:
    return f"{value:.1f}"


def seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 10 else f"{value:.1f} s"


def count(value: float) -> str:
    return f"{value:,.0f}"


def rate(value: float) -> str:
    return f"{value:.2f}/s"
