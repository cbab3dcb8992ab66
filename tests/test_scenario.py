"""Scenarios: files and presets in, the same out, and every impossible value refused by name, value and limit."""

import contextlib
import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue import Scenario
from rlqueue.presets import preset, preset_names
from rlqueue.provenance import KINDS, sources

PRIME = Scenario.from_data("prime-rl-qwen3-235b")
BASED = 'based_on = "prime-rl-qwen3-235b"\n'


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_round_trips_through_toml(name):
    scenario = Scenario.from_data(name)
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_a_scenario_with_parts_of_its_own_round_trips_through_a_file(tmp_path):
    scenario = dataclasses.replace(
        PRIME,
        name="mine",
        llm=dataclasses.replace(PRIME.llm, key="my-llm", active_params=3e9),
        node=dataclasses.replace(PRIME.node, usd_per_kwh=0.31),
        hosted_price=None,
        gpu_hour_usd=2.5,
        sandbox_cap=400,
        sandbox_creates_per_s=math.inf,
    )
    file = tmp_path / "mine.toml"
    file.write_text(scenario.to_toml(), encoding="utf-8")
    back = Scenario.from_file(file)
    assert back.node.usd_per_kwh == 0.31
    assert back == dataclasses.replace(scenario, hosted_price=back.hosted_price)
    assert back == scenario


