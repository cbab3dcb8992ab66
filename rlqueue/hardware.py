"""GPUs: what one of them can hold, read and compute, as its datasheet says."""

from dataclasses import dataclass
from functools import cache

from rlqueue.provenance import quantities, table
from rlqueue.refusal import require_known, require_positive


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU. Peaks are *dense* (no structured sparsity), tera is 10**12.

    Attributes:
        key: name in data/hardware.csv, e.g. ``h200_sxm``.
        hbm_bytes: memory [byte]. hbm_bytes_per_s: its bandwidth [byte/s].
        dense_bf16_flops_per_s, dense_fp8_flops_per_s: peak [FLOP/s].
    """

    key: str
    hbm_bytes: float
    hbm_bytes_per_s: float
    dense_bf16_flops_per_s: float
    dense_fp8_flops_per_s: float

    def __post_init__(self) -> None:
        require_positive(self, "hbm_bytes", "hbm_bytes_per_s", "dense_bf16_flops_per_s", "dense_fp8_flops_per_s")

    def peak_flops_per_s(self, precision: str) -> float:
        """Dense peak [FLOP/s] at a precision of the weights."""
        return self.dense_fp8_flops_per_s if precision == "fp8" else self.dense_bf16_flops_per_s


@cache
def gpu_keys() -> tuple[str, ...]:
    """Keys of the GPUs in data/hardware.csv."""
    return tuple(dict.fromkeys(row["entity"] for row in table("hardware")))


@cache
def gpu(key: str) -> Gpu:
    """The GPU of that key. Raises ValueError for an unknown one."""
    require_known("gpu", key, gpu_keys())
    facts = {name: float(fact.value) for name, fact in quantities("hardware", key).items()}
    bf16 = facts["dense_bf16_flops_per_s"]
    return Gpu(
        key=key,
        hbm_bytes=facts["hbm_bytes"],
        hbm_bytes_per_s=facts["hbm_bytes_per_s"],
        dense_bf16_flops_per_s=bf16,
        # A GPU without fp8 units computes fp8 weights at its bf16 rate.
        dense_fp8_flops_per_s=facts.get("dense_fp8_flops_per_s", bf16),
    )
