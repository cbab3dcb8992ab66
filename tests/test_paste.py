"""Lines to paste: what is written is read back as the same knobs, and what a framework cannot say is said."""

import dataclasses
import json
import shlex
import tomllib

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlqueue import Scenario
from rlqueue.choices import SCHEDULES, SLOTS_HELD, STALENESS_FAMILIES
from rlqueue.cli import main
from rlqueue.frameworks import read_text
from rlqueue.paste import DECIDED, TARGETS, conversions, lines, lost, otherwise, paste
from rlqueue.presets import preset_names

OWN_WORDS = {
    # The schedule, the family and the holder of slots that a framework itself has, so that nothing of it is lost
    "prime-rl": ("async-in-flight", "drop", "rollout"),
    "verl": ("partial-rollout", "admission", "group"),
    "areal": ("partial-rollout", "admission", "group"),
    "nemo-rl": ("async-in-flight", "targeted", "group"),
    "miles": ("partial-rollout", "drop", "rollout group"),
}
DEFAULTS = {each.name: each.default for each in dataclasses.fields(Scenario)}
SILENT_OR_ONE = {"prefill_gpus_per_replica", "updates_per_step", "minibatches_per_update", "steps_per_publication",
                 "oversampling_factor", "slots_held_by"}  # fmt: skip


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

    schedule, family, holders = OWN_WORDS[framework]
    held_by = data.draw(st.sampled_from(holders.split()))
    replicas, groups, group_size, staleness, slots = (
        drawn(1, 40), drawn(1, 100), drawn(2, 32), drawn(1, 20), drawn(1, 100),
    )  # fmt: skip
    # prime-rl makes one optimizer step of a batch; only verl takes a step in pieces
    updates, minibatches = (drawn(1, 4) if framework == "verl" else 1), (1 if framework == "prime-rl" else drawn(1, 8))
    prompts = groups * updates * minibatches
    concurrency = {
        # The slots that these frameworks can say: prompts at once on each replica within the budget; batches of the budget
        "verl": min(slots * replicas, prompts * (1 + staleness)) * group_size,
        "nemo-rl": prompts * staleness * group_size,
        "areal": slots * group_size,
        "miles": slots * group_size,
    }.get(framework, slots)
    scenario = dataclasses.replace(
        Scenario.from_data("prime-rl-qwen3-235b"),
        trainer_gpus=8 * drawn(1, 40), generator_gpus=8 * replicas, cluster_gpus=0, prompts_per_step=prompts,
        group_size=group_size, max_staleness=staleness, concurrency=concurrency, schedule=schedule, staleness_family=family,
        updates_per_step=updates, minibatches_per_update=minibatches, slots_held_by=held_by,
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
    assert lost(scenario, "verl") == [("slots_held_by", "rollout", "group")]
    assert lost(dataclasses.replace(scenario, slots_held_by="group"), "verl") == []


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
    assert {fact.knob for fact in reading.facts} >= set(DECIDED) - SILENT_OR_ONE
    if schedule in {"sync", "colocated-sync"} and framework in {"slime", "miles", "verl", "areal"}:
        assert reading.values["max_staleness"] == 0


def test_a_name_stays_in_its_comment(scenario):
    text = paste(dataclasses.replace(scenario, name="x\nrm -rf /\n"), "slime")
    assert text.splitlines()[0] == "# x rm -rf / for slime: python3 train_async.py"


def test_a_framework_without_lines_is_refused_by_name(scenario):
    with pytest.raises(ValueError, match="framework='skyrl' is not known"):
        paste(scenario, "skyrl")


def test_nodes_that_only_prefill_are_said_where_the_framework_has_a_word_for_them():
    scenario = Scenario.from_data("prime-rl-glm-5")
    assert (scenario.gpus_per_replica, scenario.prefill_gpus_per_replica) == (64, 32)
    assert lost(scenario, "prime-rl") == []
    written = tomllib.loads(paste(scenario, "prime-rl"))
    assert written["inference"]["deployment"] == {
        "type": "disaggregated", "prefill_nodes_per_replica": 4, "decode_nodes_per_replica": 4,
    }  # fmt: skip
    assert (written["deployment"]["num_infer_nodes"], written["deployment"]["num_infer_replicas"]) == (8, 2)
    # Half a node cannot be named
    half = dataclasses.replace(scenario, prefill_gpus_per_replica=4)
    assert ("prefill_gpus_per_replica", 4, 0) in lost(half, "prime-rl")


def test_early_pruning_is_said_by_those_that_have_it(scenario):
    pruned = dataclasses.replace(scenario, oversampling_factor=1.5, schedule="partial-rollout")
    for framework in ("slime", "miles"):
        assert f"--over-sampling-batch-size {1.5 * scenario.prompts_per_step:g}" in paste(pruned, framework)
        assert "over-sampling-batch-size" not in paste(scenario, framework)
    assert "verl cannot say oversampling_factor=1.5: it reads 1" in paste(pruned, "verl")


def test_what_is_said_in_other_numbers_is_said_to_be_the_same():
    scenario = Scenario.from_data("slime-qwen3-235b")
    assert [(knob, was, now) for knob, was, now, _ in otherwise(scenario, "verl")] == [
        ("prompts_per_step", 8, 40), ("updates_per_step", 1, 5), ("steps_per_publication", 5, 1),
    ]  # fmt: skip
    assert "verl says prompts_per_step=8 as 40: the same groups and updates per publication" in paste(scenario, "verl")
    assert "AReaL says max_staleness=8 as 40: the same groups ahead" in paste(scenario, "areal")
    shared = dataclasses.replace(scenario, schedule="colocated-sync", max_staleness=0)
    assert "slime says trainer_gpus=32 as 48: one pool of 96" in paste(shared, "slime")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_knob_of_a_plan_is_dropped_in_silence(data):
    """Each comes back as it was, or a comment names it with both values; the body is what its format's own reader takes."""
    draw = data.draw
    framework, updates, replica = (
        draw(st.sampled_from(TARGETS)), draw(st.sampled_from((1, 1, 2, 4))), draw(st.sampled_from((1, 2, 4, 8, 16))),
    )  # fmt: skip
    prompts, group_size, held_by = (
        updates * draw(st.integers(1, 100)), draw(st.integers(2, 16)), draw(st.sampled_from(sorted(SLOTS_HELD))),
    )  # fmt: skip
    rollouts = prompts // updates * group_size
    scenario = dataclasses.replace(
        Scenario.from_data("prime-rl-qwen3-235b"), llm="qwen3-8b", cluster_gpus=0, gpus_per_replica=replica,
        trainer_gpus=draw(st.integers(1, 80)), generator_gpus=replica * draw(st.integers(1, 12)),
        prompts_per_step=prompts, updates_per_step=updates, group_size=group_size,
        minibatches_per_update=draw(st.sampled_from([each for each in (1, 2, 3, 4, 16) if rollouts % each == 0])),
        slots_held_by=held_by, steps_per_publication=draw(st.sampled_from((1, 1, 2, 5))),
        concurrency=draw(st.integers(group_size if held_by == "group" else 1, 5000)),
        schedule=draw(st.sampled_from(sorted(SCHEDULES))), staleness_family=draw(st.sampled_from(sorted(STALENESS_FAMILIES))),
        max_staleness=draw(st.sampled_from((0, 0.1, 0.5, 1, 1.5, 4, 16))),
        oversampling_factor=draw(st.sampled_from((1, 1, 1.5, 2))),
    )  # fmt: skip
    text = paste(scenario, framework)
    {"prime-rl": tomllib.loads, "areal": yaml.safe_load, "nemo-rl": yaml.safe_load}.get(framework, shlex.split)(
        "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    )
    reading = read_text(text, framework, based_on="prime-rl-qwen3-235b")
    assert reading.unknown == ()
    in_step = {"sync": 0, "colocated-sync": 0, "one-step-off": 1}
    for knob in DECIDED:
        wanted = getattr(scenario, knob)
        if knob == "max_staleness":
            wanted = in_step.get(scenario.schedule, wanted)
        got = reading.values.get(knob, DEFAULTS[knob])
        word = wanted if isinstance(wanted, str) else f"{wanted:.10g}"
        assert got == wanted or f"cannot say {knob}={word}: it" in text or f"says {knob}={word} as" in text, (
            knob,
            text,
        )


def test_the_command_line_s_object_holds_what_is_lost(capsys):
    assert main(["paste", "slime-qwen3-235b", "--framework", "nemo-rl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"knob": "concurrency", "scenario": 256, "read": 2560} in found["lost"]
    assert {"knob": "slots_held_by", "scenario": "rollout", "read": "group"} in found["lost"]
    assert [each["knob"] for each in found["otherwise"]] == ["max_staleness"]


def test_an_llm_of_one_s_own_hinders_nobody(scenario):
    own = dataclasses.replace(scenario, llm=dataclasses.replace(scenario.llm, key="mine-7b"))
    assert [paste(own, each) for each in TARGETS] == [paste(scenario, each) for each in TARGETS]


@pytest.mark.parametrize("framework", TARGETS)
@pytest.mark.parametrize("name", preset_names())
def test_what_is_read_back_on_its_preset_runs_as_the_preset_does_but_for_what_is_said(name, framework):
    """The lines hold no lengths: those of the preset hold, not the framework's defaults of some hundred tokens."""
    scenario = Scenario.from_data(name)
    back = Scenario.from_values(read_text(paste(scenario, framework), framework, based_on=name).values, name=name)
    knobs = {each.name for each in dataclasses.fields(Scenario)} - {"measured_run"}  # another plan has another course
    different = {each for each in knobs if getattr(back, each) != getattr(scenario, each)}
    said = {each[0] for each in (*lost(scenario, framework), *otherwise(scenario, framework))}
    assert different <= said, {each: (getattr(scenario, each), getattr(back, each)) for each in different - said}
