"""What the page "how do I split my GPUs?" says in text and tables."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from rlqueue.app import page_table
from rlqueue.app.banded import between, note, of_inputs
from rlqueue.app.cards import Card, listed
from rlqueue.app.formats import count, dollars, percent, versions
from rlqueue.app.origins import kind_tag
from rlqueue.app.plan_work import QUANTITY, Made
from rlqueue.planning import Plan, sentences
from rlqueue.planning.search import Option
from rlqueue.planning.words import against
from rlqueue.uncertainty import Bar, measure_first

BANDS = ("usd_per_mtok", "trainer_wait_ratio", "trained_tokens_per_s", "staleness_versions")


def stamp(made: Made) -> str:
    """What the drawn figures carry to say what they show."""
    if made.plan is None:
        return "no plan"
    best = made.plan.best.scenario
    return (
        f"{made.asked.preset} {made.asked.gpus} GPUs {made.asked.objective} {best.trainer_gpus}:{best.generator_gpus} "
        f"C={best.concurrency} S={best.max_staleness:g} {best.schedule}"
    )


def doing(share: float, what: str, *, old: bool) -> str:
    """How far the plan is; below it may stand the last one."""
    still = " Below: the last plan." if old else ""
    return (
        f'<p class="rlq-how">{kind_tag("simulated")}<span>Planning: {escape(what)}.{still}</span> '
        f'<progress max="100" value="{100 * share:.0f}" aria-label="plan"></progress> {share:.0%}</p>'
    )


def how(made: Made) -> str:
    """What the plan rests on."""
    if made.plan is None:
        return ""
    found = made.plan
    turns = "all turns of a rollout in one" if found.lumped else "every turn simulated"
    return (
        f'<p class="rlq-how">{kind_tag("simulated")}<span>Every plan by closed form; {found.runs} runs with common seeds '
        f"({found.events / 1e6:.0f} million events) decide; finalists on {len(found.seeds)} fresh seeds, {turns}.</span> "
        '<span class="rlq-done">plan made</span></p>'
    )


def words(made: Made | None) -> str:
    """The plan in sentences, or why there is none."""
    if made is None:
        return ""
    if made.plan is None:
        return f'<p class="rlq-verdict" role="status">{escape(made.refusal[0].upper() + made.refusal[1:])}.</p>'
    first, *others = sentences(made.plan)
    rest = "".join(f"<li>{escape(each)}</li>" for each in others)
    return f'<div class="rlq-plan-words"><p class="rlq-verdict" role="status">{escape(first)}</p><ul>{rest}</ul></div>'


def cards(made: Made | None) -> str:
    """What the plan comes to: simulated, its goal with the chance of the seeds, all with the bands of the plan's inputs."""
    if made is None or made.plan is None:
        return ""
    best, goal, quantity = made.plan.best, made.plan.goal, QUANTITY[made.asked.objective]
    chance = between("seeds", _number(best.low), _number(best.high), OF_SEEDS.format(len(made.plan.seeds)))

    def reached(value: float) -> str:
        return _number(goal.hours({quantity: value}) if goal.objective == "hours" else value)

    first = Card(
        name=GOALS[goal.objective], text=_number(best.value), unit=goal.unit, kind="simulated", means="the goal",
        spans=(chance, of_inputs(made.bands, quantity, reached)), look="rlq-strong",
    )  # fmt: skip
    others = [
        Card(
            name=name, text=shown(best.answers[field]), unit=unit, kind="simulated", means=means,
            spans=(of_inputs(made.bands, field, shown),),
        )
        for name, field, shown, unit, means in ANSWERS if field != quantity
    ]  # fmt: skip
    return listed([first, *others], note=note(made.bands, f"seeds: {OF_SEEDS.format(len(made.plan.seeds))};", STAYS))


OF_SEEDS = "where the mean of the {} deciding seeds lies with a confidence of 95%"
STAYS = (
    "The plan stays as it is while its inputs move: it is the best for its own, so most samples lie on the worse side."
)
GOALS = {"usd-per-mtok": "Self-built", "tokens-per-s": "Trained tokens", "hours": "Hours of the run"}
ANSWERS = (
    ("Self-built", "usd_per_mtok", dollars, "/Mtok", "wall-clock GPU-hours"),
    ("Trained tokens", "trained_tokens_per_s", count, "/s", "prompt and response"),
    ("Trainer wait ratio", "trainer_wait_ratio", percent, "", "of each step's time"),
    ("Staleness", "staleness_versions", versions, "versions", "mean when trained"),
    ("KV cache", "kv_used_ratio", percent, "", "mean share in use"),
)
"""What else a plan comes to: label, quantity, how it is written, unit, and a line."""


