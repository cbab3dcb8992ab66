"""Published logs give their known answers, and no metric is taken for what it only reads like."""

import json
import math
from pathlib import Path

import pytest
from log_shapes import (
    SHAPES,
    STEPS,
    SYNC,
    TRAIN,
    WAIT,
    as_console,
    as_csv,
    as_json_lines,
    prime_orchestrator,
    prime_trainer,
)

from rlqueue import Measured

LOGS = Path(__file__).parents[1] / "data" / "logs"
OLMO = [LOGS / f"prime_rl_olmo3_7b_14i2t_bs256_{side}_steps.csv" for side in ("trainer", "orchestrator")]


def mean(measured, name):
    return measured.means()[name].mean


def met(measured):
    return [trap.trap for trap in measured.traps]


def test_nemo_rl_s_18_steps_are_309_s_of_waiting_in_a_step_of_390_s():
    measured = Measured.from_log(LOGS / "nemo_rl_qwen3_235b_swe_18_steps.csv")
    assert {step: kind for step, kind in measured.table["kind"].items() if kind != "steady"} == {
        1: "start-up",
        9: "long",
        16: "long",
    }
    means = measured.means()
    assert means["step_s"].rows == 15
    assert means["step_s"].mean == pytest.approx(389.7, abs=0.05)
    assert means["wait_s"].mean == pytest.approx(308.9, abs=0.05)
    assert means["train_s"].mean == pytest.approx(60.3, abs=0.05)
    # Printed as 20.0: that is the mean of steps 2 to 18. Without the two stalls, which are left out of the others, it is 20.2.
    assert means["sync_s"].mean == pytest.approx(20.2, abs=0.05)
    assert measured.table["sync_s"][1:].mean() == pytest.approx(20.0, abs=0.05)
    assert means["trainer_wait_ratio"].mean == pytest.approx(0.79, abs=0.005)
    assert measured.waiting().bottleneck == "generator"
    assert measured.left_out().set_index("kind").loc["long", "hours"] == pytest.approx((1219.05 + 1235.69) / 3600)


def test_the_same_steps_from_nemo_rl_s_console_say_the_same():
    lines = (LOGS / "nemo_rl_qwen3_235b_swe_18_steps.csv").read_text(encoding="utf-8").splitlines()
    blocks = []
    for line in lines[1:]:
        step, total, wait, train, sync, logprobs, _ = line.split(",")
        blocks.append(
            f"{'=' * 25} Step {step}/18 {'=' * 25}\n  • Total step time: {total}s\n  • exposed_generation: {wait}s (79.2%)\n"
            f"  • policy_training: {train}s\n  • weight_sync: {sync}s\n  • policy_and_reference_logprobs: {logprobs}s\n"
            "  • Training Worker Idle Time Ratio: 0.00%\n"
        )
    printed = Measured.from_log("".join(blocks))
    assert printed.table.equals(Measured.from_log(LOGS / "nemo_rl_qwen3_235b_swe_18_steps.csv").table)
    assert met(printed) == ["nemo-rl-inverted-idle"]


def test_slime_s_lines_give_slime_s_ratio_from_times_and_ours_without_offload_and_sync():
    measured = Measured.from_log(LOGS / "slime_perf_lines.jsonl")
    table = measured.table
    assert table["not_training_ratio"][0] == pytest.approx(0.843, abs=5e-4)
    # 347.6 s less 2.5 of weight update and 7.9 of sleep and wake-up, over that and 64.7 of training and 2.5.
    assert table["wait_s"][0] == pytest.approx(347.606 - 2.530 - 7.900, abs=0.01)
    assert table["trainer_wait_ratio"][0] == pytest.approx(0.834, abs=5e-4)
    assert table["trainer_wait_ratio"][4] == pytest.approx(0.9626, abs=5e-5)
    assert table["trainer_wait_ratio"][5] == pytest.approx(0.84, abs=5e-3)
    assert "perf/wait_time_ratio times the step" in " ".join(measured.notes)
    assert met(measured) == ["slime-wait-includes-offload"]


