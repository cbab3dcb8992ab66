"""What the page "which prompts teach?" says besides numbers: the assumptions about learning, and published series to draw."""

from __future__ import annotations

from functools import cache

import numpy as np

from rlqueue.provenance import sources, table

SERIES = "curriculum_series"


@cache
def published_names() -> tuple[tuple[str, str], ...]:
    """Titles and keys of the published series, and none."""
    rows = {row["series"]: row for row in table(SERIES)}
    return (("none", ""), *((f"{row['where']} · {sources()[row['source']].author}", key) for key, row in rows.items()))


@cache
def published(key: str) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Steps, shares and name of a published series; None for none."""
    rows = [row for row in table(SERIES) if row["series"] == key]
    if not rows:
        return None
    return (
        np.array([float(row["step"]) for row in rows]),
        np.array([float(row["value"]) for row in rows]),
        f"{key} ({rows[0]['kind']})",
    )


def waiting(before: str) -> str:
    """The table of strategies while it is not known for the scenario at hand: the old one, faded."""
    return (
        before if not before or "rlq-old" in before else before.replace("rlq-strategies", "rlq-strategies rlq-old", 1)
    )


def assumptions() -> str:
    """The learning law and what it leaves out."""
    return (
        '<div class="rlq-prose"><h4>How solve rates rise</h4>'
        "<p>A prompt's solve rate is p. After each step every prompt's logit p rises by <i>speed × transfer × (share of trained "
        "groups that teach) × freshness</i>, and the prompt of each trained group by <i>speed × (1 − transfer) × "
        "4 (k/n)(1 − k/n) × freshness</i>, where k of its n rollouts were right. Freshness halves every so many "
        "versions of staleness, if a discount is set.</p>"
        "<ul><li>The gradient of p in its logit is p (1 − p): groups at one half teach the most, those at 0 and 1 nothing.</li>"
        "<li>Nothing is forgotten, and no prompt gets harder; the law of solve rates only moves up.</li>"
        "<li>The closed form takes an infinite pool in its mean; the simulation has each prompt, and the sampler sees only "
        "finished groups.</li><li>The speed is nobody's published number: fit it to a run's own curve.</li></ul></div>"
    )
