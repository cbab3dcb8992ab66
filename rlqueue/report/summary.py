"""The key data of the report: each printed number, the computed one, and how they stand to each other."""

from statistics import fmean

from rlqueue.cost import Bill, cost, hosted_usd, measured_report_method, usd_per_gpu_hour
from rlqueue.operating_point import OperatingPoint
from rlqueue.presets import reported
from rlqueue.queueing import solve
from rlqueue.rates import lengths_of
from rlqueue.report.agreement import EXACT, IN_RANGE, NOT_COMPUTABLE, RECONCILED, Agreement, row
from rlqueue.report.assumptions import GLM, PRIME, SLIME, TITLES, VERL, Assumptions
from rlqueue.report.content import NODE, REPORT, Column, Table
from rlqueue.report.measured import glm_lengths, glm_points
from rlqueue.report.sandboxes import cap_that_explains
from rlqueue.report.spread import SAMPLES, band, consumption_over_production, of_point, usd_per_mtok
from rlqueue.report.tables import RESULTS, ROUNDED, hosted_mean, node_results, process_rows
from rlqueue.report.written import shown
from rlqueue.scenario import Scenario
from rlqueue.tco import tco
from rlqueue.uncertainty import LEVEL

ARITHMETIC, INPUT, CALIBRATED, PREDICTION = "arithmetic", "input", "calibrated", "prediction"
TESTS = {
    PREDICTION: "computed by the model from other numbers",
    ARITHMETIC: "arithmetic on other printed numbers",
    INPUT: "taken from the source: agreement tests nothing",
    CALIBRATED: "an input was fitted to this number: agreement tests nothing",
}


def key_data(assumptions: Assumptions) -> list[Agreement]:
    """Every number that the source reports, run by run, in the order of data/reported.csv."""
    return [*_prime(assumptions), *_glm(assumptions), *_slime(assumptions), *_verl(assumptions), *_node(assumptions),
            *_summary(assumptions)]  # fmt: skip


def _solved(assumptions: Assumptions, name: str) -> tuple[Scenario, OperatingPoint, Bill]:
    scenario = assumptions.scenario(name)
    point = solve(scenario)
    return scenario, point, cost(scenario, point)


def _lengths(scenario: Scenario) -> dict[str, float]:
    rows = process_rows(scenario.measured_run)
    return {name: fmean(each[name] for each in rows) for name in rows[0]}


