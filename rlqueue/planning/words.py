"""A plan in sentences, and as one flat object."""

import dataclasses
import math
from typing import Any

from rlqueue.choices import IN_STEP
from rlqueue.operating_point import CONSTRAINTS
from rlqueue.planning.goal import LIMITED
from rlqueue.planning.map import FLAT
from rlqueue.planning.planner import Plan
from rlqueue.planning.search import WORDS, Option
from rlqueue.scenario import Scenario

ENOUGH = 0.01
"""A number of GPUs does as well as another when it loses less than this."""


def choice_words(plan: Scenario) -> str:
    """What a plan is, in a phrase."""
    replicas = plan.replicas
    if plan.schedule == "colocated-sync":
        gpus = plan.trainer_gpus + plan.generator_gpus
        return f"colocated-sync on all {gpus} GPUs, {plan.concurrency:,} slots"
    budget = "" if plan.schedule in IN_STEP else f", staleness budget {plan.max_staleness:g} ({plan.staleness_family})"
    return (
        f"{plan.trainer_gpus} trainer : {plan.generator_gpus} generator GPUs, {plan.concurrency:,} slots "
        f"({plan.concurrency / replicas:,.0f} a replica), {plan.schedule}{budget}"
    )


def sentences(found: Plan) -> list[str]:
    """The plan, against the scenario as it is, how flat it is, the runner-up, what binds, and GPUs to save or add."""
    return [
        _plan(found), *_against_own(found), _flatness(found), _runner_up(found), _binding(found), *_gpus(found),
    ]  # fmt: skip


def _plan(found: Plan) -> str:
    best = found.best
    wait, stale = best.answers["trainer_wait_ratio"], best.answers["staleness_versions"]
    turns = ""
    if found.with_turns is not None:
        turns = (
            f" Compared with all turns of a rollout in one; with every turn it is {found.goal.words(found.with_turns)}."
        )
    return (
        f"{choice_words(best.scenario)}: {found.goal.words(best.value)} (95 %: {found.goal.words(best.low)} to "
        f"{found.goal.words(best.high)}), the trainer waits {wait:.0%}, mean staleness {stale:.1f} versions.{turns}"
    )


def _against_own(found: Plan) -> list[str]:
    own = found.own
    if own is None:
        return []
    if own is found.best:
        return ["That is the scenario as it is: no plan is better by more than the seeds tell."]
    broken = "" if own.kept else "; it breaks a limit"
    return [f"As it is ({choice_words(own.scenario)}): {found.goal.words(own.value)}, {against(found, own)}{broken}."]


def against(found: Plan, option: Option) -> str:
    """How much more or less of the objective than the plan, or that the seeds can't tell."""
    change = found.goal.change(option.difference)
    if option.distinguishable:
        return f"{abs(change):.1%} {'more' if change > 0 else 'less'}"
    ends = sorted(found.goal.change(each) for each in (option.difference_low, option.difference_high))
    return f"not distinguishable from the plan ({_signed(ends[0])} to {_signed(ends[1])} %)"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def _flatness(found: Plan) -> str:
    near = {each.role: each for each in found.options if each.role in WORDS.values()}
    told = [f"{role} {_short(found, each)}" for role, each in near.items()]
    low, high = found.flat_splits
    splits = (
        f"only the split with {low} generator GPUs comes"
        if low == high
        else f"splits from {low} to {high} generator GPUs come"
    )
    around = f" Next to it: {'; '.join(told)}." if told else ""
    return f"How flat: {splits} within {FLAT:.0%} of the best.{around}"


def _short(found: Plan, option: Option) -> str:
    if not option.kept:
        return "breaks a limit"
    return f"{_signed(found.goal.change(option.difference))} %" if option.distinguishable else "not distinguishable"


def _runner_up(found: Plan) -> str:
    second = found.runner_up
    if second is None:
        return "There is no runner-up that keeps the limits."
    return f"Runner-up: {choice_words(second.scenario)}: {found.goal.words(second.value)}, {against(found, second)}."


