"""How lengths moved in published runs, for any scenario: as growth against its own start, or in tokens as measured."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from rlqueue.drift import drift_as, factor
from rlqueue.provenance import table
from rlqueue.refusal import require_known

SHAPES = ("linear", "exponential", "logistic")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A published run's lengths over its steps. Arrays of one number per point; None where the run does not give it.

    Attributes:
        key, title: as in data/drift_presets.csv. kind, source, where: how the lengths are known.
        steps [step], response_tokens (mean after the cut), tool_calls, prompt_tokens.
    """

    key: str
    title: str
    kind: str
    source: str
    where: str
    steps: np.ndarray
    response_tokens: np.ndarray
    tool_calls: np.ndarray | None
    prompt_tokens: np.ndarray | None


@cache
def drift_names() -> tuple[str, ...]:
    """Published drifts, in the order of data/drift_presets.csv."""
    return tuple(row["key"] for row in table("drift_presets"))


@cache
def measured_drift(name: str) -> Measured:
    """The lengths of a published run. Raises ValueError for an unknown name."""
    require_known("drift", name, drift_names())
    facts = next(row for row in table("drift_presets") if row["key"] == name)
    rows = [row for row in table("drift_series") if row["key"] == name]

    def column(cell: str) -> np.ndarray | None:
        return np.array([float(row[cell]) for row in rows]) if all(row[cell] for row in rows) else None

    return Measured(
        **{cell: facts[cell] for cell in ("key", "title", "kind", "source", "where")},
        steps=column("step"), response_tokens=column("mean_response_tokens"), tool_calls=column("tool_calls"),
        prompt_tokens=column("mean_prompt_tokens"),
    )  # fmt: skip


@cache
def growth_knobs(name: str) -> dict[str, float | str | int]:
    """Knobs by which any scenario grows as that run did: the same factors over as many steps, by the nearest of three laws.

    The factor is of means after the cut in the published run and is applied to the median before the cut here, which is the
    same as long as few responses are cut. For ``dataclasses.replace(scenario, **growth_knobs(name))``.
    """
    run = measured_drift(name)

    def ratio(values: np.ndarray | None) -> float:
        return 1.0 if values is None else float(values[-1] / values[0])

    return {
        "drift_law": nearest_law(run.steps, run.response_tokens),
        "drift_steps": int(run.steps[-1]),
        "drift_length_factor": ratio(run.response_tokens),
        "drift_tool_calls_factor": ratio(run.tool_calls),
        "drift_prompt_factor": ratio(run.prompt_tokens),
        "drift_sigma_factor": 1.0,
        "drift_series": "",
    }


@cache
def series_knobs(name: str, tool_calls: float = 0.0) -> dict[str, float | str | int]:
    """Knobs by which a scenario has the lengths of that run in tokens, step by step.

    Args:
        tool_calls: to write where the run gives prompt tokens but no tool calls.
    """
    run = measured_drift(name)
    columns = [run.response_tokens]
    if run.tool_calls is not None or run.prompt_tokens is not None:
        columns.append(np.full_like(run.steps, tool_calls) if run.tool_calls is None else run.tool_calls)
    if run.prompt_tokens is not None:
        columns.append(run.prompt_tokens)
    points = [
        f"{step:g}: " + " / ".join(f"{value:g}" for value in values)
        for step, *values in zip(run.steps, *columns, strict=True)
    ]
    return drift_as(", ".join(points))


def nearest_law(steps: np.ndarray, values: np.ndarray) -> str:
    """Which law from the first point to the last passes nearest to those between, by the squared error of logarithms."""
    share = (steps - steps[0]) / (steps[-1] - steps[0])

    def error(law: str) -> float:
        return float(np.sum(np.log(values[0] * factor(law, values[-1] / values[0], share) / values) ** 2))

    return min(SHAPES, key=error)
