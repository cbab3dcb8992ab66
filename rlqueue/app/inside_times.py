"""When things happened in a run: the steps shown, what trainer and groups did in them, staleness, how long rollouts took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rlqueue.simulation import Run
from rlqueue.simulation.state import FREE

MOST_POINTS = 480
"""Points of a line over time; more than a screen shows."""
MOST_BARS = 40
"""Groups of a batch that are drawn; of more, an even choice."""
MARKED = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, kw_only=True)
class Window:
    """The steps that are shown: the last ones of the run. first, last: their numbers. start_s, end_s: wall-clock [s]."""

    first: int
    last: int
    start_s: float
    end_s: float


def window(run: Run, count: int) -> Window:
    """The last ``count`` steps, or all there are."""
    steps = run.steps
    first = max(0, len(steps) - count)
    return Window(
        first=first,
        last=len(steps) - 1,
        start_s=float(steps["start_s"].iloc[first]),
        end_s=float(steps["end_s"].iloc[-1]),
    )


def spans(run: Run, shown: Window) -> pd.DataFrame:
    """What the trainer did in the window, end to end: start_s, end_s, kind, step."""
    all_spans = run.timeline
    inside = all_spans[(all_spans["step"] >= shown.first) & (all_spans["step"] <= shown.last)]
    return inside[inside["end_s"] > inside["start_s"]]


def publications(run: Run, shown: Window) -> np.ndarray:
    """When a new version was published in the window [s]."""
    steps = run.steps
    published = np.diff(steps["version"].to_numpy(), prepend=0) > 0
    at = steps["end_s"].to_numpy()[published]
    return at[(at >= shown.start_s) & (at <= shown.end_s)]


def levels(run: Run, shown: Window) -> pd.DataFrame:
    """Rollouts in flight, requests in a batch and queued groups from the window's begin to its end; each holds until the next.

    Counted from the moments at which rollouts and groups came and went: ``run.series`` is sampled every so many events, and
    where nothing happens it would show what was there before the last of them.
    """
    came, went = _rollouts_in_and_out(run)
    queued, taken = _groups_in_and_out(run)
    moments = [_within(each, shown) for each in (came, went, queued, taken)]
    time_s = np.unique(np.concatenate([[shown.start_s], *moments, [shown.end_s]]))
    if time_s.size > MOST_POINTS:
        time_s = np.linspace(shown.start_s, shown.end_s, MOST_POINTS)
    flight = _count(came, time_s) - _count(went, time_s)
    seen = np.maximum(np.searchsorted(run.series["time_s"].to_numpy(), time_s, side="right") - 1, 0)
    return pd.DataFrame(
        {
            "time_s": time_s,
            "in_flight_rollouts": flight,
            "active_requests": np.minimum(run.series["active_requests"].to_numpy()[seen], flight),
            "queued_groups": _count(queued, time_s) - _count(taken, time_s),
        }
    )


def _rollouts_in_and_out(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """When rollouts took their slots and when they left them, in order [s]; those in a slot at the run's end have only begun."""
    slots = run.world.arrays["slots"]
    there = slots["dispatched"][slots["state"] != FREE]
    return np.sort(np.append(run.rollouts["dispatch_s"].to_numpy(), there)), np.sort(run.rollouts["end_s"].to_numpy())


