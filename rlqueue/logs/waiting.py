"""Who waits for whom, from the means of a run, and what that rests on."""

import math
from dataclasses import dataclass

import pandas as pd

from rlqueue.logs.kinds import FEWEST

MATTERS = 0.1
"""A side that waits for less than this share of the time is not the one held up."""
MOST_STEPS = 0.5
"""Share of steps from which a lead at its bound is the rule and not the exception."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Which side waits.

    Attributes:
        side: ``trainer``, ``generator``, ``neither`` or ``unknown``: the one held up.
        bottleneck: the other one. words: one sentence. direct: from logged times, and not inferred.
    """

    side: str
    bottleneck: str
    words: str
    direct: bool


def waiting(means: dict[str, float], steady: pd.DataFrame) -> Waiting:
    """The side that waits: by the trainer's logged wait, by the generation side's, else by what a lead or step times betray."""
    ratio = means.get("trainer_wait_ratio", math.nan)
    if ratio >= MATTERS:
        return Waiting(side="trainer", bottleneck="generator", direct=True,
                       words=f"The trainer waits {ratio:.0%} of the time: the generator is the bottleneck.")  # fmt: skip
    held = means.get("generator_wait_s", math.nan) / means.get("generator_step_s", math.nan)
    if held >= MATTERS:
        words = f"The generation side waits {held:.0%} of its step for new weights: the trainer is the bottleneck."
        return Waiting(side="generator", bottleneck="trainer", words=words, direct=True)
    if not math.isnan(ratio):
        return Waiting(side="neither" if ratio > 0.01 else "generator", bottleneck="trainer", direct=True,
                       words=f"The trainer waits only {ratio:.1%} of the time: its own speed sets the pace.")  # fmt: skip
    if "wait_s" in means and "generator_step_s" not in means:
        return Waiting(side="unknown", bottleneck="unknown", direct=False,
                       words=f"The trainer's wait is logged ({means['wait_s']:,.0f} s a step), its time of training is not: "
                       "who waits for whom can't be said.")  # fmt: skip
    return _inferred(steady)


def _inferred(steady: pd.DataFrame) -> Waiting:
    """Without a logged wait: a generation side that leads by a step or more at most steps is held back by the trainer.

    Beside it, where both processes logged their steps: the pace that each reaches when not held up, its tenth quickest step.
    """
    signs: list[str] = []
    trainer = 0
    lead = steady["lead_versions"].dropna() if "lead_versions" in steady else pd.Series(dtype=float)
    if len(lead) >= FEWEST:
        ahead = float((lead >= 1).mean())
        trainer += 1 if ahead >= MOST_STEPS else -1
        signs.append(
            f"generation was ahead of the newest weights, and so had to wait for them, at {ahead:.0%} of {len(lead)} steps"
        )
    if {"step_s", "generator_step_s"} <= set(steady):
        ours, theirs = (steady[name].dropna() for name in ("step_s", "generator_step_s"))
        if min(len(ours), len(theirs)) >= FEWEST:
            quick, other = float(ours.quantile(0.1)), float(theirs.quantile(0.1))
            trainer += 1 if quick > other else -1
            signs.append(f"its quickest steps take the trainer {quick:,.0f} s and the generation side {other:,.0f} s")
    if not signs or trainer == 0:
        said = "; ".join(signs) or "no wait of either side is logged"
        return Waiting(side="unknown", bottleneck="unknown", direct=False, words=f"Who waits can't be said: {said}.")
    side, bottleneck = ("generator", "trainer") if trainer > 0 else ("trainer", "generator")
    return Waiting(side=side, bottleneck=bottleneck, direct=False,
                   words=f"The {bottleneck} is the bottleneck, as far as can be inferred: {'; '.join(signs)}.")  # fmt: skip
