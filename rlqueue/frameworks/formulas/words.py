"""Words: which schedule a configuration amounts to, how its budget is kept, its precisions, and the LLM it names."""

from typing import Any

from rlqueue.llm import llm_keys
from rlqueue.provenance import table


def fixed(word: str) -> str:
    """what this framework does in this mode."""
    return word


def if_true(switch: Any, word_if: str, word_else: str) -> str:
    """the first word where the switch is on, else the second."""
    return word_if if switch is True else word_else


def if_not(switch: Any) -> bool:
    """true where the switch is off."""
    return switch is not True


def count_if(switch: Any) -> int:
    """1 where the switch is on, else 0."""
    return int(switch is True)


def overlapping(trains: object, generates: object, ratio: float) -> str:
    """partial-rollout where batches are asked for ahead; else colocated-sync on the same devices, sync on others."""
    if ratio > 0:
        return "partial-rollout"
    return "colocated-sync" if trains == generates else "sync"


def nemo_rl_schedule(in_flight: Any, recompute_cache: Any) -> str:
    """async-drain; with in_flight_weight_updates async-in-flight, and partial-rollout where the KV cache is recomputed.

    Source: nemo_rl/algorithms/grpo.py, async_grpo.
    """
    if in_flight is not True:
        return "async-drain"
    return "partial-rollout" if recompute_cache is True else "async-in-flight"


def whole_groups() -> str:
    """group: a prompt with all its answers takes one place, and gives it back when the last of them has ended."""
    return "group"


def granularity(unit: str) -> str | None:
    """group where a place is kept until the whole group returns, rollout where each sample frees its own.

    Source: miles/rollout/submission_scheduler.py.
    """
    return {"group": "group", "sample": "rollout"}.get(unit)


def granularity_of(slots_held_by: str) -> str | None:
    """group, where groups hold their places; sample is what fully asynchronous generation does anyway."""
    return "group" if slots_held_by == "group" else None


def drop_or_wait(strategy: str) -> str:
    """drop, or admission where the strategy is wait."""
    return "admission" if strategy == "wait" else "drop"


def precision(name: str) -> str | None:
    """fp8 where the word says so."""
    return "fp8" if "fp8" in str(name).lower() else None


def kv_precision(name: str) -> str | None:
    """fp8 or bf16, as the word says; auto is neither."""
    word = str(name).lower()
    return "fp8" if "fp8" in word else "bf16" if word in {"bf16", "bfloat16", "fp16", "half"} else None


def llm(name: str) -> str | None:
    """the entry of data/llms.csv whose name this path or name ends in.

    Precisions, formats and finetunes are taken off (-FP8, _torch_dist, -Instruct, -Base); other names of the same shape are
    in data/frameworks/llm_names.csv.
    """
    word = str(name).rstrip("/ ").rsplit("/", 1)[-1].lower().removesuffix(".sh").strip()
    known = {row["name"]: row["llm"] for row in table("frameworks/llm_names")}
    endings = [row["ending"] for row in table("frameworks/llm_endings")]
    for _ in range(5):
        if word in llm_keys():
            return word
        if word in known:
            return known[word]
        shorter = next((word.removesuffix(ending) for ending in endings if word.endswith(ending)), word)
        if shorter == word:
            return None
        word = shorter
    return None


def sourced_llm(programs: list[str]) -> str | None:
    """the LLM whose shape the script sources, such as models/qwen3-235B-A22B.sh."""
    return next((key for program in programs if "models/" in program and (key := llm(program))), None)


def in_flight_switch(schedule: str) -> bool:
    """true where weights change under the rollouts in flight."""
    return schedule in {"async-in-flight", "partial-rollout", "lent-trainer"}


def recompute_switch(schedule: str) -> bool:
    """true where the KV cache is computed again with the new weights."""
    return schedule == "partial-rollout"


def async_switch(schedule: str) -> bool:
    """true where generation and training overlap."""
    return schedule not in {"colocated-sync", "sync"}


def colocated_switch(schedule: str) -> bool:
    """true where all GPUs do both."""
    return schedule == "colocated-sync"


def colocated_flag(schedule: str) -> bool | None:
    """the flag, where all GPUs do both."""
    return True if schedule == "colocated-sync" else None


def fully_async_function(schedule: str) -> str | None:
    """slime's example of continuous generation, where generation never waits for a batch."""
    return (
        "fully_async_rollout.generate_rollout_fully_async"
        if in_flight_switch(schedule) or schedule == "async-drain"
        else None
    )
