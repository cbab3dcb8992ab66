"""How sure the answers are: bands from ranges of the inputs and from seeds, and which input to measure first."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlqueue.cost import cost, usd_per_gpu_hour
from rlqueue.operating_point import OperatingPoint
from rlqueue.queueing import solve
from rlqueue.ranges import Range, default_ranges, moved, value_of
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario
from rlqueue.units import after_number

QUANTITIES = {
    "trainer_wait_ratio": "1", "rollout_idle_ratio": "1", "usd_per_mtok": "$/Mtok", "usd_per_mtok_report_method": "$/Mtok",
    "hosted_usd_per_mtok": "$/Mtok", "cost_ratio": "1", "trained_tokens_per_s": "token/s", "step_s": "s",
    "wait_s": "s", "train_s": "s", "sync_s": "s", "staleness_versions": "version", "rollout_s": "s", "consumption_per_s": "1/s",
    "production_per_s": "1/s", "in_flight_rollouts": "rollout", "kv_used_ratio": "1", "accepted_ratio": "1", "mfu_computing": "1",
    "mfu_wall_clock": "1",
}  # fmt: skip
"""What has a band, and its unit: fields of OperatingPoint and of Bill."""
LEVEL = 0.9
"""Share of the samples inside a band."""
SIMULATED_SAMPLES = 32
SIMULATED_STEPS = 24


@dataclass(frozen=True, kw_only=True)
class Band:
    """One number and how far it may be off.

    Attributes:
        quantity, unit: see ``QUANTITIES``. kind: ``closed form`` or ``simulated``.
        value: with the scenario's own inputs. low, median, high: of the samples; the band holds ``level`` of them.
    """

    quantity: str
    unit: str
    kind: str
    value: float
    low: float
    median: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Bands:
    """All bands of a scenario.

    Attributes:
        rows: one band per quantity. ranges: of the inputs. level: share of the samples inside a band.
        samples: that were answered. refused: combinations of inputs that no run may have, or whose run came to no step.
    """

    rows: tuple[Band, ...]
    ranges: tuple[Range, ...]
    level: float
    samples: int
    refused: int

    def of(self, quantity: str) -> Band:
        """The band of one quantity. Raises ValueError for one that has none."""
        found = {band.quantity: band for band in self.rows}
        require_known("quantity", quantity, found)
        return found[quantity]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar of a tornado: what a quantity becomes when one input goes to each end of its range.

    Attributes:
        knob, unit, kind, reason: of the input. value, low, high: its own value and the ends of its range.
        at_low, at_value, at_high: the quantity there. swing: largest less smallest of the three.
    """

    knob: str
    unit: str
    kind: str
    reason: str
    value: float
    low: float
    high: float
    at_low: float
    at_value: float
    at_high: float
    swing: float


def sampled(scenario: Scenario, ranges: Sequence[Range], samples: int, seed: int = 0) -> tuple[list[Scenario], int]:
    """Scenarios with inputs from their ranges, evenly spread (scrambled Sobol points), and how many were impossible.

    Args:
        samples: rounded up to a power of two, for which the points are balanced. seed: of the scrambling.
    """
    from scipy.stats.qmc import Sobol

    if not isinstance(samples, int) or samples < 1:
        raise ValueError(f"samples={samples!r} must be a whole number >= 1")
    if not ranges:
        return [scenario], 0
    shares = Sobol(len(ranges), rng=np.random.default_rng(seed)).random_base2(math.ceil(math.log2(samples)))
    columns = [each.at(shares[:, i]) for i, each in enumerate(ranges)]
    found, refused = [], 0
    for values in zip(*columns, strict=True):
        try:
            found.append(moved(scenario, dict(zip((each.knob for each in ranges), values, strict=True))))
        except ValueError:
            refused += 1
    if not found:
        raise ValueError(f"ranges of {', '.join(each.knob for each in ranges)}: no sample of them is a possible run")
    return found, refused


def bands(
    scenario: Scenario, ranges: Sequence[Range] | None = None, samples: int = 256, seed: int = 0, level: float = LEVEL
) -> Bands:
    """Bands of the closed form over the ranges of its inputs.

    Args:
        ranges: of the inputs; by default those of what the scenario's preset does not print. samples: about half a second for
            256. seed: of the sampling. level: share of the samples inside a band.
    """
    _require_share(level)
    chosen = default_ranges(scenario) if ranges is None else tuple(ranges)
    cases, refused = sampled(scenario, chosen, samples, seed)
    answers = [quantities(case, solve(case)) for case in cases]
    return _bands(
        quantities(scenario, solve(scenario)), answers, kind="closed form", ranges=chosen, refused=refused, level=level
    )


