"""The report's tables, computed row by row beside what was printed: cost of ownership, processes, hosted cost, comparison."""

from statistics import fmean

from rlqueue.cost import (
    Bill,
    cost,
    hosted_usd,
    hosted_usd_per_mtok,
    latency_charged_usd_per_mtok,
    measured_report_method,
)
from rlqueue.presets import reported
from rlqueue.provenance import quantities, table
from rlqueue.queueing import solve
from rlqueue.report.agreement import EXACT, RECONCILED, rounds_to, within
from rlqueue.report.assumptions import PRICED, PRIME, SLIME, TITLES, Assumptions
from rlqueue.report.content import NODE, REPORT, Column, Table
from rlqueue.scenario import Scenario
from rlqueue.tco import GpuHour, NodeTco, tco
from rlqueue.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

NODE_LINES = (
    ("server_usd", "Server", "USD/server"),
    ("networking_usd", "Networking", "USD/server"),
    ("storage_usd", "Storage", "USD/server"),
    ("server_service_usd", "Server service", "USD/server"),
    ("installation_usd", "Other installation", "USD/server"),
    ("software_usd", "Software licences and other", "USD/server"),
    ("wacc_per_year", "Weighted average cost of capital", "1/year"),
    ("useful_life_years", "Useful life", "year"),
    ("kw_per_server", "Power per server, all in", "kW/server"),
    ("usd_per_kwh", "Electricity", "USD/kWh"),
    ("utilisation_ratio", "Utilisation of the power", "1"),
    ("pue_ratio", "Power usage effectiveness", "1"),
    ("colocation_usd_per_kw_month", "Colocation", "USD/kW/month"),
    ("remote_hands_usd_per_month", "Remote hands", "USD/server/month"),
    ("internet_usd_per_month", "Internet", "USD/server/month"),
    ("hours_per_month", "Hours of a month", "h/month"),
)
RESULTS = {
    "capex_without_server_usd_per_server": "Capital outlay without the server",
    "capex_usd_per_server": "Capital outlay",
    "capex_usd_per_gpu": "Capital outlay per GPU",
    "capital_usd_per_server_month": "Capital cost",
    "capital_usd_per_gpu_hour": "Capital cost per GPU-hour",
    "kw_per_gpu": "Power per GPU",
    "electricity_usd_per_kw_month": "Electricity per kW",
    "power_and_colocation_usd_per_kw_month": "Power and colocation per kW",
    "power_and_colocation_usd_per_server_month": "Power and colocation",
    "operating_usd_per_server_month": "Operating cost",
    "operating_usd_per_gpu_month": "Operating cost per GPU",
    "operating_usd_per_gpu_hour": "Operating cost per GPU-hour",
    "total_usd_per_gpu_hour": "Total per GPU-hour",
    "capital_share": "Share of capital",
    "operating_share": "Share of operation",
}


ROUNDED = {"capex_without_server_usd_per_server"}
"""Lines that the source rounds so that they don't add up; the note says how."""


def node_results(node: NodeTco) -> dict[str, float]:
    """Every line that the report's cost of ownership prints as a result, computed."""
    found: GpuHour = tco(node)
    return {
        **{name: getattr(found, name) for name in RESULTS if hasattr(found, name)},
        "capex_without_server_usd_per_server": found.capex_usd_per_server - node.server_usd,
        "kw_per_gpu": node.kw_per_server / node.gpus_per_server,
        "power_and_colocation_usd_per_kw_month": found.electricity_usd_per_kw_month + node.colocation_usd_per_kw_month,
        "operating_share": 1.0 - found.capital_share,
    }


def tco_table(assumptions: Assumptions) -> Table:
    """The cost of an H200 server, line by line."""
    node, printed = assumptions.node, reported("h200-tco")
    inputs, results = quantities("h200_tco", "h200"), node_results(node)
    rows = []
    for name, title, unit in NODE_LINES:
        fact = inputs[name]
        value = getattr(node, name)
        shown = inputs.get(f"{name}_printed", fact)
        status = "input" if value == fact.value else "changed by the reader"
        rows.append((title, unit, shown.value, value, status, fact.kind, fact.note))
    for name, title in RESULTS.items():
        fact, value = printed[name], results[name]
        exact = rounds_to(value, float(fact.value), fact.unit)
        status = EXACT if exact else RECONCILED if name in ROUNDED else within(value / float(fact.value) - 1)
        rows.append((title, fact.unit, fact.value, value, status, fact.kind, fact.note))
    return Table(
        name="h200_tco",
        title="Cost of ownership of an H200 server",
        says="Capital is an annuity over the useful life at the cost of capital, paid at each month's end. "
        "Operation is power and colocation by the kilowatt, remote hands and internet. All lines above the line "
        "“Capital outlay without the server” are inputs of the source, all others are computed from them.",
        columns=(
            Column(name="line", title="Line"),
            Column(name="unit", title="", joins=True),
            Column(name="printed", title="Printed", digits=4),
            Column(name="computed", title="Computed", digits=4),
            Column(name="status", title="Status"),
            Column(name="kind", title="Kind"),
            Column(name="note", title="Note", prose=True),
        ),
        rows=tuple(rows),
        sources=(NODE,),
    )


