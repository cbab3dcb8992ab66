"""The controls: one table of labels and limits, and the widgets made from it.

Units and explanations are those of the scenario's knobs, starting values are the scenario's. A limit here is only how far a
control reaches; what a scenario may be is the scenario's own affair.

A slider is a list of stops, and a page can send no more than a place in it. (The front end's number sliders round the value they
are given to their own step and send that back as if the reader had moved them: a preset's 2,808 slots became 2,827.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any

import ipywidgets as widgets

from rlqueue.app.state import State, frame, preset_row, value_of
from rlqueue.choices import IN_STEP
from rlqueue.hosted import hosted_price_keys
from rlqueue.llm import llm_keys
from rlqueue.presets import preset
from rlqueue.provenance import table
from rlqueue.scenario import Scenario

NO_PRICE = "none"
LONGEST_TEXT = 20_000
"""Of what a page may send for a text; a measured series of a thousand steps is shorter."""
KNOBS = {each.name: each for each in fields(Scenario)}


@dataclass(frozen=True, kw_only=True)
class Control:
    """One row of the table.

    Attributes:
        knob: name in ``Scenario``; ``node.usd_per_kwh`` reaches into a part.
        label: a few words. unit, meaning: the knob's own unless given.
        shape: ``even`` or ``log`` (a slider with stops evenly apart, or by a factor), ``choice``, ``price`` (a number or empty),
            ``text``.
        low, high: reach of the slider. step: between two stops; of a ``log`` slider in powers of ten.
        shown: Python format of a stop. named: further stops that have a word of their own, such as 0 for "off".
    """

    knob: str
    label: str
    shape: str
    low: float = 0
    high: float = 1
    step: float = 1
    shown: str = "g"
    unit: str = ""
    meaning: str = ""
    named: tuple[tuple[float, str], ...] = ()

    @property
    def explained(self) -> str:
        return self.meaning or KNOBS[self.knob].metadata["meaning"]

    @property
    def measured_in(self) -> str:
        unit = self.unit or KNOBS[self.knob].metadata["unit"]
        return "" if unit == "1" else unit


SPLIT = Control(knob="generator_gpus", label="GPU split", shape="even", unit="trainer : generator GPUs",
                meaning="by whole replicas; the other GPUs train")  # fmt: skip
STALENESS = Control(knob="max_staleness", label="Staleness budget", shape="even", low=0, high=32, step=0.5, unit="versions",
                    meaning="weight publications a rollout may be behind")  # fmt: skip
CONCURRENCY = Control(knob="concurrency", label="Concurrency", shape="log", step=0.01, shown=",", unit="rollouts",
                      meaning="most rollouts in flight, over all replicas")  # fmt: skip
MAIN = (SPLIT, STALENESS, CONCURRENCY)

PRICE = Control(
    knob="gpu_hour_usd", label="GPU-hour price", shape="price", meaning="empty: the cost of ownership of the node"
)
MORE = (
    Control(knob="llm", label="LLM", shape="choice"),
    Control(knob="prompts_per_step", label="Prompts per step", shape="log", low=1, high=1024, step=0.02, unit="groups"),
    Control(knob="group_size", label="Group size", shape="even", low=2, high=64, unit="rollouts"),
    Control(knob="mean_response_tokens", label="Mean response", shape="log", low=100, high=200_000, step=0.01, shown=",.0f",
            unit="tokens"),
    Control(knob="max_response_tokens", label="Longest response", shape="log", low=200, high=262_144, step=0.01, shown=",.0f",
            unit="tokens"),
    Control(knob="response_sigma_between_prompts", label="Spread between prompts", shape="even", high=2, step=0.05, unit="sigma"),
    Control(knob="response_sigma_within_group", label="Spread within a group", shape="even", high=1, step=0.05, unit="sigma"),
    Control(knob="tool_calls", label="Tool calls", shape="even", high=200, unit="per rollout"),
    Control(knob="sandbox_start_s", label="Sandbox start", shape="even", high=600, unit="s"),
    Control(knob="mfu", label="Trainer MFU", shape="log", low=0.005, high=0.6, step=0.01, unit="share of peak"),
    Control(knob="filtered_fraction", label="Filtered groups", shape="even", high=0.95, step=0.01, unit="share"),
    Control(knob="surplus_fraction", label="Surplus groups", shape="even", high=0.95, step=0.01, unit="share"),
    Control(knob="schedule", label="Schedule", shape="choice"),
    Control(knob="staleness_family", label="Staleness rule", shape="choice"),
    Control(knob="node.usd_per_kwh", label="Electricity", shape="even", high=0.5, step=0.001, unit="$/kWh",
            meaning="price of a kilowatt-hour; part of the cost of ownership"),
    PRICE,
    Control(knob="hosted_price", label="Hosted price", shape="choice", unit="$/Mtok"),
)  # fmt: skip


def stops(control: Control, state: State) -> tuple[float, ...]:
    """The values that a slider stops at: its table's, the preset's and the present one."""
    if control is SPLIT:
        return tuple(frame(state.scenario).splits.tolist())
    low, high = control.low, control.high
    if control is CONCURRENCY:
        around = frame(state.scenario)
        low, high = around.slots_low, around.slots_high
    own = {value_of(state.start, control.knob), value_of(state.scenario, control.knob)}
    return tuple(sorted(_marks(control, low, high) | own))


@lru_cache(maxsize=256)
def _marks(control: Control, low: float, high: float) -> frozenset[float]:
    if control.shape == "log":
        steps = math.floor(math.log10(high / low) / control.step + 1e-9)
        found = [low * 10 ** (control.step * k) for k in range(steps + 1)] + [high]
        found = [float(f"{value:.3g}") for value in found]
    else:
        steps = math.floor((high - low) / control.step + 1e-9)
        found = [round(low + control.step * k, 9) for k in range(steps + 1)]
    whole = control.knob in KNOBS and KNOBS[control.knob].type is int
    found = [value for value in found if low <= value <= high] + [value for value, _ in control.named]
    return frozenset(int(value) if whole else float(value) for value in found)


@cache
def options(knob: str) -> tuple[tuple[str, str], ...]:
    """Titles and keys of a choice."""
    if knob == "llm":
        titles = {row["key"]: row["title"] for row in table("llms")}
        return tuple((titles[key], key) for key in llm_keys())
    if knob == "hosted_price":
        rows = {row["key"]: row for row in table("hosted_prices")}
        named = ((price_title(rows[key]), key) for key in hosted_price_keys())
        return (("none", NO_PRICE), *sorted(named, key=lambda each: each[0].lower()))
    return tuple((key, key) for key in KNOBS[knob].metadata["choices"])


def price_title(row: dict[str, str]) -> str:
    """``Qwen3-235B-A22B · tinker · 2026-06-11``, with the variant's context length where it has one."""
    name, *variant = row["key"].removeprefix(f"{row['service']}/").rpartition("/")[0].split(":")
    longer = f" ({int(variant[-1]) // 1024}K context)" if variant and variant[-1].isdigit() else ""
    return f"{name}{longer} · {row['service']} · {row['date'] or 'undated'}"