def simulated_bands(
    scenario: Scenario, ranges: Sequence[Range] | None = None, samples: int = SIMULATED_SAMPLES, seed: int = 0,
    level: float = LEVEL, *, steps: int = SIMULATED_STEPS, workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bands:  # fmt: skip
    """The same from simulated runs, each sample with a seed of its own: the band holds both, inputs and chance.

    Args:
        ranges: an empty sequence leaves chance alone. steps: of each run. workers: threads; all cores.
        progress: is told how many runs of how many are done.
    """
    from rlqueue.trials import trials

    _require_share(level)
    chosen = default_ranges(scenario) if ranges is None else tuple(ranges)
    cases, refused = sampled(scenario, chosen, samples, seed)
    if not chosen:
        cases = cases * samples
    own = [scenario] * (max(4, samples // 4) if chosen else 0)
    found = trials(
        [(case, seed + place) for place, case in enumerate([*cases, *own])], steps, workers=workers, progress=progress
    )
    answers = [quantities(each.settled, each.point) for each in found[: len(cases)] if each.point]
    refused += len(cases) - len(answers)
    alone = [quantities(each.settled, each.point) for each in found[len(cases) :] if each.point] if chosen else answers
    if not answers or not alone:
        raise ValueError(f"steps={steps}: no simulated run came to a step ({found[0].stalled or found[-1].stalled})")
    means = {name: float(np.mean([each[name] for each in alone])) for name in alone[0]}
    return _bands(means, answers, kind="simulated", ranges=chosen, refused=refused, level=level)


def percentiles(level: float) -> tuple[float, float, float]:
    """Of the samples: the low end of a band, the median and the high end."""
    tail = 50.0 * (1.0 - level)
    return tail, 50.0, 100.0 - tail


def _require_share(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} must be > 0 and < 1: share of the samples inside a band")


def quantities(scenario: Scenario, point: OperatingPoint) -> dict[str, float]:
    """All of ``QUANTITIES`` of a run; those without a value (no hosted price) are left out."""
    both = vars(point) | vars(cost(scenario, point))
    return {name: float(both[name]) for name in QUANTITIES if both[name] is not None}


def _bands(
    own: dict[str, float],
    answers: list[dict[str, float]],
    *,
    kind: str,
    ranges: tuple[Range, ...],
    refused: int,
    level: float,
) -> Bands:
    rows = []
    for name, value in own.items():
        low, median, high = np.percentile([each[name] for each in answers], percentiles(level)).tolist()
        rows.append(
            Band(quantity=name, unit=QUANTITIES[name], kind=kind, value=value, low=low, median=median, high=high)
        )
    return Bands(rows=tuple(rows), ranges=ranges, level=level, samples=len(answers), refused=refused)


def tornado(
    scenario: Scenario, ranges: Sequence[Range] | None = None, quantity: str = "usd_per_mtok"
) -> tuple[Bar, ...]:
    """What one quantity of the closed form becomes when each input alone goes to the ends of its range; widest bar first.

    An end at which the run would be impossible is drawn in towards the scenario's value until it is possible.
    """
    require_known("quantity", quantity, QUANTITIES)
    chosen = default_ranges(scenario) if ranges is None else tuple(ranges)
    own = quantities(scenario, solve(scenario))
    require_known("quantity of this scenario", quantity, own)
    bars = []
    for each in chosen:
        low, at_low = _at_end(scenario, each.knob, each.low, quantity)
        high, at_high = _at_end(scenario, each.knob, each.high, quantity)
        ends = (at_low, own[quantity], at_high)
        bars.append(
            Bar(knob=each.knob, unit=unit_of(each.knob), kind=each.kind, reason=each.reason,
                value=_own_value(scenario, each.knob), low=low, high=high, at_low=at_low, at_value=own[quantity],
                at_high=at_high, swing=_swing(ends))
        )  # fmt: skip
    return tuple(sorted(bars, key=lambda bar: -bar.swing))


def _own_value(scenario: Scenario, knob: str) -> float:
    value = value_of(scenario, knob)
    return usd_per_gpu_hour(scenario) if value is None else float(value)


def _at_end(scenario: Scenario, knob: str, end: float, quantity: str) -> tuple[float, float]:
    value = _own_value(scenario, knob)
    for share in (1.0, 0.5, 0.25, 0.125):
        at = end if share == 1.0 else value + share * (end - value)  # the value may be endless
        try:
            there = moved(scenario, {knob: at})
        except ValueError:
            continue
        return at, quantities(there, solve(there))[quantity]
    return value, quantities(scenario, solve(scenario))[quantity]


def unit_of(knob: str) -> str:
    """The unit of a knob; of a field of a part there is none."""
    return {each.name: each.metadata["unit"] for each in dataclasses.fields(Scenario)}.get(knob, "")


def _swing(ends: Sequence[float]) -> float:
    """Largest less smallest; what rounding alone makes is none."""
    low, high = min(ends), max(ends)
    return high - low if high - low > 1e-12 * max(abs(low), abs(high)) else 0.0


def measure_first(bars: Sequence[Bar], quantity: str) -> str:
    """The tornado in a sentence: which input to measure first."""
    wide = [bar for bar in bars if bar.swing > 0]
    if not wide:
        return f"No input with a range moves {quantity}."
    first = wide[0]
    total = math.fsum(bar.swing for bar in wide)
    words = (
        f"Measure {first.knob} first: between {first.low:.4g} and {first.high:.4g}{after_number(first.unit)} it moves "
        f"{quantity} from {min(first.at_low, first.at_high):.3g} to {max(first.at_low, first.at_high):.3g}"
        f"{after_number(QUANTITIES[quantity])}, "
        f"{first.swing / total:.0%} of all bars together"
    )
    return f"{words}; then {wide[1].knob}." if len(wide) > 1 else f"{words}."
