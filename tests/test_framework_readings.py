"""Configurations of every framework, in its own shape and with its own key names, read as knobs with their places."""

from pathlib import Path

import pytest

from rlqueue import Scenario, solve
from rlqueue.frameworks import frameworks, read, read_text

CONFIGS = Path(__file__).parent / "configs"
FULL = sorted(path for path in CONFIGS.iterdir() if path.is_file() and "base" not in path.name)

EXPECTED = {
    "prime_rl_head.toml": ("prime-rl", {
        "llm": "glm-5", "trainer_gpus": 128, "generator_gpus": 128,
        "gpus_per_replica": 64, "prefill_gpus_per_replica": 32, "prompts_per_step": 256, "group_size": 16,
        "max_staleness": 16, "staleness_family": "drop", "schedule": "async-in-flight", "concurrency": 8192,
        "kv_precision": "fp8", "generator_weights_precision": "fp8", "memory_fraction": 0.85, "max_response_tokens": 65536,
    }),
    "prime_rl_old.toml": ("prime-rl", {
        "llm": "qwen3-4b", "trainer_gpus": 2, "generator_gpus": 6, "prompts_per_step": 32, "group_size": 16,
        "concurrency": 768, "max_staleness": 6, "staleness_family": "drop", "max_response_tokens": 2048,
    }),
    "slime_async.sh": ("slime", {
        "llm": "qwen3-235b-a22b", "trainer_gpus": 64, "generator_gpus": 64, "gpus_per_replica": 32, "prompts_per_step": 64,
        "group_size": 8, "steps_per_publication": 2, "schedule": "one-step-off", "max_staleness": 1, "concurrency": 768,
        "oversampling_factor": 1.5, "max_response_tokens": 8192, "prefix_cache": False, "memory_fraction": 0.7,
        "generator_weights_precision": "fp8",
    }),
    "miles_bounded.sh": ("miles", {
        "llm": "glm-4.7-flash", "trainer_gpus": 16, "generator_gpus": 16, "gpus_per_replica": 2, "max_staleness": 3,
        "staleness_family": "drop", "concurrency": 768, "schedule": "partial-rollout", "slots_held_by": "rollout",
    }),
    "verl_fully_async.sh": ("verl", {
        "llm": "qwen3-30b-a3b", "trainer_gpus": 32, "generator_gpus": 96, "gpus_per_replica": 4, "prompts_per_step": 512,
        "updates_per_step": 4, "group_size": 16, "max_staleness": 0.5, "staleness_family": "admission", "concurrency": 6144,
        "schedule": "partial-rollout", "max_response_tokens": 8192, "slots_held_by": "group", "minibatches_per_update": 1,
    }),
    "verl_one_step_off.sh": ("verl", {
        "llm": "qwen2.5-7b", "trainer_gpus": 6, "generator_gpus": 2, "prompts_per_step": 1152, "group_size": 5,
        "schedule": "one-step-off", "max_staleness": 1, "minibatches_per_update": 6,
    }),
    "verl_v1.yaml": ("verl", {
        "llm": "qwen3-32b", "trainer_gpus": 32, "generator_gpus": 16, "gpus_per_replica": 4, "prompts_per_step": 256,
        "updates_per_step": 4, "group_size": 16, "max_staleness": 8, "staleness_family": "admission", "concurrency": 8192,
    }),
    "areal.yaml": ("areal", {
        "llm": "qwen3-235b-a22b-instruct-2507", "trainer_gpus": 48, "generator_gpus": 32, "gpus_per_replica": 8,
        "prompts_per_step": 16, "group_size": 16, "concurrency": 2048, "max_staleness": 2, "logprob_passes": 1,
        "schedule": "partial-rollout", "staleness_family": "admission", "max_response_tokens": 8192,
        "slots_held_by": "group", "minibatches_per_update": 2,
    }),
    "areal_old.yaml": ("areal", {
        "slots_held_by": "group", "minibatches_per_update": 4,
        "llm": "qwen2.5-1.5b", "trainer_gpus": 16, "generator_gpus": 16, "gpus_per_replica": 1, "concurrency": 512,
        "max_staleness": 4,
    }),
    "skyrl_fully_async.sh": ("skyrl", {
        "llm": "qwen2.5-1.5b", "trainer_gpus": 2, "generator_gpus": 2, "prompts_per_step": 256, "group_size": 5,
        "concurrency": 6400, "max_staleness": 4, "staleness_family": "admission", "schedule": "async-in-flight",
        "slots_held_by": "group",
    }),
    "nemo_rl.yaml": ("nemo-rl", {
        "llm": "qwen3-30b-a3b", "trainer_gpus": 128, "generator_gpus": 64, "prompts_per_step": 64, "group_size": 32,
        "concurrency": 16384, "max_staleness": 8, "staleness_family": "targeted", "schedule": "async-in-flight",
        "slots_held_by": "group", "minibatches_per_update": 4,
    }),
    "openrlhf_dotted.sh": ("openrlhf", {
        "llm": "qwen3-4b-instruct-2507", "trainer_gpus": 4, "generator_gpus": 4, "gpus_per_replica": 2, "concurrency": 1280,
        "max_staleness": 2, "schedule": "partial-rollout", "max_response_tokens": 64000, "mean_prompt_tokens": 2560,
    }),
    "openrlhf_flags.sh": ("openrlhf", {
        "llm": "qwen3-8b", "trainer_gpus": 4, "generator_gpus": 4, "prompts_per_step": 128, "max_staleness": 1,
        "schedule": "async-drain", "max_response_tokens": 8192,
    }),
    "roll.yaml": ("roll", {
        "llm": "qwen2.5-7b", "trainer_gpus": 16, "generator_gpus": 8, "gpus_per_replica": 2, "prompts_per_step": 64,
        "group_size": 8, "max_staleness": 1.5, "concurrency": 1024, "schedule": "partial-rollout",
    }),
    "pipelinerl.yaml": ("pipelinerl", {
        "llm": "qwen2.5-7b", "trainer_gpus": 2, "generator_gpus": 6, "prompts_per_step": 128, "group_size": 8,
        "steps_per_publication": 2, "max_staleness": 2, "concurrency": 768, "schedule": "async-in-flight",
    }),
    "tinker.sh": ("tinker-cookbook", {
        "llm": "qwen3-8b", "prompts_per_step": 64, "group_size": 16, "max_staleness": 3, "concurrency": 1024,
        "staleness_family": "drop", "schedule": "async-drain", "slots_held_by": "group", "minibatches_per_update": 2,
    }),
    "tinker_recipe.py": ("tinker-cookbook", {
        "llm": "llama-3.1-8b", "prompts_per_step": 128, "updates_per_step": 4, "group_size": 16, "max_staleness": 4,
        "minibatches_per_update": 1,
    }),
}  # fmt: skip
UPDATES_PER_VERSION = {
    "prime_rl_head.toml": 1, "verl_fully_async.sh": 4, "verl_v1.yaml": 4, "areal.yaml": 2, "skyrl_fully_async.sh": 1,
    # 64 x 32 samples in optimizer steps of 512, as in the recipe that is eight off
    "nemo_rl.yaml": 4,
    # 64 x 8 samples in optimizer steps of 256, published every second rollout
    "slime_async.sh": 4,
    "openrlhf_flags.sh": 4, "tinker.sh": 2, "miles_bounded.sh": 1,
}  # fmt: skip


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.name)
def test_a_configuration_gives_the_knobs_that_its_author_meant(path):
    framework, knobs = EXPECTED[path.name]
    reading = read(path)
    assert reading.framework == framework
    assert {knob: reading.values[knob] for knob in knobs} == knobs


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.name)
def test_its_text_gives_the_same_where_its_bases_are_handed_over(path):
    files = {str(base.relative_to(CONFIGS)): base.read_text() for base in CONFIGS.rglob("*base*")}
    files |= {"finetune/pipelinerl_finetune.yaml": (CONFIGS / "finetune/pipelinerl_finetune.yaml").read_text()}
    assert read_text(path.read_text(), files=files).values == read(path).values


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.name)
def test_it_can_be_solved_as_it_is(path):
    scenario = Scenario.from_config(path)
    assert scenario.name == path.stem
    assert solve(scenario).step_s > 0