def label(control: Control, value: float, state: State) -> str:
    """A stop as it stands beside the slider."""
    if control is SPLIT:
        return f"{frame(state.scenario).gpus - value} : {value}"
    if value in (names := dict(control.named)):
        return names[value]
    return format(value, control.shown)


def held(control: Control, scenario: Scenario) -> Any:
    """What the control holds when the scenario is as it is."""
    value = value_of(scenario, control.knob)
    if control.shape == "price":
        return "" if value is None else f"{value:g}"
    return NO_PRICE if control.shape == "choice" and value is None else value


def meant(control: Control, sent: Any) -> Any:
    """What the knob gets when the control holds ``sent``."""
    if control.shape == "price":
        return float(sent) if sent.strip() else None
    return None if control.knob == "hosted_price" and sent == NO_PRICE else sent


def widget(control: Control, state: State) -> widgets.Widget:
    """The control, holding the scenario's value."""
    unit, value = control.measured_in, held(control, state.scenario)
    common = {
        "value": value,
        "description": f"{control.label} [{unit}]" if unit else control.label,
        "tooltip": control.explained,
        "style": {"description_width": "initial"},
        "layout": widgets.Layout(width="auto", margin="0"),
    }
    if control.shape == "choice":
        return widgets.Dropdown(options=options(control.knob), **common)
    if control.shape in {"price", "text"}:
        return widgets.Text(continuous_update=False, **common)
    return widgets.SelectionSlider(options=_labelled(control, state), continuous_update=True, **common)


