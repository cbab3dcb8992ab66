"""Whole runs worked out by hand: one per schedule, budget and mechanism; every moment is exact.

A token takes 0.01 s to sample, 0.001 s to prefill and 0.001 s to train, whatever else goes on (see ``simulation_toys.toy``).
"""

import pytest
from simulation_toys import TOY, run, toy


def near(values):
    return pytest.approx(values, rel=TOY, abs=TOY)


def steps(result, name):
    return result.steps[name].tolist()


def groups(result, name, count):
    return result.groups[name].head(count).tolist()


def test_sync_waits_for_the_longest_rollout_trains_publishes_and_begins_again():
    result = run(toy(weight_sync_s=0.5), 2, (100, 200), (300, 100))
    assert steps(result, "wait_s") == near([2.0, 3.0])
    assert steps(result, "train_s") == near([0.3, 0.4])
    assert steps(result, "end_s") == near([2.8, 6.7])
    assert groups(result, "dispatch_s", 2) == near([0.0, 2.8])
    assert steps(result, "staleness_versions") == [0.0, 0.0]
    assert result.timeline["kind"].tolist() == ["wait", "train", "sync"] * 2
    assert result.timeline["end_s"].tolist() == near([2.0, 2.3, 2.8, 5.8, 6.2, 6.7])


def test_colocated_generates_on_all_gpus_and_then_trains_on_all():
    result = run(toy(schedule="colocated-sync"), 1, (100, 200))
    assert steps(result, "wait_s") == near([2.0])
    assert steps(result, "train_s") == near([0.15])
    assert result.rollouts["replica"].tolist() == [0, 1]


def test_one_step_off_generates_the_next_batch_meanwhile_and_syncs_between_batches():
    # 2.0 trains until 2.3; the second batch runs from 2.0 to 5.0, so the sync is from 5.0 to 5.5
    result = run(toy(schedule="one-step-off", weight_sync_s=0.5), 2, (100, 200), (300, 100))
    assert steps(result, "end_s") == near([5.5, 8.0])
    assert steps(result, "hold_s") == near([2.7, 1.6])  # the third batch is the first's lengths again: 5.5 to 7.5
    assert groups(result, "dispatch_s", 3) == near([0.0, 2.0, 5.5])
    assert steps(result, "staleness_versions") == [0.0, 1.0]


def test_in_flight_the_generator_never_stops_and_the_second_group_meets_new_weights():
    result = run(toy(schedule="async-in-flight", weight_sync_s=0.5), 2, (100, 100), (200, 200))
    assert groups(result, "dispatch_s", 3) == near([0.0, 1.0, 3.0])
    assert steps(result, "wait_s") == near([1.0, 1.3])
    assert steps(result, "end_s") == near([1.7, 3.9])
    assert groups(result, "version", 3) == [0, 0, 1]
    assert steps(result, "staleness_versions") == [0.0, 1.0]
    # The weights came at 1.7, after 70 of its 200 tokens
    assert steps(result, "token_staleness_versions") == near([0.0, 70 / 200])


def test_a_batch_is_fetched_before_it_is_trained_on_while_generation_goes_on_and_that_counts_as_waiting():
    # Two updates a step, each of one group: fetched from 1.0 to 1.25 and from 2.0 to 2.25, trained for 0.2 + 2 * 0.05
    knobs = {"prompts_per_step": 2, "updates_per_step": 2, "minibatches_per_update": 2, "trainer_overhead_s": 0.05}
    result = run(toy(schedule="async-in-flight", batch_fetch_s=0.5, **knobs), 1)
    kinds = ["wait", "fetch", "train", "wait", "fetch", "train", "sync"]
    assert result.timeline["kind"].tolist() == kinds[: len(result.timeline)]
    assert result.timeline["end_s"].tolist()[:6] == near([1.0, 1.25, 1.55, 2.0, 2.25, 2.55])
    assert groups(result, "trained_s", 2) == near([1.0, 2.0])  # taken out of the queue when the fetching begins
    assert steps(result, "fetch_s") == near([0.5])
    assert steps(result, "wait_s") == near([1.0 + 0.45 + 0.5])
    assert steps(result, "train_s") == near([0.6])


