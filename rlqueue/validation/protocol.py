"""The protocol: fit on the rows that calibrate, predict every other row, then look at what was published.

The order is the code's: ``fitted`` is given the calibrating rows alone, ``predicted`` no measurement at all, and only
``compared`` brings the two together.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median

from rlqueue.calibration import Calibration, calibrate_rows
from rlqueue.measures import MEASURES, Outcome, outcome, read
from rlqueue.provenance import Quantity
from rlqueue.scenario import Scenario
from rlqueue.validation.cases import Case, Fit, Ranking, Row

SEED = 1
"""Of the predictions; a calibration has another one's draws, so that no luck of the draw is carried over."""

TOLD_APART = 0.001
"""The model has two rows in an order if they differ by more than this: all rows meet the same prompts, so less is rounding."""

STEP_TIMES = ("step_s", "run_h", "trained_samples_per_s", "trained_tokens_per_s", "trained_tokens_per_s_per_gpu")
"""Measures of the time of a step, the first of which that a row has counts."""

AIMS = {
    "median_error_step": 0.15,
    "median_error_speedup": 0.15,
    "median_error_wait_points": 0.08,
    "rankings_right": 0.90,
}
"""How good a prediction is meant to be; ``rankings_right`` at least, the errors at most."""

PREDICTED, CALIBRATED, BESIDE, LEFT_OUT = "predicted", "calibrates", "beside", "left out"
ROLES = {
    PREDICTED: "blind: nothing of this row was seen",
    CALIBRATED: "fitted to: no test of the model",
    BESIDE: "another figure of a row that calibrates: shown, not counted",
    LEFT_OUT: "shown, not counted; the case says why",
}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One published figure beside the model's. ``error``: predicted / published - 1, for a share predicted - published."""

    case: str
    row: str
    title: str
    role: str
    quantity: str
    unit: str
    published: float
    kind: str
    predicted: float
    error: float
    note: str


@dataclass(frozen=True, kw_only=True)
class RankedPair:
    """Two rows in their published order, and whether the model has them so. ``counts``: at least one was predicted."""

    case: str
    quantity: str
    lower: str
    higher: str
    right: bool
    counts: bool


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One case with its calibrations, comparisons and pairs; ``not_compared``: what this solver cannot say, in words."""

    case: Case
    solver: str
    calibrations: Sequence[Calibration]
    comparisons: Sequence[Comparison]
    pairs: Sequence[RankedPair]
    not_compared: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Validation:
    """All cases. Errors are absolute values; medians are over predicted rows, None where there is no such row."""

    results: Sequence[CaseResult]

    def errors(self, quantity: str) -> list[float]:
        """Absolute errors of one quantity, predicted rows only."""
        return [
            abs(each.error) for result in self.results for each in result.comparisons
            if each.role == PREDICTED and each.quantity == quantity
        ]  # fmt: skip

    @property
    def step_errors(self) -> list[float]:
        """Relative errors of the step time; where a row has only another measure of it, of the step time that stands for."""
        errors = []
        for result in self.results:
            said = [each for each in result.comparisons if each.role == PREDICTED and each.quantity in STEP_TIMES]
            for row in dict.fromkeys(each.row for each in said):
                first = min(
                    (each for each in said if each.row == row), key=lambda each: STEP_TIMES.index(each.quantity)
                )
                inverse = MEASURES[first.quantity].better == "more"
                errors.append(abs(1.0 / (1.0 + first.error) - 1.0) if inverse else abs(first.error))
        return errors

    @property
    def predicted_rows(self) -> int:
        """Rows of which nothing was seen and something is compared, a figure or a rank."""
        rows = {
            (each.case, each.row) for result in self.results for each in result.comparisons
            if each.role == PREDICTED and each.quantity != "speedup_ratio"
        }  # fmt: skip
        for result in self.results:
            seen = result.case.calibrating | {row.key for row in result.case.rows if row.left_out}
            ranked = {key for pair in result.pairs for key in (pair.lower, pair.higher)}
            rows |= {(result.case.name, key) for key in ranked - seen}
        return len(rows)

    @property
    def counted_pairs(self) -> list[RankedPair]:
        """Pairs of rows that test the model."""
        return [pair for result in self.results for pair in result.pairs if pair.counts]

    def summary(self) -> dict[str, float | int | None]:
        """The figures of ``rlqueue validate --json``; shares are in [0, 1], wait points too (8 points = 0.08)."""
        pairs = self.counted_pairs
        return {
            "cases": len(self.results),
            "predicted_rows": self.predicted_rows,
            "median_error_step": _median(self.step_errors),
            "median_error_wait_points": _median(self.errors("trainer_wait_ratio")),
            "median_error_speedup": _median(self.errors("speedup_ratio")),
            "median_error_staleness_versions": _median(self._absolute("staleness_versions")),
            "median_error_rollout": _median(self.errors("rollout_s")),
            "ranked_pairs": len(pairs),
            "rankings_right": sum(pair.right for pair in pairs) / len(pairs) if pairs else None,
        }

    def missed(self) -> list[str]:
        """Figures of the summary that miss their aim."""
        found = self.summary()
        return [
            name for name, aim in AIMS.items()
            if found[name] is not None and (found[name] < aim if name == "rankings_right" else found[name] > aim)
        ]  # fmt: skip

    def _absolute(self, quantity: str) -> list[float]:
        return [
            abs(each.predicted - each.published) for result in self.results for each in result.comparisons
            if each.role == PREDICTED and each.quantity == quantity
        ]  # fmt: skip


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def validate(cases: Sequence[Case], *, solver: str | None = None) -> Iterator[CaseResult]:
    """Every case by the protocol, one by one as they are ready.

    Args:
        cases: what to validate on. solver: in place of the one each case names.
    """
    for case in cases:
        yield result(case, solver or case.solver)


def result(case: Case, solver: str) -> CaseResult:
    """One case by the protocol. Raises ValueError, with the case's name, where a row cannot be run or fitted to."""
    try:
        return _result(case, solver)
    except ValueError as error:
        raise ValueError(f"case {case.name}: {error}") from error