def _prime(assumptions: Assumptions) -> list[Agreement]:
    scenario, point, bill = _solved(assumptions, PRIME)
    facts, means, title = reported(PRIME), _lengths(scenario), TITLES[PRIME]
    peak = scenario.trainer_gpus * scenario.trainer_gpu.dense_bf16_flops_per_s
    consumption, tokens = (float(facts[name].value) for name in ("consumption_per_s", "mean_sequence_tokens"))
    mfu = 6 * scenario.llm.active_params * consumption * tokens / peak
    own, hosted = measured_report_method(scenario), hosted_mean(scenario)
    text, chart = (float(facts[name].value) for name in ("production_per_s", "production_per_s_chart"))
    closed, production = "closed form", band(assumptions, PRIME, of_point("production_per_s"))
    return [
        row(title, "consumption while computing", facts["consumption_per_s"], point.consumption_per_s, closed, INPUT,
            band=band(assumptions, PRIME, of_point("consumption_per_s")),
            explanation="from the printed MFU, which the source computed from this number: no independent test"),
        row(title, "production (text)", facts["production_per_s"], point.production_per_s, closed, CALIBRATED, band=production),
        row(title, "production (chart)", facts["production_per_s_chart"], point.production_per_s, closed, CALIBRATED,
            band=production, reconciled=True,
            explanation=f"the same quantity is printed twice: {text:g} in the text, {chart:g} under the chart"),
        row(title, "trainer wait", facts["trainer_wait_ratio"], point.trainer_wait_ratio, closed, CALIBRATED,
            band=band(assumptions, PRIME, of_point("trainer_wait_ratio")),
            explanation=f"printed as “about”; 1 - {text:g} / {consumption:g} = {1 - text / consumption:.3f}. It "
            "follows from the two rates, of which production was fitted"),
        row(title, "MFU while computing", facts["mfu_computing"], mfu, "6 * active parameters * tokens * rate / dense peak",
            ARITHMETIC),
        row(title, "mean rollout time", facts["mean_rollout_s"], point.rollout_s, closed, CALIBRATED,
            band=band(assumptions, PRIME, of_point("rollout_s"))),
        row(title, "mean prompt", facts["mean_prompt_tokens"], means["mean_prompt_tokens"], "mean of ten printed rows",
            ARITHMETIC),
        row(title, "mean response", facts["mean_response_tokens"], means["mean_response_tokens"], "mean of ten printed rows",
            ARITHMETIC),
        row(title, "mean sequence", facts["mean_sequence_tokens"], means["mean_sequence_tokens"], "mean of ten printed rows",
            ARITHMETIC, explanation=f"the rows average {means['mean_sequence_tokens']:,.1f}: cut, not rounded, in "
            "the source", reconciled=True),
        row(title, "discarded rollouts (up to)", facts["discarded_rollouts_ratio_high"], point.discarded_ratio, closed, INPUT,
            band=band(assumptions, PRIME, of_point("discarded_ratio"))),
        row(title, "self-built, report's method", facts["usd_per_mtok_report_method"], own, "mean over ten printed steps",
            ARITHMETIC,
            explanation=f"latency charged as wall-clock: {point.rollout_s / point.step_s:.2f} steps end in the time "
            f"of one rollout, and each is charged that whole time. By wall-clock it is {bill.usd_per_mtok:.2f} "
            "$/Mtok"),
        row(title, "self-built, wall-clock (our arithmetic)", facts["usd_per_mtok"], bill.usd_per_mtok, closed, CALIBRATED,
            band=band(assumptions, PRIME, usd_per_mtok)),
        row(title, "hosted price", facts["hosted_usd_per_mtok"], hosted, "price row, mean over ten printed steps", ARITHMETIC),
        row(title, "self-built over hosted", facts["cost_ratio"], own / hosted, "report's method", ARITHMETIC,
            explanation=f"by wall-clock the ratio is {bill.usd_per_mtok / hosted:.2f}"),
    ]  # fmt: skip


def _glm(assumptions: Assumptions) -> list[Agreement]:
    _, point, _ = _solved(assumptions, GLM)
    facts, title = reported(GLM), TITLES[GLM]
    points = glm_points(assumptions)
    wait, ratio = float(facts["trainer_wait_ratio"].value), point.consumption_per_s / point.production_per_s
    said = float(facts["consumption_over_production_text"].value)
    calls = "what the policy does; the model takes tool calls as an input"
    lengths = glm_lengths()
    first, last = points[0], points[-1]
    return [
        row(title, "trainer wait", facts["trainer_wait_ratio"], point.trainer_wait_ratio, "closed form", CALIBRATED,
            band=band(assumptions, GLM, of_point("trainer_wait_ratio"))),
        row(title, "consumption over production (summary)", facts["consumption_over_production"], ratio, "closed form",
            CALIBRATED, band=band(assumptions, GLM, consumption_over_production),
            explanation=f"printed as “about four”; a wait of {wait:.0%} is 1 / (1 - {wait:g}) = {1 / (1 - wait):.2f}"),
        row(title, "consumption over production (text)", facts["consumption_over_production_text"], ratio, "closed form",
            CALIBRATED, band=band(assumptions, GLM, consumption_over_production),
            explanation=f"contradicts the printed wait: {said:g} times would be a wait of {1 - 1 / said:.0%}, not "
            f"{wait:.0%}",
            reconciled=True),
        row(title, "consumption over production (implied)", facts["consumption_over_production_implied"], 1 / (1 - wait),
            "1 / (1 - wait)", ARITHMETIC),
        row(title, "groups solved by all rollouts", facts["full_solve_groups_ratio"],
            assumptions.scenario(GLM).filtered_fraction, "knob of the run", INPUT),
        row(title, "tool calls, first step", facts["tool_calls_first"], None, "", INPUT, explanation=calls),
        row(title, "tool calls, last step", facts["tool_calls_last"], None, "", INPUT, explanation=calls),
        row(title, "LLM time, first step", facts["llm_first_s"], first.llm_s, "closed form at the chart's length", PREDICTION,
            explanation=f"at {lengths[0][1]:,.0f} tokens read off the chart"),
        row(title, "LLM time, last step", facts["llm_last_s"], last.llm_s, "closed form at the chart's length", PREDICTION,
            explanation=f"at {lengths[-1][1]:,.0f} tokens read off the chart"),
        row(title, "LLM share of a rollout", facts["llm_share"], point.decoding_ratio, "closed form", CALIBRATED,
            band=band(assumptions, GLM, of_point("decoding_ratio"))),
    ]  # fmt: skip


