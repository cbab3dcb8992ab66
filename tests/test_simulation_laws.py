"""What must hold in every simulated run: conservation, Little's law, queueing theory, the exact special cases."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation_toys import PRIME, run, toy

from rlqueue import Scenario, simulate, solve
from rlqueue.rates import lengths_of
from rlqueue.scenario import SCHEDULES, STALENESS_FAMILIES
from rlqueue.simulation import parameters, state
from rlqueue.simulation.loop import advance

Z = 4.0  # standard errors that a mean may be off: one in 16,000 by chance


def small(*, kv_sequences=1000.0, **knobs):
    """A small run in which everything happens: two replicas, tools, sandboxes that fail, a filter, surplus; KV memory for so
    many of the longest sequences.
    """
    values = {
        "trainer_gpus": 8, "generator_gpus": 16, "prompts_per_step": 4, "group_size": 3, "concurrency": 40,
        "mean_response_tokens": 1000.0, "max_response_tokens": 4000.0, "mean_prompt_tokens": 500.0, "tool_calls": 1.5,
        "tool_call_s": 2.0, "tool_call_sigma": 0.5, "reward_s": 1.0, "sandbox_start_s": 3.0, "sandbox_start_sigma": 0.5,
        "sandbox_failure_ratio": 0.1, "sandbox_run_failure_ratio": 0.05, "sandbox_retries": 1, "surplus_fraction": 0.1,
        "filtered_fraction": 0.2, "weight_sync_s": 2.0, "mfu": 0.01, "max_staleness": 2.0, "activation_bytes_per_gpu": 0.0,
        "memory_fraction": 1.0,
    }  # fmt: skip
    s = dataclasses.replace(PRIME, **(values | knobs))
    room = kv_sequences * (s.mean_prompt_tokens + s.max_response_tokens) * s.llm.kv_bytes_per_token(s.kv_precision)
    memory = room + s.llm.weights_bytes(s.generator_weights_precision)
    hbm = memory / (s.gpus_per_replica - s.prefill_gpus_per_replica)
    return dataclasses.replace(s, generator_gpu=dataclasses.replace(s.generator_gpu, hbm_bytes=hbm))


# Conservation
def books(world):
    """Rollouts by where they are; the sums must agree at any moment."""
    clock, p = world.clock, world.arrays["params"][0]
    groups = world.arrays["groups"][: int(clock["groups"])]
    slots = world.arrays["slots"]
    taken = slots[slots["state"] != state.FREE]
    ended = {fate: int(groups["ended"][groups["fate"] == code].sum()) for code, fate in enumerate(state.FATES)}
    unseen = int(clock["dispatched"]) - sum(ended.values()) - int(clock["failed"] + clock["aborted"]) - taken.size
    sampled = float(groups["sampled"].sum() + groups["lost"].sum() + (taken["turn"] * taken["segment"]).sum())
    return {
        "unseen": unseen,
        "flight": int(clock["flight"]) - taken.size,
        "free": p["concurrency"] - taken.size - int(world.host["free_slots"]),
        "running": int((taken["state"] == state.RUNNING).sum()) - int(world.arrays["replicas"]["k"].sum()),
        "bound": int((taken["replica"] != state.NONE).sum()) - int(world.arrays["replicas"]["bound"].sum()),
        "sandboxes": int(taken["has_sandbox"].sum()) - int(world.host["sandboxes"]),
        "queued": int((groups["fate"] == state.QUEUED).sum()) - int(clock["queue_end"] - clock["queue_head"]),
        "trained": int((groups["fate"] == state.TRAINED).sum()) % (int(p["prompts"]) // int(p["updates"])),
        "tokens": round(sampled / max(1.0, float(clock["decoded_tokens"])) - 1.0, 9)
        if clock["decoded_tokens"]
        else 0.0,
    }


def watched(scenario, seed, steps, every):
    """Run in pieces of ``every`` events and check the books after each."""
    params = parameters.parameters(scenario, steps, log_rollouts=False)
    world = parameters.world(scenario, params, seed)
    limit, status = every, state.GOES_ON
    budget = 300_000
    while status in (state.GOES_ON, state.NO_ROOM) and limit < budget:
        status = advance(world.addresses[0], limit)
        if status == state.NO_ROOM:
            world.make_room()
            continue
        off = {name: value for name, value in books(world).items() if value != 0}
        assert not off, (limit, off)
        limit += every
    return status


@pytest.mark.parametrize("family", STALENESS_FAMILIES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_rollouts_and_tokens_are_conserved_after_every_event(schedule, family):
    scenario = small(schedule=schedule, staleness_family=family, oversampling_factor=1.5)
    assert watched(scenario, seed=3, steps=6, every=1) == state.DONE


some_scenarios = st.builds(
    small,
    schedule=st.sampled_from(sorted(SCHEDULES)),
    staleness_family=st.sampled_from(sorted(STALENESS_FAMILIES)),
    max_staleness=st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]),
    prompts_per_step=st.sampled_from([2, 4, 6]),
    updates_per_step=st.sampled_from([1, 2]),
    steps_per_publication=st.integers(1, 3),
    group_size=st.integers(2, 5),
    concurrency=st.integers(1, 80),
    oversampling_factor=st.floats(1.0, 3.0),
    tool_calls=st.sampled_from([0.0, 1.0, 2.5]),
    tool_call_sigma=st.sampled_from([0.0, 1.0]),
    sandbox_start_s=st.sampled_from([0.0, 3.0]),
    sandbox_cap=st.sampled_from([1.0, 10.0, math.inf]),
    sandbox_creates_per_s=st.sampled_from([0.5, math.inf]),
    sandbox_failure_ratio=st.floats(0.0, 0.7),
    sandbox_run_failure_ratio=st.floats(0.0, 0.5),
    sandbox_timeout_s=st.sampled_from([4.0, math.inf]),
    filtered_fraction=st.floats(0.0, 0.8),
    prefill_gpus_per_replica=st.sampled_from([0, 4]),
    prefix_cache=st.booleans(),
    response_sigma_between_prompts=st.floats(0.0, 1.5),
    mfu=st.sampled_from([0.001, 0.01, 0.1]),
    kv_sequences=st.sampled_from([1.01, 1.5, 4.0, 1000.0]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(scenario=some_scenarios, seed=st.integers(0, 2**40))
def test_any_run_conserves_its_rollouts_and_ends(scenario, seed):
    assert watched(scenario, seed, steps=4, every=37) == state.DONE


@settings(max_examples=30, deadline=None)
@given(scenario=some_scenarios, seed=st.integers(0, 2**40))
def test_one_seed_gives_the_same_bytes_however_the_run_is_cut_and_another_does_not(scenario, seed):
    first, again = simulate(scenario, seed, 3), simulate(scenario, seed, 3)
    params = parameters.parameters(scenario, 3, log_rollouts=False)
    cut = parameters.world(scenario, params, seed)
    limit = 0
    while (status := advance(cut.addresses[0], limit)) in (state.GOES_ON, state.NO_ROOM):
        if status == state.NO_ROOM:
            cut.make_room()
        limit += 11
    for name in ("groups", "steps", "spans", "slots", "series"):
        assert first.world.arrays[name].tobytes() == again.world.arrays[name].tobytes()
    assert first.groups.to_csv() == dataclasses.replace(first, world=cut).groups.to_csv()
    assert first.steps.to_csv() == dataclasses.replace(first, world=cut).steps.to_csv()


@settings(max_examples=40, deadline=None)
@given(scenario=some_scenarios, seed=st.integers(0, 1000), family=st.sampled_from(sorted(STALENESS_FAMILIES)))
def test_no_staleness_is_the_synchronous_run_event_for_event(scenario, seed, family):
    asked = {"max_staleness": 0.0, "staleness_family": family}
    schedules = ("sync", "async-in-flight", "partial-rollout", "async-drain")
    runs = [simulate(dataclasses.replace(scenario, **asked, schedule=each), seed, 4) for each in schedules]
    for other in runs[1:]:
        assert runs[0].groups.equals(other.groups)
        assert runs[0].steps.equals(other.steps)
    assert (runs[0].steps["max_staleness_versions"] == 0).all()


@settings(max_examples=30, deadline=None)
@given(scenario=some_scenarios, seed=st.integers(0, 1000))
def test_a_drop_rule_is_a_hard_bound(scenario, seed):
    result = simulate(dataclasses.replace(scenario, staleness_family="drop"), seed, 5)
    if scenario.schedule != "one-step-off":
        assert result.steps["max_staleness_versions"].max() <= scenario.max_staleness


# Little's law
@pytest.mark.parametrize("schedule", ["async-in-flight", "sync", "async-drain"])
def test_littles_law_holds_on_slots_and_on_the_queue(schedule):
    result = simulate(small(schedule=schedule, staleness_family="admission"), seed=5, steps=40, rollouts=True)
    end, clock = result.steps["end_s"].iloc[-1], result.world.clock
    taken = result.world.arrays["slots"]
    still = float((end - taken["dispatched"][taken["state"] != state.FREE]).sum())
    in_slots = float((result.rollouts["end_s"] - result.rollouts["dispatch_s"]).sum()) + still
    assert in_slots == pytest.approx(clock["flight_area"], rel=1e-9)
    groups = result.groups[result.groups["fate"].isin(["trained", "queued"])]
    queued = float((groups["trained_s"].fillna(end) - groups["finish_s"]).sum())
    assert queued == pytest.approx(clock["queue_area"], rel=1e-9, abs=1e-6)


# Special cases with an exact answer
@pytest.mark.parametrize("faster", [0.5, 0.25, 0.8])
def test_without_variance_the_trainer_waits_one_minus_lambda_over_mu(faster):
    scenario = toy(schedule="async-in-flight", max_staleness=3.0, decode_overhead_s=100.0, mfu=6e-6 * 2e-5 / faster)
    point = simulate(scenario, steps=80).operating_point
    assert solve(scenario).trainer_wait_ratio == pytest.approx(1 - faster, abs=1e-7)
    rate = scenario.concurrency / point.rollout_s
    assert point.trainer_wait_ratio == pytest.approx(1 - rate / point.consumption_per_s, abs=1e-9)


def test_a_synchronous_step_takes_the_exact_mean_of_the_longest_response():
    scenario = toy(
        prompts_per_step=4, group_size=4, concurrency=16, response_sigma_between_prompts=0.8,
        response_sigma_within_group=0.3, max_response_tokens=1000.0,
    )  # fmt: skip
    result = run(scenario, 4000)
    longest = result.groups[result.groups["step"] >= 0].groupby("step")["longest_response_tokens"].max()
    assert result.steps["wait_s"].to_numpy() == pytest.approx(0.01 * longest.to_numpy(), rel=1e-5)
    expected = 0.01 * lengths_of(scenario).mean_of_longest_tokens(4)
    error = result.steps["wait_s"].std() / math.sqrt(len(result.steps))
    assert abs(result.steps["wait_s"].mean() - expected) < Z * error + 1e-3 * expected  # and the table's cells


def test_lengths_have_the_mean_the_cut_share_and_the_two_levels_that_were_asked_for():
    scenario = toy(
        prompts_per_step=32, group_size=8, concurrency=256, response_sigma_between_prompts=0.9,
        response_sigma_within_group=0.25, max_response_tokens=300.0,
    )  # fmt: skip
    tokens = (
        run(scenario, 400).rollouts.pivot_table(index="group", columns="rollout", values="response_tokens").to_numpy()
    )
    law, by_group = lengths_of(scenario), tokens.mean(axis=1)
    assert abs(tokens.mean() - 100.0) < Z * by_group.std() / math.sqrt(by_group.size)
    cut = (tokens >= 300.0).mean(axis=1)
    assert abs(cut.mean() - law.truncated_fraction) < Z * cut.std() / math.sqrt(cut.size)
    whole = np.log(tokens[(tokens < 300.0).all(axis=1)])
    assert whole.std(axis=1, ddof=1).mean() == pytest.approx(0.25, rel=0.1)  # cutting takes a little


# Queueing theory
def erlang_c(servers, load):
    """Probability to wait in M/M/c, and mean number waiting."""
    total, term = 0.0, 1.0
    for k in range(servers):
        total += term
        term *= load / (k + 1)
    last = term * servers / (servers - load)
    wait = last / (total + last)
    return wait, wait * load / (servers - load)


def batch_mean(values, batches=40):
    """Mean and standard error of a correlated series."""
    means = np.array([part.mean() for part in np.array_split(np.asarray(values), batches)])
    return means.mean(), means.std(ddof=1) / math.sqrt(batches)


@pytest.mark.parametrize("servers", [1, 2, 8, 32])
def test_requests_for_a_memory_of_c_places_wait_as_erlang_says(servers):
    # Each request holds a prompt of 100,000 tokens and samples 10 on average, a second each: c fit. Many slots whose
    # sandboxes start slowly make nearly Poisson arrivals.
    load, slots, service_s = 0.75 * servers, 4000, 10.0
    scenario = toy(
        kv_tokens=(servers + 0.5) * 1e5 / 0.99, mean_prompt_tokens=1e5, mean_response_tokens=10.0, max_response_tokens=1e4,
        decode_overhead_s=1.0, prefill_mfu=1.0, concurrency=slots, sandbox_start_s=service_s * slots / load,
        sandbox_start_sigma=1.0, prompts_per_step=500, schedule="async-in-flight", max_staleness=1e6, mfu=1.0,
    )  # fmt: skip
    rollouts = run(scenario, 60 if servers > 1 else 120, law=state.EXPONENTIAL_ROLLOUTS).rollouts.sort_values("ready_s")
    rollouts = rollouts[rollouts["ready_s"] > 2 * scenario.sandbox_start_s]
    waits = (rollouts["first_token_s"] - rollouts["ready_s"]).to_numpy()
    arrivals = len(rollouts) / np.ptp(rollouts["ready_s"])
    chance, waiting = erlang_c(servers, arrivals * service_s)
    mean, error = batch_mean(waits)
    assert abs(mean - waiting / arrivals) < Z * error + 0.02 * waiting / arrivals  # 4,000 slots are not endlessly many
    waited, error = batch_mean(waits > 1e-9)
    assert abs(waited - chance) < Z * error + 0.02 * chance


def test_the_trainer_is_an_m_m_1_server_of_the_queue():
    # 500 groups of exponential length in flight come nearly as a Poisson stream; training takes as long as they are long
    scenario = toy(
        schedule="async-in-flight", max_staleness=1e6, concurrency=1000, mean_response_tokens=1000.0, mfu=6e-6 * 2 / 14,
        decode_overhead_s=10.0, max_response_tokens=1e5, kv_tokens=1e8,
    )  # fmt: skip
    result = run(scenario, 60_000, law=state.EXPONENTIAL_GROUPS)
    groups = result.groups[result.groups["fate"] == "trained"].sort_values("trained_s").iloc[5000:]
    waits = (groups["trained_s"] - groups["finish_s"]).to_numpy()
    rate = len(groups) / np.ptp(groups["trained_s"])
    mu = 1.0 / result.operating_point.train_s
    mean, error = batch_mean(waits)
    assert rate / mu == pytest.approx(0.7, rel=0.05)
    assert abs(mean - rate / mu / (mu - rate)) < Z * error
    assert abs(result.operating_point.trainer_wait_ratio - (1 - rate / mu)) < 0.02


# The provider of sandboxes
def test_with_a_cap_below_the_demand_starts_of_an_hour_appear_on_their_own():
    # As many in flight as in the report's failed run, and no budget that holds them back
    scenario = dataclasses.replace(
        Scenario.from_data("verl-qwen3-235b-c360"), concurrency=960, sandbox_cap=256.0, max_staleness=50.0
    )
    starts = simulate(scenario, seed=1, steps=60, rollouts=True).rollouts
    waits = starts["ready_s"] - starts["dispatch_s"]
    free = dataclasses.replace(scenario, concurrency=96)
    fast = simulate(free, seed=1, steps=60, rollouts=True).rollouts
    assert waits.median() == pytest.approx(3600, rel=0.15)
    assert (fast["ready_s"] - fast["dispatch_s"]).max() < 60


# Bad input and runs that can't go on
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"steps": 0}, "steps=0 must be a whole number >= 1"),
        ({"steps": 2.5}, "steps=2.5"),
        ({"steps": True}, "steps=True"),
        ({"seed": -1}, "seed=-1 must be a whole number >= 0"),
        ({"seed": "1"}, "seed='1'"),
        ({"max_events": 0}, "max_events=0"),
    ],
)
def test_impossible_requests_are_refused_by_name_value_and_limit(asked, words):
    with pytest.raises(ValueError, match=words):
        simulate(toy(), **asked)


def test_a_run_too_large_for_memory_is_refused_and_not_begun():
    for knobs in ({"concurrency": 10**9}, {"prompts_per_step": 10**8}, {"generator_gpus": 10**9}):
        with pytest.raises(ValueError, match="must be <= 10000000 to be simulated"):
            simulate(toy(**knobs))


def test_most_groups_filtered_is_slow_but_no_stall():
    assert not simulate(toy(filtered_fraction=0.99), steps=50).stalled


def test_rollouts_that_were_not_kept_are_refused_and_not_empty():
    with pytest.raises(ValueError, match="rollouts=True"):
        _ = simulate(toy(), steps=1).rollouts


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (toy(solve_rate_mean=1.0), "filtered"),
        (toy(sandbox_start_s=10.0, sandbox_start_sigma=0.0, sandbox_timeout_s=5.0), "fails with its sandbox"),
        (toy(schedule="async-in-flight", staleness_family="drop", max_staleness=0.5, trainer_overhead_s=0.0, concurrency=2,
             mean_response_tokens=100.0, weight_sync_s=1000.0, prompts_per_step=2, updates_per_step=2), ""),
    ],
)  # fmt: skip
def test_a_run_that_cannot_go_on_says_why(scenario, words):
    result = simulate(scenario, steps=20)
    assert words in result.stalled
    if words:
        assert "event budget used up" in result.stalled
        with pytest.raises(ValueError, match="no step was completed"):
            _ = result.operating_point


def test_the_event_budget_is_kept():
    result = simulate(PRIME, steps=200, max_events=10_000)
    assert result.events == 10_000
    assert result.stalled == "event budget used up"


# Common random numbers
def test_a_lever_meets_the_same_prompts():
    one, two = (simulate(dataclasses.replace(PRIME, generator_gpus=gpus), steps=5, rollouts=True) for gpus in (96, 192))
    keys = ["group", "rollout"]
    merged = one.rollouts[one.rollouts["end"] == "finished"].merge(
        two.rollouts[two.rollouts["end"] == "finished"], on=keys
    )
    assert len(merged) > 1000
    assert (merged["response_tokens_x"] == merged["response_tokens_y"]).all()
    assert (merged["turns_x"] == merged["turns_y"]).all()
