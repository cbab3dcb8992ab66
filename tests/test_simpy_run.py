"""The plain simulator against timelines worked out by hand, exact special cases and laws of queues."""

import dataclasses

import pytest
from simpy_draws import Draws
from simpy_run import run
from simpy_scenarios import by_hand, random_scenarios

from rlqueue.scenario import SCHEDULES, STALENESS_FAMILIES

TOY = 1e-6  # the toy replica's memory and compute times, which the hand leaves out, are 1e-7 of a token's


class Given(Draws):
    """Lengths by group and rollout; beyond those given, the last group again."""

    def __init__(self, scenario, *lengths, start_s=()):
        super().__init__(scenario, seed=0)
        self.given, self.starts = lengths, start_s

    def length(self, group, rollout, *_):
        return self.given[min(group, len(self.given) - 1)][rollout]

    def sandbox_start_s(self, group, rollout, tries):
        return self.starts[group][rollout][tries] if self.starts else super().sandbox_start_s(group, rollout, tries)


def timeline(scenario, steps, *lengths, **more):
    return run(scenario, steps=steps, draws=Given(scenario, *lengths, **more))


def column(result, name):
    return [row[name] for row in result.steps]


def finishes(result):
    return [group.finish_s for group in result.groups if group.finish_s is not None]


def near(values):
    return pytest.approx(values, rel=TOY, abs=TOY)


# Timelines. A token takes 0.01 s to sample, 0.001 s to prefill, 0.001 s to train.
def test_in_step_the_trainer_waits_for_the_longest_rollout_and_then_the_generator_for_the_trainer():
    result = timeline(by_hand(weight_sync_s=0.5), 2, (100, 200), (300, 100))
    assert column(result, "start") == near([0.0, 2.8])
    assert column(result, "wait") == near([2.0, 3.0])
    assert column(result, "train") == near([0.3, 0.4])
    assert [group.version for group in result.groups] == [0, 1]


def test_one_step_off_trains_on_the_weights_of_the_step_before_and_syncs_when_the_next_batch_is_there():
    # 0..2 first batch; 2..2.3 train, 2..5 second batch, so 2.7 of waiting, 5..5.5 sync; 5.5..5.9 train, 5.5..8.5 third batch
    result = timeline(by_hand(schedule="one-step-off", weight_sync_s=0.5), 2, (100, 200), (300, 100))
    assert column(result, "start") == near([0.0, 5.5])
    assert column(result, "wait") == near([2.0 + 2.7, 3.0 - 0.4])
    assert [(group.dispatch_s, group.version) for group in result.groups] == [
        (0.0, 0), (near(2.0), 0), (near(5.5), 1),
    ]  # fmt: skip
    assert [group.trained_version for group in result.groups] == [0, 1, None]


def test_prefill_stops_the_decoding_of_all_who_share_the_replica():
    # .2 both prefilled; .7 the first ends, the third's prefill until .8; the second ends at 1.3 instead of 1.2
    scenario = by_hand(mean_prompt_tokens=100.0, schedule="async-in-flight")
    result = timeline(scenario, 1, (50, 100), (100, 100))
    assert finishes(result)[0] == near(1.3)


def test_prefill_apart_stops_nobody():
    # The server prefills .05 each on its GPU (of 2; decoding is as fast): requests decode from .1 and .2; ends .6 and 1.2
    scenario = by_hand(mean_prompt_tokens=100.0, schedule="async-in-flight", gpus_per_replica=2, generator_gpus=2,
                       prefill_gpus_per_replica=1)  # fmt: skip
    result = timeline(scenario, 1, (50, 100), (100, 100))
    assert finishes(result)[0] == near(1.2)


def test_when_the_memory_is_full_the_last_to_join_goes_and_comes_back_to_its_whole_context():
    # .2 prefilled (C = 200); 4.2 both sampled 400 (C = 1000 = K), the second goes; 6.2 the first ends, the second is
    # prefilled again, 500 tokens until 6.7, and samples its last 200 until 8.7
    scenario = by_hand(kv_tokens=1000, mean_prompt_tokens=100.0, max_response_tokens=800.0)
    result = timeline(scenario, 1, (600, 600))
    assert result.groups[0].finish_s == near(8.7)


def test_a_preempted_request_comes_back_first_when_somebody_leaves():
    scenario = by_hand(kv_tokens=1000, mean_prompt_tokens=200.0, max_response_tokens=700.0, max_staleness=5.0,
                       schedule="async-in-flight", mean_response_tokens=300.0)  # fmt: skip
    result = timeline(scenario, 2, (100, 550), (300, 300))
    # .4 both prefilled (C = 400); 1.4 the first ends, a third comes (C = 500), prefilled until 1.6; 4.1 both have sampled
    # 250 more (C = 1000 = K): the third goes; 6.1 the second ends. The third is prefilled again, 450 tokens, and the new
    # fourth behind it, 200, until 6.75; 7.25 the third ends and a fifth comes, .2 of prefill; the fourth ends at 9.95
    assert finishes(result) == near([6.1, 9.95])


