"""The levers that the report names, each tried in each of its runs: what it buys in wait ratio and $/Mtok, ranked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rlqueue.cost import cost
from rlqueue.provenance import quantities
from rlqueue.report.assumptions import RUNS, TITLES, Assumptions
from rlqueue.report.content import OWN, REPORT, Column, Table, value_of
from rlqueue.report.simulated import SEED, STEPS, run
from rlqueue.scenario import Scenario
from rlqueue.units import TOKENS_PER_MTOK

ASSUMED = quantities("report_assumptions", "levers")


@dataclass(frozen=True, kw_only=True)
class Lever:
    """One lever in one run: the scenario without it and with it. ``refused``: why it can't be tried there."""

    words: str
    without: Scenario
    within: Scenario
    refused: str = ""


def usd_per_mtok(scenario: Scenario) -> float:
    """Wall-clock cost of the simulated run over the tokens it trained [$/Mtok].

    Over the trained tokens themselves and not over the mean length: pruning trains on the short rollouts.
    """
    found = run(scenario)
    bill = cost(scenario, found.operating_point)
    trained = found.steps["trained_tokens"].iloc[found.warm_up_steps :].mean()
    return float(bill.usd_per_step / trained * TOKENS_PER_MTOK)


def wait(scenario: Scenario) -> float:
    """Trainer wait ratio of the simulated run."""
    return run(scenario).operating_point.trainer_wait_ratio


def levers(scenario: Scenario) -> Iterator[Lever]:
    """Every lever, for one run."""
    yield _disaggregation(scenario)
    accept = value_of(ASSUMED["accept_length"])
    yield Lever(
        words=f"speculative decoding, {accept:g} tokens an iteration", without=replace(scenario, accept_length=1.0),
        within=replace(scenario, accept_length=accept),
    )  # fmt: skip
    yield Lever(words="partial rollout at weight updates, instead of draining", without=replace(scenario, schedule="async-drain"),
                within=replace(scenario, schedule="partial-rollout"))  # fmt: skip
    factor = value_of(ASSUMED["oversampling_factor"])
    if scenario.surplus_fraction:
        factor = 1.0 / (1.0 - scenario.surplus_fraction)
        words = f"early pruning of the oversampled {scenario.surplus_fraction:.0%}, instead of finishing them"
        yield Lever(
            words=words, without=scenario, within=replace(scenario, surplus_fraction=0.0, oversampling_factor=factor)
        )
    else:
        words = f"oversampling by {factor - 1:.0%} with early pruning"
        yield Lever(words=words, without=scenario, within=replace(scenario, oversampling_factor=factor))
    more = int(scenario.concurrency * value_of(ASSUMED["concurrency_factor"]))
    yield Lever(words=f"more sandboxes: {more:,} slots instead of {scenario.concurrency:,}", without=scenario,
                within=replace(scenario, concurrency=more))  # fmt: skip


def _disaggregation(scenario: Scenario) -> Lever:
    """Prefill on GPUs of its own; where it is there already, what it buys over sharing."""
    if scenario.prefill_gpus_per_replica:
        words = f"prefill on {scenario.prefill_gpus_per_replica} of {scenario.gpus_per_replica} GPUs of a replica"
        return Lever(words=words, without=replace(scenario, prefill_gpus_per_replica=0), within=scenario)
    words, refused = f"prefill on 1 of {scenario.gpus_per_replica} GPUs of a replica", ""
    try:
        return Lever(words=words, without=scenario, within=replace(scenario, prefill_gpus_per_replica=1))
    except ValueError:
        refused = "does not fit: the other GPUs of a replica can't hold the weights and one longest sequence"
        return Lever(words=words, without=scenario, within=scenario, refused=refused)


def lever_rows(assumptions: Assumptions) -> list[tuple]:
    """Run, rank, lever, state, wait without and with, $/Mtok without and with, change; the best of a run first."""
    rows = []
    for name in RUNS:
        scenario = assumptions.scenario(name)
        tried, refused = [], []
        for lever in levers(scenario):
            if lever.refused:
                refused.append((TITLES[name], None, lever.words, lever.refused, None, None, None, None, None))
                continue
            before, after = usd_per_mtok(lever.without), usd_per_mtok(lever.within)
            tried.append(
                (
                    lever.words,
                    state(scenario, lever),
                    wait(lever.without),
                    wait(lever.within),
                    before,
                    after,
                    after / before - 1,
                )
            )
        tried.sort(key=lambda row: row[-1])
        rows += [(TITLES[name], rank, *row) for rank, row in enumerate(tried, start=1)] + refused
    return rows


TO_ADD, IN_USE = "to be added", "in use"


def state(scenario: Scenario, lever: Lever) -> str:
    """Whether the run has the lever already; one that publishes weights under running requests needs no other way."""
    if lever.within == scenario:
        return IN_USE
    return TO_ADD if lever.without == scenario else "in-flight updates in use instead"


COUNTED = (
    "How they are counted: speculative decoding without the compute of rejected tokens, so as an upper end; more "
    "sandboxes without their own cost, which stands in its own table; prefill apart by throughput alone, so that it "
    "costs where its GPUs have little to do, and what it saves in the evenness of decoding is left out; pruning keeps "
    "the rollouts that end first, the short ones, and so trains fewer tokens in a step."
)


def lever_table(assumptions: Assumptions) -> Table:
    """The levers as a ranked table."""
    rows = lever_rows(assumptions)
    best: dict[str, tuple] = {}
    for row in rows:
        if row[3] == TO_ADD:
            best.setdefault(row[0], row)
    words = "; ".join(f"{title}: {row[2]} ({row[8]:+.0%} of $/Mtok)" for title, row in best.items())
    return Table(
        name="levers",
        title="What each lever buys, ranked within each run",
        says=f"Each lever alone, with and without it, by simulation ({STEPS} steps, seed {SEED}); costs over the tokens "
        f"that were trained. The best still to be added: {words}. {COUNTED}",
        columns=(
            Column(name="run", title="Run"),
            Column(name="rank", title="Rank", digits=0),
            Column(name="lever", title="Lever", prose=True),
            Column(name="state", title="In this run"),
            Column(name="wait_without", title="Wait without", digits=3),
            Column(name="wait_with", title="Wait with", digits=3),
            Column(name="without_usd_per_mtok", title="Without", unit="$/Mtok"),
            Column(name="with_usd_per_mtok", title="With", unit="$/Mtok"),
            Column(name="change", title="Change of $/Mtok", unit="ratio", digits=3),
        ),
        rows=tuple(rows),
        sources=(REPORT, OWN),
        grouped=True,
    )
