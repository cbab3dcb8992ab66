"""Logs of ten frameworks in all their formats become one table in our names; the means leave out what is no ordinary step."""

import json

import pytest
from log_shapes import (
    CONSOLES,
    FIRST_WAIT,
    SHAPES,
    STEPS,
    SYNC,
    TRAIN,
    WAIT,
    as_console,
    as_csv,
    as_json_lines,
    prime_console_orchestrator,
    prime_console_trainer,
    prime_orchestrator,
    prime_trainer,
    slime,
    verl,
    whole,
)  # fmt: skip

from rlqueue import Measured
from rlqueue.logs.columns import COLUMNS
from rlqueue.logs.names import frameworks, metrics, traps
from rlqueue.provenance import sources

FORMATS = {
    "CSV": lambda name: as_csv(SHAPES[name][1]),
    "JSON lines": lambda name: as_json_lines(SHAPES[name][1]),
    "console": as_console,
}
CASES = [(name, form) for name in SHAPES for form in FORMATS if form != "console" or name in CONSOLES]


def mean(measured, name):
    return measured.means()[name].mean


@pytest.mark.parametrize(("name", "form"), CASES)
def test_every_framework_and_format_gives_the_same_wait_training_and_sync(name, form):
    measured = Measured.from_log(FORMATS[form](name))
    assert measured.framework == SHAPES[name][0]
    assert measured.formats == (form,)
    assert list(measured.table.index) == list(STEPS)
    # PipelineRL publishes weights while it trains.
    train, sync = (TRAIN + SYNC, None) if name == "PipelineRL" else (TRAIN, SYNC)
    assert measured.table["wait_s"].iloc[0] == pytest.approx(FIRST_WAIT)
    assert mean(measured, "wait_s") == pytest.approx(WAIT)
    assert mean(measured, "train_s") == pytest.approx(train)
    if sync is not None:
        assert mean(measured, "sync_s") == pytest.approx(sync)
    assert mean(measured, "trainer_wait_ratio") == pytest.approx(0.6)
    if name != "prime-rl":  # its trainer knows no reward
        assert mean(measured, "reward") == pytest.approx(0.4)
    assert measured.means()["wait_s"].rows == len(STEPS) - 1
    assert list(measured.table["kind"]) == ["start-up", *["steady"] * 9]
    assert measured.waiting().side == "trainer"
    assert measured.waiting().bottleneck == "generator"


@pytest.mark.parametrize("name", SHAPES)
def test_the_sum_of_the_parts_is_the_step(name):
    table = Measured.from_log(FORMATS["CSV"](name)).table
    parts = table[[each for each in ("wait_s", "train_s", "sync_s", "offload_s", "other_s") if each in table]].sum(
        axis=1
    )
    assert parts.to_numpy() == pytest.approx(table["step_s"].to_numpy())


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("prime-rl", None),
        ("miles", 0.495),
        ("AReaL", 1.5),
        ("SkyRL", 1.5),
        ("NeMo-RL", 1.5),
        ("ROLL", 1.5),
        ("PipelineRL", 1.5),
    ],
)
def test_staleness_is_in_versions_and_of_what_was_trained(name, versions):
    means = Measured.from_log(FORMATS["JSON lines"](name)).means()
    if versions is None:
        assert "staleness_versions" not in means
    else:
        assert means["staleness_versions"].mean == pytest.approx(versions)


def test_lengths_tokens_and_rates_come_out_in_tokens_and_seconds():
    measured = Measured.from_log(as_json_lines(verl))
    assert mean(measured, "mean_sequence_tokens") == 2000
    assert mean(measured, "tokens") == 64000
    assert mean(measured, "truncated_ratio") == pytest.approx(0.05)
    # 64,000 tokens in 60 + 30 s of step and 10 s of weight sync outside it.
    assert mean(measured, "trained_tokens_per_s") == pytest.approx(640)


def test_trainer_and_orchestrator_of_prime_rl_become_one_table():
    measured = Measured.from_log([as_json_lines(prime_orchestrator), as_csv(prime_trainer)])
    assert measured.formats == ("JSON lines", "CSV")
    assert mean(measured, "step_s") == pytest.approx(100)
    assert mean(measured, "generator_step_s") == pytest.approx(99)
    assert mean(measured, "wait_s") == pytest.approx(WAIT)
    assert mean(measured, "generator_wait_s") == pytest.approx(2)
    assert mean(measured, "staleness_versions") == pytest.approx(1.5)
    assert mean(measured, "mfu_computing") == pytest.approx(0.25)
    assert mean(measured, "mean_sequence_tokens") == pytest.approx(2000)


