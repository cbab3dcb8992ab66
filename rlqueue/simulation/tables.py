"""A run's arrays as tidy tables."""

import numpy as np
import pandas as pd

from rlqueue.simulation import state
from rlqueue.simulation.run import Run
from rlqueue.simulation.solve_rate import pool


def steps(run: Run) -> pd.DataFrame:
    """One row per step: its times [s], means over it, and what was trained in it."""
    s = run.rows("steps", "step")
    length = np.maximum(s["end"] - s["start"], 1e-300)
    groups = run.scenario.prompts_per_step
    mean = {name: np.diff(s[name], prepend=0.0) / length for name in ("flight_area", "queue_area", "k_area")}
    judged, informative, all_solved = (np.diff(s[name], prepend=0) for name in ("judged", "informative", "all_solved"))
    rollouts = groups * run.scenario.group_size
    solves = run.world.arrays["params"]["solves"][0]
    known = np.where((judged > 0) & bool(solves), 1.0, np.nan) / np.maximum(judged, 1)
    return pd.DataFrame(
        {
            "step": np.arange(s.size),
            "start_s": s["start"],
            "end_s": s["end"],
            "wait_s": s["wait"],
            "train_s": s["train"],
            "pause_s": s["pause"],
            "sync_s": s["sync"],
            "hold_s": s["hold"],
            "turn_s": s["turn"],
            "fetch_s": s["fetch"],
            "version": s["version"],
            "in_flight_rollouts": mean["flight_area"],
            "queued_groups": mean["queue_area"],
            "queued_groups_at_end": s["queued"],
            "active_requests": mean["k_area"],
            "trained_tokens": s["tokens"],
            "sampled_tokens": np.diff(s["decoded_tokens"], prepend=0.0),
            "staleness_versions": s["staleness"] / groups,
            "staleness_in_flight": s["in_flight_part"] / groups,
            "staleness_in_queue": (s["staleness"] - s["in_flight_part"]) / groups,
            "token_staleness_versions": s["token_staleness"] / groups,
            "max_staleness_versions": s["max_staleness"],
            "mean_solve_rate": solve_rate_means(run)[1:],
            "informative_fraction": np.where(judged > 0, informative / np.maximum(judged, 1), np.nan),
            "all_solved_fraction": all_solved * known,
            "none_solved_fraction": (judged - informative - all_solved) * known,
            "informative_tokens": s["informative_tokens"],
            "mean_response_tokens": s["sampled"] / rollouts,
            "truncated_fraction": s["cut"] / rollouts,
            "unqualified_groups": np.diff(s["unqualified"], prepend=0),
            "repeated_groups": np.diff(s["repeated"], prepend=0),
        }
    )


def groups(run: Run) -> pd.DataFrame:
    """One row per group admitted: its moments [s], versions, tokens and fate."""
    g = run.rows("groups", "groups")
    n, trained = run.scenario.group_size, g["fate"] == state.TRAINED
    begun = g["version"] < state.NO_VERSION
    prompt_tokens = n * run.world.arrays["course"]["prompt_tokens"][g["course"]]
    return pd.DataFrame(
        {
            "group": np.arange(g.size),
            "prompt": g["prompt"],
            "batch": g["cohort"],
            "dispatch_s": g["dispatched"],
            "finish_s": g["finished"],
            "trained_s": g["trained"],
            "step": g["step"],
            "version": np.where(begun, g["version"], -1),
            "staleness_versions": np.where(trained, g["trained_version"] - g["version"], np.nan),
            "staleness_in_flight": np.where(trained, g["finished_version"] - g["version"], np.nan),
            "tokens": np.where(g["ended"] == n, g["sampled"] + prompt_tokens, np.nan),
            "prompt_tokens": prompt_tokens,
            "longest_response_tokens": g["longest"],
            "sampled_tokens": g["sampled"] + g["lost"],
            "ended_rollouts": g["ended"],
            "solved_rollouts": g["solved"],
            "informative": g["informative"] == 1,
            "fate": pd.Categorical.from_codes(g["fate"], list(state.FATES)),
        }
    )


def prompts(run: Run) -> pd.DataFrame:
    """One row per prompt of the pool: solve rate at the start and at the end, groups admitted and trained, what was observed."""
    if not run.scenario.pool_prompts:
        raise ValueError("prompts: pool_prompts=0 is endless, no prompt comes twice; see groups")
    q, odds, s = run.world.arrays["prompts"], float(run.world.clock["odds"]), run.scenario
    seen = np.where(q["tried"] > 0, q["solved"] / np.maximum(q["tried"], 1e-300), np.nan)
    return pd.DataFrame(
        {
            "prompt": np.arange(q.size),
            "first_solve_rate": _rates(q["start_odds"] * np.exp(s.solve_rate_logit_shift)),
            "last_solve_rate": _rates(q["odds"] * odds),
            "groups": q["groups"],
            "in_flight_groups": q["flight"],
            "trained_groups": q["trained"],
            "observed_solve_rate": seen,
            "retired": (seen > s.retire_above) & (s.sampler == "retire-solved"),
        }
    )


def solve_rate_shares(run: Run) -> np.ndarray:
    """Share of the prompts in each range of the solve rate, at the start and after each step: shape (steps + 1, BINS)."""
    done, first = int(run.world.clock["step"]), _first_rates(run)
    if np.isnan(first).any():
        return np.full((done + 1, state.BINS), np.nan)
    counts = np.bincount(np.minimum((first * state.BINS).astype(int), state.BINS - 1), minlength=state.BINS)
    later = run.world.arrays["bins"]["number"].reshape(-1, state.BINS)[:done]
    return np.vstack([counts, later if later.size else np.tile(counts, (done, 1))]) / first.size


