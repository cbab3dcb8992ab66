"""Staleness knobs in the canonical unit and back. A version is one publication of weights; B groups are trained per version.

``max_staleness`` S: by admission, no group is dispatched while (S + 1) B groups are outstanding; by drop, a group older than S
versions is discarded; targeted, a group belongs to one of the next S versions.
"""

import math


def prime_rl(max_off_policy_steps: float) -> float:
    """max_staleness = max_off_policy_steps: every optimizer step publishes.

    A group is kept iff ``policy.start >= (step - 1) - max_off_policy_steps``, in flight or queued, and batch ``step`` trains
    version ``step - 1``. Source: prime-rl src/prime_rl/orchestrator/utils.py.
    """
    return max_off_policy_steps


def prime_rl_before_june(max_off_policy_steps: float, max_async_level: float, broadcast: str | None = None) -> float:
    """max_staleness = max_off_policy_steps in flight + max_async_level of lead (1 with NCCL).

    A rollout in flight is aborted when it has seen more updates than ``max_off_policy_steps``; the finished batch is trained
    up to ``max_async_level`` versions later. Source: prime-rl src/prime_rl/orchestrator/scheduler.py before 2026-05-25.
    """
    return max_off_policy_steps + (1 if broadcast == "nccl" else max_async_level)


def none_ahead() -> float:
    """max_staleness = 0: nothing is generated ahead."""
    return 0


def one_ahead() -> float:
    """max_staleness = 1: one batch is generated while the batch before it is trained."""
    return 1


def slime_one_ahead(update_weights_interval: float) -> float:
    """max_staleness = max over j of floor(j / U) - floor((j - 1) / U) = 1 version, with U rollouts per version.

    Rollout j is generated with the weights of version floor((j - 1) / U) and trained from version floor(j / U) on; in rollouts
    its lag is ``j - U floor((j - 1) / U)``, in [1, U]. The most is at j = U. Source: slime train_async.py.
    """
    interval = int(update_weights_interval)
    return interval // interval - (interval - 1) // interval


