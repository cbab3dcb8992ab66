"""Which steps say how the run goes: start-up, evaluation, checkpoint and odd ones are marked, so that no mean holds them."""

import pandas as pd

from rlqueue.logs import times

LONG = 2.0
"""A step of more than so many medians is no ordinary step, even if the log doesn't say why."""
SHORT = 0.1
"""A step of less than so many medians only flushed what was queued."""
NOTICED = 1.25
"""A step with an evaluation in or before it is taken out if it took so many medians: if not, nobody waited for it."""
SHARE = 0.02
"""An evaluation or a checkpoint of less than this share of a median step is logged, but cost nothing."""
AROUND = 31
"""The median is that of so many steps around, since lengths drift over a run."""
FEWEST = 4
"""With fewer steps there is no median to speak of, and all are kept."""
KINDS = {
    "steady": "goes into the means",
    "start-up": "the first step of the run or after it was resumed",
    "evaluation": "waited for an evaluation",
    "checkpoint": "saved a checkpoint",
    "long": f"longer than {LONG:g} medians; the log does not say why (a straggler, an evaluation, a restart)",
    "flush": f"shorter than {SHORT:g} medians: it found its batch ready",
    "no time": "no time of the step is logged",
}


def kinds(frame: pd.DataFrame, restarts: list[int]) -> pd.Series:
    """The kind of each row; ``frame`` is indexed by the step. Where both sides log their steps, either may tell."""
    sides = [frame[name] for name in ("step_s", "generator_step_s") if name in frame and frame[name].notna().any()]
    found = pd.Series("steady", index=frame.index, dtype=object)
    for time in reversed(sides):  # the trainer's word counts last
        marks = _kinds(frame, time, restarts)
        found = found.mask(marks != "steady", marks)
    untimed = pd.concat(sides, axis=1).isna().all(axis=1) if sides else pd.Series(True, index=frame.index)  # noqa: FBT003
    return found.mask(untimed, "no time")


def _kinds(frame: pd.DataFrame, time: pd.Series, restarts: list[int]) -> pd.Series:
    found = pd.Series("steady", index=frame.index, dtype=object)
    timed = time.dropna()
    if len(timed) < FEWEST:
        return found
    median = pd.Series(float(timed.median()), index=time.index)
    if len(timed) > AROUND:
        median = timed.rolling(AROUND, center=True, min_periods=1).median().reindex(time.index).ffill().bfill()
    found[time > LONG * median] = "long"
    found[time < SHORT * median] = "flush"
    evaluated = times.column(frame, "evaluated").notna()
    costly = (evaluated | evaluated.shift(1, fill_value=False)) & (time > NOTICED * median)
    costly |= times.column(frame, "evaluation_s") > SHARE * median
    found[costly] = "evaluation"
    found[(times.column(frame, "checkpoint_s") > SHARE * median) & ~costly] = "checkpoint"
    if len(restarts) * FEWEST < len(frame):  # more are no restarts, but a log without order
        found[found.index.isin(restarts) & time.notna()] = "start-up"
    found.loc[timed.index[: _starting(timed)]] = "start-up"
    return found


def _starting(timed: pd.Series) -> int:
    """How many of the first steps are start-up: the run's first one, and on while they are far from the median."""
    if timed.index[0] > 1:
        return 0
    timed = timed.iloc[:AROUND]
    median, count = float(timed.median()), 1
    while count < len(timed) // FEWEST and not median / LONG <= float(timed.iloc[count]) <= median * LONG:
        count += 1
    return count
