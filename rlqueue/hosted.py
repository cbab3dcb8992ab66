"""Price lists of hosted RL post-training services: dated rows, dollars per million tokens by kind of token."""

from dataclasses import dataclass
from functools import cache

from rlqueue.provenance import parsed, table
from rlqueue.refusal import require_known


@dataclass(frozen=True, kw_only=True)
class HostedPrice:
    """One row of a price list [$/Mtok].

    Attributes:
        key: ``service/model/date`` as in data/hosted_prices.csv.
        prefill_usd_per_mtok: prompt tokens. sample_usd_per_mtok: sampled tokens. train_usd_per_mtok: both, trained.
    """

    key: str
    prefill_usd_per_mtok: float
    sample_usd_per_mtok: float
    train_usd_per_mtok: float

    def __post_init__(self) -> None:
        for name in ("prefill_usd_per_mtok", "sample_usd_per_mtok", "train_usd_per_mtok"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
                raise ValueError(f"{name}={value!r} must be a price in [0, 1e6) $/Mtok")


@cache
def hosted_price_keys() -> tuple[str, ...]:
    """Keys of the rows in data/hosted_prices.csv that give all three prices."""
    prices = [name for name in HostedPrice.__dataclass_fields__ if name != "key"]
    return tuple(row["key"] for row in table("hosted_prices") if all(row[name] for name in prices))


@cache
def hosted_price(key: str) -> HostedPrice:
    """The price row of that key. Raises ValueError for an unknown one."""
    require_known("hosted_price", key, hosted_price_keys())
    row = next(row for row in table("hosted_prices") if row["key"] == key)
    return HostedPrice(
        key=key, **{name: parsed(row[name]) for name in HostedPrice.__dataclass_fields__ if name != "key"}
    )
