"""Sandboxes: what a cap on the account does from 96 to 960 rollouts in flight, and what their CPUs cost."""

import dataclasses

import numpy as np

from rlqueue.operating_point import OperatingPoint
from rlqueue.presets import reported
from rlqueue.provenance import quantities, table
from rlqueue.queueing import solve
from rlqueue.report import drawing
from rlqueue.report.assumptions import PRIME, VERL, Assumptions
from rlqueue.report.break_even import Case
from rlqueue.report.content import NODE, OWN, REPORT, Column, Figure, Table, value_of
from rlqueue.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, axis
from rlqueue.report.simulated import run
from rlqueue.scenario import Scenario

SIZE = quantities("report_assumptions", "sandbox")
PROVIDERS = ("e2b-sandbox-price", "modal-sandbox-price")


def crowded(assumptions: Assumptions) -> Scenario:
    """The verl run whose concurrency is pushed up: its last phase."""
    return assumptions.scenario(VERL[-1])


def start_delay_s(slots: float, cap: float, held_s: float) -> float:
    """Mean time that a rollout waits for a sandbox when the account runs at most ``cap`` [s].

    By Little's law: the slots beyond the cap hold waiting rollouts, and ``cap / held_s`` sandboxes become free a second.
    ``held_s`` is the time that a sandbox is held.
    """
    return max(0.0, slots - cap) * held_s / cap


def capped(scenario: Scenario, slots: float, cap: float) -> OperatingPoint:
    """The closed form at that concurrency and account cap."""
    return solve(dataclasses.replace(scenario, concurrency=int(slots), sandbox_cap=cap))


ENDLESS_BUDGET = 256.0
"""A staleness budget that doesn't bind at 960 slots: the figure is about sandboxes alone."""


def cap_that_explains(assumptions: Assumptions) -> float:
    """The account's cap at which the longest printed start is the mean wait at the highest concurrency tried [sandbox].

    The source prints starts of *up to* an hour, so the cap was this or somewhat more.
    """
    facts = reported("verl-qwen3-235b")
    slots, wanted = value_of(facts["concurrency_high"]), value_of(facts["straggler_start_s"])
    scenario = dataclasses.replace(crowded(assumptions), max_staleness=ENDLESS_BUDGET)
    low, high = 1.0, slots
    while high - low > 0.01:
        cap = 0.5 * (low + high)
        delay = start_delay_s(slots, cap, capped(scenario, slots, cap).rollout_s)
        low, high = (cap, high) if delay > wanted else (low, cap)
    return 0.5 * (low + high)


SIMULATED_STEPS = 16
"""Enough for the first crowd of starts to have passed at 960 slots."""


def simulated_starts(scenario: Scenario, slots: float, cap: float) -> np.ndarray:
    """Time from dispatch to a running sandbox of each rollout dispatched in the later half of a simulated run [s]."""
    found = run(
        dataclasses.replace(scenario, concurrency=int(slots), sandbox_cap=cap), SIMULATED_STEPS, rollouts=True
    ).rollouts
    later = found[(found["dispatch_s"] > found["end_s"].max() / 2) & (found["ready_s"] >= found["dispatch_s"])]
    return (later["ready_s"] - later["dispatch_s"]).to_numpy()


