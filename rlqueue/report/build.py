"""The whole report, section by section: what is computed, in which order it is read."""

from collections.abc import Callable, Iterator

from rlqueue.report import costs, measured, summary, tables
from rlqueue.report.assumptions import PRIME, SLIME, Assumptions
from rlqueue.report.content import Report, Section

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
    return Section(name=name, title=title, says=(summary.counted(rows),), tables=(summary.key_table(rows),))


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


def _prices(a: Assumptions, name: str, title: str) -> Section:
    return Section(
        name=name,
        title=title,
        figures=(costs.cost_comparison(a),),
        tables=(tables.comparison_table(a), tables.hosted_table(a)),
    )


SECTIONS: tuple[tuple[str, str, Callable[[Assumptions, str, str], Section]], ...] = (
    ("key-data", "Key data: what agrees, what does not, and why", _key_data),
    ("ownership", "What a GPU-hour costs", _ownership),
    ("runs", "The measured runs", _runs),
    ("cost", "Self-built against hosted", _prices),
)
