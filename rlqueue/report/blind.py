"""Series that move during a published run, predicted from its first points: what was fitted, what is a test, and the misses."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from rlqueue import published
from rlqueue.report import drawing
from rlqueue.report.content import OWN, Figure
from rlqueue.report.drawing import BLUE, ORANGE, VERMILION, axis


@dataclass(frozen=True, kw_only=True)
class Series:
    """One published series: the function of ``published`` that predicts it, and how it is shown."""

    key: str
    name: str
    title: str
    words: str
    make: Callable[[], pd.DataFrame]
    overlay: tuple[str, str]
    fitted: str
    share: bool = False


SERIES = (
    Series(
        key="glm_rollout_time", name="blind-glm-5-rollout-time", title="GLM-5 on Prime RL: rollout time as answers grow",
        words="seconds per rollout", make=published.glm_rollout_time, overlay=("glm-5-rollout-time", "rollout_s"),
        fitted="The decode efficiency, on the first five steps. Lengths and tool calls of each step are read off the charts.",
    ),
    Series(
        key="prime_rollout_time", name="blind-prime-rollout-time", title="Qwen3-235B on Prime RL: rollout time as answers grow",
        words="seconds per rollout", make=published.prime_rollout_time, overlay=("prime_process", "rollout_s"),
        fitted="The decode efficiency, on the first step. Lengths of each step are printed.",
    ),
    Series(
        key="dapo_all_solved", name="blind-dapo-all-solved", title="DAPO: prompts that all rollouts solve, as they are learned",
        words="share of prompts", make=published.dapo_all_solved, overlay=("curriculum_series", "dapo-all-solved"),
        fitted="Mean and spread of the solve rates at the start and the speed of learning, on the first three points.",
        share=True,
    ),
)  # fmt: skip


def figures() -> tuple[Figure, ...]:
    """The series, each with its published points; no assumption of the reader moves them."""
    return tuple(map(_figure, SERIES))


def _figure(series: Series) -> Figure:
    found = series.make()
    fitted, tested = found[found["calibrated"]], found[~found["calibrated"]]
    error = published.blind_error(found)
    said = f"{100 * error:.1f} points" if series.share else f"{error:.0%}"
    worst = tested.loc[tested["error"].abs().idxmax()]
    unit = ".0%" if series.share else ".0f"
    return Figure(
        name=series.name,
        title=series.title,
        units=f"{series.words} by training step · line: closed form · diamonds: published and fitted to, triangles: published "
        "and predicted blind",
        says=f"Mean error of the {len(tested)} points that were not fitted: {said}. The furthest is step {worst['step']}: "
        f"{worst['predicted']:{unit}} against {worst['published']:{unit}} published. {published.MISSES[series.key]}",
        kind="closed form",
        fitted=series.fitted,
        sources=(*dict.fromkeys(found["source"]), OWN),
        overlay=(series.overlay,),
        plot=drawing.plot(
            [
                drawing.dotted("predicted", found["step"], found["predicted"], BLUE),
                drawing.points("published, fitted", fitted["step"], fitted["published"], VERMILION),
                drawing.points("published, blind", tested["step"], tested["published"], ORANGE, "triangle-up-open"),
            ],
            axis("training step", rangemode="tozero"),
            axis(series.words, rangemode="tozero", **({"tickformat": ".0%"} if series.share else {})),
        ),
    )
