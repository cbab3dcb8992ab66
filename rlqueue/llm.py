"""LLM shapes: parameters, experts, and the bytes that weights and KV cache take."""

from dataclasses import dataclass
from functools import cache

from rlqueue.provenance import parsed, table
from rlqueue.refusal import require_known, require_positive
from rlqueue.units import BYTES_PER_ELEMENT


@dataclass(frozen=True, kw_only=True)
class Llm:
    """The shape of one LLM, as far as speed and memory depend on it.

    Attributes:
        key: name in data/llms.csv.
        total_params, active_params: parameters in all, and used for one token.
        experts, experts_per_token: routed experts per layer and how many one token visits (1 and 1: dense).
        kv_bytes_per_token_bf16: KV cache of one token over all layers [byte], at two bytes an element.
        max_context_tokens: longest sequence [token].
    """

    key: str
    total_params: float
    active_params: float
    experts: int
    experts_per_token: int
    kv_bytes_per_token_bf16: float
    max_context_tokens: int

    def __post_init__(self) -> None:
        require_positive(
            self, "total_params", "active_params", "experts", "experts_per_token",
            "kv_bytes_per_token_bf16", "max_context_tokens",
        )  # fmt: skip
        if self.active_params > self.total_params:
            raise ValueError(
                f"active_params={self.active_params:g} must be <= total_params={self.total_params:g}: "
                "a token cannot use more parameters than there are"
            )
        if self.experts_per_token > self.experts:
            raise ValueError(f"experts_per_token={self.experts_per_token} must be <= experts={self.experts}")

    def weights_bytes(self, precision: str) -> float:
        """Bytes of all weights at a precision (``bf16`` or ``fp8``)."""
        return self.total_params * BYTES_PER_ELEMENT[precision]

    def kv_bytes_per_token(self, precision: str) -> float:
        """KV cache of one token [byte] at a precision."""
        return self.kv_bytes_per_token_bf16 * BYTES_PER_ELEMENT[precision] / BYTES_PER_ELEMENT["bf16"]

    @property
    def expert_params(self) -> float:
        """Parameters that sit in routed experts.

        active = shared + expert * k/E and total = shared + expert give expert = (total - active) / (1 - k/E).
        """
        skipped = 1.0 - self.experts_per_token / self.experts
        return (self.total_params - self.active_params) / skipped if skipped > 0 else 0.0


@cache
def llm_keys() -> tuple[str, ...]:
    """Keys of the LLMs in data/llms.csv."""
    return tuple(row["key"] for row in table("llms"))


@cache
def llm(key: str) -> Llm:
    """The LLM of that key. Raises ValueError for an unknown one."""
    require_known("llm", key, llm_keys())
    row = next(row for row in table("llms") if row["key"] == key)
    names = tuple(name for name in Llm.__dataclass_fields__ if name != "key")
    return Llm(key=key, **{name: parsed(row[name]) for name in names})
