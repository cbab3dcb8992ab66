"""What a fit has to meet: each measurement as one number that can be read off an answer."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

from rlqueue import decode_curve
from rlqueue.calibration.found import Measured, Measurements
from rlqueue.measures import MEASURES, Outcome, checked_value
from rlqueue.provenance import quantities
from rlqueue.rates import rates
from rlqueue.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Target:
    """One number to meet: ``of`` reads it off an outcome."""

    row: int
    quantity: str
    unit: str
    measured: float
    spread: float
    share: bool
    of: Callable[[Outcome], float]

    def off(self, found: Outcome) -> float:
        """The residual, in spreads."""
        value = self.of(found)
        if self.share:
            return (value - self.measured) / self.spread
        return math.log(max(value, 1e-300) / self.measured) / self.spread

    def moved(self, closed: Outcome, simulated: Outcome) -> "Target":
        """The target at which the closed form stands when the simulation meets this one."""
        if self.share:
            return dataclasses.replace(self, measured=self.measured + self.of(closed) - self.of(simulated))
        ratio = max(self.of(closed), 1e-300) / max(self.of(simulated), 1e-300)
        return dataclasses.replace(self, measured=self.measured * ratio)


def targets_of(row: int, scenario: Scenario, wanted: Measurements) -> list[Target]:
    found = []
    usual = {name: float(fact.value) for name, fact in quantities("calibration_assumptions", "measurement").items()}
    for name, given in wanted.items():
        measured = given if isinstance(given, Measured) else Measured(value=given)
        if name == "decode_curve":
            spread = _checked_spread(name, usual["relative_spread"] if measured.spread is None else measured.spread)
            found += _curve_targets(row, scenario, measured.value, spread)
            continue
        value = checked_value(name, measured.value, "measurements")
        share = MEASURES[name].share
        if value == 0 and not share:
            raise ValueError(f"measurements: {name}=0 must be > 0 to be fitted to: {MEASURES[name].meaning}")
        spread = usual["share_spread" if share else "relative_spread"] if measured.spread is None else measured.spread
        _checked_spread(name, spread)
        found.append(
            Target(
                row=row,
                quantity=name,
                unit=MEASURES[name].unit,
                measured=value,
                spread=spread,
                share=share,
                of=MEASURES[name].of,
            )
        )
    return found


def _checked_spread(name: str, spread: float) -> float:
    if not 0 < spread < math.inf:
        raise ValueError(f"measurements: spread={spread:g} of {name} must be a finite number > 0")
    return spread


def _curve_targets(row: int, scenario: Scenario, given: object, spread: float) -> list[Target]:
    if not isinstance(given, str) or not given:
        raise ValueError(f"measurements: decode_curve={given!r} must be text like '16: 910, 100: 2400'")
    if scenario.decode_curve:
        raise ValueError(
            f"decode_curve={scenario.decode_curve!r} of the scenario must be empty for a roofline to be fitted: it is used "
            "in place of one"
        )

    def rate(requests: float) -> Callable[[Outcome], float]:
        return lambda found: requests * _tokens_per_s(found.scenario, requests)

    return [
        Target(
            row=row, quantity=f"decode_curve at {k:g}", unit="token/s", measured=k / token_s, spread=spread,
            share=False, of=rate(k),
        )
        for k, token_s in decode_curve.points(given)
    ]  # fmt: skip


def _tokens_per_s(scenario: Scenario, requests: float) -> float:
    """Tokens per second of each of so many requests at the scenario's mean context, by roofline."""
    from rlqueue.inference import iteration_s

    r = rates(scenario)[0]
    parts = ("context_tokens", "overhead_s", "shared_s", "experts_s", "miss", "kv_s_per_token", "compute_s")
    return float(r["accept_length"]) / iteration_s(requests, *(float(r[name]) for name in parts))
