"""A framework's file on the command line: solved, read and pasted; anything else ends with status 2 and no traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlqueue import Scenario
from rlqueue.cli import main
from rlqueue.cli.configs import scenario_named
from rlqueue.frameworks import read

CONFIGS = Path(__file__).parent / "configs"
NO_WISHES = {"framework": None, "based_on": None, "llm": None, "variables": {}}


def test_solve_takes_a_framework_s_file_and_tells_its_reading_on_stderr(capsys):
    assert main(["solve", str(CONFIGS / "areal.yaml"), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["scenario"] == "areal"
    assert found["step_s"] > 0
    assert "max_staleness = 2  <- rollout.max_head_offpolicyness=2 [line 9]" in said.err
    assert "not in the file: the framework's default:" in said.err
    assert "assumed by us:" in said.err


def test_overrides_reach_a_framework_s_file(capsys):
    file = str(CONFIGS / "slime_async.sh")
    assert main(["solve", file, "--json", "--set", "mfu=0.3", "--variable", "NODES=4"]) == 0
    said = capsys.readouterr()
    assert "trainer_gpus = 32  <- actor-num-nodes=4" in said.err


def test_an_override_mends_a_file_that_makes_no_scenario_alone(capsys, tmp_path):
    path = tmp_path / "one.toml"
    path.write_text("[model]\nname = 'Qwen/Qwen3-8B'\n[orchestrator]\nbatch_size = 64\n")
    assert main(["solve", str(path)]) == 2
    assert "group_size=1 must be >= 2" in capsys.readouterr().err
    assert main(["solve", str(path), "--set", "group_size=8"]) == 0
    assert "group_size = 8  <- group_size=8  (as you say)" in capsys.readouterr().err
    assert main(["solve", str(path), "--set", "group_sise=8"]) == 2
    assert "knob='group_sise' is not known; did you mean group_size" in capsys.readouterr().err


def test_read_lists_where_each_value_comes_from(capsys):
    assert main(["read", str(CONFIGS / "verl_v1.yaml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["framework"] == "verl"
    fact = found["facts"]["max_staleness"]
    assert (fact["value"], fact["origin"]) == (8, "read")
    assert fact["from"][0]["key"] == "trainer.v1.sampler.max_off_policy_threshold"
    assert fact["from"][0]["place"] == "line 28"
    assert fact["formula"] == "max_staleness = max_off_policy_threshold: versions since the first token"
    assert set(found["facts"]) == {fact.knob for fact in read(CONFIGS / "verl_v1.yaml").facts}
    assert {entry["origin"] for entry in found["facts"].values()} == {"read", "defaulted", "assumed"}
    assert main(["read", str(CONFIGS / "verl_v1.yaml")]) == 0
    assert capsys.readouterr().out.startswith("verl configuration 'verl_v1', v1, separate_async\n")


def test_read_tells_what_is_missing_and_solve_refuses_it(capsys, tmp_path):
    path = tmp_path / "run.sh"
    path.write_text("python train.py --hf-checkpoint other/Model-3B --rollout-batch-size 8 --n-samples-per-prompt 8\n")
    assert main(["read", str(path), "--framework", "slime"]) == 0
    shown = capsys.readouterr().out
    assert "missing: hf-checkpoint='other/Model-3B' is not in the catalogue of LLMs: choose one with llm=" in shown
    assert "missing: generator_gpus is missing: it follows from rollout-num-gpus" in shown
    assert main(["solve", str(path), "--framework", "slime"]) == 2
    assert "generator_gpus is missing" in capsys.readouterr().err


@pytest.mark.parametrize("framework", ["prime-rl", "verl", "slime", "areal", "nemo-rl"])
def test_paste_writes_a_file_that_is_read_back(capsys, tmp_path, framework):
    assert main(["paste", "slime-qwen3-235b", "--framework", framework]) == 0
    text = capsys.readouterr().out
    ending = {"prime-rl": "toml", "verl": "sh", "slime": "sh", "areal": "yaml", "nemo-rl": "yaml"}[framework]
    path = tmp_path / f"back.{ending}"
    path.write_text(text)
    reading = read(path, based_on="slime-qwen3-235b")
    assert reading.framework == framework
    assert (reading.values["trainer_gpus"], reading.values["generator_gpus"]) == (32, 64)


def test_paste_turns_one_framework_s_file_into_another_s(capsys):
    assert main(["paste", str(CONFIGS / "areal.yaml"), "--framework", "prime-rl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lines = {line["key"]: line["value"] for line in found["lines"]}
    assert lines["orchestrator.max_off_policy_steps"] == 2
    assert lines["deployment.num_train_nodes"] == 6
    assert "[orchestrator]" in found["text"]


def test_a_scenario_file_is_no_framework_s(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('based_on = "slime-qwen3-235b"\nconcurrency = 512\n')
    scenario, reading = scenario_named(str(path), NO_WISHES)
    assert (scenario.concurrency, reading) == (512, None)
    path.write_text(Scenario.from_data("slime-qwen3-235b").to_toml())
    assert scenario_named(str(path), NO_WISHES) == (Scenario.from_data("slime-qwen3-235b"), None)
    path.write_text("concurency = 512\n")
    with pytest.raises(ValueError, match="knob='concurency' is not known; did you mean concurrency"):
        scenario_named(str(path), NO_WISHES)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "a: !!python/object/apply:os.system ['touch x']", "the YAML tag"),
        ("a.yaml", "a: [", "not valid YAML"),
        ("a.toml", "[orchestrator\n", "not valid TOML"),
        ("a.sh", "echo hello\n", "no known framework"),
        ("a.py", "def f(:\n", "not valid Python"),
        ("a.sh", "x" * 300_000, "must be <= 250,000"),
        ("a.sh", "python train.py\0", "zero byte"),
        ("a.txt", "", "no known framework"),
    ],
)
def test_a_bad_file_goes_to_stderr_with_status_2(capsys, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    for command in ("solve", "read"):
        assert main([command, str(tmp_path / name)]) == 2
        said = capsys.readouterr()
        assert message in said.err
        assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["read", "nowhere.yaml"], "cannot be read (No such file"),
        (["solve", "nowhere.sh"], "cannot be read (No such file"),
        (
            ["read", str(CONFIGS / "areal.yaml"), "--framework", "are"],
            "framework='are' is not known; did you mean areal",
        ),
        (["read", str(CONFIGS / "areal.yaml"), "--framework", "slime"], "no key of slime"),
        (["read", str(CONFIGS / "areal.yaml"), "--llm", "qwen3"], "llm='qwen3' is not known"),
        (["read", str(CONFIGS / "areal.yaml"), "--based-on", "slime"], "preset='slime' is not known"),
        (["read", str(CONFIGS / "areal.yaml"), "--variable", "N"], "must have the form NAME=VALUE"),
        (["paste", "slime-qwen3-235b", "--framework", "roll"], "framework='roll' is not known"),
    ],
)
def test_a_bad_wish_goes_to_stderr_with_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_a_failing_process_shows_no_traceback(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe\xff\x00\x00")
    ended = subprocess.run(
        [sys.executable, "-m", "rlqueue.cli", "solve", str(path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith("rlqueue: ")
