"""How lengths move while a run goes on: laws over the steps, or a measured series.

A law moves the *median before the cut* by a factor, so that the mean and the share cut at the maximum follow. A measured
series gives means *after* the cut, as runs report them, and the median is solved for.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rlqueue.lengths import clipped_means, log_medians, truncated_fractions

LOGISTIC_SPAN = 10.0
"""An S from the logistic curve's -5 to +5, stretched to begin at 0 and to end at 1."""

PATH = np.dtype(
    [
        ("mean_response_tokens", "f8"),  # after the cut
        ("log_median", "f8"),  # of the uncut law, ln(token)
        ("sigma_between", "f8"), ("sigma_within", "f8"),  # spreads of log length between prompts, within a group
        ("tool_calls", "f8"), ("prompt_tokens", "f8"),
        ("truncated_fraction", "f8"),  # share of responses cut at the maximum
    ]
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DriftStart:
    """Lengths at step 0, in the units of the scenario's knobs."""

    mean_response_tokens: float
    sigma_between: float
    sigma_within: float
    max_response_tokens: float
    tool_calls: float
    prompt_tokens: float


@dataclass(frozen=True, kw_only=True)
class DriftLaw:
    """What happens to them: the law's name, its span, and factors at its end; or the points of a measured series."""

    name: str
    steps: int
    length_factor: float
    tool_calls_factor: float
    prompt_factor: float
    sigma_factor: float
    series: str


def factor(law: str, end: float, share: np.ndarray) -> np.ndarray:
    """The factor reached after a share of the span: 1 at 0 and exactly ``end`` at 1 and beyond.

    ``x`` is the share, cut to [0, 1]: linear ``1 + (end - 1) x``, exponential ``end^x``, logistic ``1 + (end - 1) S(x)`` with
    ``S(x) = (s(x) - s(0)) / (s(1) - s(0))``, ``s(x) = 1 / (1 + exp(-10 (x - 1/2)))``.
    """
    x = np.clip(share, 0.0, 1.0)
    if law == "exponential":
        return end**x if end > 0 else np.where(x == 0.0, 1.0, 0.0)
    if law == "logistic":
        rise = np.tanh(0.5 * LOGISTIC_SPAN * (x - 0.5))
        x = 0.5 * (1.0 + rise / math.tanh(0.25 * LOGISTIC_SPAN))
    return np.where(x == 1.0, end, 1.0 + (end - 1.0) * x)


def path(start: DriftStart, law: DriftLaw, steps: int) -> np.ndarray:
    """Lengths at steps 0, 1, ..., as an array of dtype ``PATH``.

    It ends where nothing moves any more (at least one row, at most ``steps``): a later step has the values of the last row.
    """
    last = 0 if law.name == "constant" else math.ceil(series(law.series)[0][-1]) if law.name == "series" else law.steps
    return at(start, law, np.arange(min(steps, last + 1)))


def at(start: DriftStart, law: DriftLaw, steps: np.ndarray) -> np.ndarray:
    """Lengths at any steps, whole or not: array of dtype ``PATH`` and the same length."""
    steps = np.asarray(steps, float)
    rows = np.empty(steps.size, PATH)
    if law.name == "series":
        known, response, tools, prompt = series(law.series)
        rows["mean_response_tokens"] = np.interp(steps, known, response)
        rows["tool_calls"] = start.tool_calls if tools is None else np.interp(steps, known, tools)
        rows["prompt_tokens"] = start.prompt_tokens if prompt is None else np.interp(steps, known, prompt)
        rows["sigma_between"], rows["sigma_within"] = start.sigma_between, start.sigma_within
        sigma = math.hypot(start.sigma_between, start.sigma_within)
        rows["log_median"] = log_medians(rows["mean_response_tokens"], sigma, start.max_response_tokens)
    else:
        share = steps / law.steps if law.steps else np.zeros_like(steps)
        name = law.name if law.steps else "linear"
        rows["tool_calls"] = start.tool_calls * factor(name, law.tool_calls_factor, share)
        rows["prompt_tokens"] = start.prompt_tokens * factor(name, law.prompt_factor, share)
        spread = factor(name, law.sigma_factor, share)
        rows["sigma_between"], rows["sigma_within"] = start.sigma_between * spread, start.sigma_within * spread
        sigma = np.hypot(rows["sigma_between"], rows["sigma_within"])
        at_start = log_medians(
            np.array([start.mean_response_tokens]), math.hypot(start.sigma_between, start.sigma_within),
            start.max_response_tokens,
        )  # fmt: skip
        grown = factor(name, law.length_factor, share)
        rows["log_median"] = at_start[0] + np.log(grown)
        means = clipped_means(rows["log_median"], sigma, start.max_response_tokens)
        # Where nothing has moved it is the mean that was asked for, to the last digit
        rows["mean_response_tokens"] = np.where((grown == 1.0) & (spread == 1.0), start.mean_response_tokens, means)
    rows["truncated_fraction"] = truncated_fractions(rows["log_median"], sigma, start.max_response_tokens)
    return rows


def drift_as(text: str) -> dict[str, float | str | int]:
    """The knobs of drift by which lengths follow the text of a series, whatever they did before."""
    factors = ("drift_length_factor", "drift_tool_calls_factor", "drift_prompt_factor", "drift_sigma_factor")
    return {"drift_law": "series", "drift_steps": 0, "drift_series": text} | dict.fromkeys(factors, 1.0)


@lru_cache(maxsize=64)
def series(text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Steps, mean response tokens, and tool calls and prompt tokens where given, from the text of a series.

    Raises:
        ValueError: no such text; steps that do not go up; points that differ in how much they give; a length of none.
    """
    points: list[list[float]] = []
    for part in text.split(","):
        step, colon, rest = part.partition(":")
        try:
            numbers = [float(word) for word in (step, *rest.split("/"))]
        except ValueError:
            numbers = []
        right = colon and 2 <= len(numbers) <= 4 and all(0 <= number < math.inf for number in numbers)
        if not (right and numbers[1] > 0):
            raise ValueError(
                f"drift_series: {part.strip()!r} must be 'step: response tokens [/ tool calls [/ prompt tokens]]', the step "
                ">= 0, response tokens > 0, the others >= 0"
            )
        if points and len(numbers) != len(points[-1]):
            raise ValueError(f"drift_series: {part.strip()!r} must give as many numbers as the points before it")
        if points and numbers[0] <= points[-1][0]:
            raise ValueError(f"drift_series must go up in steps: {numbers[0]:g} comes after {points[-1][0]:g}")
        points.append(numbers)
    columns = [np.array(column) for column in zip(*points, strict=True)]
    return columns[0], columns[1], *(columns[i] if len(columns) > i else None for i in (2, 3))
