"""Who holds the slots, and in how many optimizer steps a batch is trained, as configurations say it."""

from pathlib import Path

import pytest

from rlqueue import Scenario
from rlqueue.frameworks import read, read_text
from rlqueue.presets import preset
from rlqueue.provenance import Quantity

CONFIGS = Path(__file__).parent / "configs"
FULL = sorted(path for path in CONFIGS.iterdir() if path.is_file() and "base" not in path.name)
# tinker-cookbook gathers gradients over four pieces of a batch and steps once; an update here has a step of its own
ONE_STEP_FOR_FOUR_PIECES = {"tinker_recipe.py"}


@pytest.mark.parametrize(
    "path", [path for path in FULL if path.name not in ONE_STEP_FOR_FOUR_PIECES], ids=lambda path: path.name
)
def test_the_optimizer_steps_of_a_version_are_those_of_its_updates(path):
    """Two ways to one number: what is reported of a version, and the knobs of its steps."""
    reading = read(path)
    scenario = Scenario.from_config(path)
    reported = {fact.knob: fact.value for fact in reading.reported}.get("optimizer_updates_per_version", 1)
    updates = scenario.steps_per_publication * scenario.updates_per_step * scenario.minibatches_per_update
    assert updates == reported


def test_how_slots_are_held_and_batches_trained_is_the_file_s_own_affair_whatever_another_run_did(monkeypatch):
    held = {"slots_held_by": "group", "minibatches_per_update": 8}
    other = preset("slime-qwen3-235b") | {
        knob: Quantity(value=value, unit="", kind="assumed", source="rlqueue", where="a test", note="")
        for knob, value in held.items()
    }
    monkeypatch.setattr("rlqueue.frameworks.reading.preset", lambda _: other)
    values = read(CONFIGS / "prime_rl_head.toml", based_on="slime-qwen3-235b").values
    assert values["decode_efficiency"] == 0.2548
    assert not set(held) & set(values)
    assert read(CONFIGS / "areal.yaml", based_on="slime-qwen3-235b").values["minibatches_per_update"] == 2


def test_places_are_kept_by_groups_where_the_framework_s_code_keeps_them():
    miles = (CONFIGS / "miles_bounded.sh").read_text()
    flag = "--max-weight-staleness"
    assert flag in miles
    in_groups = miles.replace(flag, f"--rollout-submission-granularity group {flag}", 1)
    assert read_text(in_groups).values["slots_held_by"] == "group"
    # In step a batch is sent as a whole, and nothing is said of places
    in_step = read_text("python -m verl.trainer.main_ppo data.train_batch_size=1024 actor_rollout_ref.rollout.n=8")
    assert "slots_held_by" not in {fact.knob for fact in in_step.facts}
    assert in_step.fact("minibatches_per_update").value == 4  # mini-batches of 256, verl's default


def test_a_miles_file_without_a_limit_of_its_own_keeps_one_batch_in_flight():
    text = (CONFIGS / "miles_bounded.sh").read_text()
    limits = [line for line in text.splitlines() if "async" in line.lower() and "concurrent" in line.lower()]
    assert limits
    for line in limits:
        text = text.replace(f"{line}\n", "")
    assert read_text(text).values["concurrency"] == 32 * 8
