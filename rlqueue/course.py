"""A whole run by closed form: how it stands at moments of its way, where its bottleneck flips, what it costs in all.

At each moment the pool of prompts (in the mean) says what is filtered, the drift says how long answers are, and the closed form
is solved as if they stayed so: a run changes slowly against the time of its rollouts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rlqueue import drift
from rlqueue.at_step import moment, solve_rates, without_drift, without_learning
from rlqueue.cost import PARTS, cost
from rlqueue.operating_point import OperatingPoint
from rlqueue.pool import Pool, Reading, Rules, after, opened, read
from rlqueue.queueing import solve_record
from rlqueue.rates import record_of, zero_advantage_fraction
from rlqueue.scenario import Scenario
from rlqueue.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK
from rlqueue.whole_run import WholeRun, summed

POINTS = 40
"""Moments at which a run is solved, unless it has fewer steps."""

TEACHES = 1e-3
"""A run whose gate accepts less than this share of the finished groups gets nowhere: there is nothing left to learn."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """A run along its way.

    Attributes:
        scenario: the run. table: one row per moment. Columns:

            step; hours: on the clock when that step begins.
            solve_rate: mean over the pool; tried_solve_rate: over finished groups (NaN without solve rates).
            informative_fraction, all_solved_fraction, none_solved_fraction: of finished groups; filtered_fraction: dropped by
            the gate; trained_informative_fraction: of trained groups; signal: mean 4 (k/n)(1 - k/n) of trained groups;
            idle_prompts_fraction: left alone by the sampler.
            mean_response_tokens, tool_calls, prompt_tokens, truncated_fraction.
            The fields of OperatingPoint, and of Bill the $/Mtok, its parts and usd_per_step.
            usd: spent when that step begins.
        pools: the pool of prompts at each row; none without solve rates.
        stalled_at: step by which nearly every group is filtered, where the table ends before it; None where it never is. 0
            where that is so from the first: the one row then says what the first step would take.
    """

    scenario: Scenario
    table: pd.DataFrame
    pools: tuple[Pool, ...]
    stalled_at: int | None

    @cached_property
    def flips(self) -> pd.DataFrame:
        """Where the binding constraint changes: first step with the new one, the old, the new; to the step between rows."""
        rows = []
        steps, names = self.table["step"].to_numpy(), list(self.table["binding_constraint"])
        for i in range(1, len(names)):
            was, low = names[i - 1], int(steps[i - 1])
            while was != names[i]:  # there may be more than one between two rows
                high, new = int(steps[i]), names[i]
                while high - low > 1:
                    middle = (low + high) // 2
                    found = self._constraint(middle)
                    low, high, new = (low, middle, found) if found != was else (middle, high, new)
                rows.append({"step": high, "was": was, "becomes": new})
                was, low = new, high
        return pd.DataFrame(rows, columns=["step", "was", "becomes"])

    def _constraint(self, step: float) -> str:
        filtered = float(np.interp(step, self.table["step"], self.table["filtered_fraction"]))
        row = drift.at(self.scenario.drift_start, self.scenario.drift, np.array([step]))[0]
        now = moment(self.scenario, row)
        return solve_record(now, record_of(now, filtered)).binding_constraint

    def reaches(self, solve_rate: float) -> dict[str, float] | None:
        """Step, hours and dollars at which the pool's mean solve rate gets to a target; None where it never does."""
        rates = self.table["solve_rate"].to_numpy()
        if not np.any(rates >= solve_rate):
            return None
        end = int(np.argmax(rates >= solve_rate))
        if end == 0:
            return {"steps": 0.0, "hours": 0.0, "usd": 0.0}
        part = (solve_rate - rates[end - 1]) / (rates[end] - rates[end - 1])
        between = {name: self.table[name].to_numpy()[end - 1 : end + 1] for name in ("step", "hours", "usd")}
        return {
            name: float(ends[0] + part * (ends[1] - ends[0]))
            for name, ends in zip(("steps", "hours", "usd"), between.values(), strict=True)
        }


def rules_of(scenario: Scenario) -> Rules:
    """How the scenario treats its pool."""
    s = scenario
    return Rules(
        group_size=s.group_size, groups=float(s.prompts_per_step), in_flight_groups=s.concurrency / s.group_size,
        prompts=s.pool_prompts, gate=s.gate, sampler=s.sampler, band_low=s.band_low, band_high=s.band_high,
        retire_above=s.retire_above, speed=s.learning_logit_per_step, transfer=s.learning_transfer,
        staleness_half=s.learning_staleness_half,
    )  # fmt: skip


def course(scenario: Scenario, points: int = POINTS) -> Course:
    """The scenario's whole run of ``training_steps`` by closed form, at so many moments (at most one a step)."""
    if points < 1:
        raise ValueError(f"points={points} must be >= 1")
    count = min(points, scenario.training_steps)
    steps = np.unique(np.linspace(0, scenario.training_steps - 1, count).round())
    law, rules = solve_rates(scenario), rules_of(scenario)
    pool = None if law is None else opened(law, rules)
    rows, pools, stalled_at = [], [], None
    for i, (step, row) in enumerate(zip(steps, drift.at(scenario.drift_start, scenario.drift, steps), strict=True)):
        now = moment(scenario, row)
        seen = _without_solve_rates(scenario) if pool is None else read(pool, rules)
        if pool is not None and scenario.gate == "zero-advantage" and seen.informative < TEACHES:
            stalled_at = int(step)
            if rows:
                break
        point, values = _row(now, seen)
        rows.append({"step": int(step), **values, "truncated_fraction": float(row["truncated_fraction"])})
        if pool is None:
            continue
        pools.append(pool)
        if stalled_at is not None:
            break
        if i + 1 < len(steps):
            pool = after(pool, rules, float(steps[i + 1] - step), point.staleness_versions)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    steps = steps[: len(rows)]
    hours = _before(steps, np.array(columns["step_s"])) / SECONDS_PER_HOUR
    usd = _before(steps, np.array(columns["usd_per_step"]))
    table = pd.DataFrame({"step": columns["step"], "hours": hours} | columns | {"usd": usd})
    return Course(scenario=scenario, table=table, pools=tuple(pools), stalled_at=stalled_at)


