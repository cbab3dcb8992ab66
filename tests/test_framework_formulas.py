"""Each formula between a framework's keys and our knobs, on examples computed by hand from the framework's own code."""

import pytest

from rlqueue.frameworks.formulas import batches, formulas, gpus, needed, sentence, staleness, words
from rlqueue.frameworks.tables import frameworks, keys, rules


@pytest.mark.parametrize(
    ("formula", "arguments", "answer"),
    [
        # Every step publishes: the unit is ours
        (staleness.prime_rl, (8,), 8),
        (staleness.miles, (3,), 3),
        (staleness.verl_v1, (8,), 8),
        (staleness.areal, (2,), 2),
        (staleness.skyrl, (4,), 4),
        (staleness.nemo_rl, (1,), 1),
        (staleness.openrlhf, (1,), 1),
        (staleness.roll, (1.5,), 1.5),
        (staleness.tinker, (3,), 3),
        # 8 updates seen in flight, then trained up to 2 versions later; NCCL forces the lead to 1
        (staleness.prime_rl_before_june, (8, 2), 10),
        (staleness.prime_rl_before_june, (8, 2, "nccl"), 9),
        # A fraction of a version's samples: half of 512 ahead is half a version
        (staleness.verl_fully_async, (0.5,), 0.5),
        # Rollout j, weights of floor((j - 1) / U), trained at floor(j / U): never more than one version
        (staleness.slime_one_ahead, (1,), 1),
        (staleness.slime_one_ahead, (5,), 1),
        # 64 x (16 / 2) = 512 groups in flight and 512 waiting are 4 versions of 128 x 2 groups: 3 ahead of the trained one
        (staleness.slime_outstanding, (64, 16, 2, 128, 2), 3),
        # One group at once is no batch: the slots bind, not the budget
        (staleness.slime_outstanding, (1, 8, 8, 128, 1), 1),
        # 4,096 samples / 8 attempts = 512 groups; 128 groups a step, 2 steps a version: 512 / 256
        (staleness.pipelinerl, (4096, 8, 128, 2), 2),
        # 4,097 samples begin one more group
        (staleness.pipelinerl, (4097, 8, 128, 2), 513 / 256),
        # (512 in flight + 128 + 64) / 8 = 88 groups against 16 of a version: 5.5, one of which is trained
        (staleness.pipelinerl_unbounded, (512, 8, 128, 64, 16, 1), 4.5),
        (staleness.none_ahead, (), 0),
        (staleness.one_ahead, (), 1),
    ],
)
def test_a_staleness_knob_in_versions(formula, arguments, answer):
    assert formula(*arguments) == answer


@pytest.mark.parametrize(
    ("formula", "arguments", "answer"),
    [
        (staleness.steps_of_staleness, (8, 1), 8),
        (staleness.steps_of_staleness, (8, 5), 40),
        (staleness.steps_of_staleness, (0.5, 1), 0),
        (staleness.steps_of_staleness_at_least_one, (0.5, 1), 1),
        (staleness.versions_of_staleness, (0.5,), 0.5),
        (staleness.whole_versions_of_staleness, (2.9,), 2),
        (staleness.ratio_of_staleness, (1.5, 2), 3.0),
        (staleness.samples_of_staleness, (2, 128, 8, 2), 4096),
        (staleness.dropping_versions, ("drop", 3), 3),
        (staleness.dropping_versions, ("admission", 3), None),
    ],
)
def test_versions_in_a_staleness_knob(formula, arguments, answer):
    assert formula(*arguments) == answer