def process_rows(name: str) -> list[dict[str, float]]:
    """The numbers of a measured run's steps."""
    words = {"kind", "source", "where", "note"}
    return [{key: float(value) for key, value in row.items() if key not in words} for row in table(name)]


def process_table(assumptions: Assumptions, name: str) -> Table:
    """A run's steps as printed, with self-built cost by the report's method and hosted cost of each, computed."""
    scenario = assumptions.scenario(name)
    bill = cost(scenario, solve(scenario))
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    rows = []
    for step in process_rows(scenario.measured_run):
        tokens = scenario.samples_per_step * step["mean_sequence_tokens"]
        own = latency_charged_usd_per_mtok(gpus, bill.usd_per_gpu_hour, step["rollout_s"], tokens)
        hosted = hosted_of(scenario, step)
        rows.append(
            (
                int(step["step"]), step["mean_prompt_tokens"], step["mean_response_tokens"], step["mean_sequence_tokens"],
                step["rollout_s"], own * tokens / TOKENS_PER_MTOK, own, hosted * tokens / TOKENS_PER_MTOK, hosted, own / hosted,
            )
        )  # fmt: skip
    means = ("mean", *(fmean(row[i] for row in rows) for i in range(1, 9)))
    rows.append((*means, means[6] / means[8]))
    prompt = "prompt = sequence - response, derived" if name == SLIME else "prompt as printed"
    return Table(
        name=f"{scenario.measured_run}_cost",
        title=f"{TITLES[name]}: process and cost of each step",
        says=f"Lengths and rollout time are printed ({prompt}). Costs are computed: self-built charges {gpus} GPUs "
        f"at {round(bill.usd_per_gpu_hour, 2):.2f} $/GPU-hour for the mean rollout time of the step, as the report "
        f"does; hosted charges the same tokens by the price row {scenario.hosted_price.key}.",
        columns=(
            Column(name="step", title="Step", digits=0),
            Column(name="mean_prompt_tokens", title="Prompt", unit="token", digits=0),
            Column(name="mean_response_tokens", title="Response", unit="token", digits=0),
            Column(name="mean_sequence_tokens", title="Sequence", unit="token", digits=0),
            Column(name="rollout_s", title="Rollout", unit="s", digits=1),
            Column(name="self_built_usd_per_step", title="Self-built", unit="$/step"),
            Column(name="self_built_usd_per_mtok", title="Self-built", unit="$/Mtok"),
            Column(name="hosted_usd_per_step", title="Hosted", unit="$/step"),
            Column(name="hosted_usd_per_mtok", title="Hosted", unit="$/Mtok"),
            Column(name="ratio", title="Ratio"),
        ),
        rows=tuple(rows),
        sources=(REPORT, NODE),
    )


def hosted_of(scenario: Scenario, step: dict[str, float]) -> float:
    """Hosted price of a trained Mtok of one measured step [$/Mtok]."""
    return hosted_usd_per_mtok(scenario.hosted_price, step["mean_prompt_tokens"], step["mean_response_tokens"])


HOSTED_PARTS = (
    ("prefill_usd", "Prefill"),
    ("decode_usd", "Decode"),
    ("train_usd", "Train"),
    ("total_usd", "Total"),
)


def hosted_table(assumptions: Assumptions) -> Table:
    """The report's hosted cost of the slime run, to the cent: 20 rows printed, 20 computed."""
    scenario = assumptions.scenario(SLIME)
    samples = scenario.samples_per_step
    rows = []
    for step, printed in zip(process_rows("slime_process"), process_rows("slime_hosted_cost"), strict=True):
        bill = hosted_usd(
            scenario.hosted_price, samples * step["mean_prompt_tokens"], samples * step["mean_response_tokens"]
        )
        pairs = [(printed[part], getattr(bill, part)) for part, _ in HOSTED_PARTS]
        pairs.append((printed["usd_per_mtok"], hosted_of(scenario, step)))
        agree = all(rounds_to(ours, theirs, "USD") for theirs, ours in pairs)
        off = max(abs(ours - theirs) for theirs, ours in pairs)
        status = "exact" if agree else f"within {100 * off:.2f} cent"
        rows.append((int(step["step"]), *(value for pair in pairs for value in pair), status))
    columns = [Column(name="step", title="Step", digits=0)]
    for part, title in (*HOSTED_PARTS, ("usd_per_mtok", "Per Mtok")):
        unit = "$/Mtok" if part == "usd_per_mtok" else "$/step"
        columns += [
            Column(name=f"{part}_printed", title=f"{title} printed", unit=unit),
            Column(name=f"{part}_computed", title=f"{title} computed", unit=unit, digits=4),
        ]
    exact = sum(row[-1] == "exact" for row in rows)
    return Table(
        name="slime_hosted_cost",
        title="Hosted cost of the slime run, step by step",
        says=f"Printed and computed from the lengths of the process table, {samples} samples a step and the price "
        f"row {scenario.hosted_price.key}. Every cell of {exact} of the {len(rows)} rows rounds to the printed cent.",
        columns=(*columns, Column(name="status", title="Status")),
        rows=tuple(rows),
        sources=(REPORT, "tinker-prices-2026-03"),
    )