def test_without_a_prefix_cache_a_later_turn_prefills_its_whole_context():
    # Two turns of 50 prompt and 50 sampled tokens; the tool takes 1 s. .05 .5 | 1 | .05 or .15, .5; rollouts side by side
    knobs = {"mean_prompt_tokens": 100.0, "tool_calls": 1.0, "tool_call_s": 1.0}
    assert timeline(by_hand(**knobs), 1, (100, 100)).groups[0].finish_s == near(0.1 + 0.5 + 1 + 0.1 + 0.5)
    assert timeline(by_hand(**knobs, prefix_cache=False), 1, (100, 100)).groups[0].finish_s == near(2.2 + 2 * 0.1)


def test_speculative_tokens_shorten_decoding_by_the_accept_length():
    assert timeline(by_hand(accept_length=2.0), 1, (100, 200)).groups[0].finish_s == near(1.0)


def test_a_start_past_its_time_out_is_tried_again_and_a_rollout_without_tries_left_is_dispatched_again():
    scenario = by_hand(sandbox_start_s=1.0, sandbox_timeout_s=3.0, sandbox_retries=1)
    # The first rollout: 3 (time-out), 3 (time-out): failed; again: 2, then decodes 1 s
    starts = {0: {0: (9.0, 9.0, 2.0), 1: (1.0,)}}
    result = timeline(scenario, 1, (100, 100), start_s=starts)
    assert result.groups[0].finish_s == near(3 + 3 + 2 + 1)
    assert result.fates["failed"] == 1
    assert result.dispatched == 3


def test_sandboxes_wait_for_a_place_and_then_for_their_creation():
    knobs = {"sandbox_start_s": 1.0, "mean_response_tokens": 100.0}
    starts = {0: {0: (1.0,), 1: (1.0,)}}
    assert timeline(by_hand(**knobs, sandbox_cap=1.0), 1, (100, 100), start_s=starts).groups[0].finish_s == near(4.0)
    rate = timeline(by_hand(**knobs, sandbox_creates_per_s=0.2), 1, (100, 100), start_s=starts)
    assert rate.groups[0].finish_s == near(5.0 + 2.0)


def test_a_publication_finds_the_rollouts_in_flight_drained_resumed_or_going_on():
    # Two groups at once, of 1 and 3 s. The first is trained 1..1.2; a budget of two groups held the third back until then
    knobs = {"concurrency": 4, "mean_response_tokens": 100.0}
    lengths = (100, 100), (300, 300), (100, 100)
    going_on = timeline(by_hand(schedule="async-in-flight", **knobs), 3, *lengths)
    assert column(going_on, "start") == near([0.0, 1.2, 2.4])
    assert going_on.groups[2].dispatch_s == near(1.2)
    # Of the second group's tokens 120 have version 0, 120 version 1, 60 version 2, which is trained
    assert going_on.groups[1].token_staleness == near((120 * 2 + 120) / 300)
    drained = timeline(by_hand(schedule="async-drain", **knobs), 2, *lengths)
    assert column(drained, "start") == near([0.0, 3.0])
    assert drained.groups[2].dispatch_s == near(3.0)
    # 1.2: prefill of 2 x 120; the third group ends at 2.44; 2.64: prefill of 2 x 240
    resumed = timeline(by_hand(schedule="partial-rollout", **knobs), 3, *lengths)
    assert column(resumed, "start") == near([0.0, 1.2, 2.64])
    assert resumed.groups[1].finish_s == near(3.0 + 0.24 + 0.48)


def test_drop_keeps_no_group_older_than_its_limit_and_fills_the_free_slots():
    # Group 0 takes 9 s, the others 1 s, one after the other; versions 1, 2 come at 1.2, 2.2: at version 2 group 0 is stale
    scenario = by_hand(schedule="async-in-flight", staleness_family="drop", concurrency=4, mean_response_tokens=100.0)
    result = timeline(scenario, 3, (900, 900), (100, 100))
    stale = [group for group in result.groups if group.fate == "stale"]
    assert [group.number for group in stale] == [0]
    assert result.fates["stale"] == 2
    assert [group.trained_version - group.version for group in result.groups if group.step is not None] == [0, 1, 1]