@pytest.mark.parametrize(("name", "updates"), UPDATES_PER_VERSION.items())
def test_a_version_is_worth_so_many_optimizer_updates(name, updates):
    assert read(CONFIGS / name).fact("optimizer_updates_per_version").value == updates


@pytest.mark.parametrize(
    ("name", "knob", "origin", "key", "place"),
    [
        ("prime_rl_head.toml", "max_staleness", "read", "orchestrator.max_off_policy_steps", "line 28"),
        ("prime_rl_old.toml", "prompts_per_step", "read", "orchestrator.batch_size", "prime_rl_base.toml line 7"),
        ("areal.yaml", "concurrency", "read", "group_size", "line 11"),
        ("slime_async.sh", "trainer_gpus", "read", "actor-num-nodes", "line 50"),
        ("slime_async.sh", "max_response_tokens", "read", "rollout-max-response-len", "line 32"),
        ("verl_fully_async.sh", "generator_gpus", "read", "rollout.nnodes", "line 36"),
        ("verl_v1.yaml", "gpus_per_replica", "read", "actor_rollout_ref.rollout.tensor_model_parallel_size",
         "verl_v1_base.yaml line 5"),
        ("nemo_rl.yaml", "prompts_per_step", "read", "grpo.num_prompts_per_step", "./nemo_rl_base.yaml line 2"),
        ("verl_v1.yaml", "memory_fraction", "defaulted", "actor_rollout_ref.rollout.gpu_memory_utilization", ""),
        ("skyrl_fully_async.sh", "schedule", "defaulted", "trainer.fully_async.clear_kv_cache_on_weight_sync", ""),
        ("areal.yaml", "mean_response_tokens", "assumed", "mean_share_of_longest_response", ""),
        ("tinker.sh", "trainer_gpus", "assumed", "service_trainer_gpus", ""),
        ("pipelinerl.yaml", "generator_gpus", "assumed", "node_gpus", ""),
    ],
)  # fmt: skip
def test_a_value_says_whether_it_was_read_defaulted_or_assumed_with_key_and_line(name, knob, origin, key, place):
    fact = read(CONFIGS / name).fact(knob)
    assert fact.origin == origin
    assert (key, place) in {(given.key, given.place) for given in fact.givens}


