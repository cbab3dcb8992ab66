"""Which of the two to believe where simulation and closed form differ, and why: in words, from docs/semantics.md, section 11."""

from __future__ import annotations

from rlqueue.app.answers import Answer
from rlqueue.scenario import Scenario

STATED_ERROR = 0.03
"""The closed form's shares (wait, idle) are within so much of the simulation's, unless the page says otherwise."""
QUICK_ERROR = 0.08
"""The short run while dragging has a few steps and one seed: differences below this are its noise."""
FIELDS = {"trainer_wait_ratio": "trainer wait ratio", "rollout_idle_ratio": "rollout idle ratio"}


def sentence(found: Answer) -> str:
    """Which of the two numbers to believe; empty where they agree within the stated error."""
    simulated, point = found.simulated, found.simulated.point
    if simulated.stalled:
        return (
            f"The simulated run stalls: {simulated.stalled}. Believe it: the closed form divides rates, and does not "
            "see that a run gets nowhere."
        )
    if point is None:
        return (
            "No short run of this scenario is possible while dragging: its steps take too many events. The numbers are the "
            "closed form's until the hand rests and a longer run is done."
        )
    apart = {field: getattr(point, field) - getattr(found.point, field) for field in FIELDS}
    field = max(apart, key=lambda each: abs(apart[each]))
    allowed = STATED_ERROR if simulated.fidelity.seeds > 1 else QUICK_ERROR
    if abs(apart[field]) <= allowed:
        return ""
    shares = (
        f"{FIELDS[field]}: {getattr(point, field):.0%} simulated, {getattr(found.point, field):.0%} by the closed form"
    )
    if simulated.fidelity.seeds == 1:
        return (
            f"{shares}. Wait for the longer runs: {simulated.fidelity.steps} steps of one seed may be off by as much."
        )
    low, high = simulated.spread(field)
    if low <= getattr(found.point, field) <= high:
        return f"{shares}. The seeds differ by as much, so this scenario needs more steps; neither number is wrong."
    return (
        f"{shares}: more than the stated {100 * STATED_ERROR:g} points apart. Believe the simulation: {reason(found)}."
    )


def reason(found: Answer) -> str:
    """Why they differ: the first of the closed form's simplifications that this scenario runs into."""
    scenario, point = found.state.scenario, found.simulated.point
    return next((words for holds, words in _reasons(scenario, found) if holds)) if point else ""


def _reasons(scenario: Scenario, found: Answer) -> list[tuple[bool, str]]:
    s, point = scenario, found.simulated.point
    balanced = min(point.trainer_wait_ratio, found.point.trainer_wait_ratio) < 0.1
    few = s.samples_per_step > s.concurrency
    return [
        (
            s.schedule == "async-drain",
            "it holds the trainer too while a publication drains the rollouts, where the closed form only takes generator time",
        ),
        (
            s.sandbox_start_s > 0 and s.sandbox_cap < s.concurrency,
            "rollouts above the sandbox cap hold slots and wait there, where the closed form counts only those with a sandbox",
        ),
        (
            s.sandbox_start_s > 0 and (s.sandbox_failure_ratio > 0 or s.sandbox_run_failure_ratio > 0),
            "a failed start or a dead sandbox ends its rollout early there, where the closed form lets no rollout end early",
        ),
        (
            s.schedule == "one-step-off" and s.evaluation_s + s.checkpoint_s > 0,
            "evaluation and checkpoint overlap the next batch there, where the closed form adds them in series",
        ),
        (
            s.staleness_family == "drop" and point.binding_constraint == "staleness budget",
            "it throws away each group that gets too old, one by one, where the closed form has a mean age",
        ),
        (
            point.kv_used_ratio > 0.85,
            "whole requests don't fill the KV cache to the brim, and preempted ones are prefilled again",
        ),
        (
            few,
            "a batch has more rollouts than slots, so its last ones run while slots empty; the closed form knows only means",
        ),
        (
            balanced,
            "trainer and generator are nearly in balance, where each waits for the other by chance; the closed form knows none",
        ),
        (True, "it has the spread of lengths and times, step by step; the closed form knows only their means"),
    ]
