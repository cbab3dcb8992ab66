"""Which of the two to believe where simulation and closed form differ, and why: in words, from docs/semantics.md, section 11."""

from __future__ import annotations

from rlqueue.app.answers import Answer
from rlqueue.choices import IN_STEP
from rlqueue.operating_point import OperatingPoint
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
    because = reason(found.state.scenario, point, found.point)
    return (
        f"{shares}: more than the stated {100 * STATED_ERROR:g} points apart. Believe the simulation, since {because}."
    )


def reason(scenario: Scenario, simulated: OperatingPoint, closed: OperatingPoint) -> str:
    """Why the two differ: the first of the closed form's simplifications that this scenario runs into."""
    s = scenario
    filtered = s.filtered_fraction > 0 or s.solve_rate_mean > 0
    reasons = (
        (
            s.sandbox_start_s > 0 and s.sandbox_cap < s.concurrency,
            "rollouts above the sandbox cap hold slots and wait there, where the closed form counts only those with a sandbox",
        ),
        (
            s.sandbox_start_s > 0 and (s.sandbox_failure_ratio > 0 or s.sandbox_run_failure_ratio > 0),
            "a failed start or a dead sandbox ends its rollout early there, where the closed form lets no rollout end early",
        ),
        (
            s.schedule in IN_STEP and filtered,
            "the closed form takes the rounds of replacements one after the other, each as long as a mean group",
        ),
        (
            s.schedule in IN_STEP,
            "the closed form has every replica evenly loaded and the batch's longest response at its mean",
        ),
        (
            s.schedule == "async-drain",
            "a drain holds the trainer too there, where the closed form has all dispatched and ended between two publications",
        ),
        (
            s.staleness_family == "targeted",
            "a straggler holds its step there, among whatever decodes at that moment; the closed form has an average one",
        ),
        (
            s.staleness_family == "drop" and simulated.binding_constraint == "staleness budget",
            "it throws away each group that gets too old and keeps the short ones, where the closed form counts rollouts",
        ),
        (
            s.staleness_family == "admission" and s.max_staleness <= 2 and filtered,
            "replacements of filtered groups come in rounds there, which the closed form leaves out of a small budget",
        ),
        (
            simulated.kv_used_ratio > 0.85,
            "whole requests don't fill the KV cache to the brim, and preempted ones are prefilled again",
        ),
        (
            s.samples_per_step > s.concurrency,
            "a batch has more rollouts than slots, so its last ones run while slots empty; the closed form knows only means",
        ),
        (
            min(simulated.trainer_wait_ratio, closed.trainer_wait_ratio) < 0.1,
            "trainer and generator are nearly in balance, where each waits for the other by chance; the closed form knows none",
        ),
        (True, "it has the spread of lengths and times, step by step; the closed form knows only their means"),
    )
    return next(words for holds, words in reasons if holds)