def hosted_mean(scenario: Scenario) -> float:
    """Hosted price as the report averages it: the mean over the steps of the measured run [$/Mtok]."""
    return fmean(hosted_of(scenario, step) for step in process_rows(scenario.measured_run))


def wall_clock_from_printed(scenario: Scenario) -> float | None:
    """Wall-clock cost from the printed production alone, without our queue [$/Mtok]; None where none is printed."""
    facts = reported(scenario.name)
    if "production_per_s" not in facts:
        return None
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    price = cost(scenario, solve(scenario)).usd_per_gpu_hour
    tokens_per_s = float(facts["production_per_s"].value) * float(facts["mean_sequence_tokens"].value)
    return gpus * price / SECONDS_PER_HOUR / tokens_per_s * TOKENS_PER_MTOK


def comparison(assumptions: Assumptions) -> list[tuple[str, str, str, str, float | None, float, str, str]]:
    """Self-built against hosted: run, method, quantity, unit, printed, computed, status, explanation."""
    rows = []
    for name in PRICED:
        scenario = assumptions.scenario(name)
        facts, bill, hosted = reported(name), cost(scenario, solve(scenario)), hosted_mean(scenario)
        own = measured_report_method(scenario)
        latency = "charges the mean rollout time of each step to all GPUs, though steps overlap"
        listed = "prefill, sample and train price of each step's tokens, mean over the steps"
        for quantity, unit, key, value, said in (
            ("self-built", "$/Mtok", "usd_per_mtok_report_method", own, latency),
            ("hosted", "$/Mtok", "hosted_usd_per_mtok", hosted, listed),
            ("self-built over hosted", "1", "cost_ratio", own / hosted, latency),
        ):
            printed = float(facts[key].value)
            status = "exact" if rounds_to(value, printed, unit) else within(value / printed - 1)
            rows.append((TITLES[name], "report's method", quantity, unit, printed, value, status, said))
        rows += _by_wall_clock(scenario, bill, hosted)
    return rows


def _by_wall_clock(scenario: Scenario, bill: Bill, hosted: float) -> list[tuple]:
    said = "charges each GPU-second of the run once; the report prints no such figure"
    title = TITLES[scenario.name]
    rows = [
        (title, "wall-clock, closed form", "self-built", "$/Mtok", None, bill.usd_per_mtok, "not printed", said),
        (
            title,
            "wall-clock, closed form",
            "self-built over hosted",
            "1",
            None,
            bill.usd_per_mtok / hosted,
            "not printed",
            said,
        ),
    ]
    from_printed = wall_clock_from_printed(scenario)
    if from_printed is not None:
        said = "the same from the printed production and mean sequence alone, without our queue"
        rows.append(
            (title, "wall-clock, printed rates", "self-built", "$/Mtok", None, from_printed, "not printed", said)
        )
    return rows


def comparison_table(assumptions: Assumptions) -> Table:
    """The comparison that the report draws, by its method, and the same by wall-clock."""
    return Table(
        name="comparison",
        title="Self-built against hosted, by two methods",
        says="The report's method and wall-clock give different answers for the same run: which of the two is "
        "cheaper depends on whether a step is charged with the time of a rollout or with the time between two "
        "steps.",
        columns=(
            Column(name="run", title="Run"),
            Column(name="method", title="Method"),
            Column(name="quantity", title="Quantity"),
            Column(name="unit", title="", joins=True),
            Column(name="printed", title="Printed"),
            Column(name="computed", title="Computed", digits=3),
            Column(name="status", title="Status"),
            Column(name="note", title="What it does", prose=True),
        ),
        rows=tuple(comparison(assumptions)),
        grouped=True,
        sources=(REPORT, NODE, "tinker-prices-2026-03"),
    )


def all_tables(assumptions: Assumptions) -> tuple[Table, ...]:
    """The tables of this module, in the order of the page."""
    return (
        tco_table(assumptions), process_table(assumptions, PRIME), process_table(assumptions, SLIME),
        hosted_table(assumptions), comparison_table(assumptions),
    )  # fmt: skip
