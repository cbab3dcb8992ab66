"""A scenario brought to a measured run: its lengths are taken over, the speeds of both sides fitted, the rest left to compare."""

import dataclasses
import math

import pandas as pd

from rlqueue import calibration
from rlqueue.calibration import Calibration, calibrate
from rlqueue.logs import Mean, Measured
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario

LEAST_SPREAD = 0.005
"""No mean of a log is better known than this: its steps are not independent."""
LEAST_S = 1e-3
"""A part of a step that takes less was not measured, or takes nothing."""
WAITS = 0.02
"""A trainer that waits less than this says only that the generator keeps up, not how fast it is."""
LENGTHS = ("mean_prompt_tokens", "mean_response_tokens", "mean_sequence_tokens")
MOST_ROWS = 400
"""So many steps are predicted one by one; of a longer log as many, evenly spread."""


def with_lengths(scenario: Scenario, measured: Measured, means: dict[str, Mean]) -> tuple[Scenario, dict[str, float]]:
    """The scenario with the prompt and response lengths of the log, and which those are."""
    prompt, response = _lengths(scenario, *(means[name].mean if name in means else math.nan for name in LENGTHS))
    taken = {}
    if prompt != scenario.mean_prompt_tokens:
        taken["mean_prompt_tokens"] = prompt
    if response != scenario.mean_response_tokens:
        taken["mean_response_tokens"] = response
    longest = measured.table.get("max_response_tokens")
    if longest is not None and float(longest.max()) > scenario.max_response_tokens:
        taken["max_response_tokens"] = float(longest.max())
    return (dataclasses.replace(scenario, **taken), taken) if taken else (scenario, {})


def _lengths(scenario: Scenario, prompt: float, response: float, sequence: float) -> tuple[float, float]:
    """Prompt and response tokens; what isn't logged is the scenario's, and a logged sum is kept to."""
    prompt, response, sequence = (each if each >= 1 else math.nan for each in (prompt, response, sequence))
    if math.isnan(response):
        known = scenario.mean_prompt_tokens if math.isnan(prompt) else prompt
        response = sequence - known if sequence > known else scenario.mean_response_tokens
    if math.isnan(prompt):
        prompt = sequence - response if sequence >= response else scenario.mean_prompt_tokens
    return prompt, min(response, scenario.max_response_tokens)


def fitted(scenario: Scenario, means: dict[str, Mean]) -> tuple[Calibration | None, tuple[str, ...]]:
    """The trainer's speed from train_s, the publication from sync_s, and the generator's from what it makes the trainer wait.

    A trainer that hardly waits says nothing of the generator's speed, unless the scenario would have it wait: then the time of
    a rollout tells, where logged. Returns None where the log has none of them, and what could not be fitted.
    """
    wanted: dict[str, calibration.Measured] = {}
    fit: list[str] = []
    open_: list[str] = []
    for name, knob in (("train_s", "mfu"), ("sync_s", "weight_sync_s")):
        if name in means and means[name].mean > LEAST_S:
            # A log has the time per step, a scenario that of one publication.
            publications = scenario.steps_per_publication if name == "sync_s" else 1
            wanted[name] = _as_measured(means[name], publications)
            fit.append(knob)
        else:
            open_.append(f"{knob}: {name} is not in the log")
    waits = means.get("trainer_wait_ratio")
    if waits is not None and (waits.mean > WAITS or solve(scenario).trainer_wait_ratio > WAITS):
        # Of the whole step, pauses included, as the solvers count.
        share = min(1.0, means["wait_s"].mean / means["step_s"].mean)
        wanted["trainer_wait_ratio"] = calibration.Measured(value=share, spread=max(_sure(waits), LEAST_SPREAD))
        fit.append(_generator_knob(scenario))
    elif "rollout_s" in means and means["rollout_s"].mean > LEAST_S:
        wanted["rollout_s"] = _as_measured(means["rollout_s"])
        fit.append(_generator_knob(scenario))
    else:
        keeps_up = "the trainer does not wait, so the generator is only known to keep up"
        why = keeps_up if waits else "no wait of the trainer is in the log"
        open_.append(f"{_generator_knob(scenario)}: {why}")
    return (calibrate(scenario, wanted, fit=fit) if wanted else None), tuple(open_)


def _generator_knob(scenario: Scenario) -> str:
    """The knob that stands for the generator's speed: with a measured decode curve that is no longer free."""
    return "concurrency" if scenario.decode_curve else "decode_efficiency"


def _sure(mean: Mean) -> float:
    return 0.0 if math.isnan(mean.sd) else mean.sd / math.sqrt(mean.rows)


def _as_measured(mean: Mean, times: int = 1) -> calibration.Measured:
    return calibration.Measured(value=times * mean.mean, spread=max(_sure(mean) / mean.mean, LEAST_SPREAD))


def step_by_step(scenario: Scenario, measured: Measured) -> pd.DataFrame:
    """Measured and predicted times of each steady step, each with that step's own lengths where logged."""
    steady = measured.steady
    if len(steady) > MOST_ROWS:
        steady = steady.iloc[:: -(-len(steady) // MOST_ROWS)]
    rows = []
    columns = [steady[name] if name in steady else pd.Series(math.nan, index=steady.index) for name in LENGTHS]
    for step, prompt, response, sequence in zip(steady.index, *columns, strict=True):
        prompt_tokens, response_tokens = _lengths(scenario, float(prompt), float(response), float(sequence))
        at = dataclasses.replace(scenario, mean_prompt_tokens=prompt_tokens, mean_response_tokens=response_tokens)
        point = solve(at)
        row = {"step": step}
        for name in ("step_s", "wait_s", "train_s", "sync_s", "trainer_wait_ratio"):
            row[name] = float(steady[name][step]) if name in steady else math.nan
            row[f"predicted_{name}"] = float(getattr(point, name))
        rows.append(row)
    return pd.DataFrame(rows).set_index("step")