def test_miles_waited_7_percent_and_not_the_28_it_printed():
    # Colocated on 4x8: of 1,306.6 s it trains 942.4 and updates weights for 276.2; what is left is about its rollout time, 85.3.
    row = Measured.from_log(LOGS / "slime_perf_lines.jsonl").table.loc[2]
    assert row["not_training_ratio"] == pytest.approx(0.279, abs=5e-4)
    assert row["wait_s"] == pytest.approx(85.3, abs=3)
    assert row["trainer_wait_ratio"] == pytest.approx(0.067, abs=5e-4)


def test_olmo_3_on_14_to_2_gpus_is_bound_by_its_trainer():
    for logs in (OLMO, OLMO[1:], OLMO[::-1]):
        found = Measured.from_log(logs).waiting()
        assert (found.side, found.bottleneck, found.direct) == ("generator", "trainer", False)
    alone = Measured.from_log(OLMO[:1])
    assert alone.waiting().side == "unknown"
    assert "wait_s" in alone.missing
    assert mean(alone, "mfu_computing") == pytest.approx(0.265, abs=5e-4)


def test_the_older_orchestrator_s_console_is_read_to_where_it_is_cut():
    measured = Measured.from_log(LOGS / "prime_rl_orchestrator_console.txt")
    assert list(measured.table.index) == [13, 14, 15, 16, 17]
    assert list(measured.table["generator_step_s"]) == [72.00, 69.24, 70.72, 71.32, 62.34]
    assert list(measured.table["mean_sequence_tokens"]) == [323.7, 326.2, 329.1, 327.5, 316.0]
    assert math.isnan(measured.table["staleness_max_versions"][17])


def test_verl_s_fragments_are_read_with_and_without_a_step():
    measured = Measured.from_log(LOGS / "verl_console_samples.txt")
    assert list(measured.table["step_s"]) == pytest.approx([48.7025, 93.5243, 5.609, 8.991], abs=1e-4)
    assert list(measured.table["wait_s"]) == pytest.approx([16.2275, 24.5334, 1.977, 5.093], abs=1e-4)
    assert measured.table["mean_response_tokens"][3] == 180.938


def test_areal_s_box_is_read_and_a_wait_alone_is_no_ratio():
    measured = Measured.from_log(LOGS / "areal_console_sample.txt")
    assert measured.table["wait_s"][0] == 88.992
    assert measured.table["reward"][0] == 0.26204
    assert "trainer_wait_ratio" not in measured.table
    assert measured.waiting().side == "unknown"


def test_a_header_without_rows_is_refused_as_such():
    with pytest.raises(ValueError, match=r"has a header with \d+ known metrics and no row"):
        Measured.from_log(LOGS / "skyrl_metrics_table_header_only.csv")


def test_verl_s_gen_is_the_trainer_s_wait_when_asynchronous_and_both_when_not():
    wait = Measured.from_log(as_json_lines(SHAPES["verl"][1]))
    assert mean(wait, "wait_s") == pytest.approx(WAIT)
    assert "generate_s" not in wait.table
    assert met(wait) == ["verl-gen-is-wait", "verl-idle-ratio"]
    both = Measured.from_log(as_json_lines(SHAPES["verl synchronous"][1]))
    assert mean(both, "generate_s") == mean(both, "wait_s") == pytest.approx(WAIT)


def test_verl_s_weight_sync_outside_its_step_is_added():
    measured = Measured.from_log(as_json_lines(SHAPES["verl"][1]))
    assert mean(measured, "step_s") == pytest.approx(WAIT + TRAIN + SYNC)
    assert "add up to more than the logged step" in " ".join(measured.notes)


