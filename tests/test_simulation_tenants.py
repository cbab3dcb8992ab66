"""Several tenants on shared GPUs: whole runs worked out by hand, and what must hold in any.

A token takes 0.01 s to sample, 0.001 s to prefill and 0.001 s to train, whatever else goes on (see ``simulation_toys.toy``).
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation_toys import PRIME, TOY, run_tenants, toy

from rlqueue import simulate
from rlqueue.scenario import SCHEDULES, STALENESS_FAMILIES
from rlqueue.simulation import draws, parameters, simulate_tenants, state
from rlqueue.simulation.loop import advance
from rlqueue.simulation.run import go_on

SHARED = sorted(set(SCHEDULES) - {"colocated-sync", "lent-trainer"})
"""Schedules in which there may be several tenants."""


def near(values):
    return pytest.approx(values, rel=3 * TOY, abs=3 * TOY)  # up to six requests in a batch


def of(runs, name):
    return [run.steps[name].tolist() for run in runs]


def groups(run, name, count):
    return run.groups[name].head(count).tolist()


# Worked out by hand
def test_while_one_tenant_generates_the_trainer_serves_the_other():
    # Tenant 0: wait 2, train .3, sync .5; tenant 1: wait 3, train .4, sync .5. Never ready together
    runs = run_tenants(toy(tenants=2, concurrency=4, weight_sync_s=0.5), 2, [(100, 200)], [(300, 100)])
    assert of(runs, "end_s")[0][:2] == near([2.8, 5.6])
    assert of(runs, "end_s")[1] == near([3.9, 7.8])
    assert of(runs, "turn_s") == [near([0.0] * len(run.steps)) for run in runs]


def test_the_update_that_is_ready_later_waits_its_turn_and_a_change_of_adapter_takes_its_time():
    # Tenant 1 is ready at 2, tenant 0 at 2.1: it waits for 1's update of .3 and trains .31 and .1 of changing until 2.71
    runs = run_tenants(toy(tenants=2, concurrency=4, adapter_switch_s=0.1), 2, [(100, 210)], [(200, 100)])
    assert of(runs, "turn_s")[0][0] == near(0.2)
    assert of(runs, "wait_s")[0][0] == near(2.1 + 0.2)
    assert of(runs, "train_s")[0][0] == near(0.31 + 0.1)
    # The very first update changes from nobody's adapter
    assert of(runs, "train_s")[1] == near([0.3, 0.3 + 0.1])
    assert runs[0].timeline["kind"].tolist()[:3] == ["wait", "turn", "train"]
    # 1's second batch is there at 2.3 + 2 = 4.3, 0's at 2.71 + 2.1 = 4.81: it waits until 4.7, which has passed
    assert of(runs, "end_s") == [near([2.71, 5.22]), near([2.3, 4.7])]


def test_of_updates_ready_at_one_moment_the_lowest_tenant_goes_first():
    runs = run_tenants(toy(tenants=3, concurrency=6), 1, *[[(200, 200)]] * 3)
    assert [each[0] for each in of(runs, "turn_s")] == near([0.0, 0.4, 0.8])


def test_a_free_slot_goes_to_the_tenant_with_the_fewest_rollouts_in_flight():
    # Two slots: one each. At 1 tenant 0's second rollout begins, at 2 tenant 1's second, which ends at 3; its next group's
    # first follows there, from 3 to 5, tenant 0's next group from 4
    runs = run_tenants(
        toy(tenants=2, schedule="async-in-flight", max_staleness=5.0), 1, [(100, 300), (100, 100)], [(200, 100)]
    )
    first, second = (run.rollouts.sort_values(["group", "rollout"]) for run in runs)
    assert first["dispatch_s"].tolist()[:2] == near([0.0, 1.0])
    assert second["dispatch_s"].tolist()[:2] == near([0.0, 2.0])
    assert groups(runs[0], "dispatch_s", 2) == near([0.0, 4.0])
    assert groups(runs[1], "dispatch_s", 2) == near([0.0, 3.0])


def test_among_equals_a_slot_goes_to_the_tenant_that_got_one_longest_ago():
    # Three slots, tenants 0, 1, 0. At 1 tenant 1's ends: it has the fewest. At 2 both of tenant 0's end: it has none. Then
    # both tenants have one each: tenant 1, served at 1, before tenant 0, served at 2
    runs = run_tenants(
        toy(tenants=2, concurrency=3, schedule="async-in-flight", max_staleness=9.0), 1, [(200, 200), (300, 300)],
        [(100, 300), (500, 500)],
    )  # fmt: skip
    assert runs[0].groups["dispatch_s"].head(2).tolist() == near([0.0, 2.0])
    assert runs[1].groups["dispatch_s"].head(2).tolist() == near([0.0, 2.0])


def test_a_tenant_begins_after_those_before_it():
    runs = run_tenants(toy(tenants=3, concurrency=6, tenant_start_gap_s=0.7), 1, *[[(100, 100)]] * 3)
    assert [run.steps["start_s"][0] for run in runs] == near([0.0, 0.7, 1.4])
    assert [run.groups["dispatch_s"][0] for run in runs] == near([0.0, 0.7, 1.4])
    assert [run.steps["wait_s"][0] for run in runs] == near([1.0, 1.0, 1.0])


def test_new_weights_abort_the_rollouts_of_their_own_tenant_only():
    # Tenant 0 publishes at 1.2: its second group has 20 tokens a rollout, 40 to prefill again; tenant 1's has 120 each,
    # nothing of which is prefilled again, but the prefill of .04 s stops its decoding too
    runs = run_tenants(
        toy(tenants=2, concurrency=4, schedule="partial-rollout"), 1, [(100, 100), (200, 200)], [(300, 300)]
    )
    assert runs[1].groups["finish_s"][0] == near(3.04)
    assert runs[0].world.arrays["steps"]["again_tokens"][0] == near(40.0)
    # Its own publication comes .6 after that and finds 60 tokens in each of its next two
    assert runs[1].world.arrays["steps"]["again_tokens"][0] == near(120.0)


def test_a_drain_holds_the_slots_of_its_own_tenant_only():
    # Tenant 0's step ends with its second group, of 3 s, at 4; tenant 1 dispatches meanwhile
    runs = run_tenants(
        toy(tenants=2, concurrency=4, schedule="async-drain"), 1, [(100, 100), (300, 300)], [(200, 200), (50, 50)]
    )
    assert runs[0].steps["end_s"][0] == near(4.0)
    assert runs[0].steps["hold_s"][0] == near(2.8)
    assert runs[1].groups["dispatch_s"].tolist()[1] == near(2.0)
    assert groups(runs[0], "dispatch_s", 3)[:2] == near([0.0, 1.0])


def test_pauses_and_publications_of_one_tenant_leave_the_trainer_to_the_others():
    # Tenant 0 trains from 1 to 1.2, evaluates 5 and syncs 5; tenant 1, ready at 1.1, trains from 1.2
    knobs = {"evaluate_every_steps": 1, "evaluation_s": 5.0, "weight_sync_s": 5.0}
    runs = run_tenants(toy(tenants=2, concurrency=4, **knobs), 1, [(100, 100)], [(110, 110)])
    assert runs[1].steps["turn_s"][0] == near(0.1)
    assert runs[1].timeline["end_s"].tolist() == near([1.1, 1.2, 1.42, 6.42, 11.42])


def test_places_at_the_provider_are_one_line_for_all():
    knobs = {"sandbox_start_s": 1.0, "sandbox_start_sigma": 0.0, "sandbox_cap": 1.0}
    runs = run_tenants(toy(tenants=2, concurrency=4, **knobs), 1, [(100, 100)], [(100, 100)])
    # Slots in turn: tenant 0, 1, 0, 1, two seconds each
    assert runs[0].rollouts["ready_s"].tolist() == near([1.0, 5.0])
    assert runs[1].rollouts["ready_s"].tolist() == near([3.0, 7.0])


# Laws
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_tenant_is_the_single_run_event_for_event(schedule):
    scenario = small(schedule=schedule)
    (only,), single = simulate_tenants(scenario, 3, 8), simulate(scenario, 3, 8)
    assert only.events == single.events
    for table in ("steps", "groups", "timeline", "series", "tokens"):
        assert getattr(only, table).equals(getattr(single, table))
    assert (single.steps["turn_s"] == 0).all()


def small(**knobs):
    """Three tenants in whose runs everything happens: tools, sandboxes that fail, a filter, surplus, little KV memory."""
    values = {
        "trainer_gpus": 8, "generator_gpus": 16, "prompts_per_step": 4, "group_size": 3, "concurrency": 40,
        "mean_response_tokens": 1000.0, "max_response_tokens": 4000.0, "mean_prompt_tokens": 500.0, "tool_calls": 1.5,
        "tool_call_s": 2.0, "tool_call_sigma": 0.5, "reward_s": 1.0, "sandbox_start_s": 3.0, "sandbox_start_sigma": 0.5,
        "sandbox_failure_ratio": 0.1, "sandbox_run_failure_ratio": 0.05, "sandbox_retries": 1, "surplus_fraction": 0.1,
        "filtered_fraction": 0.2, "weight_sync_s": 2.0, "mfu": 0.01, "max_staleness": 2.0, "activation_bytes_per_gpu": 0.0,
        "memory_fraction": 1.0, "kv_sequences": 1000.0,
    } | knobs  # fmt: skip
    sequences = values.pop("kv_sequences")
    s = dataclasses.replace(PRIME, **values)
    room = sequences * (s.mean_prompt_tokens + s.max_response_tokens) * s.llm.kv_bytes_per_token(s.kv_precision)
    hbm = (room + s.llm.weights_bytes(s.generator_weights_precision)) / (
        s.gpus_per_replica - s.prefill_gpus_per_replica
    )
    return dataclasses.replace(s, generator_gpu=dataclasses.replace(s.generator_gpu, hbm_bytes=hbm))


def books(worlds):
    """What must be 0 at any moment: rollouts of each tenant by where they are, and what they share."""
    host, slots = worlds[0].host, worlds[0].arrays["slots"]
    taken = slots[slots["state"] != state.FREE]
    off = {
        "free": slots.size - taken.size - int(host["free_slots"]),
        "sandboxes": int(taken["has_sandbox"].sum()) - int(host["sandboxes"]),
        "running": int((taken["state"] == state.RUNNING).sum()) - int(worlds[0].arrays["replicas"]["k"].sum()),
        "training": sum(int(world.clock["trainer"]) == state.TRAINING for world in worlds) - int(host["training"]),
        "ready": sum(int(world.clock["trainer"]) == state.READY for world in worlds) - int(host["ready"]),
        "idle trainer": int(host["ready"] > 0 and not host["training"] and host["unfinished"] > 0),  # never
    }
    for tenant, world in enumerate(worlds):
        clock, groups, own = world.clock, world.arrays["groups"], taken[taken["tenant"] == tenant]
        ended = int(groups["ended"][: int(clock["groups"])].sum())
        off[f"flight of {tenant}"] = int(clock["flight"]) - own.size
        off[f"rollouts of {tenant}"] = (
            int(clock["dispatched"]) - ended - int(clock["failed"] + clock["aborted"]) - own.size
        )
        off[f"queue of {tenant}"] = int((groups["fate"] == state.QUEUED).sum()) - int(
            clock["queue_end"] - clock["queue_head"]
        )
    return {name: value for name, value in off.items() if value}


def watched(scenario, seed, steps, every):
    worlds = parameters.worlds(scenario, parameters.parameters(scenario, steps, log_rollouts=False), seed)
    limit, status = every, state.GOES_ON
    while status in (state.GOES_ON, state.NO_ROOM) and limit < 300_000:
        status = advance(worlds[0].addresses[0], limit)
        if status == state.NO_ROOM:
            for world in worlds:
                world.make_room()
            continue
        assert not books(worlds), (limit, books(worlds))
        limit += every
    return status


@pytest.mark.parametrize("family", STALENESS_FAMILIES)
@pytest.mark.parametrize("schedule", SHARED)
def test_rollouts_of_each_tenant_are_conserved_and_no_ready_update_lies_after_every_event(schedule, family):
    scenario = small(
        tenants=3, tenant_start_gap_s=20.0, schedule=schedule, staleness_family=family, oversampling_factor=1.5
    )
    assert watched(scenario, seed=3, steps=4, every=1) == state.DONE


some_scenarios = st.builds(
    small,
    tenants=st.integers(2, 5),
    tenant_start_gap_s=st.sampled_from([0.0, 7.0]),
    adapter_switch_s=st.sampled_from([0.0, 1.0]),
    schedule=st.sampled_from(SHARED),
    staleness_family=st.sampled_from(sorted(STALENESS_FAMILIES)),
    max_staleness=st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]),
    prompts_per_step=st.sampled_from([2, 4]),
    updates_per_step=st.sampled_from([1, 2]),
    steps_per_publication=st.integers(1, 3),
    concurrency=st.integers(1, 80),
    oversampling_factor=st.floats(1.0, 3.0),
    sandbox_start_s=st.sampled_from([0.0, 3.0]),
    sandbox_cap=st.sampled_from([1.0, 10.0, np.inf]),
    filtered_fraction=st.floats(0.0, 0.8),
    prefill_gpus_per_replica=st.sampled_from([0, 4]),
    mfu=st.sampled_from([0.001, 0.01, 0.1]),
    kv_sequences=st.sampled_from([1.01, 1.5, 4.0, 1000.0]),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(scenario=some_scenarios, seed=st.integers(0, 2**40))
def test_any_run_of_several_tenants_conserves_what_each_has_and_ends(scenario, seed):
    assert watched(scenario, seed, steps=3, every=37) == state.DONE


@settings(max_examples=25, deadline=None)
@given(scenario=some_scenarios, seed=st.integers(0, 1000))
def test_every_tenant_gets_its_steps_and_its_time_is_accounted_for(scenario, seed):
    for run in simulate_tenants(scenario, seed, 3):
        assert len(run.steps) >= 3
        parts = run.steps[["wait_s", "train_s", "pause_s", "sync_s"]].sum(axis=1)
        assert (run.steps["end_s"] - run.steps["start_s"]).to_numpy() == pytest.approx(parts.to_numpy(), rel=1e-9)
        assert (run.steps["wait_s"] + 1e-9 >= run.steps["turn_s"] + run.steps["hold_s"]).all()


@pytest.mark.parametrize("schedule", SHARED)
def test_tenants_that_differ_in_their_draws_and_their_start_only_are_exchangeable(schedule):
    # Exactly: the later one's run is the same whatever its number. Only ties at time 0 know numbers, and there are none here
    scenario = small(tenants=2, schedule=schedule, tool_call_sigma=0.5)
    runs = [swapped(scenario, order) for order in ((0, 1), (1, 0))]
    for mine, theirs in zip(runs[0], reversed(runs[1]), strict=True):
        assert mine.groups.equals(theirs.groups)
        assert mine.steps.equals(theirs.steps)


def swapped(scenario, order):
    """Two tenants, of which the one with the draws of seed 0 begins first, whatever its number."""
    worlds = parameters.worlds(scenario, parameters.parameters(scenario, 6, log_rollouts=False), 0)
    late = worlds[order.index(1)].clock
    late["trainer"], late["trainer_at"] = state.NOT_BEGUN, 13.0
    for world, seed in zip(worlds, order, strict=True):
        world.put("keys", draws.keys(seed).view(state.KEY))
    return go_on(worlds, scenario, 0, 10_000_000)


def test_identical_tenants_that_never_meet_are_the_single_run():
    # So many slots and so fast a trainer that none waits for another: the toy's replica serves any number alike
    alone = simulate(toy(weight_sync_s=5.0, response_sigma_within_group=0.5), 4, 30)
    scenario = toy(weight_sync_s=5.0, response_sigma_within_group=0.5, tenants=2, concurrency=4, mfu=1e-3)
    (first, _) = simulate_tenants(scenario, 4, 30)
    assert first.groups["finish_s"].iloc[0] == near(alone.groups["finish_s"].iloc[0])
    assert first.operating_point.step_s == pytest.approx(alone.operating_point.step_s, rel=0.05)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"tenants": 0}, "tenants=0 must be >= 1"),
        ({"tenants": 65}, "tenants=65 must be <= 64"),
        ({"tenants": 2, "schedule": "colocated-sync"}, "tenants=2 must be 1 with schedule='colocated-sync': GPUs that"),
        ({"tenants": 2, "schedule": "lent-trainer"}, "tenants=2 must be 1 with schedule='lent-trainer': a trainer"),
        ({"tenants": 2, "adapter_bytes": 1e12}, "leaves .* GB for the KV cache"),
        ({"adapter_switch_s": -1.0}, "adapter_switch_s=-1 must be >= 0"),
    ],
)
def test_tenants_that_cannot_be_are_refused_by_name(knobs, words):
    with pytest.raises(ValueError, match=words):
        toy(**knobs)


def test_several_tenants_are_not_one_run():
    with pytest.raises(ValueError, match="tenants=2 must be 1 for a single run"):
        simulate(toy(tenants=2, concurrency=4))


def test_an_adapter_takes_its_bytes_of_every_replica():
    one, four = (small(tenants=count, adapter_bytes=1e6) for count in (1, 4))
    assert one.kv_room_bytes - four.kv_room_bytes == pytest.approx(3e6)
