"""Hosted against self-built: at which price, wait, waste, use and mix of tokens the two cost the same."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from rlqueue.advice import break_even_usd_per_gpu_hour
from rlqueue.cost import Bill, cost, hosted_usd_per_mtok
from rlqueue.operating_point import OperatingPoint
from rlqueue.provenance import table
from rlqueue.queueing import solve
from rlqueue.rates import prefilled_tokens
from rlqueue.report.assumptions import PRICED, TITLES, Assumptions, at_lengths, moneyless
from rlqueue.scenario import Scenario
from rlqueue.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

POINTS = 49


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A cost against one quantity: x, self-built [$/Mtok], hosted [$/Mtok], and where self-built stops to be cheaper (or None).

    ``now`` is the scenario's own x.
    """

    x: np.ndarray
    own: np.ndarray
    hosted: np.ndarray
    now: float

    @cached_property
    def meets(self) -> float | None:
        """The x nearest to the present one at which both cost the same; None where they don't within the range."""
        gap = self.own - self.hosted
        turns = np.flatnonzero(np.sign(gap[:-1]) * np.sign(gap[1:]) <= 0)
        places = [
            self.x[i] + (self.x[i + 1] - self.x[i]) * gap[i] / (gap[i] - gap[i + 1])
            for i in turns
            if gap[i] != gap[i + 1]
        ]
        return min(places, key=lambda place: abs(place - self.now)) if places else None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One priced run with its operating point and bill."""

    name: str
    scenario: Scenario
    point: OperatingPoint
    bill: Bill

    @classmethod
    def of(cls, assumptions: Assumptions, name: str) -> "Case":
        """The run with the reader's changes."""
        scenario = assumptions.scenario(name)
        point = solve(scenario)
        return cls(name=name, scenario=scenario, point=point, bill=cost(scenario, point))

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def hosted(self) -> float:
        """The hosted price of this mix [$/Mtok]."""
        return self.bill.hosted_usd_per_mtok or 0.0

    def own(self, scenario: Scenario) -> float:
        """Self-built cost of a changed scenario by wall-clock [$/Mtok]."""
        return cost(scenario, _solved(moneyless(scenario))).usd_per_mtok

    def by_price(self) -> Curve:
        """Against the price of a GPU-hour [$]."""
        x = np.linspace(0.0, max(3.0, 2.0 * self.bill.usd_per_gpu_hour), POINTS)
        sandbox = self.bill.sandbox_usd_per_mtok
        own = (self.bill.usd_per_mtok - sandbox) * x / self.bill.usd_per_gpu_hour + sandbox
        return self._curve(x, own, self.bill.usd_per_gpu_hour)

    def by_wait(self) -> Curve:
        """Against the trainer's wait ratio, the rest of a step and the GPUs being the same."""
        x = np.linspace(0.0, 0.9, POINTS)
        own = self.bill.usd_per_mtok * (1.0 - self.point.trainer_wait_ratio) / (1.0 - x)
        return self._curve(x, own, self.point.trainer_wait_ratio)

    def by_use(self) -> Curve:
        """Against the share of the paid hours in which the GPUs do this work."""
        x = np.linspace(0.2, 1.0, POINTS)
        return self._curve(x, self.bill.usd_per_mtok / x, 1.0)

    def by_discard(self, *, billed: bool) -> Curve:
        """Against the share of finished rollouts thrown away; ``billed``: the service charges their prefill and sampling too."""
        x = np.linspace(0.0, 0.9, POINTS)
        own = np.array([self.own(replace(self.scenario, surplus_fraction=float(share))) for share in x])
        hosted = np.full_like(x, self.hosted)
        if billed:
            train = self.scenario.hosted_price.train_usd_per_mtok
            hosted = (self.hosted - train) / (1.0 - x) + train
        return self._curve(x, own, self.scenario.surplus_fraction, hosted)

    def by_prompt_share(self) -> Curve:
        """Against the share of prompt tokens in a sequence of the same length."""
        s = self.scenario
        total = s.mean_prompt_tokens + s.mean_response_tokens
        x = np.linspace(0.05, 0.9, POINTS)
        own = np.array([self.own(at_lengths(s, share * total, (1 - share) * total)) for share in x])
        hosted = np.array([hosted_usd_per_mtok(s.hosted_price, share, 1 - share) for share in x])
        return self._curve(x, own, s.mean_prompt_tokens / total, hosted)

    def by_turns(self, prefill: str) -> Curve:
        """Against the turns of a rollout, by how the service bills what a later turn reads again.

        Args:
            prefill: ``once`` (each token is prefilled once, the report's way), ``again`` (no prefix cache: the whole context at
                each turn), ``cached`` (a read of the cache at the list's reduced price).
        """
        x = np.arange(1.0, 50.0, 4.0)
        runs = [replace(self.scenario, tool_calls=float(turns - 1), prefix_cache=prefill != "again") for turns in x]
        own = np.array([self.own(run) for run in runs])
        hosted = np.array([self.hosted + self._read_again_usd_per_mtok(run, prefill) for run in runs])
        return self._curve(x, own, self.scenario.tool_calls + 1.0, hosted)

    def _read_again_usd_per_mtok(self, run: Scenario, prefill: str) -> float:
        """What reading the context again at later turns adds [$/Mtok trained]."""
        if prefill == "once":
            return 0.0
        again = prefilled_tokens(replace(run, prefix_cache=False)) - run.mean_prompt_tokens
        rate = run.hosted_price.prefill_usd_per_mtok * (cached_share() if prefill == "cached" else 1.0)
        return again * rate / (run.mean_prompt_tokens + run.mean_response_tokens)

    def _curve(self, x: np.ndarray, own: np.ndarray, now: float, hosted: np.ndarray | None = None) -> Curve:
        return Curve(x=x, own=own, hosted=np.full_like(x, self.hosted) if hosted is None else hosted, now=now)

    def report_method_price(self) -> float:
        """GPU-hour price at which the report's method gives the hosted price [$]."""
        return self.hosted / self.bill.usd_per_mtok_report_method * self.bill.usd_per_gpu_hour

    def price(self) -> float:
        """GPU-hour price at which wall-clock cost equals the hosted price [$]."""
        return break_even_usd_per_gpu_hour(self.bill) or 0.0

    def hosted_with_waste(self) -> float:
        """Hosted price if the run's discarded rollouts are billed too [$/Mtok]."""
        train = self.scenario.hosted_price.train_usd_per_mtok
        return (self.hosted - train) / self.point.accepted_ratio + train

    def hosted_with_reads(self) -> float:
        """Hosted price if each turn's cached reads of the context are billed as listed [$/Mtok]."""
        return self.hosted + self._read_again_usd_per_mtok(self.scenario, "cached")

    def sandboxes_usd_per_mtok(self, usd_per_sandbox_hour: float) -> float:
        """What the sandboxes in flight add at that price [$/Mtok trained]."""
        per_step = self.point.in_flight_rollouts * usd_per_sandbox_hour * self.point.step_s / SECONDS_PER_HOUR
        return per_step / self.scenario.trained_tokens_per_step * TOKENS_PER_MTOK


