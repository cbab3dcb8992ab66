"""Hosted prices: how they moved, what any model of the lists costs for a run's tokens, and the break-even of each."""

from statistics import median

from rlqueue.cost import hosted_usd_per_mtok
from rlqueue.hosted import hosted_price, hosted_price_keys
from rlqueue.provenance import table
from rlqueue.report import drawing
from rlqueue.report.break_even import Case
from rlqueue.report.content import Column, Figure, Table
from rlqueue.report.drawing import GREY, ORANGE, axis

LISTS = ("tinker-prices-2026-01", "tinker-prices-2026-03", "tinker-prices-2026-07-02", "tinker-prices-2026-07-17",
         "tinker-prices-2026-10")  # fmt: skip
BEFORE, AFTER = "2026-07-02", "2026-07-17"
"""Dates of the lists on both sides of the rise, as in data/hosted_prices.csv."""


def rows() -> list[dict[str, str]]:
    """The rows of the price lists that give all three prices."""
    keys = set(hosted_price_keys())
    return [row for row in table("hosted_prices") if row["key"] in keys]


def trained(row: dict[str, str], case: Case) -> float:
    """The price of a trained Mtok with the mix of tokens of that run [$/Mtok]."""
    return hosted_usd_per_mtok(
        hosted_price(row["key"]), case.scenario.mean_prompt_tokens, case.scenario.mean_response_tokens
    )


def moved(case: Case) -> dict[str, dict[str, float]]:
    """Models with several dated rows at one service: date to price of a trained Mtok [$/Mtok]."""
    found: dict[str, dict[str, float]] = {}
    for row in rows():
        if row["date"] and row["service"] == "tinker":
            found.setdefault(row["model"], {})[row["date"]] = trained(row, case)
    return {model: prices for model, prices in found.items() if len(prices) > 1}


def rise(case: Case) -> dict[str, float]:
    """Models on the lists before and after: new price over old, less 1; the largest first."""
    changed = {
        model: prices[AFTER] / prices[BEFORE] - 1
        for model, prices in moved(case).items()
        if BEFORE in prices and AFTER in prices
    }
    return dict(sorted(changed.items(), key=lambda item: (-item[1], item[0])))


def history(case: Case) -> Figure:
    """Prices of every model that several lists name, by date."""
    found = sorted(moved(case).items(), key=lambda item: -max(item[1].values()))
    traces = [
        drawing.line(_short(model), list(prices), [prices[date] for date in prices], drawing.PALETTE[place % 7],
                     ("solid", "dash", "dot", "dashdot")[place // 7 % 4])
        | {"mode": "lines+markers", "marker": {"size": 6}}
        for place, (model, prices) in enumerate(found)
    ]  # fmt: skip
    return Figure(
        name="hosted-price-history",
        title="How hosted prices moved",
        units=f"$/Mtok of trained tokens with the token mix of {case.title}, logarithmic, by date of the price list "
        "· each point is a listed price",
        says=f"{len(found)} models stand on several dated lists of one service. Train prices of the last list are "
        "those of July 2026.",
        kind="arithmetic",
        fitted="Nothing: listed prices, weighted by the prompt share of the run.",
        sources=LISTS,
        plot=drawing.plot(
            traces,
            axis("date of the price list", type="date"),
            axis("$/Mtok", tickprefix="$", type="log", dtick="D2"),
            height=560,
            legend={"orientation": "h", "y": -0.18, "yanchor": "top", "x": 0, "font": {"size": 11}},
        ),
    )


def july(case: Case) -> Figure:
    """The rise of July 2026, model by model."""
    changes, prices = rise(case), moved(case)
    models = list(reversed(changes))
    names = [_short(model) for model in models]
    middle = median(changes.values())
    still = sum(abs(change) < 0.005 for change in changes.values())
    most = max(changes, key=lambda model: changes[model])
    least = min(changes, key=lambda model: changes[model])
    return Figure(
        name="hosted-price-rise",
        title="The rise of July 2026",
        units=f"$/Mtok of trained tokens with the token mix of {case.title}, before and after · listed prices of "
        f"{BEFORE} and {AFTER}",
        says=f"Of {len(changes)} models on both lists the median rose by {middle:.0%}; from {changes[least]:+.0%} "
        f"({_short(least)}) to {changes[most]:+.0%} ({_short(most)}); {still} stayed. At the median rise the hosted "
        f"price of this run, ${case.hosted:.2f}, would be ${case.hosted * (1 + middle):.2f}. Qwen3-235B itself, the "
        "model of the comparison, is on neither list.",
        kind="arithmetic",
        fitted="Nothing: listed prices, weighted by the prompt share of the run.",
        sources=LISTS[2:4],
        plot=drawing.plot(
            [
                drawing.line(f"before, {BEFORE}", [prices[model][BEFORE] for model in models], names, GREY)
                | {"mode": "markers", "marker": {"size": 9, "color": GREY}, "y": names},
                drawing.line(f"after, {AFTER}", [prices[model][AFTER] for model in models], names, ORANGE)
                | {"mode": "markers", "marker": {"size": 9, "color": ORANGE}, "y": names},
            ],
            axis("$/Mtok", tickprefix="$", rangemode="tozero"),
            axis("", type="category"),
            height=140 + 22 * len(models),
            margin={"l": 90, "r": 20, "t": 12, "b": 52},
        ),
    )


def all_prices(cases: list[Case]) -> Table:
    """Every row of the lists with the price of a trained Mtok for each priced run, and its break-even GPU-hour."""
    found = []
    for row in rows():
        prices = [trained(row, case) for case in cases]
        even = [
            price / case.bill.usd_per_mtok * case.bill.usd_per_gpu_hour
            for price, case in zip(prices, cases, strict=True)
        ]
        found.append(
            (
                row["model"], row["service"], row["date"] or "undated", float(row["prefill_usd_per_mtok"]),
                float(row["sample_usd_per_mtok"]), float(row["train_usd_per_mtok"]), *prices, *even, row["kind"],
            )
        )  # fmt: skip
    short = [case.title.split(" · ")[0] for case in cases]
    columns = [name.lower().replace(" ", "_") for name in short]
    return Table(
        name="hosted_prices",
        title="Any model in the price lists",
        says="The price of a trained Mtok with the token mix of each run, and the GPU-hour price at which the "
        "run's own cluster would cost the same. The runs train Qwen3-235B: for another model the last two columns "
        "compare its price with the cost of training that one. Rows without a train price are left out.",
        columns=(
            Column(name="model", title="Model"),
            Column(name="service", title="Service"),
            Column(name="date", title="Date"),
            Column(name="prefill_usd_per_mtok", title="Prefill", unit="$/Mtok", digits=3),
            Column(name="sample_usd_per_mtok", title="Sample", unit="$/Mtok", digits=3),
            Column(name="train_usd_per_mtok", title="Train", unit="$/Mtok", digits=3),
            *(
                Column(name=f"{column}_usd_per_mtok", title=name, unit="$/Mtok trained")
                for column, name in zip(columns, short, strict=True)
            ),
            *(
                Column(name=f"{column}_break_even_usd_per_gpu_hour", title=f"{name} even at", unit="$/GPU-hour")
                for column, name in zip(columns, short, strict=True)
            ),
            Column(name="kind", title="Kind"),
        ),
        rows=tuple(found),
        sources=(*LISTS, "prime-hosted-plans", "prime-hosted-docs"),
        folded=True,
    )  # fmt: skip


def _short(model: str) -> str:
    """A model's name without its owner."""
    return model.rpartition("/")[2].replace(":peft:", " at context ")