def test_slots_that_groups_hold_are_free_when_the_last_rollout_ends():
    # Two slots, groups of two: the second rollout of group 0 ends at 3.0, and its mate's slot stays taken from 1.0 until then
    knobs = {"schedule": "async-in-flight", "concurrency": 3, "max_staleness": 5.0}
    result = run(toy(slots_held_by="group", **knobs), 2, (100, 300), (200, 200))
    assert groups(result, "dispatch_s", 3) == near([0.0, 3.0, 5.0])
    assert result.rollouts["dispatch_s"].head(4).tolist() == near([0.0, 0.0, 3.0, 3.0])
    free = run(toy(**knobs), 2, (100, 300), (200, 200))
    assert groups(free, "dispatch_s", 3) == near([0.0, 0.0, 2.0])


def test_a_trainer_that_fetches_is_not_short_of_groups():
    # It never lacks a group, so it binds, though a third of its time goes into fetching; the generator could deliver more
    knobs = {"schedule": "async-in-flight", "concurrency": 2, "max_staleness": 4.0}
    result = run(toy(batch_fetch_s=1.0, trainer_overhead_s=1.8, **knobs), 40)
    point = result.operating_point
    assert point.step_s == near(3.0)
    assert point.trainer_wait_ratio == near(1 / 3)
    assert point.binding_constraint == "trainer compute"
    assert point.production_per_s > point.consumption_per_s


def test_admission_lets_one_group_more_than_the_trainer_has_published():
    result = run(toy(schedule="async-in-flight", trainer_overhead_s=4.0), 3)
    assert groups(result, "dispatch_s", 4) == near([0.0, 1.0, 5.2, 9.4])
    assert groups(result, "finish_s", 3) == near([1.0, 2.0, 6.2])
    assert groups(result, "trained_s", 3) == near([1.0, 5.2, 9.4])
    assert steps(result, "staleness_versions") == [0.0, 1.0, 1.0]
    assert steps(result, "staleness_in_queue") == [0.0, 1.0, 1.0]


def test_admission_of_a_fraction_takes_the_floor_as_verl_does():
    # (1 + 0.5) * 3 = 4.5: four groups before the first publication; each step trains three
    knobs = {"prompts_per_step": 3, "schedule": "async-in-flight", "concurrency": 2, "trainer_overhead_s": 10.0}
    result = run(toy(max_staleness=0.5, **knobs), 2)
    assert groups(result, "dispatch_s", 6) == near([0.0, 1.0, 2.0, 3.0, 13.6, 14.6])


def test_drop_throws_away_what_has_become_older_than_the_bound():
    result = run(toy(schedule="async-in-flight", staleness_family="drop", trainer_overhead_s=4.0), 3)
    assert groups(result, "dispatch_s", 10) == near([float(second) for second in range(10)])
    # Version 1 at 5.2 leaves all; version 2 at 9.4 drops what began before 5.2 and is not trained; version 3 at 13.6 the next
    assert groups(result, "fate", 12) == ["trained"] * 2 + ["stale"] * 4 + ["trained"] + ["stale"] * 3 + ["queued"] * 2
    assert groups(result, "trained_s", 2) == near([1.0, 5.2])
    assert result.groups["trained_s"][6] == near(9.4)
    assert steps(result, "staleness_versions") == [0.0, 1.0, 1.0]


def test_targeted_lets_a_straggler_hold_its_step_though_another_group_waits():
    knobs = {"schedule": "async-in-flight", "concurrency": 4}
    result = run(toy(staleness_family="targeted", **knobs), 2, (400, 400), (100, 100))
    assert groups(result, "trained_s", 2) == near([4.0, 4.8])
    assert groups(result, "dispatch_s", 3) == near([0.0, 0.0, 4.8])
    other = run(toy(staleness_family="admission", **knobs), 2, (400, 400), (100, 100))
    assert groups(other, "trained_s", 2) == near([4.0, 1.0])


