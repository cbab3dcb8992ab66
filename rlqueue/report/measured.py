"""Figures that the source gives values for: its points lie over the computed curves, and the error is stated."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from rlqueue.operating_point import OperatingPoint
from rlqueue.presets import reported
from rlqueue.provenance import table
from rlqueue.queueing import solve
from rlqueue.report import drawing
from rlqueue.report.assumptions import GLM, PRIME, Assumptions, at_lengths
from rlqueue.report.content import REPORT, Figure, mean_error
from rlqueue.report.drawing import BLUE, GREY, ORANGE, SKY, axis
from rlqueue.report.tables import process_rows
from rlqueue.scenario import Scenario

STEP = axis("training step", dtick=1, zeroline=False)


def series(figure: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The source's points of one curve: x and y as read."""
    rows = [row for row in table("report_series") if (row["figure"], row["series"]) == (figure, name)]
    return np.array([float(row["x"]) for row in rows]), np.array([float(row["y"]) for row in rows])


@lru_cache(maxsize=64)
def prime_points(scenario: Scenario) -> tuple[OperatingPoint, ...]:
    """The closed form at the printed mean lengths of each step of the Prime RL run."""
    steps = process_rows("prime_process")
    return tuple(
        solve(at_lengths(scenario, step["mean_prompt_tokens"], step["mean_response_tokens"])) for step in steps
    )


def trainer_and_generator(assumptions: Assumptions) -> Figure:
    """Consumption and production of the Prime RL run, step by step."""
    found, name = prime_points(assumptions.scenario(PRIME)), "prime-trainer-and-generator"
    facts = reported(PRIME)
    x, consumed = series(name, "consumption_per_s")
    _, produced = series(name, "production_per_s")
    consumption = np.array([point.consumption_per_s for point in found])
    production = np.array([point.production_per_s for point in found])
    return Figure(
        name=name,
        title="Prime RL with Qwen3-235B: does the generator keep up with the trainer?",
        units="samples per second by training step · lines: closed form at each step's printed lengths · diamonds: "
        "read off the chart",
        says=f"Mean error against the chart: consumption {mean_error(consumption, consumed):.0%}, production "
        f"{mean_error(production, produced):.0%} ({mean_error(production[1:], produced[1:]):.0%} without step 0, at "
        "which the pipeline is still filling: a long-run form can't show that). Means over the steps: consumption "
        f"{consumption.mean():.2f}/s against the printed {facts['consumption_per_s'].value}/s, production "
        f"{production[1:].mean():.2f}/s without step 0 against {facts['production_per_s'].value}/s. The measured "
        f"consumption jumps between two levels, {consumed.min():.1f} and {consumed.max():.1f}/s, for which the "
        "lengths give no reason: the model, with one MFU, gives a smooth curve.",
        kind="closed form",
        fitted="MFU is the printed one; concurrency and decode efficiency are fitted to the run's mean production "
        "and mean rollout time. The level is therefore no test, the course over the steps is.",
        sources=(REPORT,),
        overlay=((name, "consumption_per_s"), (name, "production_per_s")),
        plot=drawing.plot(
            [
                drawing.dotted("trainer consumes while computing, computed", x, consumption, BLUE),
                drawing.dotted("generator produces, computed", x, production, ORANGE),
                drawing.points("consumption, chart", x, consumed, BLUE),
                drawing.points("production, chart", x, produced, ORANGE),
            ],
            STEP,
            axis("samples / s", rangemode="tozero"),
        ),
    )