def _slime(assumptions: Assumptions) -> list[Agreement]:
    scenario, point, bill = _solved(assumptions, SLIME)
    facts, means, title = reported(SLIME), _lengths(scenario), TITLES[SLIME]
    own, hosted = measured_report_method(scenario), hosted_mean(scenario)
    samples = scenario.samples_per_step
    usd = hosted_usd(
        scenario.hosted_price, samples * means["mean_prompt_tokens"], samples * means["mean_response_tokens"]
    )
    rows_mean = "mean of twenty printed rows"
    priced = "price row at the mean lengths"
    return [
        row(title, "trainer wait", facts["trainer_wait_ratio"], point.trainer_wait_ratio, "closed form", CALIBRATED,
            band=band(assumptions, SLIME, of_point("trainer_wait_ratio")),
            explanation="the number of slots was chosen in whole rollouts per replica, near the printed wait"),
        row(title, "mean rollout time", facts["mean_rollout_s"], point.rollout_s, "closed form", CALIBRATED,
            band=band(assumptions, SLIME, of_point("rollout_s"))),
        row(title, "mean response", facts["mean_response_tokens"], means["mean_response_tokens"], rows_mean, ARITHMETIC),
        row(title, "mean sequence", facts["mean_sequence_tokens"], means["mean_sequence_tokens"], rows_mean, ARITHMETIC),
        row(title, "mean prompt", facts["mean_prompt_tokens"], means["mean_prompt_tokens"], "sequence - response, " + rows_mean,
            ARITHMETIC, explanation="the derived figure takes the printed averages, which are rounded", reconciled=True),
        row(title, "tool calls", facts["tool_calls"], scenario.tool_calls, "knob of the run", INPUT),
        row(title, "self-built, report's method", facts["usd_per_mtok_report_method"], own, "mean over twenty printed steps",
            ARITHMETIC,
            explanation=f"latency charged as wall-clock: {point.rollout_s / point.step_s:.2f} steps end in the time "
            f"of one rollout. By wall-clock it is {bill.usd_per_mtok:.2f} $/Mtok"),
        row(title, "hosted price", facts["hosted_usd_per_mtok"], hosted, "price row, mean over twenty printed steps", ARITHMETIC),
        row(title, "hosted prefill", facts["hosted_prefill_usd_per_step"], usd.prefill_usd, priced, ARITHMETIC),
        row(title, "hosted decode", facts["hosted_decode_usd_per_step"], usd.decode_usd, priced, ARITHMETIC),
        row(title, "hosted train", facts["hosted_train_usd_per_step"], usd.train_usd, priced, ARITHMETIC),
        row(title, "hosted total", facts["hosted_total_usd_per_step"], usd.total_usd, priced, ARITHMETIC),
        row(title, "self-built over hosted", facts["cost_ratio"], own / hosted, "report's method", ARITHMETIC,
            explanation=f"by wall-clock the ratio is {bill.usd_per_mtok / hosted:.2f}"),
    ]  # fmt: skip