def _groups_in_and_out(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """When groups came into the queue and when they left it, in order [s]: trained, or dropped at a publication as too old."""
    groups, steps = run.groups, run.steps
    fate, finish_s = groups["fate"].astype(str).to_numpy(), groups["finish_s"].to_numpy()
    dropped = (fate == "stale") & ~np.isnan(finish_s)
    too_new = groups["version"].to_numpy()[dropped] + int(run.scenario.max_staleness) + 1
    at = np.minimum(np.searchsorted(steps["version"].to_numpy(), too_new), len(steps) - 1)
    queued = finish_s[dropped | (fate == "trained") | (fate == "queued")]
    taken = np.concatenate([groups["trained_s"].to_numpy()[fate == "trained"], steps["end_s"].to_numpy()[at]])
    return np.sort(queued), np.sort(taken)


def _within(ordered: np.ndarray, shown: Window) -> np.ndarray:
    return ordered[(ordered > shown.start_s) & (ordered < shown.end_s)]


def _count(ordered: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    return np.searchsorted(ordered, time_s, side="right")


def batch(run: Run, step: int) -> pd.DataFrame:
    """The groups of one step in order of dispatch: those trained in it, and those thrown away meanwhile.

    Columns of ``run.groups``, and ``ended_s``: when the group finished, or its rollouts were ended.
    """
    groups, begin, end = run.groups, run.steps["start_s"].iloc[step], run.steps["end_s"].iloc[step]
    ended = groups["finish_s"].to_numpy().copy()
    killed = np.isnan(ended) & groups["fate"].isin(["stale", "pruned"]).to_numpy()
    if killed.any():
        last = np.full(len(groups), -np.inf)
        np.maximum.at(last, run.rollouts["group"].to_numpy(), run.rollouts["end_s"].to_numpy())
        ended[killed] = last[killed]
    trained = (groups["fate"] == "trained").to_numpy() & (groups["step"] == step).to_numpy()
    discarded = groups["fate"].isin(["filtered", "surplus", "stale", "pruned"]).to_numpy()
    found = groups.assign(ended_s=ended)[trained | (discarded & (ended > begin) & (ended <= end))]
    if len(found) > MOST_BARS:
        found = found.iloc[np.linspace(0, len(found) - 1, MOST_BARS).round().astype(int)]
    return found.sort_values("dispatch_s", kind="stable")


@dataclass(frozen=True, kw_only=True)
class Staleness:
    """Staleness of the groups trained after the warm-up.

    Attributes:
        versions: 0, 1, 2, ...
        fresh, in_flight, in_queue: shares of the groups with that staleness; their sum is the bar. A bar of staleness s is
            divided as its s versions are on average, between generation and queue; fresh is the bar of s = 0.
    """

    versions: np.ndarray
    fresh: np.ndarray
    in_flight: np.ndarray
    in_queue: np.ndarray

    @property
    def share(self) -> np.ndarray:
        return self.fresh + self.in_flight + self.in_queue

    @property
    def mean(self) -> float:
        return float(self.versions @ self.share)

    @property
    def mean_in_flight(self) -> float:
        return float(self.versions @ self.in_flight)


def staleness(run: Run) -> Staleness:
    """The histogram of staleness, in its two parts."""
    groups = run.groups
    kept = groups[(groups["fate"] == "trained") & (groups["step"] >= run.warm_up_steps)]
    total = kept["staleness_versions"].to_numpy().astype(int)
    counts = np.bincount(total)
    versions = np.arange(counts.size)
    part = np.bincount(total, weights=kept["staleness_in_flight"].to_numpy())
    in_flight = part / np.maximum(versions, 1) / total.size
    share = counts / total.size
    fresh = np.where(versions == 0, share, 0.0)
    return Staleness(versions=versions, fresh=fresh, in_flight=in_flight, in_queue=share - fresh - in_flight)


@dataclass(frozen=True, kw_only=True)
class Durations:
    """How long rollouts held their slot, and groups took, in order of length [s]; those that ended after the warm-up.

    cut: share of these rollouts whose response was cut at the maximum length.
    """

    rollouts_s: np.ndarray
    groups_s: np.ndarray
    cut: float

    @property
    def marks(self) -> dict[str, float]:
        """The rollouts' percentiles [s]."""
        return {name: float(np.quantile(self.rollouts_s, q)) for name, q in MARKED.items()}


def durations(run: Run) -> Durations:
    """Times of finished rollouts and groups."""
    begin = float(run.steps["start_s"].iloc[run.warm_up_steps])
    rollouts, groups = run.rollouts, run.groups
    done = rollouts[(rollouts["end"] == "finished").to_numpy() & (rollouts["end_s"] > begin).to_numpy()]
    ended = groups[(groups["finish_s"] > begin).to_numpy()]
    return Durations(
        rollouts_s=np.sort((done["end_s"] - done["dispatch_s"]).to_numpy()),
        groups_s=np.sort((ended["finish_s"] - ended["dispatch_s"]).to_numpy()),
        cut=float((done["response_tokens"] >= run.scenario.max_response_tokens).mean()) if len(done) else 0.0,
    )


def survival(ordered: np.ndarray, points: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the share that took at least that long; closest together in the tail, down to the single longest."""
    count = ordered.size
    if not count:
        return np.zeros(0), np.zeros(0)
    places = np.unique((count - np.geomspace(1, count, points)).round().astype(int))
    return ordered[places], (count - places) / count