def test_a_straggler_holds_its_own_step_when_targeted_and_no_step_when_not():
    knobs = {"schedule": "async-in-flight", "concurrency": 4, "mean_response_tokens": 100.0}
    lengths = (500, 500), (100, 100)
    assert timeline(by_hand(**knobs), 1, *lengths).steps[0]["wait"] == near(1.0)
    assert timeline(by_hand(**knobs, staleness_family="targeted"), 1, *lengths).steps[0]["wait"] == near(5.0)


def test_lent_gpus_decode_while_the_trainer_waits_and_hand_their_requests_on():
    # Two rollouts on two replicas; the trainer's own GPU is one of them. Group 0 ends at 1, group 1 (on both) moves at 1
    scenario = by_hand(schedule="lent-trainer", concurrency=4, mean_response_tokens=100.0, mean_prompt_tokens=100.0)
    result = timeline(scenario, 1, (100, 100), (300, 300))
    # Each replica prefills two requests (.2) and decodes: 1.2 the first group ends on both; the lent one's 100 sampled and
    # 100 prompt tokens are prefilled again by .2, at 1.4; group 1 ends 2 s later, when 1 step has long ended
    assert finishes(result)[0] == near(1.2)
    longer = timeline(dataclasses.replace(scenario, mfu=6e-7), 1, (100, 100), (300, 300))
    assert finishes(longer)[1] == near(3.4)


def test_with_oversampling_the_slowest_group_is_pruned_when_the_batch_is_full():
    scenario = by_hand(oversampling_factor=2.0, concurrency=4, mean_response_tokens=100.0)
    result = timeline(scenario, 2, (900, 900), (100, 100))
    assert [group.fate for group in result.groups] == ["pruned", "trained", "trained", "pruned"]
    assert column(result, "wait") == near([1.0, 1.0])


# Exact special cases
def test_without_variance_the_trainer_waits_one_less_production_over_consumption():
    # All slots hold one batch: it takes 1 s, the trainer .2 s of it; consumption 2 / .2, production 2 / 1 samples per second
    result = timeline(by_hand(schedule="async-in-flight", max_staleness=4.0), 20, (100, 100))
    assert result.trainer_wait_ratio == near(1 - (2 / 1) / (2 / 0.2))
    assert result.trained_per_s == near(2.0)


def without_budget(scenario):
    # Surplus groups belong to no batch, and so are in flight at a publication, which schedules do not treat alike
    return dataclasses.replace(
        scenario, max_staleness=0.0, schedule="sync", staleness_family="admission", surplus_fraction=0.0
    )


@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name not in {"one-step-off", "colocated-sync"}])
@pytest.mark.parametrize("family", STALENESS_FAMILIES)
def test_with_no_staleness_allowed_every_schedule_and_family_is_the_synchronous_one(schedule, family):
    for scenario in random_scenarios(6, seed=5):
        sync = without_budget(scenario)
        other = dataclasses.replace(sync, schedule=schedule, staleness_family=family)
        if schedule == "lent-trainer":
            sync, other = (
                dataclasses.replace(each, trainer_gpus=4) for each in (sync, other)
            )  # no whole replica to lend
        expected, found = run(sync, 3, 6), run(other, 3, 6)
        assert found.steps == expected.steps
        assert [group.finish_s for group in found.groups] == [group.finish_s for group in expected.groups]
        assert found.fates == expected.fates


# Laws
@pytest.mark.parametrize("scenario", random_scenarios(42, seed=11), ids=lambda scenario: scenario.name)
def test_every_rollout_has_one_fate_little_holds_and_no_trained_group_is_older_than_its_bound(scenario):
    result = run(scenario, 1, 16)
    assert not result.cause
    assert result.dispatched == sum(result.fates.values())
    # Over the window, but for those who were there at its ends: at most all slots
    span = result.step_s * 8
    assert abs(result.in_flight - result.attempts_per_s * result.slot_s) <= scenario.concurrency * result.slot_s / span
    ages = [group.trained_version - group.version for group in result.groups if group.step is not None]
    assert min(ages) >= 0
    if scenario.staleness_family == "drop" and scenario.schedule != "one-step-off":
        assert max(ages) <= scenario.max_staleness
    for row in result.steps:
        assert min(row["wait"], row["train"], row["pause"], row["sync"]) >= 0


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    scenario = random_scenarios(13, seed=11)[12]
    assert run(scenario, 1, 4).steps == run(scenario, 1, 4).steps
    assert run(scenario, 1, 4).steps != run(scenario, 2, 4).steps


def test_a_run_in_which_every_group_is_filtered_ends_with_its_cause():
    scenario = by_hand(solve_rate_mean=1.0)
    assert run(scenario, steps=1, max_events=1000).cause == "event budget used up"