@given(
    concurrency=st.integers(1, 10**6),
    max_staleness=st.floats(0, 1e3),
    mean_response_tokens=st.floats(1.0, 27000.0),
    prefix_cache=st.booleans(),
    name=st.text(max_size=30),
)
def test_any_values_inside_the_limits_round_trip(**knobs):
    scenario = dataclasses.replace(PRIME, **knobs)
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_a_file_names_only_what_differs_from_its_preset():
    scenario = Scenario.from_toml(BASED + "concurrency = 512\nnode = { key = 'h200', usd_per_kwh = 0.2 }", name="file")
    assert scenario == dataclasses.replace(
        PRIME, name="file", concurrency=512, node=dataclasses.replace(PRIME.node, usd_per_kwh=0.2)
    )


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("group_size", 1, r"group_size=1 must be >= 2.*one rollout is no group"),
        ("trainer_gpus", 0, r"trainer_gpus=0 must be >= 1"),
        ("trainer_gpus", 64.5, r"trainer_gpus=64.5 must be a whole number"),
        ("trainer_gpus", True, r"trainer_gpus=True must be a whole number"),
        ("trainer_gpus", "64", r"trainer_gpus='64' must be a whole number"),
        ("cluster_gpus", 200, r"trainer_gpus=64 \+ generator_gpus=192 = 256 must be <= cluster_gpus=200"),
        ("generator_gpus", 4, r"generator_gpus=4 must be >= gpus_per_replica=8: the split holds no whole replica"),
        ("memory_fraction", 0.2, r"KV cache .* one sequence of 32768 tokens does not fit"),
        ("memory_fraction", 0.0, r"memory_fraction=0 must be > 0"),
        ("memory_fraction", 1.01, r"memory_fraction=1.01 must be <= 1"),
        ("mfu", math.nan, r"mfu=nan must be a finite number"),
        ("concurrency", math.inf, r"concurrency=inf must be a whole number"),
        ("max_staleness", math.inf, r"max_staleness=inf must be a finite number version"),
        ("concurrency", 10**400, r"concurrency=<a number of 401 digits> must be <= 1e\+15"),
        ("tool_call_s", 10**400, r"tool_call_s=<a number of 401 digits> must be <= 1e\+15"),
        ("tool_call_s", 1e300, r"tool_call_s=1e\+300 must be <= 1e\+15"),
        ("max_staleness", -1, r"max_staleness=-1 must be >= 0 version"),
        ("mean_response_tokens", 27177, r"mean_response_tokens=27177 must be < max_response_tokens=27177"),
        ("max_response_tokens", 300000, r"= 305591 must be <= 262144, the longest context"),
        ("minibatches_per_update", 7, r"minibatches_per_update=7 must divide the 512 rollouts of an update"),
        ("batch_fetch_s", -1.0, r"batch_fetch_s=-1 must be >= 0 s"),
        ("slots_held_by", "prompt", r"slots_held_by='prompt' is not known, must be one of rollout, group"),
        ("updates_per_step", 5, r"updates_per_step=5 must divide prompts_per_step=32"),
        ("prefill_gpus_per_replica", 8, r"prefill_gpus_per_replica=8 must be < gpus_per_replica=8"),
        ("schedule", "asynch", r"schedule='asynch' is not known"),
        ("schedule", 3, r"schedule=3 must be text"),
        ("staleness_family", "dropp", r"did you mean drop"),
        ("llm", "qwen3-235b", r"llm='qwen3-235b' is not known; did you mean .*qwen3-235b-a22b"),
        ("llm", 3, r"llm=3 must be a key of the data files or a table"),
        ("hosted_price", {"key": "x"}, r"hosted_price lacks prefill_usd_per_mtok"),
        ("node", {"key": "h200", "usd_per_kw": 1}, r"did you mean usd_per_kwh"),
        ("node", {"key": "h200", "usd_per_kwh": "1"}, r"node.usd_per_kwh='1' must be a number"),
        ("trainer_gpu", {"key": "h200_sxm", "hbm_bytes": -1.0}, r"hbm_bytes=-1.0 must be a finite number > 0"),
        ("measured_run", "../secret", r"measured_run='../secret' is not known"),
        ("oversampling_factor", 0.5, r"oversampling_factor=0.5 must be >= 1"),
    ],
)
def test_an_impossible_value_is_refused_by_name_value_and_limit(knob, value, message):
    with pytest.raises(ValueError, match=message):
        Scenario.from_values({key: fact.value for key, fact in preset(PRIME.name).items()} | {knob: value}, name="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASED + "concurency = 3", r"knob='concurency' is not known; did you mean concurrency"),
        (BASED + "concurrency = ", r"not valid TOML"),
        ("concurrency = 3", r"lacks llm, trainer_gpu, .*or name a preset as based_on"),
        ('based_on = "prime"', r"preset='prime' is not known"),
        ("based_on = 3", r"based_on=3 must be the name of a preset"),
    ],
)
def test_a_bad_scenario_file_is_refused_with_its_reason(tmp_path, text, message):
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Scenario.from_file(file)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00", b"[" * 10_000])
def test_a_file_that_is_no_text_or_no_toml_is_refused(tmp_path, content):
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read|not valid TOML"):
        Scenario.from_file(file)


@given(st.text(max_size=300))
def test_arbitrary_text_is_a_scenario_or_a_value_error(text):
    # any other exception fails
    with contextlib.suppress(ValueError):
        Scenario.from_toml(BASED + text)


def test_a_missing_file_is_refused():
    with pytest.raises(ValueError, match=r"scenario file nowhere.toml: cannot be read"):
        Scenario.from_file("nowhere.toml")


def test_a_scenario_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRIME.concurrency = 3


def test_words_of_a_command_line_reach_knobs_and_their_parts():
    changed = PRIME.with_text({"concurrency": "512", "prefix_cache": "false", "node.usd_per_kwh": "0.2", "llm": "glm-5",
                               "gpu_hour_usd": "none", "gpus_per_replica": "64"})  # fmt: skip
    assert (changed.concurrency, changed.prefix_cache, changed.node.usd_per_kwh) == (512, False, 0.2)
    assert changed.llm.key == "glm-5"
    with pytest.raises(ValueError, match=r"did you mean node.usd_per_kwh"):
        PRIME.with_text({"usd_per_kwh": "0.2"})


@pytest.mark.parametrize("name", preset_names())
def test_every_knob_of_a_preset_has_a_unit_a_kind_and_a_known_source(name):
    for knob, fact in preset(name).items():
        assert fact.kind in KINDS, knob
        assert fact.unit, knob
        assert fact.source in sources(), knob
        if fact.kind in ("assumed", "derived", "calibrated"):
            assert fact.note or fact.where, f"{knob} does not say why"


def test_every_knob_explains_itself():
    for each in dataclasses.fields(Scenario):
        assert each.metadata["meaning"], each.name
