"""What the page "what if answers grow?" says besides numbers, and the published growths that it offers and draws."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlqueue.at_step import NO_DRIFT
from rlqueue.drift_presets import drift_names, growth_knobs, measured_drift, series_knobs
from rlqueue.provenance import table
from rlqueue.scenario import Scenario

TIMES = {"prime-rl-qwen3-235b": "prime-rollout-time", "prime-rl-glm-5": "glm-5-rollout-time"}
"""Figures of data/report_series.csv with the rollout times of published growths."""
IN_TOKENS = "tokens:"
"""Before the name of a published run whose lengths are taken as they are, and not as a factor."""


@cache
def names() -> tuple[tuple[str, str], ...]:
    """Titles and keys of the published growths: as a factor of the scenario's own lengths, or in that run's tokens."""
    found = [("none", "")]
    for name in drift_names():
        title = measured_drift(name).title
        found += [(f"{title} · by the same factor", name), (f"{title} · the same tokens", IN_TOKENS + name)]
    return tuple(found)


def title(key: str) -> str:
    """What the drawn values are called."""
    if not key:
        return ""
    run = measured_drift(key.removeprefix(IN_TOKENS))
    return f"{run.title.partition(':')[0]} ({run.kind})"


def knobs(key: str, scenario: Scenario) -> dict[str, Any]:
    """The knobs that a published growth sets; the run then has as many steps."""
    name = key.removeprefix(IN_TOKENS)
    run = measured_drift(name)
    found = series_knobs(name, scenario.tool_calls) if key.startswith(IN_TOKENS) else growth_knobs(name)
    return dict(NO_DRIFT) | found | {"training_steps": int(run.steps[-1]) + 1}


def published(key: str, scenario: Scenario) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Steps and values of the published run: in tokens where those were taken, else scaled to the scenario's first length."""
    if not key:
        return {}
    run = measured_drift(key.removeprefix(IN_TOKENS))
    scale = 1.0 if key.startswith(IN_TOKENS) else scenario.mean_response_tokens / run.response_tokens[0]
    found = {"mean_response_tokens": (run.steps, run.response_tokens * scale)}
    seconds = _rollout_s(run.key)
    return found | ({"rollout_s": seconds} if len(seconds[0]) else {})


@cache
def _rollout_s(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and mean times of a rollout in a published run, where they were read; else none."""
    rows = [row for row in table("report_series") if (row["figure"], row["series"]) == (TIMES.get(name), "rollout_s")]
    return np.array([float(row["x"]) for row in rows]), np.array([float(row["y"]) for row in rows])


def assumptions() -> str:
    """How lengths grow here and what is left out."""
    return (
        '<div class="rlq-prose"><h4>How answers grow</h4><p>The law multiplies the median response <i>before</i> the cut; the '
        "mean after the cut and the share that is cut follow. A measured series gives means after the cut, and the "
        "median is solved for.</p>"
        "<ul><li>The closed form is solved at each step as if lengths stayed so: a run changes slowly against the time of its "
        "rollouts.</li>"
        "<li>The simulation gives each group the lengths of the step at which it is admitted.</li>"
        "<li>“If nothing moved” is the same run with the lengths, and solve rates, of its first step.</li></ul></div>"
    )
