"""The diagnosis of a run: from a log and a configuration together, or as much as either alone can tell."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rlqueue.advice import Move, moves, verdict
from rlqueue.calibration import Calibration
from rlqueue.cost import Bill, cost
from rlqueue.diagnosis.fit import fitted, step_by_step, with_lengths
from rlqueue.logs import Mean, Measured
from rlqueue.logs.waiting import Waiting
from rlqueue.measures import MEASURES
from rlqueue.operating_point import OperatingPoint
from rlqueue.paste import TARGETS, lines
from rlqueue.plain import plain
from rlqueue.provenance import table
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario

COMPARED = (
    "step_s", "wait_s", "train_s", "sync_s", "trainer_wait_ratio", "trained_tokens_per_s", "staleness_versions", "rollout_s",
    "group_s", "in_flight_rollouts", "mfu_computing",
)  # fmt: skip
MOST_OVERLAPPING = 500.0
"""In no run do so many steps end during one rollout; and the closed form counts them one by one."""
STEPS_OF_A_RUN = 1000
"""Hours are of so many steps where the scenario doesn't say how many its run has."""
FAR = 0.1
"""A fitted time or share that is off by more says that the scenario cannot be this run."""
OTHER_BATCH = 1.5
"""A run that trains so many times the tokens logged, or as many times the FLOPs, has another batch."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One quantity, measured and predicted. ``fitted``: the prediction was made to agree, so that agreeing shows nothing.

    ``error``: predicted over measured less one; for a share the difference.
    """

    quantity: str
    unit: str
    measured: float
    sd: float
    rows: int
    predicted: float
    error: float
    fitted: bool


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a move would buy: the move, differences to now, and lines to paste."""

    move: Move
    wait_change: float
    tokens_per_s_change: float
    usd_per_mtok_change: float
    hours: float
    hours_change: float
    paste: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What is known of a run.

    Attributes:
        measured, scenario: what was given; the scenario is the calibrated one where there is a log.
        waiting: which side waits by the log, None without one.
        calibration: the fit, None without a log or a scenario. taken: lengths taken over from the log.
        point, bill: of the scenario by closed form, None without one.
        comparisons: predicted beside measured. steps: the same for each steady step.
        gains: moves, best first. verdict: what the scenario says; of a log alone, what that says. missing: what would tell more.
    """

    measured: Measured | None
    scenario: Scenario | None
    waiting: Waiting | None
    calibration: Calibration | None
    taken: dict[str, float]
    point: OperatingPoint | None
    bill: Bill | None
    comparisons: tuple[Comparison, ...]
    steps: pd.DataFrame | None
    gains: tuple[Gain, ...]
    verdict: str
    missing: tuple[str, ...]


def diagnose(measured: Measured | None, scenario: Scenario | None = None, *, framework: str | None = None) -> Diagnosis:
    """Which side waits, what binds, and what the best moves would buy; with one of the two only as much as it can tell.

    ``framework``: whose lines the moves are written in; by default the log's, and a scenario file's where there is none.
    """
    framework = framework or (measured.framework if measured else None)
    if measured is None and scenario is None:
        raise ValueError("diagnose needs a log, a configuration, or both")
    if scenario is None:
        return _log_alone(measured)
    if measured is None:
        missing = ("a log of the run: without one both sides' speeds are the scenario's",)
        return _made(scenario, framework, missing=missing)
    means = measured.means()
    scenario, taken = with_lengths(scenario, measured, means)
    fit, open_ = fitted(scenario, means)
    if fit is not None:
        scenario = fit.scenario
    missing = [*open_, *(f"{name}: {where}" for name, where in measured.missing.items())]
    return _made(scenario, framework, measured=measured, means=means, fit=fit, taken=taken, missing=tuple(missing))


def _log_alone(measured: Measured) -> Diagnosis:
    waiting = measured.waiting()
    means = measured.means()
    said = [waiting.words]
    ratio = means["trainer_wait_ratio"].mean if "trainer_wait_ratio" in means else math.nan
    if 0 < ratio < 1:
        said.append(
            f"While it computes the trainer takes {1 / (1 - ratio):.2f} times what the generator delivers: so much more "
            f"generation (or so much less training) would end the wait: a step would take {1 - ratio:.0%} of what it takes now."
        )
    return Diagnosis(
        measured=measured, scenario=None, waiting=waiting, calibration=None, taken={}, point=None, bill=None, comparisons=(),
        steps=None, gains=(), verdict=" ".join(said),
        missing=("a configuration: without GPUs, batch and limits neither what binds nor what a move buys can be told",
                 *(f"{name}: {where}" for name, where in measured.missing.items())),
    )  # fmt: skip


def _made(
    scenario: Scenario,
    framework: str | None,
    *,
    measured: Measured | None = None,
    means: dict[str, Mean] | None = None,
    fit: Calibration | None = None,
    taken: dict[str, float] | None = None,
    missing: tuple[str, ...] = (),
) -> Diagnosis:
    point = solve(scenario)
    bill = cost(scenario, point)
    overlapping = _steps_of_the_longest(scenario, point)
    found = moves(scenario, point) if overlapping <= MOST_OVERLAPPING else []
    fits = {each.quantity for each in fit.residuals} if fit else set()
    if {"trainer_wait_ratio", "train_s"} <= fits:
        fits |= {"step_s", "wait_s"}  # they follow from those two
    there = [name for name in COMPARED if means and name in means]
    comparisons = tuple(_compared(name, means[name], point, fitted=name in fits) for name in there)
    waiting = measured.waiting() if measured else None
    said = [_doubt(comparisons, fit), verdict(point, found, bill)]
    if overlapping > MOST_OVERLAPPING:
        longest = f"By its configuration the longest response lasts {overlapping:,.0f} steps"
        said = [f"{longest}: log and configuration are not of one run."]
    return Diagnosis(
        measured=measured, scenario=scenario, waiting=waiting, calibration=fit, taken=taken or {}, point=point, bill=bill,
        comparisons=comparisons, steps=step_by_step(scenario, measured) if measured and overlapping <= MOST_OVERLAPPING else None,
        gains=tuple(_gain(scenario, point, each, framework) for each in found), verdict=" ".join(filter(None, said)),
        missing=missing,
    )  # fmt: skip


