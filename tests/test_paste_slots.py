"""Lines to paste: mini-batches as each framework counts them, and slots that it holds otherwise than the plan."""

import dataclasses

import pytest

from rlqueue import Scenario
from rlqueue.frameworks.tables import keys, rules
from rlqueue.paste import lines, lost, otherwise, paste


@pytest.fixture
def scenario():
    return Scenario.from_data("prime-rl-qwen3-235b")


def written(scenario, framework):
    return {line.key: line.value for line in lines(scenario, framework)}


def test_mini_batches_are_written_as_each_framework_counts_them(scenario):
    """16 groups of 16 in two updates of two optimizer steps: mini-batches of 4 groups or 64 rollouts, four in a batch."""
    cut = dataclasses.replace(
        scenario, prompts_per_step=16, group_size=16, updates_per_step=2, minibatches_per_update=2, slots_held_by="group",
        schedule="partial-rollout", staleness_family="admission", concurrency=24 * 16,
    )  # fmt: skip
    verl = written(cut, "verl")
    assert verl["async_training.require_batches"] == 2
    assert verl["actor_rollout_ref.actor.ppo_mini_batch_size"] == 4
    assert verl["async_training.trigger_parameter_sync_step"] == 2
    assert lost(cut, "verl") == []
    for framework, key, value in (
        ("slime", "num-steps-per-rollout", 4),
        ("miles", "num-steps-per-rollout", 4),
        ("nemo-rl", "policy.train_global_batch_size", 64),
    ):
        assert written(cut, framework)[key] == value
    # AReaL makes four of a batch unless told otherwise
    assert "actor.ppo_n_minibatches" not in written(cut, "areal")
    assert written(dataclasses.replace(cut, minibatches_per_update=1), "areal")["actor.ppo_n_minibatches"] == 2
    assert ("minibatches_per_update", 2, 4, "the same optimizer steps of a batch") in otherwise(cut, "areal")
    assert ("updates_per_step", 2, 1) in lost(cut, "areal")
    assert "prime-rl cannot say minibatches_per_update=2: it reads 1" in paste(cut, "prime-rl")


def test_what_is_left_unwritten_is_the_framework_s_default(scenario):
    (rule,) = (rule for rule in rules("lines", "areal", None) if rule.target == "actor.ppo_n_minibatches")
    assert rule.arguments[-1] == f"={keys('areal')['actor.ppo_n_minibatches'].default}"
    in_groups = dataclasses.replace(scenario, schedule="partial-rollout", slots_held_by="group", concurrency=512)
    assert written(in_groups, "miles")["rollout-submission-granularity"] == "group"
    assert "rollout-submission-granularity" not in written(scenario, "miles")


def test_mini_batches_of_part_of_a_group_leave_the_batch_as_it_is(scenario):
    """verl counts prompts: 8 groups make no 16 mini-batches, and 16 batches of one would be another batch."""
    cut = dataclasses.replace(
        scenario, prompts_per_step=8, group_size=16, minibatches_per_update=16, schedule="partial-rollout",
        staleness_family="admission", slots_held_by="group", concurrency=24 * 16,
    )  # fmt: skip
    assert lost(cut, "verl") == [("minibatches_per_update", 16, 1)]
    assert otherwise(cut, "verl") == []


def test_in_step_updates_are_mini_batches(scenario):
    in_step = dataclasses.replace(
        scenario, schedule="sync", max_staleness=0, updates_per_step=4, minibatches_per_update=2, concurrency=512,
        staleness_family="admission", trainer_gpus=64, generator_gpus=64,
    )  # fmt: skip
    assert written(in_step, "verl")["actor_rollout_ref.actor.ppo_mini_batch_size"] == 4
    said = {knob: (was, now) for knob, was, now, _ in otherwise(in_step, "verl")}
    assert said["updates_per_step"] == (4, 1)
    assert said["minibatches_per_update"] == (2, 8)


def test_slots_that_a_framework_holds_otherwise_are_said_with_what_it_means(scenario):
    own = dataclasses.replace(
        scenario, mean_response_tokens=1000, response_sigma_between_prompts=0, response_sigma_within_group=0.25,
        max_response_tokens=20000, group_size=8, schedule="partial-rollout", concurrency=512,
    )  # fmt: skip
    # The mean of the largest of 8 normals is 1.424 of them above the mean: e^(0.25 x 1.424 - 0.03125) = 1.38, and more for
    # the convexity of the exponential; 1.40 by the integral.
    text = paste(own, "verl")
    assert (
        "verl cannot say slots_held_by=rollout: it reads group; a group keeps its places until its last rollout has ended"
        in text
    )
    factor = float(text.split("up to ")[1].split(" times fewer")[0])
    assert 1.38 < factor < 1.42
    in_groups = dataclasses.replace(own, slots_held_by="group")
    assert "slots_held_by" not in paste(in_groups, "verl")
    assert f"up to {factor:g} times more run at once" in paste(in_groups, "prime-rl")


def test_how_slots_are_held_makes_no_difference_where_a_whole_batch_has_them(scenario):
    in_step = dataclasses.replace(
        scenario, schedule="sync", max_staleness=0, slots_held_by="group",
        concurrency=scenario.prompts_per_step * scenario.group_size,
    )  # fmt: skip
    assert "slots_held_by" in {knob for knob, *_ in otherwise(in_step, "slime")}
    fewer = dataclasses.replace(in_step, concurrency=in_step.concurrency - scenario.group_size)
    assert "slots_held_by" in {knob for knob, *_ in lost(fewer, "slime")}