def test_both_processes_of_prime_rl_may_print_into_one_console():
    text = "".join(prime_console_orchestrator(step) + prime_console_trainer(step) for step in STEPS)
    measured = Measured.from_log(text)
    assert mean(measured, "step_s") == pytest.approx(100)
    assert mean(measured, "generator_step_s") == pytest.approx(99)
    assert mean(measured, "staleness_max_versions") == 3
    assert mean(measured, "truncated_ratio") == pytest.approx(0.05)
    assert mean(measured, "computing_tokens_per_s") == 9000
    assert measured.missing["wait_s"].startswith("time/wait_for_batch of the trainer")


def test_a_dump_of_tensorboard_is_read_by_metric():
    dump = {name: {str(step): SHAPES["NeMo-RL"][1](step)[name] for step in STEPS} for name in SHAPES["NeMo-RL"][1](0)}
    measured = Measured.from_log(json.dumps(dump, indent=1))
    assert measured.formats == ("JSON",)
    assert mean(measured, "wait_s") == pytest.approx(WAIT)
    assert Measured.from_log(json.dumps(dump)).formats == ("JSON",)


def test_a_chart_exported_from_wandb_has_the_run_s_name_before_the_metric():
    text = '"Step","my-run - perf/train_wait_time","my-run - perf/train_wait_time__MIN","my-run - perf/train_time"\n'
    text += "".join(f'"{step}","75","1","30"\n' for step in STEPS)
    assert mean(Measured.from_log(text), "wait_s") == 75


def test_of_several_runs_in_one_export_the_first_is_read_and_said_to_be():
    text = "Step,one - perf/train_wait_time,two - perf/train_wait_time,one - perf/train_time,two - perf/train_time\n"
    measured = Measured.from_log(text + "".join(f"{step},75,5,30,30\n" for step in STEPS))
    assert mean(measured, "wait_s") == 75
    assert "holds several runs: one is read, two not" in " ".join(measured.notes)


def test_openrlhf_s_names_may_have_train_before_them():
    rows = as_json_lines(lambda step: {f"train/{k}": v for k, v in SHAPES["OpenRLHF"][1](step).items()})
    assert mean(Measured.from_log(rows), "wait_s") == pytest.approx(WAIT)


def test_of_a_step_logged_twice_the_last_counts_and_the_resumed_step_is_a_start_up():
    first = as_json_lines(verl, range(8))
    again = as_json_lines(lambda step: verl(step) | {"timing_s/gen": 70.0, "timing_s/step": 100.0}, range(5, 12))
    measured = Measured.from_log(first + again)
    assert list(measured.table.index) == list(range(12))
    assert list(measured.table["wait_s"]) == [FIRST_WAIT, 60, 60, 60, 60, *[70.0] * 7]
    assert measured.table["kind"][5] == "start-up"
    assert "3 steps were logged again" in " ".join(measured.notes)


def test_the_same_in_a_csv_history():
    first, again = as_csv(verl, range(8)), as_csv(lambda step: verl(step) | {"timing_s/gen": 70.0}, range(5, 12))
    measured = Measured.from_log(first + again.partition("\n")[2])
    assert list(measured.table["wait_s"]) == [FIRST_WAIT, 60, 60, 60, 60, *[70.0] * 7]
    assert measured.table["kind"][5] == "start-up"


def test_steps_in_any_order_give_the_same_table():
    steps = [3, 9, 0, 7, 1, 8, 2, 6, 4, 5]
    ordered = Measured.from_log(as_json_lines(slime)).table
    for shuffled in (as_json_lines(slime, steps), as_csv(slime, steps)):
        assert Measured.from_log(shuffled).table.equals(ordered)


def test_evaluations_checkpoints_stalls_and_flushes_are_marked_and_left_out():
    special = {
        4: {"timing/step": 160.0, "timing/eval": 60.0},
        6: {"timing/step": 130.0, "timing/save_checkpoints": 30.0},
        8: {"timing/step": 900.0, "timing/wait_for_generation_buffer": 860.0},
        9: {
            "timing/step": 4.0,
            "timing/wait_for_generation_buffer": 0.0,
            "timing/run_training": 3.0,
            "timing/sync_weights": 1.0,
        },
    }
    shape = SHAPES["SkyRL"][1]
    measured = Measured.from_log(as_json_lines(lambda step: shape(step) | special.get(step, {}), range(20)))
    marked = {step: kind for step, kind in measured.table["kind"].items() if kind != "steady"}
    assert marked == {0: "start-up", 4: "evaluation", 6: "checkpoint", 8: "long", 9: "flush"}
    assert mean(measured, "step_s") == pytest.approx(100)
    left = measured.left_out().set_index("kind")
    assert left.loc["long", "hours"] == pytest.approx(0.25)
    assert left["steps"].sum() == 5


