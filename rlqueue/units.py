"""The only conversion factors of the package, and how a unit is written. Decimal prefixes throughout: tera is 10**12, a GB is
10**9 bytes.
"""

SECONDS_PER_HOUR = 3600.0
TOKENS_PER_MTOK = 1e6
BYTES_PER_ELEMENT = {"bf16": 2.0, "fp8": 1.0}


def after_number(unit: str) -> str:
    """A unit as it follows a number in a sentence; of a pure number nothing."""
    return "" if unit in ("", "1") else f" {unit}"
