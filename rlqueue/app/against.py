"""Published series beside what the closed form says of them, as tables: which points were fitted, how far off the others are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import pandas as pd

from rlqueue.app.origins import kind_tag, source_link
from rlqueue.published import blind_error

Series = Callable[[], pd.DataFrame]


def tables(series: Sequence[Series]) -> str:
    """All of them as HTML; takes some seconds the first time, since each is fitted."""
    return f'<div class="rlq-prose rlq-against">{"".join(_table(each) for each in series)}</div>'


def _table(series: Series) -> str:
    found = series()
    share = found["unit"].iloc[0] == "1"
    error = f"{100 * blind_error(found):.0f} {'points' if share else '%'}"
    written = (lambda value: f"{value:.0%}") if share else (lambda value: f"{value:,.0f} s")
    rows = "".join(
        f"<tr><th scope='row'>{int(row.step):,}</th><td>{written(row.published)}</td><td>{written(row.predicted)}</td>"
        f"<td>{100 * row.error:+.0f}{' points' if share else '%'}</td><td>{'fitted' if row.calibrated else ''}</td></tr>"
        for row in found.itertuples()
    )
    return (
        f"<h4>{escape(found['series'].iloc[0])}</h4><p>Mean error of the points that were not fitted: {error}. "
        f"{source_link(found['source'].iloc[0])}</p>"
        f'<div class="rlq-wide"><table><thead><tr><th scope="col">step</th><th scope="col">published</th>'
        f'<th scope="col">{kind_tag("closed form")}</th><th scope="col">error</th><th scope="col"></th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