def _verl(assumptions: Assumptions) -> list[Agreement]:
    rows = []
    for name in VERL:
        scenario, point, _ = _solved(assumptions, name)
        facts, title = reported(name), TITLES[name]
        fitted = name == VERL[0]
        said = "printed as one range for all phases"
        rows += [
            row(title, "trainer wait", facts["trainer_wait_ratio_low"], point.trainer_wait_ratio, "closed form",
                CALIBRATED if fitted else PREDICTION, explanation=said,
                band=band(assumptions, name, of_point("trainer_wait_ratio")),
                high=float(facts["trainer_wait_ratio_high"].value)),
            row(title, "rollouts cut at the longest sequence", facts["truncated_ratio_low"],
                lengths_of(scenario).truncated_fraction, "length distribution", PREDICTION,
                band=band(assumptions, name, lambda each, _: lengths_of(each).truncated_fraction),
                explanation=f"{said}; the mean length of this run is assumed", high=float(facts["truncated_ratio_high"].value)),
        ]  # fmt: skip
    facts, title = reported("verl-qwen3-235b"), "verl · all phases"
    last = assumptions.scenario(VERL[-1])
    point, cap = solve(last), cap_that_explains(assumptions)
    rows += [
        row(title, "slowest rollout", facts["tail_rollout_s"], slowest_rollout_s(last, point), "longest of a batch, "
        "closed form",
            PREDICTION, band=band(assumptions, VERL[-1], slowest_rollout_s),
            explanation=f"at {last.concurrency} slots; the source names no phase, and lengths are assumed"),
        row(title, "concurrency, low end", facts["concurrency_low"], assumptions.scenario(VERL[0]).concurrency, "knob of the run",
            INPUT),
        row(title, "concurrency, high end", facts["concurrency_high"], None, "", INPUT,
            explanation="a value that was tried; no run at it is reported"),
        row(title, "sandbox start of a straggler", facts["straggler_start_s"], None, "", PREDICTION,
            explanation=f"the account's cap is not given; a cap of about {cap:.0f} running sandboxes would explain it"),
    ]  # fmt: skip
    return rows


def slowest_rollout_s(scenario: Scenario, point: OperatingPoint) -> float:
    """Time of the longest rollout of a batch [s]: its tokens at the mean speed, and the mean time outside the LLM."""
    longest = lengths_of(scenario).mean_of_longest_tokens(scenario.prompts_per_step)
    llm_s = point.rollout_s * point.decoding_ratio
    return point.rollout_s - llm_s + llm_s * longest / scenario.mean_response_tokens


def _node(assumptions: Assumptions) -> list[Agreement]:
    facts, results = reported("h200-tco"), node_results(assumptions.node)
    name = "capex_without_server_usd_per_server"
    rounding = {name: f"the five printed items sum to {results[name]:,.0f}: rounding in the source"}
    return [
        row("H200 server", title, facts[name], results[name], "cost of ownership", ARITHMETIC,
            explanation=rounding.get(name, ""), reconciled=name in ROUNDED)
        for name, title in RESULTS.items()
    ]  # fmt: skip