def slime_outstanding(
    server_concurrency: float, generator_gpus: float, gpus_per_engine: float, rollout_batch_size: float, interval: float
) -> float:
    """max_staleness = 2 C / (rollout_batch_size * U) - 1, at least 1, with C = sglang_server_concurrency * engines groups.

    slime has no staleness knob: up to C groups are in flight and up to C finished ones wait. Where these are fewer than two
    versions' worth the slots bind first.
    Source: slime examples/fully_async/fully_async_rollout.py.
    """
    at_once = server_concurrency * max(1, generator_gpus // gpus_per_engine)
    return max(1.0, 2 * at_once / (rollout_batch_size * interval) - 1)


def miles(max_weight_staleness: float) -> float:
    """max_staleness = max_weight_staleness.

    A group is recycled when ``current - oldest_version > max_weight_staleness``. Source: miles fully_async_rollout.py.
    """
    return max_weight_staleness


def verl_fully_async(staleness_threshold: float) -> float:
    """max_staleness = staleness_threshold: a fraction of B = require_batches * ppo_mini_batch_size * trigger.

    Between two synchronisations at most ``int(B (1 + threshold))`` samples are outstanding or new, which is admission of
    (S + 1) B. Source: verl/experimental/fully_async_policy/fully_async_rollouter.py, ``max_required_samples``.
    """
    return staleness_threshold


def verl_v1(max_off_policy_threshold: float) -> float:
    """max_staleness = max_off_policy_threshold: versions since the first token.

    Source: verl/trainer/config/ppo_trainer.yaml, trainer.v1.sampler; a version is one global step of
    ``parameter_sync_step`` mini-batches.
    """
    return max_off_policy_threshold


def areal(max_head_offpolicyness: float) -> float:
    """max_staleness = max_head_offpolicyness: admission of (eta + version + 1) * consumer_batch_size.

    Source: AReaL areal/infra/staleness_manager.py; every batch publishes.
    """
    return max_head_offpolicyness


def skyrl(max_staleness_steps: float) -> float:
    """max_staleness = max_staleness_steps: admission of (S + step) * policy_mini_batch_size.

    Source: SkyRL skyrl/train/fully_async_trainer.py; ``step`` is the version being worked on, so S + 1 batches.
    """
    return max_staleness_steps


def nemo_rl(max_trajectory_age_steps: float) -> float:
    """max_staleness = max_trajectory_age_steps: valid iff version - age <= generated version <= version.

    Each group also has a target step. Source: nemo_rl/algorithms/async_utils/replay_buffer.py.
    """
    return max_trajectory_age_steps


def openrlhf(async_queue_size: float) -> float:
    """max_staleness = async_queue_size rollout batches, each of which publishes once.

    A token of the queue is released when the trainer takes a batch, so batch k + Q starts when training of k starts.
    Source: openrlhf/trainer/ppo_trainer_async.py.
    """
    return async_queue_size


def roll(async_generation_ratio: float) -> float:
    """max_staleness = async_generation_ratio: (1 + r) batches are asked for; the oldest step is current - ceil(r).

    Source: roll/distributed/scheduler/generate_scheduler.py.
    """
    return async_generation_ratio


def pipelinerl(max_lag: float, attempts: float, prompts_per_step: float, weight_update_interval: float) -> float:
    """max_staleness = ceil(max_lag / attempts) / (groups per step * weight_update_interval): max_lag counts samples.

    Groups submitted <= ceil(max_lag / attempts) + groups per update * (updates + 1). Source: pipelinerl/actor.py.
    """
    return math.ceil(max_lag / attempts) / (prompts_per_step * weight_update_interval)


def pipelinerl_unbounded(
    slots: float, attempts: float, ring: float, ready: float, prompts_per_step: float, interval: float
) -> float:
    """max_staleness = (in flight + ring_buffer_size + max_ready_samples_per_lead) / B - 1, at least 1, where max_lag is null.

    Nothing else bounds the lag; the oldest samples of the ring are replaced. Where all these are fewer than two versions' worth
    the slots bind first. Source: pipelinerl/preprocess.py.
    """
    return max(1.0, (slots + ring + ready) / attempts / (prompts_per_step * interval) - 1)


def tinker(max_steps_off_policy: float) -> float:
    """max_staleness = max_steps_off_policy: discarded if i_batch - sampling_client_step > K, and its prompt asked again.

    Source: tinker_cookbook/rl/train.py, AsyncConfig.
    """
    return max_steps_off_policy


def steps_of_staleness(max_staleness: float, steps_per_publication: float) -> int:
    """steps = max_staleness * steps_per_publication, rounded down: here every step publishes."""
    return math.floor(max_staleness * steps_per_publication + 1e-9)


def steps_of_staleness_at_least_one(max_staleness: float, steps_per_publication: float) -> int:
    """steps = max_staleness * steps_per_publication, rounded down, at least 1: here every step publishes."""
    return max(1, steps_of_staleness(max_staleness, steps_per_publication))


def versions_of_staleness(max_staleness: float) -> float:
    """a fraction of one version's samples = max_staleness."""
    return max_staleness


def whole_versions_of_staleness(max_staleness: float) -> int:
    """versions = max_staleness, rounded down."""
    return math.floor(max_staleness + 1e-9)


def ratio_of_staleness(max_staleness: float, steps_per_publication: float) -> float:
    """batches = max_staleness * steps_per_publication: here every batch publishes."""
    return max_staleness * steps_per_publication


def samples_of_staleness(max_staleness: float, prompts_per_step: float, group_size: float, interval: float) -> int:
    """samples = max_staleness * prompts_per_step * group_size * steps_per_publication, rounded down."""
    return math.floor(max_staleness * prompts_per_step * group_size * interval + 1e-9)


def dropping_versions(staleness_family: str, max_staleness: float) -> int | None:
    """versions = max_staleness, rounded down, where old groups are dropped."""
    return whole_versions_of_staleness(max_staleness) if staleness_family == "drop" else None


def steps_of_publication(steps_per_publication: float) -> float:
    """rollout steps between two publications = steps_per_publication."""
    return steps_per_publication
