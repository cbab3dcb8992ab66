"""Times of rollouts that grow with their lengths: GLM-5 and Qwen3-235B on Prime RL."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from rlqueue.provenance import quantities, table
from rlqueue.published.series import blind_error, series_table
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario

GLM, PRIME = "prime-rl-glm-5", "prime-rl-qwen3-235b"
FITTED_STEPS = (0, 1, 2, 3, 4)
"""Steps of the GLM-5 run that its time per token is fitted to."""


def _efficiency(times: Callable[[float], np.ndarray], published: np.ndarray) -> float:
    """The decode efficiency at which the mean squared error of log times is least."""
    from scipy.optimize import minimize_scalar

    def error(log_efficiency: float) -> float:
        return float(np.sum(np.log(times(float(np.exp(log_efficiency))) / published) ** 2))

    return float(
        np.exp(minimize_scalar(error, bounds=(np.log(0.01), 0.0), method="bounded", options={"xatol": 1e-4}).x)
    )


def _at_lengths(scenario: Scenario, prompt: float, response: float, tool_calls: float) -> Scenario:
    """The scenario at other lengths, its longest sequence kept."""
    longest = scenario.mean_prompt_tokens + scenario.max_response_tokens
    return replace(
        scenario, mean_prompt_tokens=prompt, mean_response_tokens=response, max_response_tokens=longest - prompt,
        tool_calls=tool_calls,
    )  # fmt: skip


def _readings(figure: str, series: str) -> tuple[np.ndarray, np.ndarray]:
    points = [
        (float(row["x"]), float(row["y"]))
        for row in table("report_series")
        if (row["figure"], row["series"]) == (figure, series)
    ]
    return tuple(np.array(column) for column in zip(*points, strict=True))


@cache
def glm_rollout_time(lost_bar: int = 24) -> pd.DataFrame:
    """Mean time of a rollout of GLM-5 over 25 steps: 370 to 1,950 s while sequences grow from 7.3k to 28k tokens.

    Fitted on the first five steps: the decode efficiency. The preset's concurrency is fitted to the printed wait, not to these
    times. Prompt and response share a sequence as in the preset; tool calls are interpolated between seven readings.

    Args:
        lost_bar: the chart of lengths has 24 bars for 25 steps; the step whose bar is taken to be the missing one.
    """
    preset = Scenario.from_data(GLM)
    steps, published = _readings("glm-5-rollout-time", "rollout_s")
    _, sequences = _readings("glm-5-drift", "mean_sequence_tokens")
    sequence = np.interp(steps, np.delete(steps, lost_bar), sequences)
    tool_calls = np.interp(steps, *_readings("glm-5-drift", "tool_calls"))
    prompt = sequence * preset.mean_prompt_tokens / (preset.mean_prompt_tokens + preset.mean_response_tokens)
    runs = [_at_lengths(preset, *row) for row in zip(prompt, sequence - prompt, tool_calls, strict=True)]
    return _rollout_times("GLM-5 rollout time", runs, published, FITTED_STEPS)


@cache
def prime_rollout_time(fitted_steps: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """Mean time of a rollout of Qwen3-235B on Prime RL over ten steps: 371 to 663 s while responses grow from 10.2k to 13.3k.

    Fitted on the first step (or more): the decode efficiency. Not blind altogether: the preset's concurrency is Little's law
    with the mean time of all ten steps. The error hardly follows it: two thirds or nearly twice as many slots move it by less
    than three points.
    """
    return _rollout_times("Qwen3-235B rollout time", _prime_runs(), _prime_times(), fitted_steps)


@cache
def prime_as_concurrency_grew() -> pd.DataFrame:
    """The same with as many rollouts in flight at each step as Little's law makes of that step's own figures.

    No prediction, for it knows each step's published production and time: it asks whether a growing concurrency would explain
    what ``prime_rollout_time`` misses. In flight are production * time / share that is not thrown away, the last taken
    to be the same at all steps. Fitted on the second step, since the first was made by a generator that was only starting.
    """
    _, production = _readings("prime-trainer-and-generator", "production_per_s")
    kept = 1.0 - float(quantities("reported", PRIME)["discarded_rollouts_ratio_high"].value)
    in_flight = production * _prime_times() / kept
    runs = [replace(run, concurrency=round(slots)) for run, slots in zip(_prime_runs(), in_flight, strict=True)]
    found = _rollout_times("Qwen3-235B rollout time, concurrency by Little's law", runs, _prime_times(), (1,))
    return found.assign(in_flight_rollouts=in_flight)


def _prime_runs() -> list[Scenario]:
    preset = Scenario.from_data(PRIME)
    lengths = [(float(row["mean_prompt_tokens"]), float(row["mean_response_tokens"])) for row in table("prime_process")]
    return [_at_lengths(preset, prompt, response, preset.tool_calls) for prompt, response in lengths]


def _prime_times() -> np.ndarray:
    return np.array([float(row["rollout_s"]) for row in table("prime_process")])


def _rollout_times(
    name: str, runs: Sequence[Scenario], published: np.ndarray, fitted_steps: Sequence[int]
) -> pd.DataFrame:
    def times(efficiency: float, which: Sequence[int]) -> np.ndarray:
        return np.array([solve(replace(runs[i], decode_efficiency=efficiency)).rollout_s for i in which])

    fitted = list(fitted_steps)
    efficiency = _efficiency(lambda value: times(value, fitted), published[fitted])
    predicted = times(efficiency, range(len(runs)))
    return series_table(
        name, "s", "semianalysis-rl-gap",
        [(i, published[i], predicted[i], i in fitted) for i in range(len(runs))],
    )  # fmt: skip


def glm_alignment() -> pd.DataFrame:
    """How the error of the GLM-5 rollout times depends on which of the 25 bars of lengths was lost."""
    rows = []
    for lost in range(len(glm_rollout_time())):
        found = glm_rollout_time(lost)
        fitted = float(found.loc[found["calibrated"], "error"].abs().mean())
        rows.append({"lost_bar": lost, "fitted_error": fitted, "test_error": blind_error(found)})
    return pd.DataFrame(rows)
