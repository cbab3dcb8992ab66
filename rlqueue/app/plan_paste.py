"""The plan in the words of the frameworks: lines to paste, and its staleness budget in each one's own knob."""

from __future__ import annotations

from html import escape

from rlqueue.app.plan_panels import table
from rlqueue.app.plan_work import Made
from rlqueue.frameworks import frameworks
from rlqueue.paste import TARGETS, conversions, paste


def said(made: Made | None) -> str:
    """Lines to paste for each framework, folded, and the conversions of the staleness budget."""
    if made is None or made.plan is None:
        return ""
    best = made.plan.best.scenario
    titles = frameworks()
    folded = "".join(
        f"<details><summary>{escape(titles[each])}</summary><pre>{escape(paste(best, each))}</pre></details>"
        for each in TARGETS
    )
    rows = [
        ("", [f"<b>{escape(row.framework)}</b>", f"<code>{escape(row.key)}</code>", escape(f"{row.value}"), escape(row.unit),
              escape(row.formula), escape(f"{row.other_names} {row.remark}".strip())])
        for row in conversions(best).itertuples()
    ]  # fmt: skip
    title = f"A staleness budget of {best.max_staleness:g} versions in each framework"
    head = ("framework", "key", "value", "unit", "how it follows", "also called; what one unit is")
    return (
        f'<div class="rlq-plan-tables"><section class="rlq-plan-paste"><h3>Lines to paste</h3>{folded}</section>'
        f"{table(title, 'derived', head, rows, 'rlq-plan-said')}</div>"
    )
