"""What a run remembers while it goes on: records of numbers only, so that the compiled loop can stop and go on anywhere.

``semantics.md`` in docs/ says what the words mean; here is only how they are stored.
"""

import numpy as np

# What a slot's rollout is doing
(FREE, CAP_WAIT, STARTING, PREFILLING, KV_WAIT, RUNNING, TOOL, REWARD) = range(8)
# What the trainer is doing
(WAITING, TRAINING, PAUSING, HELD, SYNCING, OVER, READY, NOT_BEGUN, FETCHING) = range(9)
# Fates of groups
FATES = ("in flight", "queued", "trained", "filtered", "surplus", "stale", "pruned")
(IN_FLIGHT, QUEUED, TRAINED, FILTERED, SURPLUS, STALE, PRUNED) = range(7)
# How one rollout ended, in the log
ENDS = ("finished", "failed", "aborted")
(FINISHED, FAILED, ABORTED) = range(3)
# What the trainer did, in the timeline
SPANS = ("wait", "train", "pause", "hold", "sync", "turn", "fetch")
(SPAN_WAIT, SPAN_TRAIN, SPAN_PAUSE, SPAN_HOLD, SPAN_SYNC, SPAN_TURN, SPAN_FETCH) = range(7)
# What keeps a free slot from being used
(NOTHING, BUDGET_FULL, DRAINING, ASLEEP) = range(4)
# Why the compiled loop came back
(GOES_ON, DONE, NO_ROOM, STUCK, FRUITLESS) = range(5)
# First-come-first-served lists of slots; replica r's waiting requests are list WAIT_LISTS + r
(TOOL_LIST, REWARD_LIST, CAP_LIST, WAIT_LISTS) = range(4)

# How long responses are: log-normal on two levels; for tests, exponential by group or by rollout, or from a given table
(LOG_NORMAL, EXPONENTIAL_GROUPS, EXPONENTIAL_ROLLOUTS, GIVEN) = range(4)

# How solve rates are distributed over prompts
(ALL_ALIKE, BETA, LOGIT_NORMAL, HISTOGRAM) = range(4)
# Which prompt comes next
SAMPLERS = ("uniform", "difficulty-band", "adaptive", "retire-solved")
(UNIFORM, BAND, ADAPTIVE, RETIRE) = range(4)

BINS = 20
"""Ranges of the solve rate in which the prompts of the pool are counted at the end of each step."""
NONE = -1
NO_VERSION = 2**62
HEADROOM = 0.99
"""Share of the KV memory up to which a request may start; vLLM's watermark is one percent too."""


def _record(**fields: str) -> np.dtype:
    kinds = [(name, kind) for kind, names in fields.items() for name in names.split()]
    return np.dtype(kinds, align=True)


PARAMS = _record(
    i8="steps prompts group_size updates publish_steps cohort lockstep concurrency whole_groups replicas lent "
    "heap_room apart partial drain one_step drop targeted prefix_cache uses_sandbox tries evaluate_every "
    "checkpoint_every solves solve_law law log_rollouts quota pool sampler gated learns step_events",
    f8="max_staleness kv_tokens accept kv_s prefill_s max_tokens "
    "tool_s tool_mu tool_sigma reward_s start_mu start_sigma create_gap sandbox_cap start_failure death "
    "timeout_s solve_mean solve_a solve_b solve_log_beta filtered surplus train_s_per_token train_fixed_s fetch_s "
    "sync_s evaluation_s checkpoint_s switch_s learning transfer staleness_half band_low band_high retire_above",
)
"""One scenario in the loop's own terms; ``parameters`` fills it."""

HOST = _record(
    i8="events status running unfinished free_slots places joined timers next_timer sandboxes sources changed training loaded "
    "ready next_turn served",
    f8="next_create",
)
"""What the tenants of a run share: the loop, slots, timers, the provider of sandboxes, the trainer."""

