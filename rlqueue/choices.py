"""What the knobs that choose between words may be set to, each word with its meaning."""

SCHEDULES = {
    "colocated-sync": "all GPUs generate a batch, then all train on it",
    "sync": "disaggregated, in step: the trainer waits for the whole batch, the generator for new weights",
    "one-step-off": "the next batch is generated while this one is trained; weights change between batches",
    "async-drain": "fully async; before new weights the rollouts in flight are finished",
    "async-in-flight": "fully async; weights change under the rollouts in flight (PipelineRL)",
    "partial-rollout": "fully async; at new weights rollouts are aborted and resumed, their context prefilled again",
    "lent-trainer": "fully async; trainer GPUs decode while the trainer waits",
}
IN_STEP = ("colocated-sync", "sync", "one-step-off")
"""Schedules that move a batch as a whole: a staleness budget leaves them nothing to decide."""
SINGLE_TENANT = {
    "colocated-sync": "GPUs that train for one tenant generate for none",
    "lent-trainer": "a trainer that other tenants keep busy has no GPUs to lend",
}
"""Schedules in which a run has its GPUs to itself, and why."""

STALENESS_FAMILIES = {
    "admission": "no new group is dispatched while (max_staleness + 1) batches are outstanding; nothing is dropped",
    "drop": "a group older than max_staleness versions is dropped",
    "targeted": "each group belongs to one future step, and a straggler holds that step",
}
SLOTS_HELD = {
    "rollout": "a slot is free again when its rollout has ended",
    "group": "a group takes a slot for each of its rollouts at once and keeps them all until the last of them has ended",
}
PRECISIONS = {"bf16": "two bytes an element", "fp8": "one byte an element"}
SOLVE_RATE_LAWS = {
    "beta": "Beta(a, b) of mean solve_rate_mean and a + b = solve_rate_concentration",
    "logit-normal": "logit p is normal with spread solve_rate_logit_sigma; p has the mean solve_rate_mean",
    "histogram": "measured shares of prompts, in solve_rate_histogram",
}
GATES = {
    "zero-advantage": "groups whose rollouts were all or none correct are dropped and replaced (dynamic sampling)",
    "none": "every finished group is trained on; those whose rewards are all equal teach nothing",
}
SAMPLERS = {
    "uniform": "the pool in a shuffled order, again and again",
    "difficulty-band": "only prompts whose observed solve rate is between band_low and band_high, and those never seen",
    "adaptive": "prompts in proportion to p (1 - p) of their observed solve rate: most often near one half",
    "retire-solved": "no prompt comes again while its observed solve rate is above retire_above",
}
DRIFT_LAWS = {
    "constant": "lengths stay as they are",
    "linear": "by the same amount each step, over drift_steps",
    "exponential": "by the same factor each step, over drift_steps",
    "logistic": "slowly, fast in the middle of drift_steps, slowly up to the cap",
    "series": "as measured, in drift_series",
}
