"""Figures that need a simulated run: aborts at weight updates, timelines, and what closed forms leave out."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from rlqueue.provenance import quantities
from rlqueue.rates import rates
from rlqueue.report import drawing
from rlqueue.report.assumptions import PRIME, SLIME, Assumptions, moneyless
from rlqueue.report.content import OWN, REPORT, Figure, mean_error, value_of
from rlqueue.report.drawing import BLUE, ORANGE, PURPLE, axis
from rlqueue.report.measured import series
from rlqueue.report.tables import process_rows
from rlqueue.scenario import Scenario
from rlqueue.simulation import Run, simulate

SETTINGS = quantities("report_assumptions", "simulation")
SEED, STEPS = int(value_of(SETTINGS["seed"])), int(value_of(SETTINGS["steps"]))
TIMELINES = {
    "sync": "synchronous: generate, then train",
    "one-step-off": "one step off: generate the next batch meanwhile",
    "async-in-flight": "in flight (PipelineRL): no slot waits",
}
SHOWN_STEPS = 6
FILLED = 3
"""Steps after which the pipeline of the Prime RL run counts as filled."""


def run(scenario: Scenario, steps: int = STEPS, *, rollouts: bool = False) -> Run:
    """A simulated run, kept: several figures look at the same one, and money changes nothing in it."""
    return _run(moneyless(scenario), steps, rollouts)


@lru_cache(maxsize=128)
def _run(scenario: Scenario, steps: int, rollouts: bool) -> Run:  # noqa: FBT001
    return simulate(scenario, seed=SEED, steps=steps, rollouts=rollouts)


def aborted(assumptions: Assumptions) -> Figure:
    """How many requests each publication of weights aborts in the slime run."""
    scenario = assumptions.scenario(SLIME)
    steps = len(process_rows("slime_process"))
    found = run(scenario, steps)
    moments = found.series
    published = found.steps[found.steps["version"].diff().fillna(found.steps["version"]) > 0]
    numbers = np.zeros(steps)
    for row in published.itertuples():
        before = moments[(moments["time_s"] <= row.end_s) & (moments["version"] < row.version)]
        numbers[row.step] = before["active_requests"].iloc[-1]
    each = float(rates(scenario)["reprefill_s"][0])
    mean = numbers[numbers > 0].mean() if numbers.any() else 0.0
    between = published["end_s"].diff().mean()
    return Figure(
        name="aborted-rollouts",
        title="slime: rollouts aborted at each weight update",
        units=f"requests aborted and prefilled again, by training step · simulation of {steps} steps, seed {SEED}",
        says=f"Weights are published every {scenario.steps_per_publication} steps. Each time {mean:.0f} of "
        f"{scenario.concurrency} rollouts are in the middle of sampling and are aborted: their contexts are "
        f"prefilled again, about {each:.2f} s of a replica each, {mean / scenario.replicas * each:.1f} s of each "
        f"replica per update, or {mean / scenario.replicas * each / between:.1%} of its time. The others were in a "
        "tool call. No work but the prefill is lost: sampled tokens are kept.",
        kind="simulation",
        fitted="Concurrency is fitted to the printed wait, prefill speed is assumed.",
        sources=(REPORT, OWN),
        plot=drawing.plot(
            [drawing.bars("aborted requests", np.arange(steps), numbers, PURPLE)],
            axis("training step", dtick=1),
            axis("requests", rangemode="tozero"),
        ),
    )  # fmt: skip


def timelines(assumptions: Assumptions) -> Figure:
    """Who works when, under three schedules."""
    base = replace(assumptions.scenario(SLIME), steps_per_publication=1)
    base = replace(base, concurrency=base.samples_per_step)
    traces, said = [], []
    layout: dict = {"xaxis": axis("time since the start [min]", anchor="y3", rangemode="tozero"), "height": 620}
    for place, (schedule, words) in enumerate(TIMELINES.items()):
        found = run(replace(base, schedule=schedule), SHOWN_STEPS)
        suffix = "" if place == 0 else str(place + 1)
        series, spans = found.series, found.timeline
        busy_x, busy_y = [0.0], [0.0]
        for span in spans.itertuples():
            high = 1.0 if span.kind == "train" else 0.0
            busy_x += [span.start_s / 60, span.end_s / 60]
            busy_y += [high, high]
        first = {"yaxis": f"y{suffix}", "showlegend": place == 0, "line": {"width": 1.5, "shape": "hv"}}
        traces += [
            drawing.line(
                "rollouts generating, share of slots",
                series["time_s"] / 60,
                series["active_requests"] / base.concurrency,
                ORANGE,
            )
            | {**first, "fill": "tozeroy", "line": {"width": 1.5, "shape": "hv", "color": ORANGE}},
            drawing.line("trainer trains", busy_x, busy_y, BLUE)
            | {**first, "fill": "tozeroy", "line": {"width": 1, "color": BLUE}},
        ]
        layout[f"yaxis{suffix}"] = {
            "domain": [1 - (place + 1) / 3 + 0.015, 1 - place / 3 - 0.06], "range": [0, 1.05], "tickvals": [0, 1],
            "automargin": True,
        }  # fmt: skip
        layout.setdefault("annotations", []).append(
            {"text": words, "x": 0, "xref": "paper", "xanchor": "left", "y": 1 - place / 3 - 0.06, "yref": "paper",
             "yanchor": "bottom",
             "showarrow": False, "font": {"size": 12}, "align": "left"}
        )  # fmt: skip
        said.append(f"{words.split(':')[0]} {spans[spans['kind'] == 'train']['end_s'].max() / 60:.0f} min")
    return Figure(
        name="timelines",
        title="Synchronous, one step off, in-flight: the same batches on a clock",
        units="share of the slots that generate, and whether the trainer trains, by minutes since the start · simulation",
        says=f"{SHOWN_STEPS} steps of {base.samples_per_step} rollouts with as many slots, lengths and speeds of "
        f"the slime run: {', '.join(said)}. In step, the slots empty while the longest rollouts end, and then while "
        "the trainer trains; in flight, a slot is filled again at once.",
        kind="simulation",
        fitted=f"One publication a step and {base.concurrency} slots, so that the three differ by the schedule "
        f"alone. Seed {SEED}.",
        sources=(REPORT, OWN),
        plot={"data": traces, "layout": {"margin": {"l": 50, "r": 20, "t": 12, "b": 52}, **layout}},
    )


def start_of_prime(assumptions: Assumptions) -> Figure:
    """The pipeline filling: what the long-run form can't show."""
    scenario = assumptions.scenario(PRIME)
    x, chart = series("prime-trainer-and-generator", "production_per_s")
    found = run(scenario, len(x)).steps
    length = found["end_s"] - found["start_s"]
    rate = (scenario.samples_per_step / length).to_numpy()
    return Figure(
        name="prime-start",
        title="Prime RL with Qwen3-235B: the first steps, with the pipeline still empty",
        units=f"samples per second delivered to the trainer, by training step · line: simulation of {len(x)} steps "
        f"with the run's mean lengths, seed {SEED} · diamonds: production, read off the chart",
        says=f"The run starts with no rollout in flight: the first batch takes {length.iloc[0]:.0f} s, "
        f"{length.iloc[0] / length.iloc[FILLED:].mean():.1f} times a later step, so that the first delivery is "
        f"{rate[0]:.2f}/s (chart: {chart[0]:.2f}/s). From step {FILLED} on the mean is {rate[FILLED:].mean():.2f}/s "
        f"(chart: {chart[FILLED:].mean():.2f}/s). Mean error over all steps {mean_error(rate, chart):.0%}: batches "
        "of a simulated run come unevenly too, and not in the same steps.",
        kind="simulation",
        fitted="Concurrency and decode efficiency are fitted to mean production and rollout time; the start is not.",
        sources=(REPORT, OWN),
        overlay=(("prime-trainer-and-generator", "production_per_s"),),
        plot=drawing.plot(
            [
                drawing.dotted("delivered, simulated", x, rate, ORANGE),
                drawing.points("production, chart", x, chart, ORANGE),
            ],
            axis("training step", dtick=1),
            axis("samples / s", rangemode="tozero"),
        ),
    )