def test_the_line_that_is_named_holds_the_key():
    for path in FULL:
        reading = read(path)
        for given in (given for fact in reading.facts for given in fact.givens if given.written and given.place):
            *base, number = given.place.split("line ")
            file = path if base == [""] else path.parent / base[0].strip()
            line = file.read_text().splitlines()[int(number) - 1]
            assert given.written.rsplit(".", 1)[-1] in line, (path.name, given)


def test_unknown_keys_are_listed_and_do_no_harm():
    text = "[orchestrator]\nbatch_size = 64\ngroup_size = 8\nwarp_drive = 9\n[model]\nname = 'Qwen/Qwen3-8B'\n"
    reading = read_text(text)
    assert reading.unknown == (("orchestrator.warp_drive", "9", "line 4"),)
    assert reading.values == read_text(text.replace("warp_drive = 9\n", "")).values


def test_keys_that_are_known_but_decide_nothing_are_listed_apart():
    assert "deployment.type" in {key for key, _, _ in read(CONFIGS / "prime_rl_head.toml").unused}


@pytest.mark.parametrize(("file", "steps"), [("prime_rl_head.toml", "max_steps"), ("slime_async.sh", "num-rollout")])
def test_how_long_the_run_is_comes_from_the_file(file, steps):
    fact = read(CONFIGS / file).fact("training_steps")
    assert fact.origin == "read"
    assert [given.written for given in fact.givens] == [steps]


def test_a_variable_that_is_not_set_is_named_and_may_be_given():
    text = "python3 -m verl.trainer.main_ppo trainer.nnodes=$NNODES actor_rollout_ref.model.path=Qwen/Qwen3-8B"
    reading = read_text(text, "verl")
    assert ("trainer.nnodes", "$NNODES is not set in the file") in reading.unresolved
    assert reading.fact("trainer_gpus").origin == "assumed"
    given = read_text(text, "verl", variables={"NNODES": "4"})
    assert given.unresolved == ()
    assert given.values["trainer_gpus"] + given.values["generator_gpus"] == 32


def test_an_llm_outside_the_catalogue_is_asked_for_by_name():
    text = "model_name=Qwen/Qwen3-1.7B group_size=8 groups_per_batch=32 max_tokens=1024"
    reading = read_text(text, "tinker-cookbook")
    with pytest.raises(
        ValueError, match=r"model_name='Qwen/Qwen3-1.7B' is not in the catalogue of LLMs: choose one with"
    ):
        _ = reading.values
    assert read_text(text, "tinker-cookbook", llm="qwen3-4b").values["llm"] == "qwen3-4b"
    with pytest.raises(ValueError, match="llm='qwen' is not known"):
        read_text(text, "tinker-cookbook", llm="qwen")


def test_what_no_file_says_may_come_from_a_published_run():
    path = CONFIGS / "areal.yaml"
    based = read(path, based_on="slime-qwen3-235b")
    decoding = based.fact("decode_efficiency")
    assert (decoding.value, decoding.origin) == (0.2548, "assumed")
    assert based.fact("mean_prompt_tokens").value == 7932
    assert based.values["prompts_per_step"] == 16
    # Its mean of 12,232 tokens is longer than the cut at 8,192 that the file says
    assert based.fact("mean_response_tokens").value == round(0.45 * 8192)
    with pytest.raises(ValueError, match="preset='slime' is not known"):
        read(path, based_on="slime")


