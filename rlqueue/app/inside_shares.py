"""Where each GPU-second and each sampled token of a run went: shares, each set of which sums to 1."""

from __future__ import annotations

import numpy as np

from rlqueue.simulation import Run

TRAINER = ("train", "sync", "pause", "wait")
DISCARDED = ("filtered", "surplus", "stale", "pruned")
"""Fates of groups whose rollouts were for nothing."""
FATES = ("trained", *DISCARDED, "failed", "open")
"""What became of rollouts: their group's fate, a failed attempt, or not yet decided when the run ended."""
GENERATOR = (*FATES, "idle")


def long_run(run: Run) -> tuple[float, float]:
    """Begin and end of what the long-run figures are taken over: the steps after the warm-up [s]."""
    steps = run.steps
    return float(steps["start_s"].iloc[run.warm_up_steps]), float(steps["end_s"].iloc[-1])


def trainer_shares(run: Run) -> dict[str, float]:
    """The trainer's time after the warm-up; waiting to publish is waiting."""
    kept = run.steps.iloc[run.warm_up_steps :]
    total = {kind: float(kept[f"{kind}_s"].sum()) for kind in TRAINER}
    return {kind: seconds / sum(total.values()) for kind, seconds in total.items()}


def generator_shares(run: Run) -> dict[str, float]:
    """The generator's time after the warm-up, by slot-time: slots share its GPU-seconds evenly, an unused one is idle.

    A rollout's slot-time goes to the fate of its group, a failed attempt's to ``failed``. ``open`` is what was spent on groups
    that were in flight or queued when the run ended.
    """
    begin, end = long_run(run)
    kept = run.steps.iloc[run.warm_up_steps :]
    slot_s = run.scenario.concurrency * (end - begin)
    used_s = float((kept["in_flight_rollouts"] * (kept["end_s"] - kept["start_s"])).sum())
    rollouts = run.rollouts
    spent_s = np.clip(rollouts["end_s"].to_numpy(), begin, end) - np.clip(rollouts["dispatch_s"].to_numpy(), begin, end)
    fates = _fates(run)[rollouts["group"].to_numpy()]
    fates[(rollouts["end"] == "failed").to_numpy()] = FATES.index("failed")
    by_fate = np.bincount(fates, weights=spent_s, minlength=len(FATES))
    by_fate[FATES.index("open")] += max(0.0, used_s - by_fate.sum())
    shares = dict(zip(FATES, (by_fate / slot_s).tolist(), strict=True))
    return shares | {"idle": max(0.0, 1.0 - sum(shares.values()))}


def token_shares(run: Run) -> dict[str, float]:
    """All tokens sampled from the run's first moment to its last, by what became of them.

    ``failed`` are those of attempts whose sandbox died though their group ended; of rollouts in flight at the end, the finished
    segments count.
    """
    groups = run.groups
    sampled = groups["sampled_tokens"].to_numpy()
    kept = (groups["tokens"] - groups["prompt_tokens"]).to_numpy()
    lost = np.where(np.isnan(kept), 0.0, np.maximum(sampled - kept, 0.0))
    lost[lost < 1e-9 * sampled] = 0.0  # rounding
    by_fate = np.bincount(_fates(run), weights=sampled - lost, minlength=len(FATES))
    by_fate[FATES.index("failed")] += lost.sum()
    total = max(float(run.steps["sampled_tokens"].sum()), float(by_fate.sum()))
    by_fate[FATES.index("open")] += total - by_fate.sum()
    return dict(zip(FATES, (by_fate / total).tolist(), strict=True))


def _fates(run: Run) -> np.ndarray:
    """Place in ``FATES`` of each group."""
    fates = run.groups["fate"].cat
    places = [FATES.index(name) if name in FATES else FATES.index("open") for name in fates.categories]
    return np.array(places)[fates.codes.to_numpy()]