def test_a_drain_lets_the_rollouts_in_flight_end_and_dispatches_none_before_the_new_weights():
    result = run(toy(schedule="async-drain", weight_sync_s=0.5), 2, (100, 100), (300, 300))
    assert steps(result, "hold_s")[0] == near(2.8)
    assert steps(result, "end_s")[0] == near(4.5)
    assert groups(result, "dispatch_s", 3) == near([0.0, 1.0, 4.5])
    assert groups(result, "version", 3) == [0, 0, 1]


def test_partial_rollout_prefills_all_contexts_again_at_new_weights():
    # Prefill of two prompts 0.2, decode to 1.2, train 0.4; at 1.6 the second group has 20 tokens: 240 to prefill again
    result = run(toy(schedule="partial-rollout", mean_prompt_tokens=100.0), 2, (100, 100), (200, 200))
    assert groups(result, "finish_s", 2) == near([1.2, 1.4 + 0.2 + 0.24 + 1.8])
    assert result.world.arrays["steps"]["again_tokens"][0] == near(240.0)


def test_lent_trainer_gpus_decode_while_the_trainer_waits_and_hand_over_when_it_does_not():
    result = run(toy(schedule="lent-trainer", concurrency=4), 3, (100, 100), (300, 300))
    rollouts = result.rollouts.sort_values(["group", "rollout"])
    # At 1.0 the second rollout of the second group moves with its 100 tokens: 0.1 of prefill for both
    assert groups(result, "finish_s", 2) == near([1.0, 3.1])
    assert rollouts["replica"].head(4).tolist() == [0, 1, 0, 0]


def test_early_pruning_ends_the_surplus_group_when_the_batch_is_complete():
    result = run(toy(oversampling_factor=2.0, concurrency=4), 1, (300, 300), (100, 100))
    assert groups(result, "fate", 2) == ["pruned", "trained"]
    assert result.rollouts["end"].tolist() == ["finished", "finished", "aborted", "aborted"]
    assert result.rollouts["end_s"].tolist() == near([1.0] * 4)
    assert result.rollouts["response_tokens"].tolist() == near([100.0] * 4)


def test_an_update_starts_as_soon_as_its_part_of_the_batch_is_there_but_in_step_only_with_the_whole():
    knobs = {"prompts_per_step": 2, "updates_per_step": 2, "concurrency": 4}
    streamed = run(toy(schedule="async-in-flight", **knobs), 1, (100, 100), (300, 300), (300, 300))
    assert streamed.timeline["end_s"].tolist() == near([1.0, 1.2, 3.0, 3.6])
    whole = run(toy(**knobs), 1, (100, 100), (300, 300))
    assert whole.timeline["end_s"].tolist() == near([3.0, 3.2, 3.8])


def test_rollouts_past_the_sandbox_cap_wait_inside_the_provider():
    result = run(toy(sandbox_start_s=1.0, sandbox_start_sigma=0.0, sandbox_cap=1.0), 1)
    assert result.rollouts["dispatch_s"].tolist() == near([0.0, 0.0])
    assert result.rollouts["ready_s"].tolist() == near([1.0, 3.0])
    assert steps(result, "wait_s") == near([4.0])


def test_sandboxes_are_created_a_gap_apart_and_a_start_that_takes_too_long_is_tried_again():
    apart = run(toy(sandbox_start_s=1.0, sandbox_start_sigma=0.0, sandbox_creates_per_s=0.5), 1)
    assert apart.rollouts["ready_s"].tolist() == near([1.0, 3.0])
    late = run(toy(sandbox_start_s=1.0, sandbox_start_sigma=0.0, sandbox_timeout_s=0.5), 1, max_events=1000)
    assert late.stalled.startswith("event budget used up: nearly every rollout fails")


def test_full_memory_preempts_the_youngest_which_is_prefilled_again():
    # 250 tokens are full at 1.25 s with 125 each; the first ends at 2.0, the other prefills 125 and samples 75 more
    result = run(toy(kv_tokens=250.0, max_response_tokens=240.0), 1, (200, 200))
    assert result.rollouts.sort_values("rollout")["end_s"].tolist() == near([2.0, 2.875])
    assert result.rollouts.sort_values("rollout")["preemptions"].tolist() == [0, 1]


