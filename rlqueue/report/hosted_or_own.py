"""Figures and table of hosted against self-built: one break-even curve per quantity that decides it."""

from rlqueue.report import drawing
from rlqueue.report.assumptions import PRIME
from rlqueue.report.break_even import CURVES, Case, Curve, cached_share
from rlqueue.report.content import NODE, OWN, REPORT, Column, Figure, Table
from rlqueue.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, axis

SOURCES = (REPORT, NODE, "tinker-prices-2026-03", "tinker-prices-2026-10", OWN)
FITTED = (
    "Concurrency and decode efficiency of both runs are fitted (see the list of what calibrates what); the MFU of "
    "slime is assumed. Sandboxes are free here, as in the source."
)
COLOURS = (BLUE, ORANGE)
SHARE = {"tickformat": ".0%"}


def _short(case: Case) -> str:
    return case.title.split(" · ")[0]


def _where(case: Case, curve: Curve, written: str) -> str:
    """Where the two costs meet, in words."""
    if curve.meets is None:
        cheaper = "self-built" if (curve.own < curve.hosted).mean() > 0.5 else "hosted"
        return f"{_short(case)}: no break-even in the range, {cheaper} is cheaper nearly everywhere"
    return f"{_short(case)}: break-even at {curve.meets:{written}} (now {curve.now:{written}})"


def _traces(cases: list[Case], curves: list[Curve], more: str = "") -> list[dict]:
    traces = []
    for case, curve, colour in zip(cases, curves, COLOURS, strict=True):
        traces += [
            drawing.line(f"{_short(case)}, self-built", curve.x, curve.own, colour),
            drawing.line(f"{_short(case)}, hosted{more}", curve.x, curve.hosted, colour, "dash"),
        ]
        if curve.meets is not None:
            height = float(curve.hosted[abs(curve.x - curve.meets).argmin()])
            traces.append(
                drawing.line(f"{_short(case)}, break-even", [curve.meets], [height], drawing.INK, showlegend=False)
                | {
                    "mode": "markers",
                    "marker": {"size": 11, "color": colour, "line": {"color": drawing.INK, "width": 2}},
                }
            )
    return traces


def _ceiling(cases: list[Case]) -> dict:
    """Costs far above the hosted price say nothing: the axis ends where there is room for both."""
    return {"range": [0, 2.5 * max(max(case.hosted, case.bill.usd_per_mtok) for case in cases)], "tickprefix": "$"}


def _figure(
    name: str,
    title: str,
    *,
    against: str,
    x: dict,
    traces: list[dict],
    cases: list[Case],
    says: str,
    kind: str = "closed form",
) -> Figure:
    return Figure(
        name=name,
        title=title,
        units=f"$/Mtok of trained tokens, by wall-clock, against {against} · solid: self-built, dashed: hosted · "
        "dots: break-even",
        says=says,
        kind=kind,
        fitted=FITTED,
        sources=SOURCES,
        plot=drawing.plot(traces, x, axis("$/Mtok", **_ceiling(cases))),
    )


ARITHMETIC = "arithmetic on the closed form"


def _said(cases: list[Case], curves: list[Curve], written: str, more: str) -> str:
    return f"{'; '.join(_where(case, curve, written) for case, curve in zip(cases, curves, strict=True))}. {more}"


def by_price(cases: list[Case]) -> Figure:
    """Against the price of a GPU-hour."""
    curves = [case.by_price() for case in cases]
    prime = next(case for case in cases if case.name == PRIME)
    method = prime.bill.usd_per_mtok_report_method / prime.bill.usd_per_gpu_hour
    dotted = drawing.line("Prime RL, self-built, report's method", curves[0].x, curves[0].x * method, GREY, "dot")
    more = f"By the report's method Prime RL would break even at {prime.report_method_price():.2f} $/GPU-hour."
    return _figure(
        "break-even-gpu-hour",
        "Break-even by the price of a GPU-hour",
        against="the price of a GPU-hour",
        x=axis("price of a GPU-hour", tickprefix="$"),
        traces=[*_traces(cases, curves), dotted],
        cases=cases,
        says=_said(cases, curves, ".2f", more),
        kind=ARITHMETIC,
    )


def by_wait(cases: list[Case]) -> Figure:
    """Against the wait ratio."""
    curves = [case.by_wait() for case in cases]
    return _figure(
        "break-even-wait",
        "Break-even by the trainer's wait",
        against="the trainer wait ratio",
        x=axis("trainer wait ratio", **SHARE),
        traces=_traces(cases, curves),
        cases=cases,
        says=_said(cases, curves, ".0%", "All GPUs are paid while the trainer waits: cost goes with 1 / (1 - wait)."),
        kind=ARITHMETIC,
    )