def _without_solve_rates(scenario: Scenario) -> Reading:
    lost = zero_advantage_fraction(scenario)
    return Reading(
        solve_rate=np.nan, tried_solve_rate=np.nan, informative=1.0 - lost, all_solved=np.nan, none_solved=np.nan,
        signal=np.nan, idle=0.0,
    )  # fmt: skip


def _row(now: Scenario, seen: Reading) -> tuple[OperatingPoint, dict[str, float | str | None]]:
    dropping = now.gate == "zero-advantage"
    filtered = 1.0 - seen.informative if dropping else 0.0
    trained_informative = 1.0 if dropping else seen.informative
    point = solve_record(now, record_of(now, filtered))
    bill = vars(cost(now, point))
    kept = ("usd_per_step", "usd_per_mtok", *(f"{part}_usd_per_mtok" for part in PARTS), "hosted_usd_per_mtok")
    return point, {
        "solve_rate": seen.solve_rate,
        "tried_solve_rate": seen.tried_solve_rate,
        "informative_fraction": seen.informative,
        "all_solved_fraction": seen.all_solved,
        "none_solved_fraction": seen.none_solved,
        "filtered_fraction": filtered,
        "trained_informative_fraction": trained_informative,
        "signal": seen.signal / max(seen.informative, 1e-300) if dropping else seen.signal,
        "idle_prompts_fraction": seen.idle,
        "mean_response_tokens": now.mean_response_tokens,
        "tool_calls": now.tool_calls,
        "prompt_tokens": now.mean_prompt_tokens,
        **{name: value for name, value in vars(point).items() if name != "kind"},
        "informative_ratio": trained_informative,
        **{name: bill[name] for name in kept},
        "usd_per_informative_mtok": bill["usd_per_mtok"] / trained_informative if trained_informative > 0 else np.inf,
    }


def _before(steps: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum over all whole steps before each of ``steps`` of a value that is linear between them."""
    count = np.diff(steps)
    sums = 0.5 * count * (values[:-1] + values[1:]) - 0.5 * (values[1:] - values[:-1])
    return np.concatenate(([0.0], np.cumsum(sums)))


def _sum(steps: np.ndarray, values: np.ndarray) -> float:
    """Sum over all whole steps from the first to the last."""
    return float(_before(steps, values)[-1] + values[-1])


def whole_run(scenario: Scenario, points: int = POINTS) -> WholeRun:
    """What the scenario's ``training_steps`` take and cost, by closed form along the way."""
    return totals(course(scenario, points))


def totals(way: Course) -> WholeRun:
    """The sums over a course; of one that gets nowhere from the first, zeros."""
    s, table = way.scenario, way.table
    if way.stalled_at == 0:
        return summed(
            s, steps=0, hours=0.0, parts_usd=dict.fromkeys(PARTS, 0.0), prompt_tokens=0.0, trained_tokens=0.0,
            informative_tokens=0.0, solve_rates=table["solve_rate"].to_numpy()[[0, 0]],
        )  # fmt: skip
    steps = table["step"].to_numpy(float)
    prompt = s.samples_per_step * table["prompt_tokens"].to_numpy()
    tokens = prompt + s.samples_per_step * table["mean_response_tokens"].to_numpy()
    parts = {part: _sum(steps, table[f"{part}_usd_per_mtok"].to_numpy() * tokens) / TOKENS_PER_MTOK for part in PARTS}
    return summed(
        s, steps=int(steps[-1]) + 1, hours=_sum(steps, table["step_s"].to_numpy()) / SECONDS_PER_HOUR, parts_usd=parts,
        prompt_tokens=_sum(steps, prompt), trained_tokens=_sum(steps, tokens),
        informative_tokens=_sum(steps, tokens * table["trained_informative_fraction"].to_numpy()),
        solve_rates=table["solve_rate"].to_numpy()[[0, -1]],
    )  # fmt: skip


def with_and_without(scenario: Scenario, points: int = POINTS) -> pd.DataFrame:
    """The whole run as it is, without drift, without learning, and with neither: one row each, the fields of WholeRun."""
    runs = {
        "as it is": scenario,
        "no drift": without_drift(scenario),
        "no learning": without_learning(scenario),
        "neither": without_learning(without_drift(scenario)),
    }
    return pd.DataFrame([{"run": name} | asdict(whole_run(run, points)) for name, run in runs.items()])


def compare(strategies: Mapping[str, Scenario], solve_rate: float, points: int = POINTS) -> pd.DataFrame:
    """Strategies on the way to a mean solve rate of the pool: steps, hours and dollars each takes, NaN where it never gets there.

    Args:
        strategies: scenarios by what they are called. solve_rate: the target, in (0, 1).

    Returns:
        One row per strategy: strategy, reached, steps, hours, usd; and solve_rate_end and usd_end after all its steps.
    """
    rows = []
    for name, scenario in strategies.items():
        way = course(scenario, points)
        found = way.reaches(solve_rate)
        whole = totals(way)
        gone = {"steps": np.nan, "hours": np.nan, "usd": np.nan} if found is None else found
        ends = {"solve_rate_end": whole.solve_rate_end, "usd_end": whole.usd}
        rows.append({"strategy": name, "reached": found is not None} | gone | ends)
    return pd.DataFrame(rows)