def test_a_default_that_cannot_hold_the_llm_is_sized_and_said():
    text = (
        "[model]\nname = 'Qwen/Qwen3-235B-A22B'\n[orchestrator]\ngroup_size = 8\n"
        "[deployment]\nnum_infer_nodes = 2\nnum_train_nodes = 1\n"
    )
    fact = read_text(text).fact("gpus_per_replica")
    # 470 GB of weights on GPUs with 0.9 x 141 - 8 = 119 GB: four hold 476 GB, and hardly one sequence
    assert (fact.value, fact.origin) == (4, "assumed")
    assert "cannot hold qwen3-235b-a22b" in fact.note
    read_in_file = read_text(text + "[inference.vllm]\ntensor_parallel_size = 1\n").fact("gpus_per_replica")
    assert (read_in_file.value, read_in_file.origin) == (1, "read")


def test_what_you_say_stands_over_the_file_and_what_follows_follows():
    text = "[model]\nname = 'Qwen/Qwen3-8B'\n[orchestrator]\nbatch_size = 64\n"
    assert read_text(text).values["prompts_per_step"] == 64
    assert read_text(text, knobs={"group_size": 8}).values["prompts_per_step"] == 8
    areal = read(CONFIGS / "areal.yaml", knobs={"group_size": 4})
    assert areal.values["concurrency"] == 128 * 4


def test_a_longer_context_than_the_catalogue_s_is_served_and_said():
    text = (
        "seq_len = 131072\n[model]\nname = 'Qwen/Qwen3-235B-A22B'\n[orchestrator]\ngroup_size = 8\n"
        "[deployment]\nnum_infer_nodes = 1\nnum_train_nodes = 1\n"
    )
    reading = read_text(text)
    assert reading.values["llm"] == {"key": "qwen3-235b-a22b", "max_context_tokens": 131072}
    assert Scenario.from_values(reading.values, name="long").llm.max_context_tokens == 131072


def test_a_colocated_run_keeps_the_sum_of_its_gpus():
    flags = (
        "--colocate --actor-num-nodes 2 --rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-prompt-len 512 "
        "--rollout-max-response-len 4096 --hf-checkpoint Qwen3-8B"
    )
    reading = read_text(f"python train.py {flags}")
    assert reading.values["schedule"] == "colocated-sync"
    assert reading.values["trainer_gpus"] + reading.values["generator_gpus"] == 16
    assert reading.values["concurrency"] == 256


@pytest.mark.parametrize(
    ("text", "variant", "schedule"),
    [
        ("python train.py --rollout-batch-size 8 --rollout-num-gpus 8", "in step", "sync"),
        ("python train_async.py --rollout-batch-size 8 --rollout-num-gpus 8", "one rollout ahead", "one-step-off"),
        ("python train_async.py --rollout-batch-size 8 --rollout-num-gpus 8 --rollout-function-path fully_async_rollout.f",
         "fully asynchronous", "partial-rollout"),
        ("python -m verl.trainer.main_ppo data.train_batch_size=8", "in step, colocated", "colocated-sync"),
        ("trainer.policy_mini_batch_size=8 \\\n trainer.placement.colocate_all=false", "in step on GPUs of their own", "sync"),
        ("python -m openrlhf.cli.train_ppo_ray --rollout_batch_size 8 --async_train", "asynchronous", "async-drain"),
        ("python -m openrlhf.cli.train_ppo_ray --rollout.batch_size 8", "in step", "sync"),
        ("actor:\n  path: x\ntrain_dataset: {batch_size: 8}\nrollout: {max_head_offpolicyness: 0}", "in step", "sync"),
        ("grpo: {num_prompts_per_step: 8}\npolicy: {model_name: x}", "in step, colocated", "colocated-sync"),
        ("rollout_batch_size: 8\nactor_train: &a {device_mapping: 'list(range(8))'}\nactor_infer: *a\nasync_generation_ratio: 0",
         "asynchronous or in step, as the ratio and the devices say", "colocated-sync"),
        ("max_lag: null\nworld: {actor_fraction: 4}\nfinetune: {attempts: 8}", "in-flight weight updates, lag unbounded",
         "async-in-flight"),
    ],
)  # fmt: skip
def test_the_mode_is_told_from_program_and_keys(text, variant, schedule):
    reading = read_text(text)
    assert reading.variant == variant
    assert reading.fact("schedule").value == schedule


