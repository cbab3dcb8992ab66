"""What an hour of an owned GPU costs: capital as an annuity, operation by the month."""

from dataclasses import dataclass, fields
from functools import cache

from rlqueue.provenance import quantities, table
from rlqueue.refusal import require_known, require_positive


@dataclass(frozen=True, kw_only=True)
class NodeTco:
    """What is paid for one server (node) of several GPUs: the inputs of ``tco``.

    Attributes:
        key: name in data/h200_tco.csv.
        server_usd ... software_usd: capital outlay per server [$].
        wacc_per_year: weighted average cost of capital [1/year]; useful_life_years [year].
        kw_per_server: power at full load, network and storage included [kW]; usd_per_kwh [$/kWh];
        utilisation_ratio, pue_ratio: mean load over full load; facility power over IT power.
        colocation_usd_per_kw_month [$/kW-month]; remote_hands_usd_per_month, internet_usd_per_month [$/month].
        hours_per_month: 730 in the source [h].
    """

    key: str
    server_usd: float
    networking_usd: float
    storage_usd: float
    server_service_usd: float
    installation_usd: float
    software_usd: float
    gpus_per_server: int
    wacc_per_year: float
    useful_life_years: float
    kw_per_server: float
    usd_per_kwh: float
    utilisation_ratio: float
    pue_ratio: float
    colocation_usd_per_kw_month: float
    remote_hands_usd_per_month: float
    internet_usd_per_month: float
    hours_per_month: float

    def __post_init__(self) -> None:
        free = ("key", "usd_per_kwh", "wacc_per_year", "colocation_usd_per_kw_month", "remote_hands_usd_per_month",
                "internet_usd_per_month", "networking_usd", "storage_usd", "server_service_usd", "installation_usd",
                "software_usd", "utilisation_ratio")  # fmt: skip
        require_positive(self, *(f.name for f in fields(self) if f.name not in free))
        for name in free[1:]:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
                raise ValueError(f"{name}={value!r} must be a finite number >= 0")
        for name, low, high in (("utilisation_ratio", 0.0, 1.0), ("pue_ratio", 1.0, 10.0), ("wacc_per_year", 0.0, 1.0)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}={getattr(self, name)!r} must be in [{low:g}, {high:g}]")


@dataclass(frozen=True, kw_only=True)
class GpuHour:
    """The cost of ownership that follows from a ``NodeTco``, with the steps in between."""

    capex_usd_per_server: float
    capex_usd_per_gpu: float
    capital_usd_per_server_month: float
    electricity_usd_per_kw_month: float
    power_and_colocation_usd_per_server_month: float
    power_and_colocation_usd_per_gpu_month: float
    operating_usd_per_server_month: float
    operating_usd_per_gpu_month: float
    capital_usd_per_gpu_hour: float
    operating_usd_per_gpu_hour: float
    total_usd_per_gpu_hour: float
    capital_share: float


@cache
def node_keys() -> tuple[str, ...]:
    """Keys of the nodes in data/h200_tco.csv."""
    return tuple(dict.fromkeys(row["entity"] for row in table("h200_tco")))


@cache
def node_tco(key: str) -> NodeTco:
    """The inputs of that key. Raises ValueError for an unknown one."""
    require_known("node", key, node_keys())
    facts = quantities("h200_tco", key)
    return NodeTco(key=key, **{f.name: facts[f.name].value for f in fields(NodeTco) if f.name != "key"})


@cache
def tco(node: NodeTco | None = None) -> GpuHour:
    """Cost of ownership of one GPU-hour.

    Capital is an annuity paid at each month's end: ``capex * r / (1 - (1 + r)**-n)`` with r = WACC / 12 and n = 12 *
    life. Operation is ``kW * (usd_per_kwh * PUE * utilisation * hours + colocation) + remote hands + internet``.

    Args:
        node: the inputs; the H200 node of the report when None.

    Source: SemiAnalysis AI TCO model as printed in "RL Systems: Mind the Gap" (table of the H200 server).
    """
    node = node or node_tco("h200")
    capex = (
        node.server_usd + node.networking_usd + node.storage_usd
        + node.server_service_usd + node.installation_usd + node.software_usd
    )  # fmt: skip
    r, n = node.wacc_per_year / 12, 12 * node.useful_life_years
    capital = capex * r / (1 - (1 + r) ** -n) if r > 0 else capex / n
    electricity = node.usd_per_kwh * node.pue_ratio * node.utilisation_ratio * node.hours_per_month
    power = node.kw_per_server * (electricity + node.colocation_usd_per_kw_month)
    operating = power + node.remote_hands_usd_per_month + node.internet_usd_per_month
    gpu_hours = node.gpus_per_server * node.hours_per_month
    return GpuHour(
        capex_usd_per_server=capex,
        capex_usd_per_gpu=capex / node.gpus_per_server,
        capital_usd_per_server_month=capital,
        electricity_usd_per_kw_month=electricity,
        power_and_colocation_usd_per_server_month=power,
        power_and_colocation_usd_per_gpu_month=power / node.gpus_per_server,
        operating_usd_per_server_month=operating,
        operating_usd_per_gpu_month=operating / node.gpus_per_server,
        capital_usd_per_gpu_hour=capital / gpu_hours,
        operating_usd_per_gpu_hour=operating / gpu_hours,
        total_usd_per_gpu_hour=(capital + operating) / gpu_hours,
        capital_share=capital / (capital + operating),
    )