def _labelled(control: Control, state: State) -> list[tuple[str, float]]:
    return [(label(control, value, state), value) for value in stops(control, state)]


def show(control: Control, holder: widgets.Widget, state: State) -> None:
    """Bring the widget's stops and value to the state's. Its observers hear of steps in between."""
    value = held(control, state.scenario)
    if isinstance(holder, widgets.SelectionSlider):
        # Stops that are no longer needed stay until others are: a slider under the reader's hand must not shift.
        there = [each for _, each in holder.options]
        if not set(stops(control, state)) <= set(there) or not _same_reach(control, state, there):
            # Three messages: in one, the front end moves the handle before it knows the new stops, and sends back where it got.
            holder.index = 0
            holder.options = _labelled(control, state)
    if holder.value != value:
        holder.value = value


def _same_reach(control: Control, state: State, there: list[float]) -> bool:
    wanted = stops(control, state)
    return (wanted[0], wanted[-1]) == (there[0], there[-1])


def checked(control: Control, holder: widgets.Widget) -> Callable[[Any], str]:
    """What is wrong with a value that a page sent for this control, or ""."""

    def place(sent: Any) -> str:
        last = len(holder.options) - 1
        return "" if type(sent) is int and 0 <= sent <= last else f"must be a whole number in [0, {last}]"

    def price(sent: Any) -> str:
        high = KNOBS[control.knob].metadata["high"]
        try:
            right = isinstance(sent, str) and (not sent.strip() or 0 <= float(sent) <= high)
        except ValueError:
            right = False
        return "" if right else f"must be empty or a number of dollars in [0, {high:g}]"

    def text(sent: Any) -> str:
        return (
            ""
            if isinstance(sent, str) and len(sent) <= LONGEST_TEXT
            else f"must be text of at most {LONGEST_TEXT} letters"
        )

    return {"price": price, "text": text}.get(control.shape, place)


def effect(control: Control, state: State) -> str:
    """What the control's present value means, beyond its number; "" where the number says it all."""
    scenario, knob = state.scenario, control.knob
    words = ""
    if knob == "generator_gpus":
        replicas = f"{scenario.replicas} replica{'s' if scenario.replicas > 1 else ''}"
        words = f"{scenario.trainer_gpus} trainer : {scenario.generator_gpus} generator ({replicas})"
    elif knob == "max_staleness" and scenario.schedule in IN_STEP:
        words = f"no effect: schedule {scenario.schedule} keeps trainer and generator in step"
    elif knob == "max_staleness":
        words = f"{scenario.staleness_family}{own_name(state)}"
    elif knob == "concurrency":
        words = f"{scenario.concurrency / scenario.replicas:,.0f} slots on each replica"
    elif KNOBS[knob].metadata["choices"] if knob in KNOBS else False:
        words = KNOBS[knob].metadata["choices"][value_of(scenario, knob)]
    elif knob == "node.usd_per_kwh" and scenario.gpu_hour_usd is not None:
        words = "no effect: the GPU-hour price is set"
    return words


def own_name(state: State) -> str:
    """`` (Prime RL: max_off_policy_steps)``: what the preset's framework calls its staleness budget, where the data say so."""
    fact = preset(state.preset)["staleness_family"]
    if not fact.where or state.scenario.staleness_family != fact.value:
        return ""
    framework = preset_row(state.preset)["title"].split(" · ")[0]
    return f" ({framework}: {fact.where.split(': ')[-1]})"