def _result(case: Case, solver: str) -> CaseResult:
    calibrations = [fitted(fit, _calibrating(case, fit), solver) for fit in case.fits]
    outcomes = predicted(_scenarios(case, calibrations), _with_percentiles(case), solver)
    return CaseResult(
        case=case, solver=solver, calibrations=calibrations, comparisons=tuple(_compared(case, outcomes)),
        pairs=tuple(pair for ranking in case.rankings for pair in _ranked(case, ranking, outcomes)),
        not_compared=tuple(_not_compared(case, outcomes)),
    )  # fmt: skip


def _calibrating(case: Case, fit: Fit) -> list[tuple[Scenario, Mapping[str, float]]]:
    """The calibrating rows, each with the measures that are fitted to and no other."""
    rows = {row.key: row for row in case.rows}
    return [
        (rows[key].scenario, {name: float(rows[key].measured[name].value) for name in names})
        for key, names in fit.rows.items()
    ]


def fitted(fit: Fit, rows: Sequence[tuple[Scenario, Mapping[str, float]]], solver: str) -> Calibration:
    """The calibration of one fit from its rows alone."""
    return calibrate_rows(rows, fit=fit.knobs, priors=fit.priors, solver=solver)


def _scenarios(case: Case, calibrations: Sequence[Calibration]) -> dict[str, Scenario]:
    scenarios = {row.key: row.scenario for row in case.rows}
    for fit, found in zip(case.fits, calibrations, strict=True):
        for key in fit.holds_for:
            factors = fit.factors.get(key, {})
            values = {
                knob: value * factors[knob].value if knob in factors else value for knob, value in found.values.items()
            }
            scenarios[key] = dataclasses.replace(scenarios[key], **values)
    return scenarios


def _with_percentiles(case: Case) -> set[str]:
    """Rows whose comparison or rank needs each rollout."""
    asked = {(row.key, name) for row in case.rows for name in row.measured}
    asked |= {(key, ranking.quantity) for ranking in case.rankings for key in ranking.rows}
    asked |= {(key, each.quantity) for each in case.speedups for key in (each.of, each.over)}
    return {key for key, name in asked if MEASURES[name].simulated_only}