def _summary(assumptions: Assumptions) -> list[Agreement]:
    facts, title = reported("summary"), "Summary of the report"
    slime, prime = assumptions.scenario(SLIME), assumptions.scenario(PRIME)
    own, hosted = measured_report_method(slime), hosted_mean(slime)
    point, found = solve(slime), tco(assumptions.node)
    wait = float(facts["slime_trainer_wait_ratio"].value)
    return [
        row(title, "hosted price of the slime run", facts["slime_hosted_usd_per_mtok"], hosted, "price row, mean over "
        "twenty steps",
            ARITHMETIC, explanation=f"the ratio was printed as the price: {own:.2f} / {hosted:.2f} = "
            f"{own / hosted:.2f}; the price is {hosted:.2f}", reconciled=True),
        row(title, "self-built over hosted, slime", facts["slime_cost_ratio"], own / hosted, "report's method", ARITHMETIC),
        row(title, "trainer wait of slime", facts["slime_trainer_wait_ratio"], point.trainer_wait_ratio, "closed form",
            CALIBRATED, band=band(assumptions, SLIME, of_point("trainer_wait_ratio")),
            explanation=f"the {wait:.0%} belong to GLM-5 on Prime RL in the text, which gives slime "
            f"{float(reported(SLIME)['trainer_wait_ratio'].value):.0%}", reconciled=True),
        row(title, "cost of a GPU-month", facts["usd_per_gpu_month"], found.power_and_colocation_usd_per_gpu_month,
            "power and colocation", ARITHMETIC, explanation="without remote hands and internet; all operation is "
            f"{found.operating_usd_per_gpu_month:.2f}, and with capital a GPU-month costs "
            f"{usd_per_gpu_hour(prime) * assumptions.node.hours_per_month:,.2f}", reconciled=True),
        row(title, "self-built over hosted, Prime RL", facts["prime_cost_ratio"],
            measured_report_method(prime) / hosted_mean(prime), "report's method", ARITHMETIC),
    ]  # fmt: skip


def key_table(rows: list[Agreement]) -> Table:
    """The key data as a table."""
    return Table(
        name="key_data",
        title="Key data: printed, computed, and how they agree",
        says="“exact” means equal once rounded as printed (shares: to whole per cent at least). The column “test” "
        "says what an agreement is worth: " + "; ".join(f"{name}: {words}" for name, words in TESTS.items())
        + f". “inputs”: {LEVEL:.0%} of {SAMPLES} samples "
        "of the inputs that the source does not print lie there; arithmetic, and what was put in, is exact.",
        columns=(
            Column(name="run", title="Run"),
            Column(name="quantity", title="Quantity"),
            Column(name="unit", title="", joins=True),
            Column(name="printed", title="Printed", digits=4),
            Column(name="printed_high", title="to", digits=4, joins=True),
            Column(name="computed", title="Computed", digits=4),
            Column(name="band_low", title="inputs", digits=4, joins=True),
            Column(name="band_high", title="to", digits=4, joins=True),
            Column(name="status", title="Status and test"),
            Column(name="test", title="", joins=True),
            Column(name="how", title="How it is computed"),
            Column(name="explanation", title="Explanation, or what is missing", prose=True),
            Column(name="printed_in", title="Kind and place"),
        ),
        rows=tuple(
            (each.run, each.quantity, each.unit, each.printed, each.high, each.computed, *(each.band or (None, None)),
             each.status, each.test, each.how, each.explanation, f"{each.kind}, {each.where}")
            for each in rows
        ),
        grouped=True,
        sources=(REPORT, NODE),
    )  # fmt: skip


def counted(rows: list[Agreement]) -> str:
    """How many of the numbers stand how, as one sentence."""
    names = (EXACT, IN_RANGE, "within 1 %", "within 25 %", "missed", RECONCILED, NOT_COMPUTABLE)
    kinds = dict.fromkeys(names, 0)
    for each in rows:
        status = each.status
        if status.startswith("within"):
            status = "within 1 %" if abs(each.relative_error) <= 0.01 else "within 25 %"
        kinds["missed" if status.startswith("missed") else status] += 1
    tested = sum(each.test in (PREDICTION, ARITHMETIC) for each in rows)
    words = ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number)
    return f"{len(rows)} numbers: {words}. {tested} are predictions or arithmetic; the others were put in or fitted to."


def corrections(rows: list[Agreement]) -> tuple[str, ...]:
    """Each printed number that does not stand as printed, with the reason; nothing is corrected silently."""
    return tuple(
        f"{each.run}, {each.quantity}: printed {shown(each.printed, 4)}, computed {shown(each.computed, 4)} "
        f"{_unit(each)}: {each.explanation}."
        for each in rows
        if each.reconciled and each.computed is not None
    )


def _unit(each: Agreement) -> str:
    return "(ratio)" if each.unit == "1" else each.unit
