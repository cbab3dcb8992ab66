"""Least squares over the logarithms of knobs, by scipy; what the measurements leave open stays open."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlqueue.calibration.found import MISSED, Calibration, FittedKnob, Prior, Residual
from rlqueue.calibration.targets import Target
from rlqueue.measures import MEASURES, Outcome, knob_fields, outcome, read
from rlqueue.scenario import Scenario

STEP = {"closed form": 1e-4, "simulated": 0.02}
"""Half-width of the difference quotients, in the logarithm of a knob: a simulated answer moves in jumps."""

UNKNOWN = 10.0
"""A spread of the logarithm above this (a factor of 22,000) is no knowledge: it is called infinite."""

UNIT_START = 0.01
"""Where a knob begins that is 0 in the scenario, in its own unit: a logarithm needs a beginning."""

MET = 0.5
"""Half the sum of squares, in spreads, below which the measurements are met well enough to stay where one is."""

ELSEWHERE = math.log(8.0)
"""How far from the start a fit begins again that feels nothing there."""

LEASH = 1e-3
"""Pull towards the beginning, in spreads per unit of a logarithm: where nothing is felt a knob stays, where something is it
moves the answer by less than a millionth."""

RANGE_STEP = 0.1
"""Half-width of the difference quotients of simulated answers from which ranges come: wide enough to drown their jumps."""

MOST_ROUNDS = {"closed form": 30, "simulated": 8}

CORRECTIONS = 3
"""Rounds in which the closed form is fitted again to targets moved by what it and the simulation differ in."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Least squares over the logarithms of knobs."""

    scenarios: Sequence[Scenario]
    targets: Sequence[Sequence[Target]]
    names: Sequence[str]
    solver: str
    priors: Mapping[str, Prior]

    def solved(self) -> Calibration:
        """The fit from where the scenario stands; from elsewhere too where nothing there moves an answer that is off."""
        low, high = self._limits()
        begin = self._start()
        x, off = self._from(begin, low, high)
        spreads = self._spreads(self._jacobian(x, low, high), off)
        if np.isinf(spreads).any() and off @ off > 2.0 * MET:
            flat = np.where(np.isinf(spreads), ELSEWHERE, 0.0)
            others = [self._from(begin + shift * flat, low, high) for shift in (-2.0, -1.0, 1.0, 2.0)]
            x, off = min([(x, off), *others], key=lambda each: each[1] @ each[1])
            spreads = self._spreads(self._jacobian(x, low, high), off)
        knobs = tuple(self._knobs(x, spreads, low, high))
        values = {each.knob: each.value for each in knobs}
        scenarios = tuple(dataclasses.replace(each, **values) for each in self.scenarios)
        return Calibration(
            scenario=scenarios[0], scenarios=scenarios, solver=self.solver, knobs=knobs,
            residuals=tuple(self.residuals(scenarios)),
        )  # fmt: skip

    def with_ranges(self, values: Mapping[str, float]) -> tuple[FittedKnob, ...]:
        """The knobs at these values, with ranges from this solver's own slopes: the other's may be steeper."""
        low, high = self._limits()
        x = np.clip(np.log([values[name] for name in self.names]), low, high)
        spreads = self._spreads(self._jacobian(x, low, high, RANGE_STEP), self._off(x))
        return tuple(self._knobs(x, spreads, low, high))

    def feels(self, values: Mapping[str, float]) -> bool:
        """Whether every knob moves some answer, alone if not against the others."""
        low, high = self._limits()
        x = np.clip(np.log([values[name] for name in self.names]), low, high)
        return bool((np.linalg.norm(self._jacobian(x, low, high), axis=0) > 1.0 / UNKNOWN).all())

    def _from(self, begin: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The fit from one beginning: where it ends, and what is off there, in spreads."""
        from scipy.optimize import least_squares

        begin = np.clip(begin, low, high)
        inside = begin + 1e-9 * np.where(begin <= low, 1.0, np.where(begin >= high, -1.0, 0.0))
        leash = LEASH * np.eye(begin.size)
        found = least_squares(
            lambda x: np.concatenate([self._off(x), LEASH * (x - begin)]), inside,
            jac=lambda x: np.vstack([self._jacobian(x, low, high), leash]), bounds=(low, high),
            max_nfev=MOST_ROUNDS[self.solver], xtol=1e-10, ftol=1e-10, gtol=1e-10,
        )  # fmt: skip
        return found.x, found.fun[: -begin.size]

    def _start(self) -> np.ndarray:
        values = [float(getattr(self.scenarios[0], name)) or UNIT_START for name in self.names]
        return np.log(
            [self.priors[n].value if n in self.priors else v for n, v in zip(self.names, values, strict=True)]
        )

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        known = knob_fields()
        lows, highs = [], []
        for name in self.names:
            meta = known[name].metadata
            least = max(meta["low"] or 0.0, meta["above"] or 0.0)
            lows.append(math.log(least) if least > 0 else -50.0)
            highs.append(math.log(meta["high"]) if meta["high"] else 30.0)
            if name == "mean_response_tokens":  # of all knobs the one that another knob of the same kind bounds
                longest = min(each.max_response_tokens for each in self.scenarios)
                highs[-1] = math.log(longest * (1.0 - 1e-3))
        return np.array(lows), np.array(highs)

    def _off(self, x: np.ndarray) -> np.ndarray:
        values = dict(zip(self.names, np.exp(x), strict=True))
        whole = [name for name in self.names if knob_fields()[name].type is int]
        off = self._off_at({n: math.floor(v) if n in whole else v for n, v in values.items()})
        # A knob of whole numbers: the line between its two neighbours, or the fit would stand on a stair
        for name in whole:
            below = math.floor(values[name])
            if (part := values[name] - below) > 0:
                up = {n: math.floor(v) if n in whole else v for n, v in values.items()} | {name: below + 1}
                off = off + part * (self._off_at(up) - self._off_at(up | {name: below}))
        return off

    def _off_at(self, values: Mapping[str, float]) -> np.ndarray:
        off = []
        for scenario, targets in zip(self.scenarios, self.targets, strict=True):
            changed = dataclasses.replace(scenario, **values)
            if targets:
                found = self.outcome(changed, targets)
                off += [target.off(found) for target in targets]
        off += [math.log(values[name] / prior.value) / prior.spread for name, prior in self.priors.items()
                if name in values]  # fmt: skip
        return np.array(off)

    def outcome(self, scenario: Scenario, targets: Sequence[Target]) -> Outcome:
        rollouts = any(MEASURES[t.quantity].simulated_only for t in targets if t.quantity in MEASURES)
        return outcome(scenario, self.solver, rollouts=rollouts)

    def _jacobian(
        self, x: np.ndarray, low: np.ndarray, high: np.ndarray, half_width: float | None = None
    ) -> np.ndarray:
        columns = []
        for i in range(x.size):
            step = np.zeros_like(x)
            step[i] = max(STEP[self.solver] if half_width is None else half_width, self._stair(self.names[i], x[i]))
            up, down = np.minimum(x + step, high), np.maximum(x - step, low)
            columns.append((self._off(up) - self._off(down)) / (up[i] - down[i]))
        return np.array(columns).T

    def _stair(self, name: str, x: float) -> float:
        """A whole number must move by one to be felt."""
        return math.exp(-x) if knob_fields()[name].type is int else 0.0

    def _spreads(self, jacobian: np.ndarray, off: np.ndarray) -> np.ndarray:
        """Standard deviation of each knob's logarithm, infinite along directions that nothing measures."""
        _, singular, directions = np.linalg.svd(jacobian, full_matrices=True)
        singular = np.concatenate([singular, np.zeros(directions.shape[0] - singular.size)])
        free = off.size - np.count_nonzero(singular > 1.0 / UNKNOWN)
        excess = max(1.0, float(off @ off) / free) if free > 0 else 1.0
        fixed = singular > 1.0 / UNKNOWN
        variance = (directions[fixed] ** 2 / singular[fixed, None] ** 2).sum(axis=0) * excess
        unknown = (directions[~fixed] ** 2).sum(axis=0) > 1e-6
        return np.where(unknown, np.inf, np.sqrt(variance))

    def _knobs(self, x: np.ndarray, spreads: np.ndarray, low: np.ndarray, high: np.ndarray) -> Iterator[FittedKnob]:
        """Each knob with its range, which ends where the knob does."""
        for name, at, spread, lowest, highest in zip(self.names, x, spreads, low, high, strict=True):
            each = knob_fields()[name]
            value = round(math.exp(at)) if each.type is int else math.exp(at)
            open_, factor = math.isinf(spread), math.exp(min(spread, 700.0))
            yield FittedKnob(
                knob=name, unit=each.metadata["unit"], start=float(getattr(self.scenarios[0], name)), value=value,
                spread=float(spread), low=0.0 if open_ else max(value / factor, min(value, math.exp(lowest))),
                high=math.inf if open_ else min(value * factor, max(value, math.exp(highest))),
                at_limit=bool(min(at - lowest, highest - at) < 1e-6),
            )  # fmt: skip

    def residuals(self, scenarios: Sequence[Scenario]) -> list[Residual]:
        residuals = []
        for scenario, targets in zip(scenarios, self.targets, strict=True):
            if not targets:
                continue
            found = self.outcome(scenario, targets)
            for t in targets:
                fitted = read(found, t.quantity) if t.quantity in MEASURES else t.of(found)
                error = fitted - t.measured if t.share else fitted / t.measured - 1.0
                residuals.append(
                    Residual(row=t.row, quantity=t.quantity, unit=t.unit, measured=t.measured, fitted=fitted, error=error,
                             spread=t.spread, missed=abs(t.off(found)) > MISSED)
                )  # fmt: skip
        return residuals


def by_simulation(problem: "Problem") -> Calibration:
    """The fit in which simulated answers meet the measurements.

    The closed form is fitted to targets that are moved by the ratio (for a share, the difference) of the two answers, until the
    simulated one is there: a few runs instead of some hundred, and slopes without noise. What the closed form doesn't feel
    is fitted to the runs themselves.
    """
    names = [target.quantity for targets in problem.targets for target in targets]
    if any(MEASURES[name].simulated_only for name in names if name in MEASURES):
        return problem.solved()
    found = dataclasses.replace(problem, solver="closed form").solved()
    if not dataclasses.replace(problem, solver="closed form").feels(found.values):
        return dataclasses.replace(problem, scenarios=found.scenarios).solved()
    for _ in range(CORRECTIONS):
        moved = [
            [target.moved(outcome(scenario, "closed form"), problem.outcome(scenario, targets)) for target in targets]
            for scenario, targets in zip(found.scenarios, problem.targets, strict=True)
        ]
        found = dataclasses.replace(problem, targets=moved, solver="closed form").solved()
    residuals, knobs = tuple(problem.residuals(found.scenarios)), problem.with_ranges(found.values)
    return dataclasses.replace(found, solver="simulated", knobs=knobs, residuals=residuals)