def test_a_command_line_lays_its_flags_over_the_files_that_it_names():
    files = {
        "base.toml": "seq_len = 4096\n[orchestrator]\nbatch_size = 64\ngroup_size = 8\n",
        "orch.toml": "batch_size = 128\n",
        "over.yaml": "grpo:\n  num_prompts_per_step: 4\n  num_generations_per_prompt: 8\n",
    }
    line = "uv run rl @ base.toml --orchestrator @ orch.toml --model.name Qwen/Qwen3-8B --orchestrator.group-size 16"
    reading = read_text(line, files=files)
    assert (reading.values["prompts_per_step"], reading.values["group_size"]) == (8, 16)
    above = read_text("uv run examples/run_grpo.py --config over.yaml grpo.num_prompts_per_step=32", files=files)
    assert (above.fact("prompts_per_step").value, above.fact("group_size").value) == (32, 8)
    # Of two spellings of one key the one that is laid over the other counts
    both = {"base.toml": "[orchestrator]\ngroup_size = 4\nrollouts_per_example = 2\n"}
    assert read_text("uv run rl @ base.toml --orchestrator.group_size 16", files=both).fact("group_size").value == 16
    missing = read_text("uv run rl @ elsewhere.toml --orchestrator.batch_size 64")
    assert missing.absent == ("elsewhere.toml",)


def test_an_older_file_of_the_orchestrator_alone_is_read_by_its_bare_keys():
    text = "batch_size = 256\nrollouts_per_example = 16\nmax_async_level = 4\nmax_off_policy_steps = 2\nmodel.name = 'Qwen3-8B'\n"
    reading = read_text(text, name="orch.toml")
    assert reading.variant == "older names, up to May 2026"
    assert (reading.values["prompts_per_step"], reading.values["max_staleness"]) == (16, 6)


@pytest.mark.parametrize(
    ("name", "line"), [("slime_async.sh", "   --rollout-max-prompt-len 2048\n"), ("roll.yaml", "prompt_length: 2048\n")]
)
def test_a_file_without_a_limit_of_prompts_is_solved_all_the_same(name, line):
    text = (CONFIGS / name).read_text()
    assert line in text
    reading = read_text(text.replace(line, ""), name=name)
    assert reading.fact("mean_prompt_tokens").origin == "assumed"
    assert solve(Scenario.from_values(reading.values, name="x")).step_s > 0


def test_without_a_bound_of_its_own_generation_is_never_in_step():
    text = "max_lag: null\nmodel_path: Qwen/Qwen2.5-7B\nfinetune: {gradient_accumulation_passes: 1024, attempts: 8}"
    assert read_text(text).values["max_staleness"] == 1


def test_a_batch_counted_in_tokens_is_divided_by_the_assumed_lengths():
    text = (
        "seq_len = 10000\n[model]\nname = 'Qwen/Qwen3-8B'\n[orchestrator]\ntoken_batch_size = 1000000\ngroup_size = 8\n"
    )
    fact = read_text(text).fact("prompts_per_step")
    # 1,700 prompt and 0.45 x 8,300 response tokens: 1e6 / 5,435 / 8
    assert (fact.value, fact.origin) == (23, "assumed")


def test_every_framework_has_a_configuration_here():
    assert {framework for framework, _ in EXPECTED.values()} == set(frameworks())


def test_a_preset_s_lengths_stand_for_a_limit_that_only_the_framework_s_default_says():
    silent = read_text("async_training.staleness_threshold=0.5\n", "verl", based_on="slime-qwen3-235b")
    published = Scenario.from_data("slime-qwen3-235b")
    assert silent.values["max_response_tokens"] == published.max_response_tokens
    assert silent.values["mean_response_tokens"] == published.mean_response_tokens
    said = read_text("data.max_response_length=512\n", "verl", based_on="slime-qwen3-235b")
    assert said.values["max_response_tokens"] == 512
    assert said.values["mean_response_tokens"] < 512
    assert (
        read_text("data.max_prompt_length=512\n", "verl", llm="qwen3-8b").values["max_response_tokens"] == 512
    )  # its default


def test_a_preset_s_prompt_that_is_longer_than_the_file_s_sequence_does_not_stand():
    found = read_text(
        "[orchestrator]\nseq_len = 2048\nmax_off_policy_steps = 4\n", "prime-rl", based_on="verl-qwen3-235b-c96"
    )
    assert Scenario.from_data("verl-qwen3-235b-c96").mean_prompt_tokens > 2048
    assert found.values["mean_prompt_tokens"] + found.values["max_response_tokens"] == 2048
    assert 0 < found.values["mean_response_tokens"] < found.values["max_response_tokens"]