def test_an_evaluation_that_held_nobody_up_stays_in_the_means():
    # slime prints `eval 5: {...}`; what waits for it is the step after.
    def text(wait_of_6):
        rows = [
            slime(step) | ({"perf/train_wait_time": wait_of_6, "perf/step_time": wait_of_6 + 30} if step == 6 else {})
            for step in STEPS
        ]
        return "".join(
            f"perf {step}: {row}\n" + ("eval 5: {'eval/aime': 0.3}\n" if step == 5 else "")
            for step, row in enumerate(rows)
        )

    assert Measured.from_log(text(75.0)).table["kind"][6] == "steady"
    assert Measured.from_log(text(140.0)).table["kind"][6] == "evaluation"


def test_lengths_that_grow_over_a_run_do_not_make_its_end_odd():
    drifting = as_json_lines(lambda step: {"timing/step": 100.0 * 1.01**step, "timing/run_training": 30.0}, range(300))
    assert set(Measured.from_log(drifting, "SkyRL").table["kind"][1:]) == {"steady"}


def test_a_file_is_read_as_its_text_is(tmp_path):
    text = as_console("verl")
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        file = tmp_path / f"{encoding}.log"
        file.write_text(text, encoding=encoding)
        assert Measured.from_log(file).table.equals(Measured.from_log(text).table)
        assert Measured.from_log(str(file)).files == (file.name,)
        assert Measured.from_log(file.read_bytes()).table.equals(Measured.from_log(text).table)
    file = tmp_path / "history.csv"
    file.write_text(as_csv(verl), encoding="utf-16")
    assert Measured.from_log(file).table.equals(Measured.from_log(as_csv(verl)).table)


def test_each_reading_says_its_key_and_lines():
    measured = Measured.from_log(as_json_lines(verl))
    reading = next(each for each in measured.readings if each.key == "timing_s/gen")
    assert (reading.first_line, reading.last_line, reading.count) == (1, 10, 10)
    in_csv = Measured.from_log(as_csv(verl))
    reading = next(each for each in in_csv.readings if each.key == "timing_s/step")
    assert (reading.first_line, reading.last_line, reading.count) == (2, 20, 10)


def test_progress_is_told_in_bytes_and_ends_with_all(tmp_path):
    file = tmp_path / "verl.log"
    file.write_text("no metric here, only words that fill the line\n" * 300_000 + as_console("verl"), encoding="utf-8")
    told = []
    Measured.from_log(file, progress=lambda done, size: told.append((done, size)))
    size = file.stat().st_size
    assert told == sorted(told)
    assert len(told) >= 3
    assert told[-1] == (size, size)


def test_a_named_framework_is_taken_however_it_is_spelled():
    assert Measured.from_log(as_json_lines(verl), "VeRL").framework == "verl"
    assert Measured.from_log(as_json_lines(SHAPES["NeMo-RL"][1]), "nemo_rl").framework == "nemo-rl"
    assert Measured.from_log(as_json_lines(slime), "miles").framework == "slime"


def test_the_names_of_every_framework_are_in_the_table_with_their_source():
    assert set(frameworks()) == {framework for framework, _ in SHAPES.values()}
    inner = {
        "gen_s", "not_training_s", "not_training_logged_ratio", "actor_train_s", "log_probs_s", "train_parts_s", "lag_samples",
        "sampling_step", "training_step",
    }  # fmt: skip
    for metric in metrics():
        assert metric.use in {"value", "part", "counter", "mark", "lies"}, metric
        assert (metric.column == "") == (metric.use in {"mark", "lies"}), metric
        assert metric.column in {"", *COLUMNS, *inner}, metric
        assert metric.trap in {"", *traps()}, metric
        assert metric.source in sources(), metric
    assert {each.trap for each in metrics()} >= traps().keys()


def test_step_s_of_the_shapes_adds_up():
    assert whole(3) == WAIT + TRAIN + SYNC
