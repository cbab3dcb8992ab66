"""Each framework's times as wait, train and sync of a step: the wait is recomputed, and never a ratio taken over."""

from collections.abc import Callable

import numpy as np
import pandas as pd

SLACK = 1.02
"""Parts of a step may exceed its logged time by so much before some of them must lie outside it."""
Notes = list[str]


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """A column, or holes where the log has none of it."""
    return frame[name] if name in frame else pd.Series(np.nan, index=frame.index, dtype=float)


def total(frame: pd.DataFrame, *names: str) -> pd.Series:
    """The sum of those that are there; a hole where none is."""
    there = [name for name in names if name in frame]
    return frame[there].sum(axis=1, min_count=1) if there else pd.Series(np.nan, index=frame.index, dtype=float)


def _slime(frame: pd.DataFrame, notes: Notes) -> None:
    """wait = train_wait - update_weights - sleep - wake_up - save; train_wait = step - train where it isn't logged.

    slime's timer of waiting runs whenever the training timer doesn't (an inverse timer), so it holds all four. Where they
    exceed it, they were measured outside and nothing is taken off.
    """
    train = column(frame, "train_s").fillna(total(frame, "actor_train_s", "log_probs_s"))
    step = column(frame, "step_s")
    apart = column(frame, "not_training_s").fillna((step - train).clip(lower=0))
    logged = column(frame, "not_training_logged_ratio")
    copied = apart.isna() & logged.notna() & step.notna()
    if copied.any():
        notes.append(
            f"steps without a time of waiting or training: {int(copied.sum())}; their wait is perf/wait_time_ratio times the "
            "step, with weight updates and offload in it"
        )
    apart = apart.fillna(logged * step)
    inside = total(frame, "sync_s", "offload_s", "checkpoint_s").fillna(0)
    frame["wait_s"] = (apart - inside).where(inside <= apart, apart)
    frame["train_s"] = train.fillna(step - apart)
    frame["step_s"] = step.fillna(apart + frame["train_s"])


def _gen_is_wait(frame: pd.DataFrame, _: Notes) -> None:
    """What is called generation is the trainer's wait: in a synchronous step both are the same time."""
    gen = column(frame, "gen_s")
    frame["wait_s"] = column(frame, "wait_s").fillna(gen)
    if "gen_s" in frame and not asynchronous(frame):
        frame["generate_s"] = gen


def asynchronous(frame: pd.DataFrame) -> bool:
    return bool(frame.attrs.get("asynchronous"))


def _skyrl(frame: pd.DataFrame, notes: Notes) -> None:
    """run_training holds log-probabilities, advantages and the update; the synchronous trainer logs those alone."""
    frame["train_s"] = column(frame, "train_s").fillna(column(frame, "train_parts_s"))
    _gen_is_wait(frame, notes)


def _openrlhf(frame: pd.DataFrame, _: Notes) -> None:
    """wait = step_total - make_experience - ppo_train - broadcast."""
    busy = column(frame, "train_s") + column(frame, "sync_s").fillna(0)
    frame["wait_s"] = (column(frame, "step_s") - busy).clip(lower=0)


def _pipelinerl(frame: pd.DataFrame, _: Notes) -> None:
    """train = step - wait (the step holds both); staleness = lag in samples over samples per step."""
    frame["train_s"] = (column(frame, "step_s") - column(frame, "wait_s")).clip(lower=0)
    samples = column(frame, "samples")
    frame["staleness_versions"] = (column(frame, "lag_samples") / samples).where(samples > 0)


def _tinker(frame: pd.DataFrame, _: Notes) -> None:
    """wait = total - train - publish - evaluation; the span of training holds that of publishing."""
    sync = column(frame, "sync_s").fillna(0)
    whole = column(frame, "train_s")
    frame["train_s"] = (whole - sync).where(whole >= sync, whole).fillna(column(frame, "train_parts_s"))
    busy = frame["train_s"] + sync + total(frame, "evaluation_s", "other_s").fillna(0)
    frame["wait_s"] = (column(frame, "step_s") - busy).clip(lower=0)
    frame["staleness_versions"] = (column(frame, "training_step") - column(frame, "sampling_step")).clip(lower=0)


RULES: dict[str, Callable[[pd.DataFrame, Notes], None]] = {
    "slime": _slime, "verl": _gen_is_wait, "roll": _gen_is_wait, "nemo-rl": _gen_is_wait, "skyrl": _skyrl,
    "openrlhf": _openrlhf, "pipelinerl": _pipelinerl, "tinker-cookbook": _tinker,
}  # fmt: skip
"""prime-rl and AReaL log the trainer's wait as such."""


def finish(frame: pd.DataFrame, framework: str, notes: Notes) -> pd.DataFrame:
    """The framework's rule, and what follows from the parts of a step in every framework."""
    if framework in RULES:
        RULES[framework](frame, notes)
    _whole_step(frame, notes)
    frame["trainer_wait_ratio"] = wait_ratio(frame)
    step = column(frame, "step_s")
    train = column(frame, "train_s")
    frame["not_training_ratio"] = (1 - train / step).clip(0, 1).where(step > 0)
    _tokens(frame)
    return frame


def wait_ratio(frame: pd.DataFrame) -> pd.Series:
    """wait / (wait + train + sync); without a training time wait / step."""
    wait = column(frame, "wait_s")
    parts = wait + column(frame, "train_s") + column(frame, "sync_s").fillna(0)
    whole = parts.fillna(column(frame, "step_s"))
    return (wait / whole).where(whole > 0).clip(0, 1)


def _whole_step(frame: pd.DataFrame, notes: Notes) -> None:
    parts = total(frame, "wait_s", "train_s", "sync_s")
    known = parts + total(frame, "offload_s", "evaluation_s", "checkpoint_s").fillna(0)
    step = column(frame, "step_s")
    both = column(frame, "wait_s").notna() & column(frame, "train_s").notna()
    if "step_s" not in frame and both.any():
        step = (known + column(frame, "other_s").fillna(0)).where(both)
        notes.append("no time of a whole step is logged: it is the sum of its parts")
    over = parts > step * SLACK
    if over.any():
        notes.append(
            f"wait, training and weight sync add up to more than the logged step, which leaves some of them out: their sum is "
            f"taken (steps: {int(over.sum())})"
        )
    frame["step_s"] = step.where(~over, parts)
    frame["other_s"] = (frame["step_s"] - known).clip(lower=0).where(parts.notna())


def _tokens(frame: pd.DataFrame) -> None:
    sequence = column(frame, "mean_prompt_tokens") + column(frame, "mean_response_tokens")
    frame["mean_sequence_tokens"] = column(frame, "mean_sequence_tokens").fillna(sequence)
    samples = column(frame, "samples")
    frame["tokens"] = column(frame, "tokens").fillna(samples * frame["mean_sequence_tokens"])
    step = frame["step_s"]
    frame["trained_tokens_per_s"] = (frame["tokens"] / step).where(step > 0)
