"""The whole report, section by section: what is computed, in which order it is read."""

from collections.abc import Callable, Iterator

from rlqueue.presets import preset
from rlqueue.report import (
    blind,
    break_even,
    costs,
    hosted_or_own,
    levers,
    measured,
    modelled,
    price_list,
    sandboxes,
    sharing,
    simulated,
    summary,
    tables,
)
from rlqueue.report.assumptions import PRIME, RUNS, SLIME, TITLES, Assumptions
from rlqueue.report.content import REPORT, Column, Report, Section, Table

Say = Callable[[str], None]


def build(assumptions: Assumptions | None = None, say: Say = lambda _: None) -> Report:
    """Compute every section.

    Args:
        assumptions: what the reader changed; None: nothing. say: told the title of each section before it is computed.
    """
    assumptions = assumptions or Assumptions()
    return Report(sections=tuple(_sections(assumptions, say)), changed=assumptions.settings)


def _sections(a: Assumptions, say: Say) -> Iterator[Section]:
    for name, title, make in SECTIONS:
        say(title)
        yield make(a, name, title)


def _key_data(a: Assumptions, name: str, title: str) -> Section:
    rows = summary.key_data(a)
    return Section(
        name=name,
        title=title,
        says=(summary.counted(rows), "Printed numbers that do not stand as printed, and why:"),
        points=summary.corrections(rows),
        tables=(summary.key_table(rows), fitted()),
    )


def fitted() -> Table:
    """Which numbers calibrate which: every knob of a run that was fitted, to what."""
    rows = tuple(
        (TITLES[run], knob, fact.value, fact.unit, fact.where, fact.note)
        for run in RUNS
        for knob, fact in preset(run).items()
        if fact.kind == "calibrated"
    )
    return Table(
        name="calibrated",
        title="Which numbers calibrate which",
        says="These knobs were chosen so that the closed form meets a printed number, which therefore tests "
        "nothing. All other knobs are printed, derived from printed numbers, read off a chart, or assumed; the "
        "explorer lists every one of them.",
        columns=(
            Column(name="run", title="Run"),
            Column(name="knob", title="Knob"),
            Column(name="value", title="Value", digits=4),
            Column(name="unit", title="Unit"),
            Column(name="fitted_to", title="Fitted to"),
            Column(name="note", title="How", prose=True),
        ),
        rows=rows,
        sources=(REPORT,),
        grouped=True,
    )


def _ownership(a: Assumptions, name: str, title: str) -> Section:
    return Section(name=name, title=title, figures=(costs.tco_breakdown(a),), tables=(tables.tco_table(a),))


def _runs(a: Assumptions, name: str, title: str) -> Section:
    makes = (measured.trainer_and_generator, measured.rollout_time, measured.glm_rollout_time, measured.glm_drift)
    return Section(
        name=name,
        title=title,
        figures=tuple(make(a) for make in makes),
        tables=(tables.process_table(a, PRIME), tables.process_table(a, SLIME)),
    )


def _blind(_: Assumptions, name: str, title: str) -> Section:
    says = "A few points of each series are fitted, all others are predicted. Functions named below are rlqueue.published's."
    return Section(name=name, title=title, says=(says,), figures=blind.figures())


def _prices(a: Assumptions, name: str, title: str) -> Section:
    found = break_even.cases(a)
    return Section(
        name=name,
        title=title,
        says=tuple(map(break_even.must_be_true, found)),
        figures=(costs.cost_comparison(a), *hosted_or_own.figures(found)),
        tables=(tables.comparison_table(a), tables.hosted_table(a), hosted_or_own.break_even_table(found)),
    )


def _lists(a: Assumptions, name: str, title: str) -> Section:
    found = break_even.cases(a)
    return Section(
        name=name,
        title=title,
        figures=(price_list.history(found[0]), price_list.july(found[0])),
        tables=(price_list.all_prices(found),),
    )


def _sandboxes(a: Assumptions, name: str, title: str) -> Section:
    found = break_even.cases(a)
    return Section(
        name=name,
        title=title,
        figures=(sandboxes.scaling(a), sandboxes.cpu_cost(found)),
        tables=(sandboxes.cpu_table(found),),
    )


def _queue(a: Assumptions, name: str, title: str) -> Section:
    makes = (simulated.timelines, simulated.aborted, simulated.start_of_prime)
    return Section(name=name, title=title, figures=(*modelled.figures(a), *(make(a) for make in makes)))


def _levers(a: Assumptions, name: str, title: str) -> Section:
    return Section(name=name, title=title, tables=(levers.lever_table(a),))


def _tenants(a: Assumptions, name: str, title: str) -> Section:
    found = sharing.cases(a)
    return Section(
        name=name,
        title=title,
        says=("What would have to be shared to be as cheap as hosted, computed from each run:",),
        points=tuple(map(sharing.reached, found)),
        figures=tuple(make(found) for make in (sharing.dollars, sharing.waiting, sharing.decoding)),
        tables=(sharing.tenancy_table(found),),
    )


SECTIONS: tuple[tuple[str, str, Callable[[Assumptions, str, str], Section]], ...] = (
    ("key-data", "Key data: what agrees, what does not, and why", _key_data),
    ("ownership", "What a GPU-hour costs", _ownership),
    ("runs", "The measured runs", _runs),
    ("blind", "Series that move, predicted from their first points", _blind),
    ("cost", "Self-built against hosted", _prices),
    ("prices", "Hosted prices", _lists),
    ("sandboxes", "Sandboxes", _sandboxes),
    ("queue", "How the queue behaves", _queue),
    ("tenants", "Why a multi-tenant host is cheaper", _tenants),
    ("levers", "The levers, ranked", _levers),
)