CLOCK = _record(
    i8="version step update trainer ended started groups current retry_head retries flight counted fill queue_head "
    "queue_end spans rollouts series stride cause lent_open oldest rollouts_done groups_done dispatched failed "
    "aborted preempted starts truncated trainer_holds sent cohorts tenant turn served refused epoch taught judged informative "
    "all_solved unqualified repeated step_limit",
    f8="now trainer_at since train_s ticked flight_area queue_area budget_area drain_area rollout_s group_s decoded_tokens "
    "prefilled_tokens again_tokens step_start start_s rise odds",
)
"""The state of one tenant's run: clock, trainer, counters; areas are integrals over time. A single run has one tenant.
``odds`` is what learning has multiplied the odds of every prompt by."""

SLOT = _record(
    i8="group version joined",
    f8="context end left segment length pending lag dispatched ready first at",
    i4="rollout attempt state replica turn turns dies tries starts home previous next preempted",
    i1="fails moved has_sandbox solved tenant",
)
"""One slot and the rollout in it. ``context`` is less the replica's token clock while the request runs."""

REPLICA = _record(
    f8="clock last frozen context k_area context_area busy_s prefill_s prefill_free due due_clock",
    i8="k bound",
    i4="open overflow freed changed",
)
"""One replica. ``due`` is the moment of its next own event as planned, ``due_clock`` its token clock then."""

GROUP = _record(
    f8="log_mean dispatched finished trained sampled lost longest lag",
    i8="version ended_version finished_version trained_version",
    i4="cohort ended solved step prompt course cut",
    i1="fate informative",
)

COHORT = _record(i4="members accepted taken closed")

STEP = _record(
    f8="start end wait train pause hold turn fetch sync tokens staleness token_staleness in_flight_part flight_area queue_area "
    "budget_area drain_area k_area context_area busy_s prefill_s decoded_tokens rollout_s group_s start_s again_tokens "
    "sampled informative_tokens solve_rate",
    i8="version queued flight max_staleness rollouts groups dispatched events cut judged informative all_solved "
    "unqualified repeated",
)
"""One step; from ``flight_area`` on the values are running totals at its end."""

SPAN = _record(f8="start end", i4="kind step")

ROLLOUT = _record(
    f8="dispatch ready first end tokens mean_version",
    i8="group version",
    i4="rollout attempt replica turns preempted tries end_kind",
)

SERIES = _record(f8="time flight queued running version")

RETRY = _record(i8="group", i4="rollout attempt starts")


ENTRY = _record(f8="at", i8="order slot")
"""Of a heap."""

NODE = _record(f8="value", i8="leaf")

LIST = _record(i8="head tail")

ITERATION = _record(f8="read_s compute_s")

KEY = _record(u8="key")

RATE = _record(f8="below")

COURSE = _record(f8="log_median sigma_between sigma_within tool_floor tool_fraction prompt_tokens")
"""What is asked of the rollouts of a group, by the step at which it is admitted; the last row holds from then on."""

PROMPT = _record(f8="odds start_odds shift solved tried turn", i4="groups flight trained")
"""One prompt of the pool: ``odds`` of solving it, but for what all prompts have learned (``clock.odds``); ``solved`` and
``tried`` are what the sampler has observed, ``turn`` is when it is next, ``flight`` how many of its groups are in flight."""

NUMBER = _record(i8="number")

ARRAYS = (
    "params", "host", "clock", "keys", "solve_rates", "given", "iterations", "slots", "free", "replicas", "heap", "ends", "loads",
    "lists", "timers", "changed", "retry", "groups", "queue", "cohorts", "steps", "spans", "rollouts", "series", "course",
    "prompts", "choice", "spare", "taught", "bins",
)  # fmt: skip
"""All that a run consists of."""

SHARED = (
    "params", "host", "solve_rates", "iterations", "slots", "free", "replicas", "heap", "ends", "loads", "lists", "timers",
    "changed", "course",
)  # fmt: skip
"""Of these, what the tenants of a run have in common."""

GROWING = {
    "groups": ("groups", 1), "queue": ("groups", 1), "cohorts": ("cohorts", 1), "steps": ("step", 1), "bins": ("step", BINS),
    "spans": ("spans", 1), "rollouts": ("rollouts", 1),
}  # fmt: skip
"""The arrays that grow with the run; the clock's field that counts what they hold, and the rows each of that takes."""