def rows(made: Made) -> list[tuple[Any, ...]]:
    """The plan for a file, in the columns of ``page_table``: every option, the best of each schedule, and the bands."""
    name, plan = made.asked.scenario.name, made.plan
    if plan is None:
        return []
    found = []
    for each in plan.options:
        scenario = {knob: getattr(each.scenario, knob) for knob in CHOSEN}
        numbers = (
            scenario | {"objective": each.value, "objective_low": each.low, "objective_high": each.high} | each.answers
        )
        found += [(name, "simulated", quantity, "option", each.role, value) for quantity, value in numbers.items()]
    for schedule, each in plan.by_schedule.set_index("schedule").iterrows():
        found += [(name, "closed form", quantity, "best of", schedule, value) for quantity, value in each.items()]
    for band in made.bands.rows if made.bands else ():
        found += page_table.of_band(name, band)
    return found


CHOSEN = ("trainer_gpus", "generator_gpus", "concurrency", "max_staleness", "schedule")
"""What a plan chooses."""


def tables(made: Made | None) -> str:
    """Options, and the best of each schedule."""
    if made is None or made.plan is None:
        return ""
    return f'<div class="rlq-plan-tables">{_options(made.plan)}{_schedules(made.plan)}</div>'


def table(title: str, tag: str, head: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]], name: str = "") -> str:
    """A table under its title, with the kind of its numbers; each row with the name of its look."""
    columns = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = "".join(f'<tr class="{kind}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for kind, cells in rows)
    return (
        f'<section class="{name}"><h3>{escape(title)} {kind_tag(tag)}</h3>'
        f'<div class="rlq-wide"><table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div></section>'
    )


def _options(found: Plan) -> str:
    head = (
        "", found.goal.unit, "trainer : generator", "against the plan", "95 %", "slots", "budget", "schedule", "wait",
        "staleness", "KV",
    )  # fmt: skip
    rows = [("rlq-here" if each is found.best else "", _row(found, each)) for each in found.options]
    return table("Plan, neighbours, rivals", "simulated", head, rows)


def _row(found: Plan, each: Option) -> list[str]:
    s, a = each.scenario, each.answers
    apart = "–" if each is found.best else escape(against(found, each).replace(" from the plan", ""))
    broken = "" if each.kept else " · breaks a limit"
    return [
        f"<b>{escape(each.role)}</b>", _number(each.value), f"{s.trainer_gpus} : {s.generator_gpus}", f"{apart}{broken}",
        f"{_number(each.low)} to {_number(each.high)}", count(s.concurrency), f"{s.max_staleness:g}", escape(s.schedule),
        percent(a["trainer_wait_ratio"]), versions(a["staleness_versions"]), percent(a["kv_used_ratio"]),
    ]  # fmt: skip


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def _schedules(found: Plan) -> str:
    head = ("schedule", "trainer : generator", "slots", "budget", found.goal.unit, "wait", "staleness")
    rows = [
        ("", [escape(each.schedule), f"{each.trainer_gpus:.0f} : {each.generator_gpus:.0f}", count(each.concurrency),
              f"{each.max_staleness:g}", _number(each.objective), percent(each.trainer_wait_ratio),
              versions(each.staleness_versions)])
        for each in found.by_schedule.itertuples()
    ]  # fmt: skip
    return table("The best plan of each schedule", "closed form", head, rows)


def sure(made: Made | None) -> str:
    """How sure the plan's numbers are: bands over all inputs with a range, and the tornado's numbers."""
    if made is None or made.plan is None or not made.bars:
        return ""
    lead = measure_first(made.bars, QUANTITY[made.asked.objective])
    note = (
        f"Ranges of the {len(made.bars)} inputs that no source prints; {made.bands.level:.0%} of {made.bands.samples} samples "
        "lie inside a band. Another plan may be the best one at the ends of a range."
    )
    rows = []
    for name in BANDS:
        band = made.bands.of(name)
        numbers = (_number(each) for each in (band.value, band.low, band.median, band.high))
        rows.append(("", [escape(name.replace("_", " ")), *numbers, band.unit]))
    bands = table(
        "Bands of this plan over its inputs", "closed form", ("", "as it is", "low", "median", "high", "unit"), rows
    )
    return (
        f'<div class="rlq-plan-tables"><p>{escape(lead)} <span class="rlq-small">{escape(note)}</span></p>{bands}'
        f"{_bars(made.bars, QUANTITY[made.asked.objective])}</div>"
    )


def _bars(bars: Iterable[Bar], quantity: str) -> str:
    head = ("input", "value", "from", "to", f"{quantity} from", "to", "swing", "kind", "why this range")
    rows = [
        ("", [f"<b>{escape(bar.knob)}</b>", *(f"{_number(value)}" for value in (bar.value, bar.low, bar.high)),
              _number(bar.at_low), _number(bar.at_high), f"{bar.swing:.3g}", kind_tag(bar.kind), escape(bar.reason)])
        for bar in bars
    ]  # fmt: skip
    return table("The tornado's numbers", "closed form", head, rows, "rlq-plan-why")
