"""Lines to paste: what is written is read back as the same knobs, and what a framework cannot say is said."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlqueue import Scenario
from rlqueue.choices import SCHEDULES, STALENESS_FAMILIES
from rlqueue.frameworks import read_text
from rlqueue.paste import DECIDED, TARGETS, conversions, lines, lost, paste
from rlqueue.presets import preset_names

OWN_WORDS = {
    # The schedule and family that a framework itself has, so that nothing of it is lost
    "prime-rl": ("async-in-flight", "drop"),
    "verl": ("partial-rollout", "admission"),
    "areal": ("partial-rollout", "admission"),
    "nemo-rl": ("async-in-flight", "targeted"),
    "miles": ("partial-rollout", "drop"),
}


@pytest.fixture
def scenario():
    return Scenario.from_data("prime-rl-qwen3-235b")


def test_every_target_of_the_plan_is_there():
    assert set(TARGETS) == {"prime-rl", "verl", "slime", "miles", "areal", "nemo-rl"}


@pytest.mark.parametrize("framework", TARGETS)
@pytest.mark.parametrize("name", preset_names())
def test_lines_are_read_back_as_the_same_knobs_or_the_text_says_which_are_not(name, framework):
    scenario = Scenario.from_data(name)
    text = paste(scenario, framework)
    reading = read_text(text, framework, based_on=name)
    assert reading.framework == framework
    assert reading.unknown == ()
    different = {knob for knob, _, _ in lost(scenario, framework)}
    assert all(f"cannot say {knob}=" in text for knob in different)
    for knob in ("trainer_gpus", "generator_gpus", "gpus_per_replica", "group_size"):
        assert reading.values[knob] == getattr(scenario, knob)
    groups = scenario.prompts_per_step * scenario.steps_per_publication
    if "steps_per_publication" not in different:
        assert reading.values["prompts_per_step"] * reading.values.get("steps_per_publication", 1) == groups


@settings(max_examples=60)
@given(framework=st.sampled_from(sorted(OWN_WORDS)), data=st.data())
def test_in_its_own_words_nothing_of_a_plan_is_lost(framework, data):
    def drawn(low, high):
        return data.draw(st.integers(low, high))

    schedule, family = OWN_WORDS[framework]
    replicas, prompts, group_size, staleness, slots = (
        drawn(1, 40), drawn(1, 100), drawn(2, 32), drawn(1, 20), drawn(1, 100),
    )  # fmt: skip
    concurrency = {
        # The slots that these frameworks can say: prompts at once on each replica within the budget; batches of the budget
        "verl": min(slots * replicas, prompts * (1 + staleness)) * group_size,
        "nemo-rl": prompts * staleness * group_size,
        "areal": slots * group_size,
    }.get(framework, slots)
    scenario = dataclasses.replace(
        Scenario.from_data("prime-rl-qwen3-235b"),
        trainer_gpus=8 * drawn(1, 40), generator_gpus=8 * replicas, cluster_gpus=0, prompts_per_step=prompts,
        group_size=group_size, max_staleness=staleness, concurrency=concurrency, schedule=schedule,
        staleness_family=family,
    )  # fmt: skip
    assert [knob for knob, _, _ in lost(scenario, framework)] == []
    assert "cannot say" not in paste(scenario, framework)


def test_five_steps_a_publication_are_the_same_bound_where_every_step_publishes():
    scenario = Scenario.from_data("slime-qwen3-235b")
    assert (scenario.max_staleness, scenario.steps_per_publication) == (8, 5)
    written = {line.key: line.value for line in lines(scenario, "prime-rl")}
    assert written["orchestrator.max_off_policy_steps"] == 40
    assert ("steps_per_publication", 5, 1) in lost(scenario, "prime-rl")
    assert "max_staleness" not in {knob for knob, _, _ in lost(scenario, "prime-rl")}
    assert lost(scenario, "verl") == []


def test_verl_s_threshold_is_a_fraction_of_a_version(scenario):
    half = dataclasses.replace(scenario, max_staleness=0.5, updates_per_step=4, schedule="partial-rollout")
    written = {line.key: line.value for line in lines(half, "verl")}
    assert written["async_training.staleness_threshold"] == 0.5
    assert written["async_training.trigger_parameter_sync_step"] == 4
    assert written["actor_rollout_ref.actor.ppo_mini_batch_size"] == 8


def test_the_table_of_conversions_holds_every_framework_s_knob_by_hand():
    scenario = Scenario.from_data("slime-qwen3-235b")
    table = conversions(scenario).set_index("key")["value"].to_dict()
    assert table == {
        "orchestrator.max_off_policy_steps": 40,
        "update-weights-interval": 5,
        "async_training.staleness_threshold": 8,
        "trainer.v1.sampler.max_off_policy_threshold": 8,
        "rollout.max_head_offpolicyness": 40,
        "trainer.fully_async.max_staleness_steps": 40,
        "grpo.async_grpo.max_trajectory_age_steps": 40,
        "train.async_queue_size": 40,
        "async_generation_ratio": 40,
        # 8 versions x 5 steps x 8 prompts x 8 rollouts
        "max_lag": 2560,
        "max_steps_off_policy": 40,
    }
    dropping = dataclasses.replace(scenario, staleness_family="drop")
    assert conversions(dropping).set_index("key")["value"]["max-weight-staleness"] == 8
    shown = conversions(scenario)
    assert (shown[["framework", "key", "unit", "formula", "source", "where"]] != "").all(axis=None)


@pytest.mark.parametrize("framework", TARGETS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("family", STALENESS_FAMILIES)
def test_every_schedule_is_written_and_in_step_nothing_is_ahead(scenario, framework, schedule, family):
    other = dataclasses.replace(scenario, schedule=schedule, staleness_family=family)
    text = paste(other, framework)
    reading = read_text(text, framework, based_on="prime-rl-qwen3-235b")
    assert reading.unknown == ()
    assert {fact.knob for fact in reading.facts} >= set(DECIDED) - {
        "prefill_gpus_per_replica", "updates_per_step", "steps_per_publication", "oversampling_factor",
    }  # fmt: skip
    if schedule in {"sync", "colocated-sync"} and framework in {"slime", "miles", "verl", "areal"}:
        assert reading.values["max_staleness"] == 0


def test_a_name_stays_in_its_comment(scenario):
    text = paste(dataclasses.replace(scenario, name="x\nrm -rf /\n"), "slime")
    assert text.splitlines()[0] == "# x rm -rf / for slime: python3 train_async.py"


def test_a_framework_without_lines_is_refused_by_name(scenario):
    with pytest.raises(ValueError, match="framework='skyrl' is not known"):
        paste(scenario, "skyrl")
