"""Figures of cost that the source prints values for: self-built against hosted, and what a GPU-hour consists of."""

from rlqueue.cost import cost, measured_report_method
from rlqueue.presets import reported
from rlqueue.queueing import solve
from rlqueue.report import drawing
from rlqueue.report.assumptions import PRICED, TITLES, Assumptions
from rlqueue.report.content import NODE, REPORT, Figure, mean_error
from rlqueue.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, YELLOW, axis
from rlqueue.report.tables import NODE_LINES, hosted_mean
from rlqueue.tco import tco


def cost_comparison(assumptions: Assumptions) -> Figure:
    """Self-built against hosted, as bars."""
    labels = [TITLES[name].split(" · ")[0] for name in PRICED]
    runs = [assumptions.scenario(name) for name in PRICED]
    own = [measured_report_method(each) for each in runs]
    clock = [cost(each, solve(each)).usd_per_mtok for each in runs]
    hosted = [hosted_mean(each) for each in runs]
    printed = {
        key: [float(reported(name)[key].value) for name in PRICED]
        for key in ("usd_per_mtok_report_method", "hosted_usd_per_mtok")
    }
    by_method = ", ".join(f"{label} {a / c:.2f}x" for label, a, c in zip(labels, own, hosted, strict=True))
    by_clock = ", ".join(f"{label} {b / c:.2f}x" for label, b, c in zip(labels, clock, hosted, strict=True))
    off = max(
        mean_error(own, printed["usd_per_mtok_report_method"]), mean_error(hosted, printed["hosted_usd_per_mtok"])
    )
    return Figure(
        name="cost-comparison",
        title="What a trained Mtok costs: self-built against hosted",
        units="$/Mtok of trained tokens · bars: computed · diamonds: printed",
        says=f"Self-built over hosted by the report's method: {by_method}. By wall-clock: {by_clock}. The printed "
        f"numbers are met by the report's method to the cent (largest error {100 * off:.2f} %); no wall-clock "
        "figure is printed.",
        kind="arithmetic and closed form",
        fitted="The report's method is arithmetic on printed lengths, times and prices. The wall-clock cost of "
        "Prime RL follows from the printed production; that of slime from a concurrency fitted to its printed wait "
        "and an assumed MFU.",
        sources=(REPORT, NODE, "tinker-prices-2026-03"),
        overlay=(("reported", "usd_per_mtok_report_method"), ("reported", "hosted_usd_per_mtok")),
        plot=drawing.plot(
            [
                drawing.bars("self-built, report's method", labels, own, GREY, offsetgroup="a"),
                drawing.bars("self-built, wall-clock", labels, clock, BLUE, offsetgroup="b"),
                drawing.bars("hosted", labels, hosted, ORANGE, offsetgroup="c"),
                drawing.points("printed: report's method", [i - 0.267 for i in range(len(labels))],
                               printed["usd_per_mtok_report_method"], xaxis="x2"),
                drawing.points("printed: hosted", [i + 0.267 for i in range(len(labels))], printed["hosted_usd_per_mtok"],
                               xaxis="x2"),
            ],
            axis("", type="category"),
            axis("$/Mtok", tickprefix="$", rangemode="tozero"),
            barmode="group",
            xaxis2={"overlaying": "x", "range": [-0.5, len(labels) - 0.5], "visible": False},
        ),
    )  # fmt: skip


CAPEX_COLOURS = (BLUE, SKY, GREEN, PURPLE, ORANGE, GREY)
OPEX_COLOURS = (YELLOW, "#8C564B", "#AAAAAA")


def tco_breakdown(assumptions: Assumptions) -> Figure:
    """What a GPU-hour consists of."""
    node, facts = assumptions.node, reported("h200-tco")
    found = tco(node)
    per_hour = node.gpus_per_server * node.hours_per_month
    capital = [
        (title, found.capital_usd_per_gpu_hour * getattr(node, name) / found.capex_usd_per_server)
        for name, title, _ in NODE_LINES[:6]
    ]
    operation = [
        ("Electricity", node.kw_per_server * found.electricity_usd_per_kw_month / per_hour),
        ("Colocation", node.kw_per_server * node.colocation_usd_per_kw_month / per_hour),
        ("Remote hands and internet", (node.remote_hands_usd_per_month + node.internet_usd_per_month) / per_hour),
    ]
    places = ["capital", "operation", "together"]
    data = [
        drawing.bars(title, places, [value, 0, value], colour)
        for (title, value), colour in zip(capital, CAPEX_COLOURS, strict=True)
    ]
    data += [
        drawing.bars(title, places, [0, value, value], colour, marker={"color": colour, "pattern": {"shape": "/"}})
        for (title, value), colour in zip(operation, OPEX_COLOURS, strict=True)
    ]
    keys = ("capital_usd_per_gpu_hour", "operating_usd_per_gpu_hour", "total_usd_per_gpu_hour")
    printed, computed = [float(facts[key].value) for key in keys], [getattr(found, key) for key in keys]
    off = ", ".join(f"{a:.4f} against {b:.2f}" for a, b in zip(computed, printed, strict=True))
    summary = float(reported("summary")["usd_per_gpu_month"].value)
    return Figure(
        name="tco-breakdown",
        title="What an H200 GPU-hour costs to own",
        units="$/GPU-hour · bars: computed from the inputs of the cost table · diamonds: printed totals",
        says=f"Computed against printed: {off}. Capital is {found.capital_share:.1%}. The summary's ${summary:g} a "
        f"GPU-month is power and colocation alone (${found.power_and_colocation_usd_per_gpu_month:.2f}); remote "
        f"hands and internet make it ${found.operating_usd_per_gpu_month:.2f}, and capital "
        f"${found.total_usd_per_gpu_hour * node.hours_per_month:,.2f}.",
        kind="arithmetic",
        fitted="Nothing: inputs are printed, totals computed. The power of a server is derived from the printed "
        "monthly bill, since the printed power is rounded.",
        sources=(NODE,),
        overlay=tuple(("reported", key) for key in keys),
        plot=drawing.plot(
            [*data, drawing.points("printed", places, printed)],
            axis(""),
            axis("$/GPU-hour", tickprefix="$", rangemode="tozero"),
            barmode="stack",
        ),
    )