def scaling(assumptions: Assumptions) -> Figure:
    """More sandboxes with and without the account's cap."""
    facts = reported("verl-qwen3-235b")
    scenario = dataclasses.replace(crowded(assumptions), max_staleness=ENDLESS_BUDGET)
    low, high = value_of(facts["concurrency_low"]), value_of(facts["concurrency_high"])
    cap, budget = cap_that_explains(assumptions), value_of(SIZE["start_budget_s"])
    slots = np.unique(np.append(np.linspace(low, high, 28).round(), [round(cap)]))
    free = [solve(dataclasses.replace(scenario, concurrency=int(each))) for each in slots]
    held = [capped(scenario, each, cap) for each in slots]
    delay = np.array([start_delay_s(each, cap, point.rollout_s) for each, point in zip(slots, held, strict=True)])
    tried = np.array([round(cap), *np.linspace(cap, high, 4).round()[1:]])
    starts = [simulated_starts(scenario, each, cap) for each in tried]
    late = [float((each > budget).mean()) for each in starts]
    return Figure(
        name="sandbox-scaling",
        title=f"verl on Modal: from {low:.0f} to {high:.0f} sandboxes, with and without the account's cap",
        units="upper: start of a sandbox in minutes; lower: trainer wait ratio, production (samples per second), "
        "share of starts given up · by rollouts in flight allowed · lines: closed form, dots: simulation",
        says=f"At {high:.0f} slots without a cap the trainer waits {free[-1].trainer_wait_ratio:.0%} and production "
        f"is {free[-1].production_per_s:.2f}/s; with it {held[-1].trainer_wait_ratio:.0%} and "
        f"{held[-1].production_per_s:.2f}/s, and a start takes {delay[-1] / 60:.0f} minutes on average "
        f"({starts[-1].mean() / 60:.0f} simulated, the longest {starts[-1].max() / 60:.0f}). More slots than the "
        f"cap add nothing but waiting: with starts given up after {budget:.0f} s, {late[-1]:.0%} of them would fail "
        f"at {high:.0f}, {late[0]:.0%} at {tried[0]:.0f}. The cap is not in the source: {cap:.0f} is the one at "
        f"which the mean start at {high:.0f} slots is the printed hour.",
        kind="closed form, simulation",
        fitted="The cap is fitted to the printed hour; so the hour tests nothing, what it does to wait and "
        "production is computed. The run is the preset of the last phase with a staleness budget that never binds; "
        "its lengths, batch and tool calls are assumed.",
        sources=(REPORT, "computesdk-2026-05", "uni-agent", OWN),
        plot={
            "data": [
                drawing.line("start, with the cap", slots, (delay + scenario.sandbox_start_s) / 60, ORANGE),
                _dots("start, with the cap, simulated", tried, [each.mean() / 60 for each in starts], ORANGE),
                drawing.line("start, no cap", slots, np.full_like(slots, scenario.sandbox_start_s / 60), BLUE),
                drawing.line(
                    "wait ratio, with the cap", slots, [p.trainer_wait_ratio for p in held], ORANGE, yaxis="y2"
                ),
                drawing.line("wait ratio, no cap", slots, [p.trainer_wait_ratio for p in free], BLUE, yaxis="y2"),
                drawing.line(
                    "production/s, with the cap", slots, [p.production_per_s for p in held], GREY, "dash", yaxis="y2"
                ),
                drawing.line(
                    "production/s, no cap", slots, [p.production_per_s for p in free], GREEN, "dash", yaxis="y2"
                ),
                _dots("starts given up, with the cap, simulated", tried, late, PURPLE, yaxis="y2"),
            ],
            "layout": drawing.stacked(
                axis("rollouts in flight allowed (slots)"),
                axis("start [min]", rangemode="tozero"),
                axis("ratio; samples / s", rangemode="tozero"),
            ),
        },
    )


def _dots(name: str, x: np.ndarray, y: list[float], colour: str, **more: str) -> dict:
    return drawing.line(name, x, y, colour, **more) | {"mode": "markers", "marker": {"size": 8, "color": colour}}


def usd_per_sandbox_hour() -> dict[str, float]:
    """Price of one running sandbox of the assumed size, by provider [$/h]."""
    cpus, memory = value_of(SIZE["vcpu_per_sandbox"]), value_of(SIZE["gib_per_sandbox"])
    return {
        row["provider"]: cpus * float(row["usd_per_vcpu_hour"]) + memory * float(row["usd_per_gib_hour"])
        for row in table("sandbox_prices")
    }


