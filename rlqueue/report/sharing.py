"""Why a multi-tenant host is cheaper: each of the report's runs with more and more tenants like it on its GPUs."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from rlqueue.cost import Bill, cost
from rlqueue.provenance import quantities
from rlqueue.report import drawing
from rlqueue.report.assumptions import RUNS, TITLES, Assumptions, moneyless
from rlqueue.report.content import OWN, REPORT, Column, Figure, Table, value_of
from rlqueue.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, axis
from rlqueue.report.simulated import SEED
from rlqueue.scenario import Scenario
from rlqueue.tenancy import Sharing, sharings

SETTINGS = {name: value_of(fact) for name, fact in quantities("report_assumptions", "tenancy").items()}
MOST, STEPS = int(SETTINGS["most_tenants"]), int(SETTINGS["steps"])
TRIED = (*range(1, MOST // 2 + 1), *range(MOST // 2 + 2, MOST + 1, 2))
"""Numbers of tenants: the curves are flat where the gaps are."""

COLOURS = dict(zip(RUNS, (BLUE, PURPLE, ORANGE, GREEN, SKY, VERMILION), strict=True))
FULL = 0.01
"""A pool is full where another tenant makes a trained token cheaper by less than this share."""

SHARE = {"tickformat": ".0%", "range": [0, 1.02]}
TENANTS = axis("tenants on the run's GPUs", dtick=1)
ASSUMED = (
    "Tenants are copies of the run with draws of their own that start evenly over a step; each brings its own slots and its own "
    f"sandbox account. An adapter takes {SETTINGS['adapter_bytes'] / 1e9:.2g} GB of each replica and "
    f"{SETTINGS['adapter_switch_s']:g} s of the trainer at each change, both assumed; training and publishing an adapter take as "
    "long as all weights do."
)


@dataclass(frozen=True, kw_only=True)
class Shared:
    """One run with its tenants: what sharing does at each number of ``TRIED``, and the bills."""

    name: str
    sharing: tuple[Sharing, ...]
    bills: tuple[Bill, ...]

    @property
    def usd(self) -> list[float]:
        return [bill.usd_per_mtok for bill in self.bills]

    @property
    def hosted(self) -> float:
        return self.bills[0].hosted_usd_per_mtok or 0.0

    @property
    def needed(self) -> int | None:
        """The fewest tenants at which a trained token costs no more than hosted; None where no number of them does."""
        return next(
            (each.tenants for each, usd in zip(self.sharing, self.usd, strict=True) if usd <= self.hosted), None
        )

    @property
    def full(self) -> Sharing:
        """Where more tenants buy next to nothing."""
        least = min(self.usd)
        return next(each for each, usd in zip(self.sharing, self.usd, strict=True) if usd <= least * (1.0 + FULL))


def cases(assumptions: Assumptions) -> list[Shared]:
    """All runs, simulated side by side: the compiled loop lets other threads run."""
    scenarios = [assumptions.scenario(name) for name in RUNS]
    with ThreadPoolExecutor() as workers:
        found = list(workers.map(_tried, map(moneyless, scenarios)))
    return [
        Shared(name=name, sharing=sharing, bills=tuple(cost(scenario, each.point) for each in sharing))
        for name, scenario, sharing in zip(RUNS, scenarios, found, strict=True)
    ]


@lru_cache(maxsize=64)
def _tried(scenario: Scenario) -> tuple[Sharing, ...]:
    """Money changes nothing in a run: kept while prices move. Alone a run has all weights to itself and no adapter."""
    with_adapters = replace(
        scenario, adapter_bytes=SETTINGS["adapter_bytes"], adapter_switch_s=SETTINGS["adapter_switch_s"]
    )
    asked = {"seed": SEED, "steps": STEPS, "lump": True}
    return (*sharings(scenario, TRIED[:1], **asked), *sharings(with_adapters, TRIED[1:], **asked))


def short(name: str) -> str:
    """A run in few words: framework, and LLM or slots."""
    framework, llm, _, *slots = TITLES[name].split(" · ")
    return f"{framework} {slots[0] if slots else llm}"


def reached(case: Shared) -> str:
    """How many tenants it takes to be as cheap as hosted, computed from the scenario."""
    alone, full, least = case.usd[0], case.full, min(case.usd)
    opening = f"{TITLES[case.name]}: alone ${alone:.2f} a trained Mtok, hosted ${case.hosted:.2f}."
    end = f"From {full.tenants} tenants on more hardly help: ${least:.2f}, and {_bound(full)}."
    if full.tenants == 1:
        end = f"More tenants hardly help: {_bound(full)}."
    if case.needed == 1:
        return f"{opening} One tenant is enough; {end[0].lower()}{end[1:]}"
    if case.needed is not None:
        return f"{opening} {case.needed} tenants reach the hosted price. {end}"
    return f"{opening} Up to {MOST} tenants no number reaches the hosted price. {end}"


def _bound(each: Sharing) -> str:
    if each.point.binding_constraint == "trainer compute":
        return "the trainer never waits"
    return (
        f"the trainer waits {each.trainer_wait_ratio:.0%} for replicas that sample {each.decode_use_ratio:.0%} of what "
        "full memory lets them"
    )


def waiting(found: list[Shared]) -> Figure:
    """The shared trainer's wait, and a tenant's own."""
    halved = [
        f"{short(case.name)} {case.sharing[0].trainer_wait_ratio:.0%} alone, {case.full.trainer_wait_ratio:.0%} with "
        f"{case.full.tenants}"
        for case in found
    ]
    return _figure(
        "tenants-wait",
        "Trainer wait by number of tenants",
        units="upper: share of time in which the shared trainer works for nobody; lower: share in which a tenant's own "
        "next update waits, for its rollouts or for its turn",
        says=f"The shared trainer waits: {'; '.join(halved)}. A tenant itself waits longer the more there are: it pays in time.",
        upper=(axis("trainer wait ratio", **SHARE), lambda each: each.trainer_wait_ratio),
        lower=(axis("a tenant's wait", **SHARE), lambda each: each.tenant_wait_ratio),
        found=found,
    )


def decoding(found: list[Shared]) -> Figure:
    """How well the decode replicas are used."""
    used = [
        f"{short(case.name)} {case.sharing[0].decode_use_ratio:.0%} alone, {case.sharing[-1].decode_use_ratio:.0%} with {MOST}"
        for case in found
    ]
    return _figure(
        "tenants-decode",
        "Decode utilisation by number of tenants",
        units="upper: tokens sampled over those that replicas with full KV memory would sample; lower: requests in a "
        "replica's batch, logarithmic",
        says=f"Replicas read all weights at each iteration, however few requests they serve. Of what they could sample they do: "
        f"{'; '.join(used)}.",
        upper=(axis("decode utilisation", tickformat=".0%", rangemode="tozero"), lambda each: each.decode_use_ratio),
        lower=(
            axis("requests per replica", type="log", tickvals=[20, 50, 100, 200, 500, 1000, 2000]),
            lambda each: each.point.active_per_replica,
        ),
        found=found,
    )


def _figure(name, title, *, units, says, upper, lower, found) -> Figure:  # noqa: ANN001
    (above, high), (below, low) = upper, lower
    traces = []
    for case in found:
        colour = COLOURS[case.name]
        traces += [
            drawing.dotted(TITLES[case.name], TRIED, [high(each) for each in case.sharing], colour, cliponaxis=False),
            drawing.dotted(
                f"{TITLES[case.name]}, lower", TRIED, [low(each) for each in case.sharing], colour, yaxis="y2",
                showlegend=False,
            ),
        ]  # fmt: skip
    return Figure(
        name=name,
        title=title,
        units=f"{units} · simulation of {STEPS} steps, seed {SEED}",
        says=says,
        kind="simulation",
        fitted=ASSUMED,
        sources=(REPORT, OWN),
        plot={"data": traces, "layout": drawing.stacked(TENANTS, above, below)},
    )


def dollars(found: list[Shared]) -> Figure:
    """What a trained token costs each tenant, with the hosted quote."""
    traces = []
    for case in found:
        colour = COLOURS[case.name]
        traces += [
            drawing.dotted(TITLES[case.name], TRIED, case.usd, colour),
            drawing.line(
                f"{TITLES[case.name]}, hosted",
                TRIED,
                np.full(len(TRIED), case.hosted),
                colour,
                "dash",
                showlegend=False,
            ),
        ]
    traces.append(drawing.line("hosted quote, in the run's colour", [None], [None], GREY, "dash"))
    within = sum(case.needed is not None for case in found)
    return Figure(
        name="tenants-cost",
        title="Cost of a trained token by number of tenants",
        units=f"$ per trained Mtok, logarithmic · solid: all GPUs over all tenants' tokens, dashed: hosted quote · simulation of "
        f"{STEPS} steps, seed {SEED}",
        says=f"{within} of {len(found)} runs come down to their hosted quote with at most {MOST} tenants. Idle decode slots "
        "and a waiting trainer are paid once and used by all; where trainer or memory is full, a further tenant only waits.",
        kind="simulation",
        fitted=ASSUMED,
        sources=(REPORT, OWN),
        plot=drawing.plot(
            traces, TENANTS, axis("$ / trained Mtok", type="log", tickvals=[1, 2, 3, 4, 5, 7, 10, 15, 20, 30])
        ),
    )


def tenancy_table(found: list[Shared]) -> Table:
    """Every number of it."""
    rows = [
        (
            TITLES[case.name], each.tenants, each.trainer_wait_ratio, each.trainer_busy_ratio, each.tenant_wait_ratio,
            each.tenant_turn_ratio, each.tenant_step_s, each.point.staleness_versions, each.decode_use_ratio,
            each.point.active_per_replica, each.point.trained_tokens_per_s / each.tenants, bill.usd_per_mtok,
            bill.hosted_usd_per_mtok, each.point.binding_constraint,
        )
        for case in found
        for each, bill in zip(case.sharing, case.bills, strict=True)
    ]  # fmt: skip
    return Table(
        name="tenancy",
        title="Tenants on the GPUs of each run",
        says="The wait of the shared trainer falls, a tenant's own wait rises by its turns: its step takes longer, while each "
        "token gets cheaper.",
        columns=(
            Column(name="run", title="Run"),
            Column(name="tenants", title="Tenants", digits=0),
            Column(name="trainer_wait_ratio", title="Shared trainer waits", digits=3),
            Column(name="trainer_busy_ratio", title="trains", digits=3),
            Column(name="tenant_wait_ratio", title="A tenant waits", digits=3),
            Column(name="tenant_turn_ratio", title="of it for its turn", digits=3),
            Column(name="tenant_step_s", title="Its step", unit="s", digits=0),
            Column(name="staleness_versions", title="Staleness", unit="versions", digits=1),
            Column(name="decode_use_ratio", title="Decode utilisation", digits=3),
            Column(name="active_per_replica", title="Requests per replica", digits=1),
            Column(name="tenant_trained_tokens_per_s", title="A tenant trains", unit="token/s", digits=0),
            Column(name="usd_per_mtok", title="Cost", unit="$/Mtok"),
            Column(name="hosted_usd_per_mtok", title="Hosted", unit="$/Mtok"),
            Column(name="binding_constraint", title="What binds"),
        ),
        rows=tuple(rows),
        sources=(REPORT, OWN),
        folded=True,
        grouped=True,
    )  # fmt: skip