def predicted(scenarios: Mapping[str, Scenario], whole: set[str], solver: str) -> dict[str, Outcome]:
    """How each scenario runs; nothing that was measured is at hand here. ValueError: a run that never completes a step."""
    with ThreadPoolExecutor() as pool:  # the compiled loop lets other threads run
        futures = {
            key: pool.submit(outcome, scenario, solver, seed=SEED, rollouts=key in whole)
            for key, scenario in scenarios.items()
        }
    outcomes = {}
    for key, future in futures.items():
        try:
            outcomes[key] = future.result()
        except ValueError as error:
            raise ValueError(f"row {key!r}: {error}") from error
    return outcomes


def _compared(case: Case, outcomes: Mapping[str, Outcome]) -> Iterator[Comparison]:
    rows = {row.key: row for row in case.rows}
    for row in case.rows:
        for name, fact in row.measured.items():
            if _unseen(name, outcomes[row.key]):
                continue
            yield _comparison(case, row, name, fact, read(outcomes[row.key], name))
    for each in case.speedups:
        if _unseen(each.quantity, outcomes[each.of]):
            continue
        ratio = read(outcomes[each.over], each.quantity) / read(outcomes[each.of], each.quantity)
        if MEASURES[each.quantity].better == "more":
            ratio = 1.0 / ratio
        of, over = rows[each.of], rows[each.over]
        row = dataclasses.replace(of, title=f"{of.title} over {over.title}", left_out=of.left_out or over.left_out)
        yield _comparison(case, row, "speedup_ratio", each.published, ratio)


def _unseen(quantity: str, found: Outcome) -> bool:
    """Whether only a simulation could say it, and there was none."""
    return MEASURES[quantity].simulated_only and found.run is None


def _not_compared(case: Case, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    asked = [(row.key, name) for row in case.rows for name in row.measured]
    asked += [(each.of, each.quantity) for each in case.speedups]
    asked += [(key, each.quantity) for each in case.rankings for key in each.rows]
    for key, name in dict.fromkeys(asked):
        if _unseen(name, outcomes[key]):
            yield f"{key}: {name} is simulated only, and this is the closed form"


def _comparison(case: Case, row: Row, name: str, fact: Quantity, value: float) -> Comparison:
    published = float(fact.value)
    share = name in MEASURES and MEASURES[name].share
    error = value - published if share or published == 0 else value / published - 1.0
    return Comparison(
        case=case.name, row=row.key, title=row.title, role=_role(case, row, name), quantity=name,
        unit=MEASURES[name].unit if name in MEASURES else "1", published=published, kind=fact.kind, predicted=value,
        error=error, note=fact.note,
    )  # fmt: skip


def _role(case: Case, row: Row, name: str) -> str:
    if row.left_out:
        return LEFT_OUT
    if row.key not in case.calibrating:
        return PREDICTED
    fits = [fit.rows[row.key] for fit in case.fits if row.key in fit.rows]
    return CALIBRATED if any(name in names for names in fits) else BESIDE


def _ranked(case: Case, ranking: Ranking, outcomes: Mapping[str, Outcome]) -> Iterator[RankedPair]:
    """Each pair that the source tells apart: a pair within ``ties_within`` of each other is no ranking."""
    rows = {row.key: row for row in case.rows}
    if any(_unseen(ranking.quantity, outcomes[key]) for key in ranking.rows):
        return
    for i, first in enumerate(ranking.rows):
        for second in ranking.rows[i + 1 :]:
            lower, higher = first, second
            if not ranking.in_order:
                a, b = (float(rows[key].measured[ranking.quantity].value) for key in (first, second))
                if abs(a - b) <= case.ties_within * max(a, b) or a == b:
                    continue
                lower, higher = (first, second) if a < b else (second, first)
            below, above = (read(outcomes[key], ranking.quantity) for key in (lower, higher))
            yield RankedPair(
                case=case.name, quantity=ranking.quantity, lower=lower, higher=higher,
                right=above - below > TOLD_APART * above,
                counts=any(key not in case.calibrating and not rows[key].left_out for key in (lower, higher)),
            )  # fmt: skip
