"""How fast it is: each module here has `timings()`, which yields what it measured; `python -m benchmarks` prints them all."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One measured duration beside the one we promise; `note` says how it was taken."""

    name: str
    seconds: float
    limit_s: float | None = None
    note: str = ""
