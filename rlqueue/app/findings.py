"""Facts of the sources that don't agree at first sight, and why there are two costs of a trained Mtok; numbers from data/."""

from __future__ import annotations

from html import escape

from rlqueue.app.answers import Answer
from rlqueue.app.formats import dollars, seconds
from rlqueue.app.state import preset_row
from rlqueue.cost import measured_report_method
from rlqueue.presets import preset, reported
from rlqueue.tco import tco
from rlqueue.units import after_number


def two_costs(answer: Answer) -> str:
    """Why the report's cost and the wall-clock cost differ, with the numbers of the scenario at hand."""
    state, point, bill = answer.state, answer.point, answer.bill
    scenario = state.scenario
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    paragraphs = [
        (
            f"<b>{dollars(bill.usd_per_mtok)} by wall-clock</b>: a step ends every {seconds(point.step_s)}, and {gpus} GPUs are "
            f"paid for that long at {dollars(bill.usd_per_gpu_hour)} a GPU-hour. Each GPU-second is charged once. "
            "Use this one for a budget."
        ),
        f"<b>{dollars(bill.usd_per_mtok_report_method)} by the report's method</b>: each step is charged the mean time of one "
        f"rollout, {seconds(point.rollout_s)}. "
        + _overlapping(point.rollout_s / point.step_s)
        + "Use this one only to compare with the report.",
    ]
    measured = measured_report_method(state.start)
    facts = reported(state.preset)
    if measured is not None and "cost_ratio" in facts:
        hosted, ratio = facts["hosted_usd_per_mtok"], facts["cost_ratio"]
        paragraphs.append(
            f"The report prints {dollars(facts['usd_per_mtok_report_method'].value)} against {dollars(hosted.value)} hosted, a "
            f"ratio of {ratio.value}; its table of measured steps gives {dollars(measured)}. By wall-clock the same run costs "
            f"{dollars(answer.start_bill.usd_per_mtok)}, a ratio of {answer.start_bill.cost_ratio:.2f}."
        )
    return "".join(f"<p>{each}</p>" for each in paragraphs)


def _overlapping(steps: float) -> str:
    if steps > 1.05:
        return (
            f"But steps overlap: {steps:.1f} of them end in that time, and the same GPU-seconds are charged to each. "
        )
    if steps > 0.95:
        return "A step takes about as long here, so the two nearly agree. "
    return "A step takes longer here, so this charges less than what is paid. "


def open_facts(name: str) -> str:
    """What of the report's numbers about this run contradicts itself, and what of ours is no test because it was fitted."""
    items = [*DISAGREEMENTS.get(name, list)(), *_everywhere(name)]
    fitted = [
        f"<b>{escape(knob)}</b> = {fact.value:,}{_unit(fact.unit)}: {escape(fact.note)}"
        for knob, fact in preset(name).items()
        if fact.kind == "calibrated"
    ]
    html = _listed("Facts that don't agree at first sight", items) + _listed("Fitted to the run, so no test", fitted)
    return html + f'<p class="rlq-small">Run: {escape(preset_row(name)["title"])}.</p>'


def _unit(unit: str) -> str:
    return escape(after_number(unit))


def _listed(title: str, items: list[str]) -> str:
    return f"<h4>{title}</h4><ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""


def _prime() -> list[str]:
    facts = reported("prime-rl-qwen3-235b")
    text, chart = facts["production_per_s"].value, facts["production_per_s_chart"].value
    consumption, wait = facts["consumption_per_s"].value, facts["trainer_wait_ratio"].value
    return [
        (
            f"Production is {text}/s in the text and {chart}/s under the chart. With {consumption}/s consumed they mean a wait "
            f"of {1 - text / consumption:.0%} and {1 - chart / consumption:.0%}; the report says about {wait:.0%}."
        ),
        (
            f"“Ratio {facts['cost_ratio'].value}” compares {dollars(facts['usd_per_mtok_report_method'].value)} by the report's "
            f"method with {dollars(facts['hosted_usd_per_mtok'].value)} hosted. By wall-clock, "
            f"{dollars(facts['usd_per_mtok'].value)}, self-built is the cheaper one."
        ),
        (
            f"Up to {facts['discarded_rollouts_ratio_high'].value:.0%} of the rollouts are thrown away: the preset takes that "
            "upper end, as surplus groups that were finished."
        ),
    ]


def _glm() -> list[str]:
    facts = reported("prime-rl-glm-5")
    wait = facts["trainer_wait_ratio"].value
    said = facts["consumption_over_production_text"].value
    return [
        (
            f"A wait of {wait:.0%} means that consumption is {1 / (1 - wait):.2f} times production: the summary's “about four”. "
            f"The text says {said} times, which would be a wait of {1 - 1 / said:.0%}."
        ),
        f"The summary gives the {wait:.0%} to slime; the text gives it to this run.",
    ]


def _slime() -> list[str]:
    facts, summary = reported("slime-qwen3-235b"), reported("summary")
    method, hosted = facts["usd_per_mtok_report_method"].value, facts["hosted_usd_per_mtok"].value
    printed = summary["slime_hosted_usd_per_mtok"].value
    wait, other = facts["trainer_wait_ratio"].value, summary["slime_trainer_wait_ratio"].value
    return [
        (
            f"The summary prints a hosted price of {dollars(printed)}. That is the ratio: {method} / {hosted} = "
            f"{method / hosted:.2f}. The price is {dollars(hosted)}."
        ),
        f"The summary says that slime's trainer waits {other:.0%}; the text says {wait:.0%}, and {other:.0%} for GLM-5.",
    ]


def _verl() -> list[str]:
    low, high = (reported("verl-qwen3-235b-c96")[f"trainer_wait_ratio_{end}"].value for end in ("low", "high"))
    return [
        (
            f"{low:.0%} to {high:.0%} of waiting is printed as one range for the whole run, not for its phases of "
            "different concurrency."
        ),
        "Batch, lengths and budget of this run are not in the report: most of its knobs are assumed, and marked so.",
    ]


DISAGREEMENTS = {
    "prime-rl-qwen3-235b": _prime,
    "prime-rl-glm-5": _glm,
    "slime-qwen3-235b": _slime,
    "verl-qwen3-235b-c96": _verl,
    "verl-qwen3-235b-c256": _verl,
    "verl-qwen3-235b-c360": _verl,
}


def _everywhere(name: str) -> list[str]:
    """The cost of an H200 node, where the preset pays for one."""
    if "gpu_hour_usd" in preset(name):
        return []
    summary, node = reported("summary")["usd_per_gpu_month"], reported("h200-tco")
    power = tco().power_and_colocation_usd_per_gpu_month
    return [
        (
            f"${summary.value} per GPU-month in the summary is power and colocation only ({dollars(power)}); all operating cost "
            f"is {dollars(node['operating_usd_per_gpu_month'].value)}, and capital comes on top."
        )
    ]
