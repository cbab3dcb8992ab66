"""What must fit: an LLM into the GPUs of a replica, and a sequence into the LLM's context."""

import math
from collections.abc import Mapping

from rlqueue.frameworks.facts import Fact
from rlqueue.hardware import gpu
from rlqueue.llm import Llm, llm

LARGEST_REPLICA = 4096


def _llm(found: Mapping[str, Fact]) -> Llm | None:
    return llm(found["llm"].value) if "llm" in found else None


def sized_replica(found: Mapping[str, Fact]) -> Fact | None:
    """gpus_per_replica where the file does not say it and the framework's default cannot hold the LLM.

    The smallest power of two n with ``n (HBM * memory_fraction - activations) >= weights + KV cache of one longest sequence``.
    None where nothing is to be sized.
    """
    shape, said = _llm(found), found.get("gpus_per_replica")
    lengths_known = "mean_prompt_tokens" in found and "max_response_tokens" in found
    if shape is None or (said is not None and said.origin == "read") or not lengths_known:
        return None
    numbers = [found[knob].value for knob in ("mean_prompt_tokens", "max_response_tokens", "memory_fraction")]
    numbers.append(found["activation_bytes_per_gpu"].value)
    if any(not isinstance(number, int | float) or isinstance(number, bool) for number in numbers):
        return None
    prompt, response, fraction, activations = numbers
    needed = shape.weights_bytes(str(found["generator_weights_precision"].value))
    needed += (prompt + response) * shape.kv_bytes_per_token(str(found["kv_precision"].value))
    room = gpu(str(found["generator_gpu"].value)).hbm_bytes * fraction - activations
    prefill = found["prefill_gpus_per_replica"].value if "prefill_gpus_per_replica" in found else 0
    if said is not None and (said.value - prefill) * room >= needed:
        return None
    if not 0 < room < math.inf or not needed / room <= LARGEST_REPLICA:
        return None
    gpus = 2 ** math.ceil(math.log2(max(1.0, needed / room)))
    note = f"the default of {said.value:g} cannot hold {shape.key}" if said is not None else f"what holds {shape.key}"
    return Fact(knob="gpus_per_replica", value=gpus, origin="assumed", givens=said.givens if said else (), note=note,
                formula="the smallest power of two whose memory holds the weights and one longest sequence")  # fmt: skip


def longest_context(found: Mapping[str, Fact]) -> dict[str, Fact]:
    """The LLM with a longer context, where the file serves longer sequences than the catalogue knows of it."""
    shape = _llm(found)
    lengths = [found[knob].value for knob in ("mean_prompt_tokens", "max_response_tokens") if knob in found]
    if shape is None or len(lengths) < 2 or not all(isinstance(length, int | float) for length in lengths):
        return {}
    longest = sum(lengths)
    if not shape.max_context_tokens < longest < 1e9:
        return {}
    fact = found["llm"]
    note = f"serves {longest:g} tokens, beyond the {shape.max_context_tokens} of the catalogue: an extended context"
    value = {"key": shape.key, "max_context_tokens": math.ceil(longest)}
    return {"llm": Fact(knob="llm", value=value, origin=fact.origin, givens=fact.givens, formula=fact.formula,
                        source=fact.source, where=fact.where, note=note)}  # fmt: skip
