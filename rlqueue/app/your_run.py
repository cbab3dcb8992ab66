"""The page "your run": drop a log, a configuration or both, and see who waits, what binds, and what to change.

What is dropped or pasted stays in the memory of the visitor's own kernel: nothing is written to disk or sent on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from rlqueue.app import page_table
from rlqueue.app import your_run_words as words
from rlqueue.app.drop import LARGEST, Drop
from rlqueue.app.guard import guarded, reported, status_line
from rlqueue.app.page import STATIC, box, choice, explained, page_box
from rlqueue.app.plot import Plots
from rlqueue.app.sharing import Sharing, scenario_file
from rlqueue.app.state import preset_row
from rlqueue.app.your_run_figures import figures
from rlqueue.app.your_run_found import Found, Given, added, example, found, rows
from rlqueue.llm import llm_keys
from rlqueue.logs.names import frameworks, title
from rlqueue.presets import preset_names

LONGEST_TEXT = 2_000_000
"""Characters that may be pasted: a message to the kernel must stay under the server's 10 MB."""
MOST_KEPT = 2 * LARGEST
"""Bytes of all logs together."""


def page() -> None:
    """Show the page in a notebook."""
    display(YourRun().box)


class YourRun:
    """The page's widgets around what was given and what was found in it; ``box`` holds them all."""

    def __init__(self) -> None:
        self.found = found(example())
        self._loading = False
        self._status = status_line()
        self._drop = Drop(
            self._dropped,
            self._status,
            label="Drop a run's logs and its configuration here, or choose files",
            hint="Console output, metrics as JSON lines, a W&B history as CSV; TOML, YAML or launch script. They stay in your "
            f"own kernel's memory: nothing is written to disk or sent on. At most {LARGEST >> 20} MB each.",
        )
        self._pasted = widgets.Textarea(
            placeholder="or paste lines of a log or a configuration (read when you leave this field)", continuous_update=False,
            layout=widgets.Layout(width="auto", height="5.2rem", margin="0"),
        )  # fmt: skip
        self._pasted.add_class("rlq-paste")
        self._clear = widgets.Button(
            description="Clear all", tooltip="Forget all files and begin with the example again"
        )
        runs = [(preset_row(name)["title"], name) for name in preset_names()]
        self._preset = choice("Published run to fill in with", _options("none", runs), "")
        self._llm = choice("LLM", _options("as the configuration says", [(key, key) for key in llm_keys()]), "")
        self._framework = choice(
            "Whose log", _options("recognised", [(title(name), name) for name in frameworks()]), ""
        )
        self._parts = {
            name: widgets.HTML()
            for name in (
                "recognised",
                "verdict",
                "cards",
                "moves",
                "fitted",
                "traps",
                "missing",
                "log",
                "configuration",
            )
        }
        self._plots = Plots(figures(self.found))
        self._share = Sharing(self._status)
        self._share.stem = "your-run"
        self._hidden = widgets.HTML(layout={"display": "none"})  # a style: what the log has nothing of takes no room
        self._arrange()
        self._show(self.found)
        guarded(self._pasted, self._took_text, self._status, _pastable)
        for control, knob in ((self._preset, "preset"), (self._llm, "llm"), (self._framework, "framework")):
            guarded(control, self._setter(knob), self._status)
        self._clear.on_click(reported(self._cleared, self._status))

    # What happens

    def _dropped(self, name: str, content: bytes) -> None:
        given = added(self.found.given, name, content)
        if sum(map(len, given.logs.values())) > MOST_KEPT:
            raise ValueError(f"{name!r:.80}: all logs together must be at most {MOST_KEPT >> 20} MB here; clear first")
        self._go(given)

    def _took_text(self, change: dict[str, Any]) -> None:
        text = change["new"]
        if not text.strip() or self._loading:
            return
        number = 1 + sum(
            name.startswith("pasted ") for name in (*self.found.given.logs, *self.found.given.configurations)
        )
        self._dropped(f"pasted {number}", text.encode("utf-8", errors="replace"))
        self._loading = True
        self._pasted.value = ""
        self._loading = False

    def _setter(self, knob: str) -> Any:
        def set_knob(change: dict[str, Any]) -> None:
            if not self._loading:
                self._go(replace(self.found.given, **{knob: change["new"]}))

        return set_knob

    def _csv(self) -> tuple[str, str]:
        return "your-run.csv", page_table.csv(rows(self.found))

    def _scenario(self) -> tuple[str, str]:
        """The configuration as a scenario, brought to the log where there is one."""
        return scenario_file(self.found.diagnosis.scenario, "your-run")

    def _cleared(self, _: Any) -> None:
        self._go(example())

    def _go(self, given: Given) -> None:
        """Read and compute first, so that what is refused changes nothing."""
        self._show(found(given, self.found))

    # What is shown

    def _show(self, new: Found) -> None:
        self.found = new
        self._loading = True
        try:
            self._preset.value, self._llm.value = new.given.preset, new.given.llm
            self._framework.value = new.given.framework
        finally:
            self._loading = False
        for name in ("recognised", "verdict", "cards", "moves", "fitted", "traps", "missing"):
            self._parts[name].value = getattr(words, name)(new)
            self._parts[name].layout.display = "" if self._parts[name].value else "none"
        there = new.diagnosis is not None and new.diagnosis.scenario is not None
        self._share.offer(({"toml": self._scenario} if there else {}) | {"csv": self._csv})
        self._parts["log"].value = words.log_values(new)
        self._parts["configuration"].value = words.configuration_values(new.reading)
        self._plots.layout.display = "" if new.measured is not None else "none"
        drawn = figures(new)
        empty = [name for name, figure in drawn.items() if not figure["data"]]
        self._hidden.value = (
            f"<style>{''.join(f'figure[data-plot={name}] {{display: none}}' for name in empty)}</style>"
        )
        self._plots.update(drawn, stamp=stamp(new))

    # What there is

    def _arrange(self) -> None:
        folds = widgets.Accordion(
            children=[self._parts["log"], self._parts["configuration"]],
            titles=("Values read from the log", "Values read from the configuration"),
        )
        parts = self._parts
        self.box = page_box(
            [
                box("rlq-intake", [self._drop, self._pasted]),
                box(
                    "rlq-minor",
                    [
                        explained(self._preset, "stands for the configuration, or for what a dropped one leaves open"),
                        explained(self._llm, "where the configuration names one that is not in the catalogue"),
                        explained(self._framework, "where its metrics don't tell"),
                        self._clear,
                    ],
                ),
                self._status,
                parts["recognised"],
                box("rlq-header", [self._share]),
                parts["verdict"],
                parts["cards"],
                self._hidden,
                self._plots,
                parts["moves"],
                parts["fitted"],
                parts["traps"],
                parts["missing"],
                folds,
            ],
            name="rlq-yourrun",
            sheet=STATIC / "your_run.css",
        )


def stamp(new: Found) -> str:
    """What the drawn figures carry to say which files they show."""
    return f"{' + '.join((*new.given.logs, *new.given.configurations))} | {new.given.preset}"


def _options(first: str, others: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(first, ""), *others]


def _pastable(sent: Any) -> str:
    """What is wrong with pasted text, or ""."""
    if not isinstance(sent, str):
        return "must be text"
    return (
        ""
        if len(sent) <= LONGEST_TEXT
        else f"has {len(sent):,} characters, must be at most {LONGEST_TEXT:,}: drop it as a file"
    )
