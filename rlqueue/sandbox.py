"""How fast a provider starts sandboxes, as measured: knobs of a scenario from data/sandbox_start.csv."""

from rlqueue.provenance import table
from rlqueue.refusal import require_known


def sandbox_keys() -> tuple[str, ...]:
    """The measurements there are, as ``mode/provider``: sequential, staggered, or a burst of 100 starts at once."""
    return tuple(row["key"] for row in table("sandbox_start"))


def sandbox_knobs(key: str) -> dict[str, float]:
    """The knobs of Scenario that a measurement sets: mean start time, spread of its logarithm, share of failed starts.

    For ``dataclasses.replace(scenario, **sandbox_knobs("burst/modal"))``. Raises ValueError for an unknown key.
    """
    require_known("sandbox", key, sandbox_keys())
    row = next(row for row in table("sandbox_start") if row["key"] == key)
    return {
        "sandbox_start_s": float(row["mean_s"]),
        "sandbox_start_sigma": float(row["lognormal_sigma_ln_s"]),
        "sandbox_failure_ratio": 1.0 - float(row["success_ratio"]),
    }