def _binding(found: Plan) -> str:
    words = f"{found.binding} binds ({CONSTRAINTS[found.binding]}), and {found.next_constraint} is next."
    told = [
        f"{name}={found.limits.given[name]:g} " + (f"costs {price:.1%}" if price >= 0.001 else "does not bind")
        for name, price in found.prices.items()
    ]
    return f"{words[0].upper()}{words[1:]}{' Limits: ' + '; '.join(told) + '.' if told else ''}"


def _gpus(found: Plan) -> list[str]:
    table, goal = found.by_gpus, found.goal
    if table.empty or found.gpus not in table["gpus"].to_numpy():
        return []
    loss = goal.loss(table["objective"]) / goal.loss(table.loc[table["gpus"] == found.gpus, "objective"].iloc[0])
    fewer = table[(table["gpus"] < found.gpus) & (loss <= 1.0 + ENOUGH)]
    more = table[table["gpus"] > found.gpus]
    told = []
    if not fewer.empty:
        least = fewer.iloc[0]
        rate = least["trained_tokens_per_s"] / table.loc[table["gpus"] == found.gpus, "trained_tokens_per_s"].iloc[0]
        told.append(
            f"{found.gpus - least['gpus']} GPUs fewer would do for this goal: {goal.words(least['objective'])} on "
            f"{least['gpus']} GPUs, at {rate:.0%} of the tokens/s"
        )
    else:
        told.append("no GPU can be saved without losing more than 1 % of this goal")
    if not more.empty:
        step, far = more.iloc[0], more.iloc[-1]
        told += [f"{each['gpus'] - found.gpus} more: {goal.words(each['objective'])}" for each in (step, far)]
    words = "; ".join(told)
    return [f"{words[0].upper()}{words[1:]} (a few runs of each number)."]


def as_object(found: Plan) -> dict[str, Any]:
    """The plan as plain values, for JSON."""
    return {
        "objective": found.goal.objective,
        "unit": found.goal.unit,
        "gpus": found.gpus,
        "limits": found.limits.given | {"min_trainer_gpus": found.limits.min_trainer_gpus},
        "plan": _option(found, found.best),
        "runner_up": _option(found, found.runner_up) if found.runner_up else None,
        "as_it_is": _option(found, found.own) if found.own else None,
        "options": [_option(found, each) for each in found.options],
        "binding_constraint": found.binding,
        "next_constraint": found.next_constraint,
        "limit_costs": found.prices,
        "flat_generator_gpus": list(found.flat_splits),
        "frontier": found.frontier.to_dict("records"),
        "by_gpus": found.by_gpus.to_dict("records"),
        "by_schedule": found.by_schedule.to_dict("records"),
        "seeds": list(found.seeds),
        "tool_calls_lumped": found.lumped,
        "with_every_turn": found.with_turns,
        "runs": found.runs,
        "events": found.events,
        "sentences": sentences(found),
    }


def _option(found: Plan, option: Option) -> dict[str, Any]:
    """The loss against the plan (``difference``), and the same as a change of the objective (``change``)."""
    ends = sorted(found.goal.change(each) for each in (option.difference_low, option.difference_high))
    change = {"change": found.goal.change(option.difference), "change_low": ends[0], "change_high": ends[1]}
    values = {each.name: getattr(option, each.name) for each in dataclasses.fields(option)}
    chosen = {
        name: getattr(option.scenario, name)
        for name in ("schedule", "trainer_gpus", "generator_gpus", "concurrency", "max_staleness", "staleness_family")
    }
    answers = {name: None if math.isnan(value) else value for name, value in option.answers.items()}
    del values["scenario"], values["answers"]
    return chosen | values | change | {"distinguishable": option.distinguishable} | answers


def limit_words(name: str) -> str:
    """A limit's quantity in words."""
    return LIMITED[name].replace("_", " ")
