"""Which sampler and gate get to a target solve rate the soonest, or for the least: by closed form, and simulated."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from rlqueue.app.formats import count, duration, percent, whole_dollars
from rlqueue.app.origins import kind_tag
from rlqueue.app.walk import Reached, reach
from rlqueue.app.way import POINTS
from rlqueue.choices import GATES, SAMPLERS
from rlqueue.course import course
from rlqueue.scenario import Scenario

MEASURES = ("steps", "hours", "usd")
WRITTEN = {"steps": count, "hours": duration, "usd": whole_dollars}
GATE_WORDS = {"zero-advantage": "drop and refill", "none": "train on all"}


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A sampler with a gate; ``reached``: what the target takes by closed form, None where never; ``end``: how far it gets."""

    sampler: str
    gate: str
    scenario: Scenario
    reached: dict[str, float] | None
    end: float


def strategies(scenario: Scenario, target: float) -> list[Strategy]:
    """All samplers with all gates, by closed form; without a pool prompts can't be known, so there is one sampler."""
    found = []
    for sampler in SAMPLERS if scenario.pool_prompts else ("uniform",):
        for gate in GATES:
            run = dataclasses.replace(scenario, sampler=sampler, gate=gate)
            way = course(run, POINTS)
            found.append(
                Strategy(
                    sampler=sampler,
                    gate=gate,
                    scenario=run,
                    reached=way.reaches(target),
                    end=float(way.table["solve_rate"].iloc[-1]),
                )
            )
    return found


async def simulated(
    found: Iterable[Strategy], target: float, seed: int, show: Callable[[Mapping[Any, Reached]], Any]
) -> None:
    """Simulate each strategy until it reaches the target or its run ends, two at a time, and show them as they come."""
    came: dict[tuple[str, str], Reached] = {}
    waiting = {asyncio.ensure_future(reach(each.scenario, seed, target)): each for each in found}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                strategy = waiting.pop(each)
                came[strategy.sampler, strategy.gate] = each.result()
            show(dict(came))
    finally:
        for each in waiting:
            each.cancel()


def table(found: list[Strategy], came: Mapping[Any, Reached], scenario: Scenario, target: float) -> str:
    """Strategies as a table with bars, the present one marked; the best of each measure is 1.00×."""
    best = {
        measure: min((each.reached[measure] for each in found if each.reached), default=math.nan)
        for measure in MEASURES
    }
    worst = {
        measure: max((each.reached[measure] for each in found if each.reached), default=math.nan)
        for measure in MEASURES
    }
    rows = []
    for each in found:
        here = (each.sampler, each.gate) == (scenario.sampler, scenario.gate)
        cells = "".join(_cell(each.reached, measure, best[measure], worst[measure]) for measure in MEASURES)
        run = came.get((each.sampler, each.gate))
        rows.append(
            f'<tr class="{"rlq-here" if here else ""}"><th scope="row">{escape(each.sampler)}{" ◂ this run" if here else ""}</th>'
            f"<td>{GATE_WORDS[each.gate]}</td>{cells}<td>{percent(each.end)}</td>{_simulated(run)}</tr>"
        )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("Sampler", "Gate", "steps", "wall-clock", "cost", "solve rate at the end")
    )
    head += "".join(f'<th scope="col">{name}</th>' for name in ("steps", "wall-clock", "cost"))
    groups = (
        f'<tr><th colspan="2"></th><th colspan="4" scope="colgroup">{kind_tag("closed form")} to a mean solve rate of '
        f"{target:.0%}</th>"
        f'<th colspan="3" scope="colgroup">{kind_tag("simulated")}</th></tr>'
    )
    return (
        '<div class="rlq-strategies"><h3>Which way is the shortest?</h3><div class="rlq-wide"><table>'
        f"<thead>{groups}<tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def _cell(reached: dict[str, float] | None, measure: str, best: float, worst: float) -> str:
    if reached is None:
        return '<td class="rlq-never">–</td>'
    value = reached[measure]
    share = 100.0 * value / worst if worst else 0.0
    times = f"{value / best:.2f}×" if best else ""
    bar = f'<i class="rlq-bar" style="width:{share:.1f}%"></i>'
    return f"<td>{bar}<span>{WRITTEN[measure](value)} <small>{times}</small></span></td>"


def _simulated(run: Reached | None) -> str:
    if run is None:
        return '<td colspan="3" class="rlq-never">…</td>'
    if run.steps is None:
        return f'<td colspan="3" class="rlq-never">{escape(run.why)}</td>'
    return f"<td>{count(run.steps)}</td><td>{duration(run.hours)}</td><td>{whole_dollars(run.usd)}</td>"