def rollout_time(assumptions: Assumptions) -> Figure:
    """Generation time of a sample, LLM and sandbox apart."""
    found, name = prime_points(assumptions.scenario(PRIME)), "prime-rollout-time"
    x, chart = series(name, "rollout_s")
    _, share = series(name, "llm_share")
    printed = np.array([step["rollout_s"] for step in process_rows("prime_process")])
    total = np.array([point.rollout_s for point in found])
    llm = np.array([point.rollout_s * point.decoding_ratio for point in found])
    outside = 1.0 - llm / total
    return Figure(
        name=name,
        title="Prime RL with Qwen3-235B: where a rollout's time goes",
        units="seconds per sample by training step · bars: closed form · diamonds: printed (table), read off the "
        "chart, and LLM part by the printed share",
        says=f"Mean error of the rollout time: {mean_error(total, printed):.0%} against the printed table, "
        f"{mean_error(total, chart):.0%} against the chart (whose readings lie up to "
        f"{np.max(chart / printed) - 1:.0%} above the table). LLM part: {mean_error(llm, share * printed):.0%} "
        f"against printed share times printed time. The share outside the LLM falls from {1 - share[0]:.0%} to "
        f"{1 - share[-1]:.0%} in the source and only from {outside[0]:.1%} to {outside[-1]:.1%} here: the run's "
        f"sandbox time itself falls, from {(1 - share[0]) * printed[0]:.0f} to {(1 - share[-1]) * printed[-1]:.0f} "
        "s, and the preset holds one mean.",
        kind="closed form",
        fitted="Decode efficiency is fitted to the mean of the printed times, tool-call time to the mean sandbox "
        "share: the level is no test, the growth with length is.",
        sources=(REPORT,),
        overlay=((name, "rollout_s"), (name, "llm_share"), ("prime_process", "rollout_s")),
        plot=drawing.plot(
            [
                drawing.bars("LLM, computed", x, llm, SKY),
                drawing.bars("sandbox and tools, computed", x, total - llm, GREY),
                drawing.points("whole rollout, printed table", x, printed),
                drawing.points("whole rollout, chart", x, chart, drawing.INK, "circle-open"),
                drawing.points("LLM part, printed share × printed time", x, share * printed, BLUE, "triangle-up-open"),
            ],
            STEP,
            axis("s per sample", rangemode="tozero"),
            barmode="stack",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class GlmStep:
    """One step of the GLM-5 run: where it lies, its length, and how the closed form runs at it."""

    step: int
    tokens: float
    tool_calls: float
    point: OperatingPoint

    @property
    def llm_s(self) -> float:
        return self.point.rollout_s * self.point.decoding_ratio


def glm_lengths() -> list[tuple[int, float]]:
    """The 24 sequence lengths that were read off the chart: (position, token)."""
    x, y = series("glm-5-drift", "mean_sequence_tokens")
    return [(int(place), float(tokens)) for place, tokens in zip(x, y, strict=True)]


def glm_points(assumptions: Assumptions) -> list[GlmStep]:
    """The closed form at each length of the GLM-5 chart, put at the step where it fits best.

    The chart has 25 steps and 24 readings: one bar was lost, and every reading behind it belongs one step later. The place
    of the gap is the one of 25 that brings computed and read times closest.
    """
    found = _glm_solved(assumptions.scenario(GLM))
    gap = best_gap(found)
    return [replace(each, step=each.step + (each.step >= gap)) for each in found]


@lru_cache(maxsize=16)
def _glm_solved(scenario: Scenario) -> tuple[GlmStep, ...]:
    share = scenario.mean_prompt_tokens / (scenario.mean_prompt_tokens + scenario.mean_response_tokens)
    x, calls = series("glm-5-drift", "tool_calls")
    found = []
    for place, tokens in glm_lengths():
        tool_calls = float(np.interp(place, x, calls))
        there = replace(at_lengths(scenario, share * tokens, (1 - share) * tokens), tool_calls=tool_calls)
        found.append(GlmStep(step=place, tokens=tokens, tool_calls=tool_calls, point=solve(there)))
    return tuple(found)


def best_gap(found: tuple[GlmStep, ...]) -> int:
    """The step whose bar was lost, so that the mean error of the rollout time is least."""
    return min(range(len(found) + 1), key=lambda gap: error_with_gap(found, gap))


def error_with_gap(found: tuple[GlmStep, ...], gap: int) -> float:
    """Mean relative error of the computed rollout time if the bar of step ``gap`` was lost."""
    _, seconds = series("glm-5-rollout-time", "rollout_s")
    return mean_error(
        [each.point.rollout_s for each in found], [seconds[each.step + (each.step >= gap)] for each in found]
    )


def glm_rollout_time(assumptions: Assumptions) -> Figure:
    """Seconds per sample of the GLM-5 run."""
    name, facts = "glm-5-rollout-time", reported(GLM)
    x, chart = series(name, "rollout_s")
    solved = _glm_solved(assumptions.scenario(GLM))
    found, gap = glm_points(assumptions), best_gap(solved)
    steps = [each.step for each in found]
    total = np.array([each.point.rollout_s for each in found])
    llm = np.array([each.llm_s for each in found])
    ends = [float(facts[end].value) for end in ("llm_first_s", "llm_last_s")]
    return Figure(
        name=name,
        title="Prime RL with GLM-5: seconds per sample as answers grow",
        units="seconds per sample by training step · bars: closed form at the length read off the drift chart · "
        "diamonds: read off the time chart; triangles: LLM time printed for the first and last step",
        says=f"Mean error {error_with_gap(solved, gap):.0%} over {len(found)} steps. The length chart has "
        f"{len(found)} readings for {len(chart)} steps: here the lost bar is taken to be step {gap}, where the two "
        "charts agree best; with the readings as they stand, the last step lost, the error is "
        f"{error_with_gap(solved, len(solved)):.0%}. LLM time at the first step {llm[0]:.0f} s (printed "
        f"{ends[0]:.0f}), at the last {llm[-1]:.0f} s (printed {ends[1]:.0f}): "
        f"{found[-1].tokens / found[0].tokens:.1f} times the length takes {llm[-1] / llm[0]:.1f} times as long, "
        "since longer contexts make each token slower as well.",
        kind="closed form",
        fitted="Decode efficiency is fitted to the mean of the 25 readings, and the place of the lost bar to their "
        "course: level and alignment are no test, the growth is.",
        sources=(REPORT,),
        overlay=((name, "rollout_s"), ("reported", "llm_first_s, llm_last_s")),
        plot=drawing.plot(
            [
                drawing.bars("LLM, computed", steps, llm, SKY),
                drawing.bars("sandbox and tools, computed", steps, total - llm, GREY),
                drawing.points("whole rollout, chart", x, chart),
                drawing.points("LLM, printed", [x[0], x[-1]], ends, BLUE, "triangle-up-open"),
            ],
            STEP | {"dtick": 4},
            axis("s per sample", rangemode="tozero"),
            barmode="stack",
        ),
    )


def glm_drift(_: Assumptions) -> Figure:
    """How length and tool calls of the GLM-5 run drift."""
    name = "glm-5-drift"
    x, tokens = series(name, "mean_sequence_tokens")
    at, calls = series(name, "tool_calls")
    steps = np.arange(25)
    length, tools = np.polyfit(x, tokens, 1), np.polyfit(at, calls, 1)
    return Figure(
        name=name,
        title="Prime RL with GLM-5: answers and tool calls grow",
        units="thousand tokens per sequence, and tool calls per rollout, by training step · lines: straight lines "
        "of least squares · diamonds: read off the chart",
        says=f"The mean sequence grows by {length[0]:,.0f} tokens a step (mean distance from the line "
        f"{mean_error(np.polyval(length, x), tokens):.0%}), tool calls by {tools[0]:.1f} a step "
        f"({mean_error(np.polyval(tools, at), calls):.0%}). What the policy does is an input of the model: these "
        f"lines are fits to the points, and predict nothing. The chart's {len(x)} lengths stand for {len(steps)} "
        "steps; seven tool-call values are readable.",
        kind="fit",
        fitted="Both lines are fitted to the points they lie under.",
        sources=(REPORT,),
        overlay=((name, "mean_sequence_tokens"), (name, "tool_calls")),
        plot={
            "data": [
                drawing.line("sequence, fitted line", steps, np.polyval(length, steps) / 1e3, BLUE),
                drawing.points("sequence, chart", x, tokens / 1e3, BLUE),
                drawing.line("tool calls, fitted line", steps, np.polyval(tools, steps), ORANGE, yaxis="y2"),
                drawing.points("tool calls, chart", at, calls, ORANGE, yaxis="y2"),
            ],
            "layout": drawing.stacked(
                STEP | {"dtick": 4},
                axis("1,000 tokens", rangemode="tozero"),
                axis("calls / rollout", rangemode="tozero"),
            ),
        },
    )
