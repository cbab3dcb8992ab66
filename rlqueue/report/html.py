"""The report as one HTML file that opens anywhere, without a network: style, plotly.js and figures are inside."""

import json
import textwrap
from collections.abc import Iterable
from html import escape

from rlqueue.app.plot import PLOTLY_JS, TEMPLATE
from rlqueue.provenance import sources
from rlqueue.report.content import OWN, Column, Figure, Report, Section, Table
from rlqueue.report.static import PAGE_CSS, PAGE_JS
from rlqueue.report.written import shown

HEIGHT = 400
"""Pixels of a plot that asks for no other height."""


def page(report: Report) -> str:
    """The whole page."""
    bundle = PLOTLY_JS.read_text(encoding="utf-8").replace("</script", "<\\/script")
    figures = {figure.name: figure.plot for figure in report.figures}
    data = json.dumps({"template": TEMPLATE, "figures": figures}, allow_nan=False, sort_keys=True).replace("</", "<\\/")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>rlqueue: the report, reproduced</title><style>{PAGE_CSS}</style></head>\n"
        f'<body class="rlq-report">{body(report)}'
        f'<script type="application/json" id="figures">{data}</script>\n'
        f"<script>{bundle}</script>\n<script>{PAGE_JS}</script></body></html>\n"
    )


def body(report: Report) -> str:
    """Header, contents, sections and sources."""
    contents = "".join(f'<li><a href="#{each.name}">{escape(each.title)}</a></li>' for each in report.sections)
    changed = ""
    if report.changed:
        settings = ", ".join(f"<code>{escape(name)} = {escape(value)}</code>" for name, value in report.changed)
        changed = (
            f'<p class="changed">Changed for this page: {settings}. Printed values belong to the unchanged inputs, and a '
            "difference to them is then what the change does.</p>"
        )
    sections = "".join(map(section, report.sections))
    return (
        f"<header><h1>The report, reproduced</h1>{opening()}{changed}</header>"
        f'<nav><h2>Contents</h2><ol>{contents}<li><a href="#sources">Sources</a></li></ol></nav>'
        f"<main>{sections}{listed(named(report))}</main>"
    )


def opening() -> str:
    """What this is, in two sentences."""
    document = sources()["semianalysis-rl-gap"]
    link = f'<a href="{escape(document.url)}" rel="noopener noreferrer">{escape(document.title)}</a>'
    return (
        f"<p>Every table and figure of {escape(document.author)}, “{link}” ({escape(document.date)}) whose numbers "
        "could be recovered, computed from printed inputs beside what was printed: which number agrees, which does "
        "not, and why. Figures for which the source’s values could not be recovered are computed as well and "
        "labelled <em>model only</em>.</p>"
    )


def section(each: Section) -> str:
    """One section: paragraphs, figures, tables."""
    return (
        f'<section id="{each.name}"><h2>{escape(each.title)}</h2>{words(each)}'
        f"{''.join(map(figure, each.figures))}{''.join(map(table, each.tables))}</section>"
    )


def words(each: Section) -> str:
    """Paragraphs and points of a section."""
    said = "".join(f"<p>{paragraph}</p>" for paragraph in map(escape, each.says))
    if each.points:
        said += f"<ul>{''.join(f'<li>{point}</li>' for point in map(escape, each.points))}</ul>"
    return said


def figure(each: Figure) -> str:
    """One figure with its units, what it says, kind, what was fitted, and sources."""
    height = each.plot["layout"].get("height", HEIGHT)
    return (
        f'<figure id="{each.name}"><h3>{escape(each.title)}</h3><p class="units">{escape(each.units)}</p>'
        f'<div class="plot" data-plot="{each.name}" style="height:{height}px" role="img" '
        f'aria-label="{escape(each.title)}"></div><figcaption>{caption(each)}</figcaption></figure>'
    )


def caption(each: Figure) -> str:
    """What stands below a plot."""
    label = "model only: the source’s values are not recovered" if each.model_only else "with the source’s values"
    tags = f'<span class="tag {"model" if each.model_only else "both"}">{label}</span>'
    tags += f'<span class="tag">{escape(each.kind)}</span>'
    fitted = f"<p><b>Fitted or assumed:</b> {escape(each.fitted)}</p>" if each.fitted else ""
    return (
        f'<p>{escape(each.says)}</p>{fitted}<p class="from">{tags} Sources: {cited(each.sources)}. '
        f"Values: <code>figures/{each.name}.csv</code></p>"
    )