def cpu_rows(cases: list[Case]) -> list[tuple]:
    """What sandboxes cost beside the GPUs: run, sandboxes, provider, $/sandbox-hour, $/h, GPUs $/h, share, $/Mtok."""
    rows = []
    for case in cases:
        counts = [(case.point.in_flight_rollouts, "in flight, closed form")]
        if case.name == PRIME:
            counts.append((value_of(SIZE["prime_running_sandboxes"]), "three batches, assumed"))
        gpus = (case.scenario.trainer_gpus + case.scenario.generator_gpus) * case.bill.usd_per_gpu_hour
        for number, said in counts:
            for provider, price in usd_per_sandbox_hour().items():
                hour = number * price
                each = case.sandboxes_usd_per_mtok(price) * number / case.point.in_flight_rollouts
                total = case.bill.usd_per_mtok + each
                rows.append(
                    (
                        case.title,
                        number,
                        said,
                        provider,
                        price,
                        hour,
                        gpus,
                        hour / gpus,
                        each,
                        total,
                        total / case.hosted,
                    )
                )
    return rows


def cpu_table(cases: list[Case]) -> Table:
    """Sandbox CPUs as a line of their own."""
    cpus, memory = value_of(SIZE["vcpu_per_sandbox"]), value_of(SIZE["gib_per_sandbox"])
    return Table(
        name="sandbox_cost",
        title="Sandbox CPUs as a line of their own",
        says=f"A sandbox of {cpus:g} vCPU and {memory:g} GiB, which is assumed, at listed prices, running as long "
        "as its rollout. The source leaves it out, on the self-built side and on the hosted one, where it is paid "
        "as well.",
        columns=(
            Column(name="run", title="Run"),
            Column(name="sandboxes", title="Sandboxes", digits=0),
            Column(name="counted", title="", joins=True),
            Column(name="provider", title="Provider"),
            Column(name="usd_per_sandbox_hour", title="One", unit="$/h", digits=4),
            Column(name="sandboxes_usd_per_hour", title="All", unit="$/h", digits=0),
            Column(name="gpus_usd_per_hour", title="GPUs", unit="$/h", digits=0),
            Column(name="over_gpus", title="Over GPUs"),
            Column(name="sandbox_usd_per_mtok", title="Sandboxes", unit="$/Mtok"),
            Column(name="self_built_with_sandboxes_usd_per_mtok", title="Self-built with them", unit="$/Mtok"),
            Column(name="over_hosted", title="Over hosted without them"),
        ),
        rows=tuple(cpu_rows(cases)),
        sources=(*PROVIDERS, NODE, OWN),
        grouped=True,
    )


def cpu_cost(cases: list[Case]) -> Figure:
    """Sandboxes beside GPUs, by the hour."""
    rows = cpu_rows(cases)
    labels = [f"{row[0].split(' · ')[0]}, {row[1]:,.0f}" for row in rows[::2]]
    gpus = [row[6] for row in rows[::2]]
    dearest = max(rows, key=lambda row: row[7])
    assumed = [row for row in rows if row[2].endswith("assumed")]
    said = " and ".join(f"${row[5]:.1f}/h ({row[3]})" for row in assumed)
    return Figure(
        name="sandbox-cost",
        title="Sandbox CPUs beside the GPUs",
        units="$/h of the whole run · by run and number of sandboxes that run at once",
        says=f"{assumed[0][1]:,.0f} sandboxes cost {said} against ${assumed[0][6]:.1f}/h for the GPUs of "
        f"{assumed[0][0]}. At worst here, {dearest[1]:,.0f} sandboxes of {dearest[0]} at {dearest[3]} cost "
        f"{dearest[7]:.0%} of what the GPUs do. A sandbox is paid for as long as its rollout lasts, of which "
        f"{cases[0].point.decoding_ratio:.0%} is waiting for the LLM.",
        kind="arithmetic on the closed form",
        fitted="Size of a sandbox assumed; in-flight rollouts of both runs follow from fitted concurrency.",
        sources=(*PROVIDERS, NODE, OWN),
        plot=drawing.plot(
            [
                drawing.bars("GPUs", labels, gpus, GREY),
                drawing.bars("sandboxes, e2b", labels, [row[5] for row in rows if row[3] == "e2b"], BLUE),
                drawing.bars("sandboxes, modal", labels, [row[5] for row in rows if row[3] == "modal"], ORANGE),
            ],
            axis("run, sandboxes running"),
            axis("$/h", tickprefix="$", rangemode="tozero"),
            barmode="group",
        ),
    )