@pytest.mark.parametrize("lie", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("verl", "fully_async/trainer/idle_ratio"),
        ("verl", "fully_async/rollouter/idle_ratio"),
        ("NeMo-RL", "performance/training_worker_idle_time_ratio"),
        ("miles", "rollout/fully_async/avg_staleness"),
        ("slime", "perf/wait_time_ratio"),
        ("tinker", "time/waiting_for_stragglers"),
        ("OpenRLHF", "timing/generation"),
    ],
)
def test_whatever_a_lying_metric_says_neither_wait_nor_staleness_moves(name, key, lie):
    shape = SHAPES[name][1]
    wanted = ["wait_s", "trainer_wait_ratio", "staleness_versions"]
    honest = Measured.from_log(as_json_lines(shape)).table
    lied = Measured.from_log(as_json_lines(lambda step: shape(step) | {key: lie}))
    wanted = [each for each in wanted if each in honest]
    assert lied.table[wanted].equals(honest[wanted])
    assert any(reading.key == key and reading.trap in met(lied) for reading in lied.readings)


def test_wait_for_policy_is_a_wait_for_the_trainer():
    def held(step):
        return prime_orchestrator(step) | {"time/wait_for_policy": 60.0}

    def busy(step):
        return prime_trainer(step) | {"time/wait_for_batch": 0.0, "time/forward_backward": 90.0, "time/step": 100.0}

    alone = Measured.from_log(as_json_lines(held)).waiting()
    assert (alone.side, alone.bottleneck, alone.direct) == ("generator", "trainer", True)
    both = Measured.from_log([as_json_lines(held), as_json_lines(busy)])
    assert both.waiting().bottleneck == "trainer"
    assert mean(both, "wait_s") == 0
    assert "prime-rl-wait-for-policy" in met(both)


def test_pipelinerl_s_counter_begins_anew_when_the_run_is_resumed():
    rows = as_json_lines(SHAPES["PipelineRL"][1])
    resumed = as_json_lines(
        lambda step: SHAPES["PipelineRL"][1](step) | {"stats/time_waiting_for_data": 60.0 * (step - 9)}, range(10, 20)
    )
    waits = Measured.from_log(rows + resumed).table["wait_s"]
    assert list(waits) == pytest.approx([360.0, *[60.0] * 19])


def test_pipelinerl_s_counter_logged_every_tenth_step_is_shared_out():
    shape = SHAPES["PipelineRL"][1]
    table = Measured.from_log(
        "".join(json.dumps({"step": step, **shape(step)}) + "\n" for step in range(0, 100, 10))
    ).table
    assert list(table["wait_s"][1:]) == pytest.approx([60.0] * 9)


def test_pipelinerl_s_lag_is_samples_over_samples_per_step():
    assert mean(Measured.from_log(as_csv(SHAPES["PipelineRL"][1])), "staleness_versions") == pytest.approx(1536 / 1024)


def test_openrlhf_s_wait_is_what_is_left_of_the_step():
    measured = Measured.from_log(as_console("OpenRLHF"))
    assert mean(measured, "wait_s") == pytest.approx(100 - 12 - 18 - 10)
    assert mean(measured, "generate_s") == 95


def test_tinker_s_inner_span_is_not_counted_twice():
    measured = Measured.from_log(as_json_lines(SHAPES["tinker"][1]))
    assert (mean(measured, "train_s"), mean(measured, "sync_s")) == (TRAIN, SYNC)
    assert "tinker-nested-spans" in met(measured)


def test_the_ratio_of_the_means_is_that_of_the_summed_times():
    shape = SHAPES["SkyRL"][1]
    uneven = Measured.from_log(
        as_json_lines(
            lambda step: (
                shape(step)
                | {"timing/wait_for_generation_buffer": 60.0 + 40 * (step % 2), "timing/step": 100.0 + 40 * (step % 2)}
            )
        )
    )
    steady = uneven.steady
    assert len(steady) == len(STEPS) - 1
    assert mean(uneven, "trainer_wait_ratio") == pytest.approx(steady["wait_s"].sum() / steady["step_s"].sum())
