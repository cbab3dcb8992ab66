"""The page "how accurate is it?": published runs beside what the model predicts of them, case by case.

Nothing is stored: when the page opens, each case is fitted and predicted by closed form and shown, and then simulated, on a
thread of its own, so that the page stays alive.
"""

from __future__ import annotations

import asyncio
import functools

import ipywidgets as widgets
import pandas as pd
from IPython.display import display

from rlqueue.app import validation_words as words
from rlqueue.app.guard import status_line
from rlqueue.app.page import STATIC, AtRest, box, page_box
from rlqueue.app.plot import Plots
from rlqueue.app.sharing import Sharing
from rlqueue.app.validation_figures import figures
from rlqueue.measures import SOLVERS
from rlqueue.validation import CaseResult, cases
from rlqueue.validation.protocol import result
from rlqueue.validation.report import table


def page() -> None:
    """Show the page in a notebook."""
    display(Accuracy().box)


@functools.lru_cache(maxsize=64)
def computed(name: str, solver: str) -> CaseResult:
    """One case by one solver, once in a kernel's life."""
    return result(next(case for case in cases() if case.name == name), solver)


class Accuracy:
    """The page's widgets and the results so far; ``box`` holds them all."""

    def __init__(self) -> None:
        self.cases = cases()
        self.results: dict[str, CaseResult] = {}
        self._rest = AtRest(self._failed, rest_s=0.0)
        self._cards, self._about = widgets.HTML(), widgets.HTML()
        self._tables = [widgets.HTML() for _ in self.cases]
        self._folds = widgets.Accordion(
            self._tables, titles=tuple(words.case_title(case, None) for case in self.cases), selected_index=0
        )
        self._folds.add_class("rlq-cases")
        self._plots = Plots(figures([], self._names))
        status = status_line()
        self._share = Sharing(status)
        self._share.stem = "validation"
        self._share.offer({"csv": self._csv})
        self.box = page_box(
            [
                box("rlq-header", [self._share]),
                status,
                self._about,
                self._cards,
                widgets.HTML(words.colours(self.cases)),
                self._plots,
                self._folds,
                widgets.HTML(words.protocol_html()),
            ],
            name="rlq-validation",
            sheet=STATIC / "validation.css",
        )
        self._show("closed form")
        self._plots.when_opened(self._begin)

    @property
    def _names(self) -> list[str]:
        return [case.name for case in self.cases]

    def _csv(self) -> tuple[str, str]:
        rows = table([self.results[name] for name in self._names if name in self.results])
        return "validation.csv", pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")

    def _begin(self) -> None:
        self._rest.begin(self._compute)

    async def _compute(self) -> None:
        loop = asyncio.get_running_loop()
        for solver in SOLVERS:
            for case in self.cases:
                self.take(await loop.run_in_executor(None, computed, case.name, solver))

    def take(self, found: CaseResult) -> None:
        """Show one case's result in place of the one before; what was simulated is not replaced by a closed form."""
        name = found.case.name
        if name in self.results and self.results[name].solver == "simulated":
            return
        self.results[name] = found
        number = self._names.index(name)
        self._tables[number].value = words.case_html(found)
        self._folds.set_title(number, words.case_title(found.case, found))
        self._show(found.solver)

    def _show(self, solver: str) -> None:
        results = [self.results[name] for name in self._names if name in self.results]
        self._about.value = f'<p class="rlq-run" role="status">{words.progress(results, self.cases, solver)}</p>'
        self._cards.value = words.cards(results)
        done = sum(each.solver == "simulated" for each in results)
        self._plots.update(figures(results, self._names), stamp=f"{len(results)} cases, {done} simulated")

    def _failed(self) -> None:
        self._about.value = (
            '<p class="rlq-run" role="alert">The computation failed; the server\'s log has the details.</p>'
        )