def solve_rate_means(run: Run) -> np.ndarray:
    """Mean solve rate of the pool at the start and after each step; NaN without solve rates."""
    first = _first_rates(run).mean()
    later = run.rows("steps", "step")["solve_rate"]
    learns = run.world.arrays["params"]["learns"][0]
    return np.concatenate([[first], later if learns else np.full(later.size, first)])


def _first_rates(run: Run) -> np.ndarray:
    """Solve rates at the start: of the pool, or of those that stand for an endless one; NaN where there are none."""
    odds = pool(run.scenario, run.seed, int(run.world.clock["tenant"]))
    return _rates(odds * np.exp(run.scenario.solve_rate_logit_shift))


def _rates(odds: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return 1.0 / (1.0 + 1.0 / odds)


def rollouts(run: Run) -> pd.DataFrame:
    """One row per attempt of a rollout that ended; only with ``simulate(..., rollouts=True)``."""
    if not run.world.arrays["params"]["log_rollouts"][0]:
        raise ValueError("rollouts: not kept; ask for simulate(..., rollouts=True)")
    r = run.rows("rollouts", "rollouts")
    return pd.DataFrame(
        {
            "group": r["group"],
            "rollout": r["rollout"],
            "attempt": r["attempt"],
            "replica": r["replica"],
            "dispatch_s": r["dispatch"],
            "ready_s": r["ready"],
            "first_token_s": r["first"],
            "end_s": r["end"],
            "response_tokens": r["tokens"],
            "turns": r["turns"],
            "version": r["version"],
            "mean_version": r["mean_version"],
            "preemptions": r["preempted"],
            "sandbox_tries": r["tries"],
            "end": pd.Categorical.from_codes(r["end_kind"], list(state.ENDS)),
        }
    )


def timeline(run: Run) -> pd.DataFrame:
    """What the trainer did: one row per span of wait, train, pause, hold (waiting to publish), sync, turn or fetch [s]."""
    spans = run.rows("spans", "spans")
    return pd.DataFrame(
        {
            "start_s": spans["start"],
            "end_s": spans["end"],
            "kind": pd.Categorical.from_codes(spans["kind"], list(state.SPANS)),
            "step": spans["step"],
        }
    )


def series(run: Run) -> pd.DataFrame:
    """Rollouts in flight, queued groups and requests in a batch over time; thinned to at most 4,096 moments."""
    points = run.rows("series", "series")
    return pd.DataFrame(
        {
            "time_s": points["time"],
            "in_flight_rollouts": points["flight"],
            "queued_groups": points["queued"],
            "active_requests": points["running"],
            "version": points["version"].astype(np.int64),
        }
    )


def gpu_seconds(run: Run) -> pd.DataFrame:
    """GPU-seconds of trainer and generator by kind; colocated GPUs count as the generator's while the trainer waits.

    A replica's prefill is counted when it begins, so that at the end of a run some of it may not be done yet.
    """
    s, steps = run.scenario, run.rows("steps", "step")
    done = steps[-1] if steps.size else np.zeros(1, state.STEP)[0]
    p, span = run.world.arrays["params"][0], float(done["end"])
    colocated, gpus = s.schedule == "colocated-sync", s.trainer_gpus + s.generator_gpus
    trainer = gpus if colocated else s.trainer_gpus
    rows = [("trainer", kind, trainer * float(steps[kind].sum())) for kind in ("train", "pause", "sync")]
    waited = float(steps["wait"].sum())
    if not colocated:
        rows.append(("trainer", "wait", trainer * waited))
    decoding = s.gpus_per_replica - s.prefill_gpus_per_replica if p["apart"] else s.gpus_per_replica
    prefilling = s.prefill_gpus_per_replica or s.gpus_per_replica
    rows += [
        ("generator", "decode", decoding * float(done["busy_s"])),
        ("generator", "prefill", prefilling * float(done["prefill_s"])),
    ]
    used = sum(seconds for side, _, seconds in rows if side == "generator")
    rows.append(("generator", "idle", max(0.0, (gpus * waited if colocated else s.generator_gpus * span) - used)))
    return pd.DataFrame(rows, columns=["side", "kind", "gpu_s"])


def tokens(run: Run) -> pd.DataFrame:
    """Tokens by kind: sampled and trained, sampled and not trained by fate, still in flight, prefilled and prefilled again.

    Failed attempts and pruned or stale rollouts count under the fate of their group.
    """
    g, clock = run.rows("groups", "groups"), run.world.clock
    by_fate = np.bincount(g["fate"], weights=g["sampled"] + g["lost"], minlength=len(state.FATES))
    again = float(clock["again_tokens"])
    rows = [("sampled", fate, float(count)) for fate, count in zip(state.FATES, by_fate, strict=True)]
    unfinished = float(clock["decoded_tokens"]) - float(by_fate.sum())
    rows[state.IN_FLIGHT] = ("sampled", "in flight", float(by_fate[state.IN_FLIGHT]) + max(0.0, unfinished))
    rows += [("prefilled", "first time", float(clock["prefilled_tokens"]) - again), ("prefilled", "again", again)]
    return pd.DataFrame(rows, columns=["kind", "fate", "tokens"])