def table(each: Table) -> str:
    """One table; a long one can be folded."""
    first = 1 if each.grouped else 0
    places = [place for place in range(first, len(each.columns)) if not each.columns[place].joins]
    head = "".join(
        f'<th scope="col"{_class(each.columns[place], None)}>{_heading(each.columns[place])}</th>' for place in places
    )
    rows, group = [], None
    for row in each.rows:
        if each.grouped and row[0] != group:
            group = row[0]
            rows.append(
                f'<tr class="group"><th scope="colgroup" colspan="{len(places)}">{escape(str(group))}</th></tr>'
            )
        rows.append(f"<tr>{''.join(_cell(each.columns, row, place) for place in places)}</tr>")
    whole = f"<table{_grouped(each)}><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    inner = f'<div class="wide" tabindex="0">{whole}</div>'
    if each.folded:
        inner = f"<details><summary>{len(each.rows)} rows</summary>{inner}</details>"
    return (
        f'<div class="table" id="table-{each.name}"><h3>{escape(each.title)}</h3><p>{escape(each.says)}</p>{inner}'
        f'<p class="from">Sources: {cited(each.sources)}. Values: <code>tables/{each.name}.csv</code></p></div>'
    )


def _grouped(each: Table) -> str:
    return ' class="grouped"' if each.grouped else ""


def _heading(column: Column) -> str:
    unit = f" <small>{escape(column.unit)}</small>" if column.unit else ""
    return escape(column.title) + unit


def _class(column: Column, value: object) -> str:
    name = "number" if isinstance(value, int | float) else "prose" if column.prose else ""
    return f' class="{name}"' if name else ""


def _cell(columns: tuple[Column, ...], row: tuple, place: int) -> str:
    """One cell, with what joins it in small print below."""
    column, value = columns[place], row[place]
    text = escape(shown(value, column.digits))
    if column.name == "status":
        text = f'<span class="status {status_class(text, worth(columns, row))}">{text}</span>'
    for after in range(place + 1, len(columns)):
        if not columns[after].joins:
            break
        small = escape("ratio" if row[after] == "1" else shown(row[after], columns[after].digits))
        text += f"<small>{escape(columns[after].title)} {small}</small>" if small else ""
    return f"<td{_class(column, value)}>{text}</td>"


def worth(columns: tuple[Column, ...], row: tuple) -> bool:
    """Whether an agreement in this row tests anything; a number put in or fitted to does not."""
    tests = [value for column, value in zip(columns, row, strict=True) if column.name == "test"]
    return not tests or tests[0] in {"prediction", "arithmetic"}


def status_class(status: str, tests: bool) -> str:  # noqa: FBT001
    """The class that colours a status; its words say the same. What tests nothing has no colour."""
    if not tests:
        return "plain"
    if status.startswith(("exact", "in the printed range")):
        return "good"
    if status.startswith(("missed", "not computable")):
        return "bad"
    return "fair" if status.startswith(("within", "reconciled")) else "plain"


def cited(names: tuple[str, ...]) -> str:
    """Sources as links to the list at the end."""
    return "; ".join(map(_cited, names))


def _cited(name: str) -> str:
    if name == OWN:
        return "assumed by this project"
    document = sources()[name]
    title = textwrap.shorten(document.title, 48, placeholder=" …")
    return f'<a href="#source-{name}">{escape(document.author)}, {escape(title)}</a>'


def named(report: Report) -> list[str]:
    """Every source that a figure or table names."""
    return list(
        dict.fromkeys(name for each in (*report.figures, *report.tables) for name in each.sources if name != OWN)
    )


def listed(names: Iterable[str]) -> str:
    """The list of sources that captions link to."""
    items = []
    for name in names:
        document = sources()[name]
        title = escape(document.title)
        linked = f'<a href="{escape(document.url)}" rel="noopener noreferrer">{title}</a>' if document.url else title
        items.append(f'<li id="source-{name}">{escape(document.author)}: {linked} ({escape(document.date)})</li>')
    return f'<section id="sources"><h2>Sources</h2><ul>{"".join(items)}</ul></section>'