def by_discard(cases: list[Case]) -> Figure:
    """Against the share of rollouts thrown away."""
    curves = [case.by_discard(billed=False) for case in cases]
    traces = _traces(cases, curves, ", discarded not billed")
    for case, colour in zip(cases, COLOURS, strict=True):
        billed = case.by_discard(billed=True)
        traces.append(drawing.line(f"{_short(case)}, hosted, discarded billed", billed.x, billed.hosted, colour, "dot"))
    more = (
        "Self-built is flat while the trainer is the narrow side: rollouts are then thrown away that nobody would "
        "have trained on. Dotted: the service charges prefill and sampling of discarded rollouts too."
    )
    return _figure(
        "break-even-discard",
        "Break-even by the share of rollouts thrown away",
        against="the discarded share of finished rollouts",
        x=axis("discarded share", **SHARE),
        traces=traces,
        cases=cases,
        says=_said(cases, curves, ".0%", more),
    )


def by_use(cases: list[Case]) -> Figure:
    """Against utilisation."""
    curves = [case.by_use() for case in cases]
    more = "Owned GPUs are paid for all hours; the hosted price is paid only for tokens."
    return _figure(
        "break-even-use",
        "Break-even by utilisation",
        against="the share of paid hours in which the GPUs do this work",
        x=axis("share of paid hours in use", **SHARE),
        traces=_traces(cases, curves),
        cases=cases,
        says=_said(cases, curves, ".0%", more),
        kind=ARITHMETIC,
    )


def by_prompt_share(cases: list[Case]) -> Figure:
    """Against the mix of tokens."""
    curves = [case.by_prompt_share() for case in cases]
    more = "More prompt means less to decode: hosted prefill is cheaper than sampling, and the own generator gains more yet."
    return _figure(
        "break-even-prompt-share",
        "Break-even by the share of prompt tokens",
        against="the prompt share of a sequence of the same length",
        x=axis("prompt share", **SHARE),
        traces=_traces(cases, curves),
        cases=cases,
        says=_said(cases, curves, ".0%", more),
    )


def by_turns(cases: list[Case]) -> Figure:
    """Against turns, with and without a prefix cache."""
    case = next(case for case in cases if case.name == PRIME)
    once, again, cached = (case.by_turns(how) for how in ("once", "again", "cached"))
    turns = case.scenario.tool_calls + 1
    return _figure(
        "break-even-turns",
        f"Break-even by turns and prefix cache: {case.title}",
        against="the turns of a rollout",
        x=axis("turns of a rollout"),
        traces=[
            drawing.dotted("self-built, prefix cache", once.x, once.own, BLUE),
            drawing.dotted("self-built, no prefix cache", again.x, again.own, PURPLE),
            drawing.line("hosted, each token prefilled once", once.x, once.hosted, ORANGE, "dash"),
            drawing.line("hosted, cached reads billed", cached.x, cached.hosted, GREEN, "dash"),
            drawing.line("hosted, no prefix cache", again.x, again.hosted, GREY, "dash"),
        ],
        cases=cases,
        says="The source prefills each token once. If every turn reads the whole context again, that is billed as "
        f"prefill without a cache, and at {cached_share():.0%} of its price with one: at the {turns:.0f} turns of "
        f"this run hosted then costs ${case.hosted_with_reads():.2f} instead of ${case.hosted:.2f}. Own GPUs "
        "without a prefix cache pay in decode time.",
    )


def figures(cases: list[Case]) -> tuple[Figure, ...]:
    """All break-even figures."""
    return tuple(make(cases) for make in (by_price, by_wait, by_discard, by_use, by_turns, by_prompt_share))


def break_even_table(cases: list[Case]) -> Table:
    """Every break-even as a number."""
    rows = []
    for case in cases:
        for name, make in CURVES:
            curve = make(case)
            found = "break-even" if curve.meets is not None else "none in the range"
            rows.append((case.title, name, curve.now, curve.meets, float(curve.x[0]), float(curve.x[-1]), found))
    return Table(
        name="break_even",
        title="Where self-built and hosted cost the same, by wall-clock",
        says="Each line changes one quantity and leaves the others as they are.",
        columns=(
            Column(name="run", title="Run"),
            Column(name="quantity", title="Quantity"),
            Column(name="now", title="Now", digits=3),
            Column(name="break_even", title="Break-even", digits=3),
            Column(name="from", title="Looked at from", digits=2),
            Column(name="to", title="to", digits=2),
            Column(name="found", title="Found"),
        ),
        rows=tuple(rows),
        sources=SOURCES,
        grouped=True,
    )