@lru_cache(maxsize=2048)
def _solved(scenario: Scenario) -> OperatingPoint:
    """The closed form, kept while prices move."""
    return solve(scenario)


def cases(assumptions: Assumptions) -> list[Case]:
    """The runs whose cost the report compares."""
    return [Case.of(assumptions, name) for name in PRICED]


def cached_share() -> float:
    """Price of a cached read over that of a prefill: the median of the price list's rows that give both."""
    rows = [row for row in table("hosted_prices") if row["cached_prefill_usd_per_mtok"] and row["train_usd_per_mtok"]]
    return float(
        np.median([float(row["cached_prefill_usd_per_mtok"]) / float(row["prefill_usd_per_mtok"]) for row in rows])
    )


def must_be_true(case: Case) -> str:
    """What would have to be true for self-built to win (or to go on winning), computed from the scenario."""
    bill, ahead = case.bill, case.bill.usd_per_mtok < case.hosted
    gap = abs(bill.usd_per_mtok / case.hosted - 1.0)
    opening = (
        f"{case.title}: by wall-clock self-built costs ${bill.usd_per_mtok:.2f} a trained Mtok, {gap:.0%} "
        f"{'less' if ahead else 'more'} than the ${case.hosted:.2f} of the hosted price."
    )
    conditions = _conditions(case)
    if ahead:
        middle = f"It goes on winning as long as {_joined(conditions, 'and')}, the others staying as they are."
    else:
        middle = (
            "For self-built to win, one of these would have to be true, the others staying as they are: "
            f"{_joined(conditions, 'or')}."
        )
    waste = case.hosted_with_waste()
    billed = ""
    if waste > case.hosted * 1.001:
        billed = (
            f" If the service bills the {case.point.discarded_ratio:.0%} discarded rollouts as well, it costs "
            f"${waste:.2f}: {_winner(case, waste)}."
        )
    reads = case.hosted_with_reads()
    billed += (
        f" If the service bills the cached reads of the context at each of {case.scenario.tool_calls + 1:.0f} "
        f"turns, at {cached_share():.0%} of the prefill price, it costs ${reads:.2f}: {_winner(case, reads)}."
    )
    method = (
        f" By the report's method it costs ${bill.usd_per_mtok_report_method:.2f}, and a GPU-hour would have to "
        f"cost less than ${case.report_method_price():.2f}."
    )
    return f"{opening} {middle}{billed}{method}"


def _winner(case: Case, hosted: float) -> str:
    return "self-built wins" if case.bill.usd_per_mtok < hosted else "hosted wins"


def _conditions(case: Case) -> list[str]:
    found = [f"a GPU-hour costs less than ${case.price():.2f} (now ${case.bill.usd_per_gpu_hour:.2f})"]
    wait, use, discard = case.by_wait().meets, case.by_use().meets, case.by_discard(billed=False).meets
    if wait is not None:
        found.append(f"the trainer waits less than {wait:.0%} (now {case.point.trainer_wait_ratio:.0%})")
    if use is not None and case.bill.usd_per_mtok < case.hosted:
        found.append(f"the GPUs do this work in more than {use:.0%} of the hours they are paid for")
    if discard is not None:
        found.append(
            f"less than {discard:.0%} of the finished rollouts are thrown away (now "
            f"{case.scenario.surplus_fraction:.0%})"
        )
    return found


def _joined(parts: list[str], word: str) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, {word} {parts[-1]}"


CURVES: tuple[tuple[str, Callable[[Case], Curve]], ...] = (
    ("price of a GPU-hour [$]", Case.by_price),
    ("trainer wait ratio", Case.by_wait),
    ("share of paid hours in use", Case.by_use),
    ("discarded share, not billed by the service", lambda case: case.by_discard(billed=False)),
    ("discarded share, billed by the service", lambda case: case.by_discard(billed=True)),
    ("prompt share of the tokens", Case.by_prompt_share),
    ("turns of a rollout, each token prefilled once", lambda case: case.by_turns("once")),
    ("turns of a rollout, no prefix cache", lambda case: case.by_turns("again")),
    ("turns of a rollout, cached reads billed", lambda case: case.by_turns("cached")),
)