@pytest.mark.parametrize(
    ("formula", "arguments", "answer"),
    [
        # AReaL's 235B example: 4 replicas of 8, and 12 pipeline stages of 4
        (gpus.backend_gpus, ("sglang:d4t8",), 32),
        (gpus.backend_replica, ("sglang:d4t8",), 8),
        (gpus.backend_gpus, ("megatron:(attn:d1p12t4|ffn:d1p12e4)",), 48),
        (gpus.backend_gpus, ("megatron:(attn:d4p4t2|ffn:d2p4e4)",), 32),
        (gpus.allocation_generator_gpus, ("sglang.d16p1m1+d8p2m1",), 16),
        (gpus.allocation_trainer_gpus, ("sglang.d16p1m1+d8p2m1",), 16),
        (gpus.allocation_replica, ("sglang.d4p1m2+d8p2m1",), 2),
        (gpus.allocation_trainer_gpus, ("vllm:d4+d4",), 4),
        (gpus.allocation_trainer_gpus, ("d8",), None),
        (gpus.backend_gpus, ("fsdp",), None),
        (gpus.devices, ("list(range(0,16))",), 16),
        (gpus.devices, ("list(range(0,8)) + list(range(16,24))",), 16),
        (gpus.devices, ([0, 1, 5],), 3),
        (gpus.devices, ("__import__('os').getpid()",), None),
        # 2 replicas of 4 prefill and 4 decode nodes
        (gpus.disaggregated_gpus, (4, 4, 8, 2), 128),
        (gpus.rest_of_cluster, (32, 8, 128), 128),
        (gpus.nodes_and_gpus, (4,), 4),
        (gpus.share_of_pool, (8, 6, 6, 0, 2), 6),
        (gpus.generating_part_of_pool, (32, 4), 16),
        (gpus.training_part_of_pool, (32, 4), 16),
        (gpus.generating_part_of_pool, (16, 16), 16),
        (batches.quotient, (512, 16), 32),
        # 8 groups of 16 rollouts of 4,000 + 12,000 tokens
        (batches.token_groups, (2_048_000, 4000, 12000, 16), 8),
        (batches.accumulated_groups, (1, 1024, 8), 128),
        # verl's 235B script: 1 x 128 x 1
        (batches.mini_batches, (1, 128, 4), 512),
        # 24 replicas x 16 prompts are fewer than int(512 x 1.5)
        (batches.replica_samples, (16, 96, 4, 16, 512, 0.5), 24 * 16 * 16),
        (batches.replica_samples, (16, 96, 1, 16, 512, 0.5), 768 * 16),
        (batches.warmed_batches, (256, 16, 1), 8192),
        (batches.target_slots, (64, 8, 32), 16384),
        (batches.batch_on_engines, (8, 8, 512, 64, 32, None), 64),
        (batches.batch_on_engines, (64, 8, 16, 64, 32, None), 32),
        (batches.running_requests, (128, 8, 2, 64, 8, 1.5), 512),
        (batches.updates, (64, 32, 512), 4),
        # 20 samples of groups of 8 are two groups, and fewer than 8 are one
        (batches.samples_in_whole_groups, (20, 8), 16),
        (batches.samples_in_whole_groups, (5, 8), 8),
        # AReaL: 4 optimizer steps of a batch of 16 x 16 rollouts; tinker: 8 of a batch that is trained in 4 pieces
        (batches.steps_said, (4, 16, 16), 4),
        (batches.steps_said, (8, 128, 16, 4), 2),
        # One optimizer step for four pieces is not less than one for each
        (batches.steps_said, (1, 128, 16, 4), 1),
        # 6 rollouts do not divide into 4 equal mini-batches, but into 3; 5,760 not into 164, but into 160; 7 into none
        (batches.steps_said, (4, 3, 2), 3),
        (batches.steps_of_prompts, (7, 1152, 5), 160),
        (batches.steps_said, (5, 1, 7), 1),
        (batches.steps_said, (0, 16, 16), 1),
        # verl: 1,152 prompts in mini-batches of 192; a mini-batch larger than the batch is one step
        (batches.steps_of_prompts, (192, 1152, 5), 6),
        (batches.steps_of_prompts, (256, 64, 8), 1),
        (batches.steps_of_prompts, (0, 64, 8), None),
        # NeMo-RL: 64 x 32 rollouts in optimizer steps of 512; OpenRLHF: two passes over 128 x 8 in steps of 256
        (batches.steps_of_samples, (512, 64, 32), 4),
        (batches.steps_of_samples, (256, 128, 8, 2), 8),
        (batches.mini_batches_at_once, (512, 4, 4), 4),
        # 8 groups cannot be cut into 16 mini-batches of whole groups
        (batches.mini_batches_at_once, (8, 1, 16), 1),
        # verl's cases: 512 groups a publication, 4 updates, 4 mini-batches of 32 in each
        (batches.mini_batch, (512, 4, 4), 32),
        (batches.mini_batch, (512, 4, 1), 128),
        (batches.mini_batch, (8, 1, 16), 8),
        (batches.optimizer_steps, (4, 2), 8),
        (batches.steps_unless_default, (2, 2, 4), None),
        (batches.steps_unless_default, (1, 1, 4), 1),
        (batches.samples_of_an_optimizer_step, (64, 32, 1, 4), 512),
        (words.granularity, ("group",), "group"),
        (words.granularity, ("sample",), "rollout"),
        (words.granularity_of, ("group",), "group"),
        (words.granularity_of, ("rollout",), None),
        (words.whole_groups, (), "group"),
        (batches.room_for_response, (32768, 5591), 27177),
        (batches.room_for_response, (32768, 5591, 8192), 8192),
        (words.overlapping, ("a", "b", 1.0), "partial-rollout"),
        (words.overlapping, ("a", "a", 0), "colocated-sync"),
        (words.overlapping, ("a", "b", 0), "sync"),
        (words.nemo_rl_schedule, (True, False), "async-in-flight"),
        (words.nemo_rl_schedule, (True, True), "partial-rollout"),
        (words.nemo_rl_schedule, (False, True), "async-drain"),
    ],
)
def test_gpus_batches_and_words_by_hand(formula, arguments, answer):
    assert formula(*arguments) == answer


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3-235b-a22b-thinking-2507"),
        ("/root/Qwen3-235B-A22B-FP8/", "qwen3-235b-a22b"),
        ("/models/Qwen3-30B-A3B-Base", "qwen3-30b-a3b"),
        ("Qwen3-4B_torch_dist", "qwen3-4b"),
        ("models/qwen3-235B-A22B.sh", "qwen3-235b-a22b"),
        ("models/glm4.7-355B-A32B.sh", "glm-4.6"),
        ("zai-org/GLM-5.2-FP8", "glm-5"),
        ("PrimeIntellect/INTELLECT-3-Base", "glm-4.5-air"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "qwen2.5-1.5b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Qwen/Qwen3-1.7B", None),
        ("", None),
    ],
)
def test_an_llm_is_found_by_the_end_of_its_path(name, key):
    assert words.llm(name) == key


@pytest.mark.parametrize("framework", frameworks())
def test_every_rule_names_a_formula_and_keys_that_are_there_and_as_many_as_it_takes(framework):
    for name in ("readings", "lines"):
        for rule in rules(name, framework, None):
            takes = needed(rule.formula)
            assert sum(takes) <= len(rule.arguments) <= len(takes), rule
            assert sentence(rule.formula), rule
            if name == "readings":
                named = [argument for argument in rule.arguments if argument[0] not in "@%=!"]
                assert set(named) <= set(keys(framework)), rule
            else:
                assert rule.target in keys(framework), rule


def test_no_formula_is_without_a_rule_that_uses_it():
    tables = [(name, framework) for name in ("readings", "lines") for framework in frameworks()]
    assert set(formulas()) == {rule.formula for name, framework in tables for rule in rules(name, framework, None)}
