"""The answer: how a scenario runs in the long run, whoever computed it."""

from dataclasses import dataclass

CONSTRAINTS = {
    "trainer compute": "the trainer never lacks groups: only faster training shortens a step",
    "weight sync": "publishing weights takes longer than training on a batch",
    "decode bandwidth": "more rollouts in flight would decode hardly faster in sum",
    "KV memory": "the KV cache is full: what does not fit waits",
    "concurrency cap": "all slots are taken while the KV cache has room",
    "sandbox start": "the provider's create rate limits how many rollouts begin",
    "sandbox cap": "the account's cap on running sandboxes limits the rollouts in flight",
    "staleness budget": "generation is held back so that samples do not get too old",
    "long tail": "the whole batch waits for its longest rollouts",
    "filter": "most groups are thrown away: all or none of their rollouts solved the prompt",
    "prefill": "the prefill GPUs are the narrowest part of the generator",
    "batch fetch": "fetching and assembling a batch takes longer than training on it",
}


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """Long-run behaviour of one scenario. ``kind`` says whether it is a closed form, a simulation or a measurement.

    Attributes:
        step_s: wall-clock time of a step [s] = wait_s + train_s + sync_s (+ pauses); fetching a batch is waiting.
        consumption_per_s: samples the trainer takes while computing [1/s]. production_per_s: samples the generator can
            deliver for training [1/s], after filter, age limit and surplus.
        trainer_wait_ratio: wait / (wait + train + sync). rollout_idle_ratio: share of slot-time unused.
        staleness_versions: mean versions between the policy that began a trained group and the one trained.
        in_flight_rollouts: mean rollouts holding a slot. queued_groups: mean finished groups waiting.
        rollout_s, group_s: mean time of one rollout in its slot; of a group until its last rollout [s].
        decoding_ratio: share of a rollout's time spent in the LLM.
        accepted_ratio: trained over dispatched rollouts. discarded_ratio: the rest.
        kv_used_ratio: share of the KV cache in use. active_per_replica: requests decoding on one replica.
        trained_tokens_per_s: prompt and response tokens of trained samples [token/s].
        informative_ratio: share of those of groups whose rewards differ, which alone teach.
        decode_tokens_per_s: tokens sampled by the generator, discarded ones included [token/s].
        mfu_computing, mfu_wall_clock: model FLOP/s over dense bf16 peak, while computing and over the whole step.
        binding_constraint, next_constraint: what holds the run back, and what would hold it back next.
    """

    kind: str
    step_s: float
    wait_s: float
    train_s: float
    sync_s: float
    consumption_per_s: float
    production_per_s: float
    trainer_wait_ratio: float
    rollout_idle_ratio: float
    staleness_versions: float
    in_flight_rollouts: float
    queued_groups: float
    rollout_s: float
    group_s: float
    decoding_ratio: float
    accepted_ratio: float
    discarded_ratio: float
    kv_used_ratio: float
    active_per_replica: float
    trained_tokens_per_s: float
    informative_ratio: float
    decode_tokens_per_s: float
    mfu_computing: float
    mfu_wall_clock: float
    binding_constraint: str
    next_constraint: str
