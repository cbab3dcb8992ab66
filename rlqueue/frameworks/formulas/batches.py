"""Batches and lengths: samples against prompts, mini-batches, tokens, and how many rollouts run at once."""

import math

MOST_MINIBATCHES = 10**6
"""More optimizer steps of one update than a scenario takes; also the longest search for a divisor."""


def quotient(samples: float, group_size: float) -> float:
    """prompts_per_step = samples / samples per prompt, at least 1."""
    return max(1, samples // group_size)


def token_groups(token_batch_size: float, prompt_tokens: float, response_tokens: float, group_size: float) -> float:
    """prompts_per_step = token_batch_size / (mean prompt + mean response) / samples per prompt, rounded, at least 1."""
    return max(1, round(token_batch_size / (prompt_tokens + response_tokens) / group_size))


def accumulated_groups(train_batch_size: float, gradient_accumulation_passes: float, attempts: float) -> float:
    """prompts_per_step = train_batch_size * gradient_accumulation_passes / attempts, at least 1.

    Source: pipelinerl/conf/finetune/base.yaml; a pass trains on ``train_batch_size`` samples.
    """
    return max(1, train_batch_size * gradient_accumulation_passes // attempts)


def mini_batches(require_batches: float, ppo_mini_batch_size: float, trigger_parameter_sync_step: float) -> float:
    """prompts_per_step = require_batches * ppo_mini_batch_size * trigger_parameter_sync_step: one publication's worth.

    Source: verl/experimental/fully_async_policy/fully_async_trainer.py.
    """
    return require_batches * ppo_mini_batch_size * trigger_parameter_sync_step


def ratio(first: float, second: float) -> float | None:
    """the first over the second, at least 1."""
    return max(1.0, first / second) if second > 0 else None


def updates(prompts: float, group_size: float, global_batch_size: float, per: float = 1) -> float | None:
    """optimizer updates per version = prompts * samples per prompt / samples per optimizer batch * steps per version."""
    return prompts * group_size / global_batch_size * per if global_batch_size > 0 else None


def steps_said(steps: float, prompts: float, group_size: float, updates_per_step: float | None = None) -> float:
    """minibatches_per_update = optimizer steps of a batch / updates_per_step, or the next number below that divides its rollouts.

    Frameworks make uneven mini-batches as well; those of a scenario are all of one size.
    """
    each = updates_per_step or 1
    rollouts = math.floor(prompts * group_size / each)
    most = min(math.floor(steps / each + 1e-9), rollouts, MOST_MINIBATCHES)
    return next((count for count in range(most, 1, -1) if rollouts % count == 0), 1)


def steps_of_prompts(
    mini_batch_size: float, prompts: float, group_size: float, updates_per_step: float | None = None
) -> float | None:
    """minibatches_per_update = prompts of a batch / prompts of an optimizer step / updates_per_step; likewise a divisor.

    Source: verl/trainer/ppo/ray_trainer.py, skyrl/train/trainer.py: a batch is cut into mini-batches of so many prompts.
    """
    steps = ratio(prompts, mini_batch_size)
    return None if steps is None else steps_said(steps, prompts, group_size, updates_per_step)


def steps_of_samples(
    samples_of_a_step: float,
    prompts: float,
    group_size: float,
    passes: float = 1,
    updates_per_step: float | None = None,
) -> float | None:
    """minibatches_per_update = rollouts of a batch * passes / rollouts of an optimizer step / updates_per_step; likewise."""
    steps = ratio(prompts * group_size * passes, samples_of_a_step)
    return None if steps is None else steps_said(steps, prompts, group_size, updates_per_step)


def share(fraction: float, tokens: float) -> float:
    """assumed mean = assumed share of the longest, in whole tokens."""
    return round(fraction * tokens)


def share_of_rest(fraction: float, context: float, response: float) -> float | None:
    """assumed mean = assumed share of what the longest sequence leaves beside the longest response."""
    return round(fraction * (context - response)) if context > response else None


def room_for_response(context: float, mean_prompt_tokens: float, longest: float | None = None) -> float | None:
    """max_response_tokens = longest sequence - mean prompt, or the limit of a response where that is less."""
    room = context - mean_prompt_tokens
    return min(room, longest) if longest else room


def groups_in_flight(groups: float, group_size: float, default_groups: float | None = None) -> float | None:
    """concurrency = groups in flight * samples per prompt."""
    at_once = groups or default_groups
    return at_once * group_size if at_once else None


def samples_in_whole_groups(samples_in_flight: float, group_size: float) -> float | None:
    """concurrency = samples in flight in whole groups, at least one: a group is sent as a whole.

    Source: miles/rollout/fully_async_rollout.py, ``_max_in_flight_groups``.
    """
    return max(1, samples_in_flight // group_size) * group_size if samples_in_flight else None


def whole_batch(prompts: float, group_size: float, requested: float | None = None) -> float:
    """concurrency = prompts of a batch * samples per prompt: the whole batch is sent at once."""
    return max(prompts, requested or 0) * group_size


def warmed_batches(prompts: float, group_size: float, num_warmup_batches: float) -> float:
    """concurrency = (1 + num_warmup_batches) * prompts of a version * n: one batch is sent per version, the first ones ahead.

    Source: verl/trainer/ppo/v1/trainer_separate_async.py.
    """
    return (1 + num_warmup_batches) * prompts * group_size


def engine_slots(per_engine: float, generator_gpus: float, gpus_per_replica: float, most: float | None = None) -> float:
    """concurrency = requests per engine * engines, or the rollouts of a batch where they are fewer."""
    slots = per_engine * max(1, generator_gpus // gpus_per_replica)
    return min(slots, most) if most else slots


def batch_on_engines(
    prompts: float, group_size: float, per_engine: float, generator_gpus: float, gpus_per_replica: float,
    requested: float | None = None,
) -> float:  # fmt: skip
    """concurrency = prompts sent * samples per prompt, and not more than requests per engine * engines.

    Source: slime/rollout/sglang_rollout.py: a semaphore of ``sglang_server_concurrency`` per engine over the whole batch.
    """
    return engine_slots(per_engine, generator_gpus, gpus_per_replica, max(prompts, requested or 0) * group_size)


def replica_samples(
    concurrent_samples_per_replica: float, generator_gpus: float, gpus_per_replica: float, group_size: float,
    prompts_per_step: float, staleness_threshold: float,
) -> float:  # fmt: skip
    """concurrency = min(replicas * concurrent_samples_per_replica, int(prompts per version * (1 + threshold))) * n.

    Source: verl/experimental/fully_async_policy/fully_async_rollouter.py, ``max_concurrent_samples``.
    """
    at_once = concurrent_samples_per_replica * max(1, generator_gpus // gpus_per_replica)
    return max(1, min(at_once, int(prompts_per_step * (1 + staleness_threshold)))) * group_size


def target_slots(num_prompts_per_step: float, max_trajectory_age_steps: float, num_generations: float) -> float:
    """concurrency = num_prompts_per_step * max_trajectory_age_steps * num_generations_per_prompt.

    Source: nemo_rl/algorithms/async_utils/trajectory_collector.py, the semaphore ``max_inflight``.
    """
    return max(1, num_prompts_per_step * max_trajectory_age_steps) * num_generations


def running_requests(
    max_running_requests: float, generator_gpus: float, gpus_per_replica: float, rollout_batch_size: float,
    group_size: float, async_generation_ratio: float,
) -> float:  # fmt: skip
    """concurrency = min(max_running_requests * replicas, (1 + async_generation_ratio) * batch * n).

    Source: roll/distributed/scheduler/generate_scheduler.py: the limit holds for each data-parallel rank.
    """
    most = (1 + math.ceil(async_generation_ratio)) * rollout_batch_size * group_size
    return engine_slots(max_running_requests, generator_gpus, gpus_per_replica, most)


def samples(prompts_per_step: float, group_size: float) -> float:
    """samples = prompts_per_step * group_size."""
    return prompts_per_step * group_size


def groups(concurrency: float, group_size: float) -> float:
    """groups in flight = concurrency / group_size, rounded up."""
    return math.ceil(concurrency / group_size)


def slots_per_engine(concurrency: float, generator_gpus: float, gpus_per_replica: float) -> float:
    """requests per engine = concurrency / engines, rounded up."""
    return math.ceil(concurrency / max(1, generator_gpus // gpus_per_replica))


def groups_per_replica(concurrency: float, group_size: float, generator_gpus: float, gpus_per_replica: float) -> float:
    """concurrent_samples_per_replica = concurrency / group_size / replicas, rounded up."""
    return math.ceil(concurrency / group_size / max(1, generator_gpus // gpus_per_replica))


def oversampled(oversampling_factor: float, prompts_per_step: float) -> float | None:
    """prompts sent at once = oversampling_factor * prompts_per_step, rounded up, where more are sent than trained."""
    return math.ceil(oversampling_factor * prompts_per_step - 1e-9) if oversampling_factor > 1 else None


def mini_batches_at_once(prompts_per_step: float, updates_per_step: float, minibatches_per_update: float) -> float:
    """require_batches = minibatches_per_update where the groups of an update divide into them, else 1."""
    whole = prompts_per_step % (updates_per_step * minibatches_per_update) == 0
    return minibatches_per_update if whole else 1


def mini_batch(prompts_per_step: float, updates_per_step: float, minibatches_per_update: float) -> float:
    """ppo_mini_batch_size = prompts_per_step / updates_per_step / minibatches_per_update, where these are whole groups."""
    at_once = mini_batches_at_once(prompts_per_step, updates_per_step, minibatches_per_update)
    return prompts_per_step // (updates_per_step * at_once)


def optimizer_steps(updates_per_step: float, minibatches_per_update: float) -> float:
    """optimizer steps of a batch = updates_per_step * minibatches_per_update."""
    return updates_per_step * minibatches_per_update


def steps_unless_default(updates_per_step: float, minibatches_per_update: float, default: float) -> float | None:
    """optimizer steps of a batch = updates_per_step * minibatches_per_update, unless it is the default."""
    steps = optimizer_steps(updates_per_step, minibatches_per_update)
    return None if steps == default else steps


def samples_of_an_optimizer_step(
    prompts_per_step: float, group_size: float, updates_per_step: float, minibatches_per_update: float
) -> float:
    """rollouts of an optimizer step = prompts_per_step * group_size / (updates_per_step * minibatches_per_update)."""
    return prompts_per_step * group_size // optimizer_steps(updates_per_step, minibatches_per_update)


def sync_steps(updates_per_step: float, steps_per_publication: float) -> float:
    """steps between two synchronisations = updates_per_step * steps_per_publication."""
    return updates_per_step * steps_per_publication