def _steps_of_the_longest(scenario: Scenario, point: OperatingPoint) -> float:
    """Steps that end while the longest response is generated."""
    token_s = point.rollout_s * point.decoding_ratio / scenario.mean_response_tokens
    return scenario.max_response_tokens * token_s / point.step_s


def _compared(name: str, mean: Mean, point: OperatingPoint, *, fitted: bool) -> Comparison:
    predicted = float(getattr(point, name))
    measure = MEASURES[name]
    error = predicted - mean.mean if measure.share else predicted / mean.mean - 1 if mean.mean else math.nan
    return Comparison(quantity=name, unit=measure.unit, measured=mean.mean, sd=mean.sd, rows=mean.rows, predicted=predicted,
                      error=error, fitted=fitted)  # fmt: skip


def _doubt(comparisons: tuple[Comparison, ...], fit: Calibration | None) -> str:
    """Said where the scenario could not be brought to the run, so that nobody believes its moves."""
    found = {each.quantity: each for each in comparisons}
    far = [
        found[name]
        for name in ("trainer_wait_ratio", "train_s", "step_s")
        if name in found and abs(found[name].error) > FAR
    ]
    if far:
        apart = [f"{each.quantity} {each.predicted:.3g} where {each.measured:.3g} was measured" for each in far]
        limits = [f"{each.knob}={each.value:g}" for each in fit.knobs if each.at_limit] if fit else []
        held = f" ({', '.join(limits)} stands at its limit)" if limits else ""
        return (
            f"The configuration does not explain the log: fitted as far as it goes{held} it gives {', '.join(apart)}. "
            "Take the moves as rough."
        )
    tokens = found.get("trained_tokens_per_s")
    if tokens and tokens.measured > 0 and not 1 / OTHER_BATCH < tokens.predicted / tokens.measured < OTHER_BATCH:
        return (
            f"By its configuration the run trains {tokens.predicted / tokens.measured:.3g} times the tokens that the log counts: "
            "batch or lengths are not those of this run."
        )
    mfu = found.get("mfu_computing")
    if mfu and mfu.measured > 0 and not 1 / OTHER_BATCH < mfu.predicted / mfu.measured < OTHER_BATCH:
        return (
            f"To train as fast as the log says the configuration needs an MFU of {mfu.predicted:.0%} where the log has "
            f"{mfu.measured:.0%}: batch, lengths, LLM or the trainer's GPUs are not those of this run."
        )
    return ""


def _gain(scenario: Scenario, point: OperatingPoint, move: Move, framework: str | None) -> Gain:
    steps = run_steps(scenario)
    hours = move.point.step_s * steps / 3600
    return Gain(
        move=move, wait_change=move.wait_change, usd_per_mtok_change=move.usd_per_mtok_change, hours=hours,
        tokens_per_s_change=move.point.trained_tokens_per_s - point.trained_tokens_per_s,
        hours_change=hours - point.step_s * steps / 3600, paste=_paste(scenario, move.scenario, framework),
    )  # fmt: skip


def run_steps(scenario: Scenario) -> int:
    return scenario.training_steps if scenario.training_steps > 1 else STEPS_OF_A_RUN


def _paste(before: Scenario, after: Scenario, framework: str | None) -> tuple[str, ...]:
    """The keys that the move changes, in the framework's words where it has lines of its own, else as a scenario file's."""
    if framework in TARGETS:
        old = {line.key: line.value for line in lines(before, framework)}
        new = [line for line in lines(after, framework) if old.get(line.key) != line.value]
        shell = (
            next(row["format"] for row in table("frameworks/launches") if framework in row["framework"].split())
            == "shell"
        )
        return tuple(
            f"--{line.key} {line.value}" if shell and "." not in line.key else f"{line.key}={line.value}"
            for line in new
        )
    names = ("trainer_gpus", "generator_gpus", "concurrency", "max_staleness")
    return tuple(f"{name}={getattr(after, name):g}" for name in names if getattr(after, name) != getattr(before, name))


def as_dict(found: Diagnosis) -> dict[str, Any]:
    """Plain values for JSON, which knows neither NaN nor infinity: None stands for them."""
    point = found.point
    return plain({
        "verdict": found.verdict,
        "waiting": found.waiting and vars(found.waiting),
        "binding_constraint": point and point.binding_constraint,
        "next_constraint": point and point.next_constraint,
        "scenario": found.scenario and found.scenario.name,
        "taken_from_log": found.taken,
        "calibration": found.calibration and found.calibration.as_dict(),
        "compared": [vars(each) for each in found.comparisons],
        "moves": [
            {"move": each.move.words, "knob": each.move.knob, "wait_change": each.wait_change,
             "trainer_wait_ratio": each.move.point.trainer_wait_ratio, "tokens_per_s_change": each.tokens_per_s_change,
             "usd_per_mtok": each.move.bill.usd_per_mtok, "usd_per_mtok_change": each.usd_per_mtok_change,
             "hours": each.hours, "hours_change": each.hours_change, "hours_steps": run_steps(found.scenario),
             "paste": list(each.paste)}
            for each in found.gains
        ],
        "steps": None if found.steps is None else found.steps.reset_index().to_dict("records"),
        "missing": list(found.missing),
    })  # fmt: skip