def test_separate_prefill_gpus_serve_one_prompt_after_the_other_while_decoding_goes_on():
    result = run(
        toy(mean_prompt_tokens=100.0, generator_gpus=2, gpus_per_replica=2, prefill_gpus_per_replica=1), 1, (100, 100)
    )
    assert result.rollouts["end_s"].tolist() == near([1.1, 1.2])


@pytest.mark.parametrize(("cached", "second_prefill_s"), [(True, 0.1), (False, 0.3)])
def test_a_tool_call_lies_between_two_turns_and_without_a_cache_all_is_prefilled_again(cached, second_prefill_s):
    result = run(toy(mean_prompt_tokens=100.0, tool_calls=1.0, tool_call_s=0.5, prefix_cache=cached), 1, (100, 100))
    assert steps(result, "wait_s") == near([0.1 + 0.5 + 0.5 + second_prefill_s + 0.5])


def test_scoring_holds_the_slot():
    result = run(toy(reward_s=3.0, schedule="async-in-flight"), 1)
    assert groups(result, "finish_s", 1) == near([4.0])
    assert groups(result, "dispatch_s", 2) == near([0.0, 4.0])


def test_evaluations_and_checkpoints_pause_the_trainer_before_it_publishes():
    knobs = {"evaluate_every_steps": 2, "evaluation_s": 3.0, "checkpoint_every_steps": 1, "checkpoint_s": 0.5}
    result = run(toy(**knobs), 2)
    assert steps(result, "pause_s") == near([0.5, 3.5])
    assert steps(result, "end_s") == near([1.7, 1.7 + 1.2 + 3.5])


def test_weights_are_published_every_so_many_steps():
    result = run(toy(schedule="async-in-flight", steps_per_publication=2, weight_sync_s=0.5), 4)
    assert steps(result, "version") == [0, 1, 1, 2]
    assert steps(result, "sync_s") == near([0.0, 0.5, 0.0, 0.5])


def test_speculative_decoding_gains_several_tokens_an_iteration():
    assert steps(run(toy(accept_length=2.5), 1), "wait_s") == near([0.4])


def test_filtered_groups_make_room_for_others_in_the_same_batch():
    result = run(toy(solve_rate_mean=0.5), 30)
    fates = result.groups["fate"]
    assert (fates == "trained").sum() == 30
    assert set(fates) == {"trained", "filtered"}
    # All or none of two solved: filtered, whatever the coin of the other cause says
    solved = result.groups["solved_rollouts"]
    assert (fates[solved == 1] == "trained").all()
    assert (fates[solved != 1] == "filtered").all()


def test_each_gpu_second_and_each_token_is_accounted_for():
    # 0.2 prefill and 1.0 decode a step, 0.4 training and 0.5 sync, in which the generator idles
    result = run(toy(mean_prompt_tokens=100.0, weight_sync_s=0.5), 2)
    seconds = result.gpu_seconds.set_index(["side", "kind"])["gpu_s"]
    assert seconds["trainer"].to_dict() == near({"train": 0.8, "pause": 0.0, "sync": 1.0, "wait": 2.4})
    assert seconds["generator"].to_dict() == near({"decode": 2.0, "prefill": 0.4, "idle": 1.8})
    tokens = result.tokens.set_index(["kind", "fate"])["tokens"]
    assert tokens["sampled", "trained"] == near(400.0)
    assert tokens["sampled"].sum() == near(400.0)
    assert tokens["prefilled", "first time"] == near(400.0)
    assert tokens["prefilled", "again"] == 0.0


def test_tokens_of_turns_yet_to_come_are_sampled_by_the_new_weights():
    # 100 tokens from 1.5 to 2.5, a call until 3.0, 100 more until 4.0; the weights came at 2.2, after 70
    result = run(
        toy(schedule="async-in-flight", weight_sync_s=0.5, tool_calls=1.0, tool_call_s=0.5), 2, (100, 100), (200, 200)
    )
    assert groups(result, "finish_s", 2) == near([1.5, 4.0])
    assert steps(result, "token_staleness_versions") == near([0.0, 70 / 200])
    assert result.rollouts["mean_version"].tolist() == near([0.0, 0.0, 130 / 200, 130 / 200])
