"""The figures of the page "how do I split my GPUs?": frontier, map, how the options compare, GPUs, and what moves the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlqueue.app.palette import BLUE, GREEN, GREY, INK, MARGIN, ORANGE, SKY, VERMILION, mark
from rlqueue.app.plan_work import QUANTITY, Made
from rlqueue.planning import Plan
from rlqueue.planning.search import Option
from rlqueue.uncertainty import QUANTITIES

NAMES = ("frontier", "splits", "options", "gpus", "tornado")
SHOWN_WORSE = 3.0
"""A figure shows what loses up to so many times as much as the plan."""
FAR = 0.6
"""Options that differ by more are in the table only."""
BARS = 8
TICKS = 8
LONG = 18
"""Labels of splits on the map."""
PLAN, OWN, SECOND = VERMILION, INK, SKY


TITLES = ("Goal against staleness", "Split and staleness budget", "The plan's neighbours and rivals", "GPUs to save or to add",
          "Which input to measure first")  # fmt: skip
EMPTY = {
    name: {"data": [], "layout": {
        "title": {"text": title, "subtitle": {"text": "not planned yet"}},
        "xaxis": {"visible": False}, "yaxis": {"visible": False},
    }}
    for name, title in zip(NAMES, TITLES, strict=True)
}  # fmt: skip
"""The figures before there is a plan."""


def figures(made: Made) -> dict[str, dict[str, Any]]:
    """All figures by name."""
    found = made.plan
    return {
        "frontier": frontier(found), "splits": splits(found), "options": options(found), "gpus": by_gpus(found),
        "tornado": tornado(made),
    }  # fmt: skip


def axis_title(found: Plan) -> dict[str, Any]:
    return {"text": found.goal.unit, "font": {"size": 13}}


def shown_range(found: Plan) -> list[float]:
    """From a little better than the best to what is still a choice, and the scenario as it is."""
    best = found.best.value
    if found.goal.more_is_better:
        return [0.0, 1.15 * max(best, found.frontier["objective"].max())]
    top = min(
        SHOWN_WORSE * best, 1.1 * max(best, found.frontier["objective"].max(), found.own.value if found.own else 0.0)
    )
    return [0.0, max(top, 1.3 * best)]


def frontier(found: Plan) -> dict[str, Any]:
    """The best objective for each staleness, the plans that were simulated, and where the plan is."""
    table, runs = found.frontier, found.simulated
    limit = found.limits.max_staleness_versions
    stale = [table["staleness_versions"].max(), found.best.answers["staleness_versions"], limit or 0.0]
    chosen = [(found.best, "plan", "star", 17, PLAN)]
    if found.own is not None and found.own is not found.best:
        chosen.append((found.own, "as it is", "diamond", 13, OWN))
    return {
        "data": [
            {"type": "scatter", "mode": "markers", "x": runs["staleness_versions"].to_numpy(), "y": runs["objective"].to_numpy(),
             "marker": {"size": 7, "color": "rgba(0,0,0,0)", "line": {"color": GREY, "width": 1.2}},
             "customdata": _choices(runs), "name": "simulated",
             "hovertemplate": "%{customdata}<br>staleness %{x:.1f}, %{y:,.4g}<extra>simulated</extra>"},
            {"type": "scatter", "mode": "lines+markers", "x": table["staleness_versions"].to_numpy(),
             "y": table["objective"].to_numpy(), "line": {"color": BLUE, "width": 2, "shape": "hv"}, "marker": {"size": 6},
             "customdata": _choices(table), "name": "frontier",
             "hovertemplate": "%{customdata}<br>staleness %{x:.1f}, %{y:,.4g}<extra>frontier</extra>"},
            *(
                {"type": "scatter", "mode": "markers", "x": [each.answers["staleness_versions"]], "y": [each.value],
                 "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"color": "white", "width": 1.5}},
                 "name": name, "cliponaxis": False, "hovertemplate": f"{name}: %{{y:,.4g}}<extra></extra>"}
                for each, name, symbol, size, colour in chosen
            ),
        ],
        "layout": {
            "title": {"text": f"{found.goal.unit[0].upper()}{found.goal.unit[1:]} against staleness",
                      "subtitle": {"text": "simulated · best plan for each mean staleness"}},
            "xaxis": {"title": {"text": "mean staleness of trained groups (versions)", "font": {"size": 13}},
                      "fixedrange": True, "range": [-0.4, 1.08 * max(stale) + 0.4]},
            "yaxis": {"title": axis_title(found), "fixedrange": True, "range": shown_range(found)},
            "showlegend": False, "margin": MARGIN | {"l": 62},
            "shapes": [] if limit is None else [
                {"type": "line", "x0": limit, "x1": limit, "yref": "paper", "y0": 0, "y1": 1,
                 "line": {"color": VERMILION, "width": 1.5, "dash": "dot"}}],
            "meta": {"key": [mark("frontier", "line", BLUE), mark("plan", "diamond", PLAN), mark("as it is", "diamond", OWN),
                             mark("simulated", "dot", "white"),
                             *([] if limit is None else [mark("limit", "dash", VERMILION)])]},
        },
    }  # fmt: skip


def _choices(table: Any) -> list[str]:
    return [
        f"{each.trainer_gpus:.0f}:{each.generator_gpus:.0f}, {each.concurrency:,.0f} slots, budget {each.max_staleness:g}, "
        f"{each.schedule}"
        for each in table.itertuples()
    ]


def splits(found: Plan) -> dict[str, Any]:
    """The best objective of each split and staleness budget, other choices free."""
    cells, plan = found.heat, found.best.scenario
    z = cells.to_numpy(float)
    best = np.nanmin(z) if not found.goal.more_is_better else np.nanmax(z)
    low, high = (best, SHOWN_WORSE * best) if not found.goal.more_is_better else (best / SHOWN_WORSE, best)
    columns, rows = [f"{each:.0f}" for each in cells.columns], [f"{each:g}" for each in cells.index]
    # A plan may lie between the rows and columns of the map: there it has one of its own, without cells.
    across, up = ({*cells.columns, plan.generator_gpus}, {*cells.index, plan.max_staleness})
    across, up = [f"{each:.0f}" for each in sorted(across)], [f"{each:g}" for each in sorted(up)]
    return {
        "data": [
            {"type": "heatmap", "x": columns, "y": rows, "z": z, "zmin": low, "zmax": high, "colorscale": "Cividis",
             "reversescale": not found.goal.more_is_better, "xgap": 1, "ygap": 1,
             "colorbar": {"thickness": 10, "len": 1.0, "outlinewidth": 0, "tickfont": {"size": 11}},
             "hovertemplate": f"%{{x}} generator GPUs, budget %{{y}}<br>%{{z:,.4g}} {found.goal.unit}<extra></extra>"},
            {"type": "scatter", "mode": "markers", "x": [f"{plan.generator_gpus}"], "y": [f"{plan.max_staleness:g}"],
             "marker": {"symbol": "star", "size": 17, "color": PLAN, "line": {"color": "white", "width": 1.5}},
             "hoverinfo": "skip", "name": "plan"},
        ],
        "layout": {
            "title": {"text": "Split and staleness budget",
                      "subtitle": {"text": f"closed form corrected by runs · {found.goal.unit}, {plan.schedule}, best slots"}},
            "xaxis": {"type": "category", "title": {"text": f"generator GPUs (of {found.gpus})", "font": {"size": 13}},
                      "fixedrange": True, "showgrid": False, "tickangle": 0, "categoryorder": "array",
                      "categoryarray": across, "tickvals": across[:: -(-len(across) // TICKS)]},
            "yaxis": {"type": "category", "title": {"text": "budget (versions)", "font": {"size": 13}}, "fixedrange": True,
                      "showgrid": False, "categoryorder": "array", "categoryarray": up},
            "showlegend": False, "margin": MARGIN | {"l": 62},
            "meta": {"key": [mark("better is brighter" , "cividis", ""), mark("plan", "diamond", PLAN)]},
        },
    }  # fmt: skip


def options(found: Plan) -> dict[str, Any]:
    """How far each option is from the plan, and whether the seeds tell."""
    near = [each for each in found.options[1:] if abs(found.goal.change(each.difference)) <= FAR][::-1]
    told = {id(near[place]): name for place, name in labels(found, near).items()}
    sides = (
        ("told apart by the seeds", BLUE, [each for each in near if each.distinguishable and each.kept]),
        ("not distinguishable", ORANGE, [each for each in near if not each.distinguishable and each.kept]),
        ("breaks a limit", GREY, [each for each in near if not each.kept]),
    )
    return {
        "data": [_forest(found, name, colour, these, told) for name, colour, these in sides],
        "layout": {
            "title": {"text": "The plan's neighbours and rivals",
                      "subtitle": {"text": f"simulated · {len(found.seeds)} common seeds, 95 % of the difference in "
                                           f"{found.goal.unit}"}},
            "xaxis": {"tickformat": "+.0%", "title": {"text": "against the plan", "font": {"size": 13}}, "fixedrange": True,
                      "zeroline": True, "zerolinecolor": PLAN, "zerolinewidth": 2, "nticks": 5, "tickangle": 0},
            "yaxis": {"type": "category", "categoryarray": list(told.values()), "categoryorder": "array",
                      "fixedrange": True, "tickfont": {"size": 11}},
            "showlegend": False, "margin": MARGIN | {"l": 136},
            "meta": {"key": [mark(name, "dot", colour) for name, colour, these in sides if these]},
        },
    }  # fmt: skip


def labels(found: Plan, these: list[Option]) -> dict[int, str]:
    """Options in few letters, by place, never the same for two."""
    told: dict[int, str] = {}
    for place, each in enumerate(these):
        s = each.scenario
        name = each.role.replace("staleness ", "")
        if each.role == "finalist":
            other = "" if s.schedule == found.best.scenario.schedule else f"<br>{s.schedule}"
            name = f"{s.trainer_gpus}:{s.generator_gpus} C{s.concurrency} S{s.max_staleness:g}{other}"
        told[place] = name
    return told


def _forest(found: Plan, name: str, colour: str, these: list[Option], told: dict[int, str]) -> dict[str, Any]:
    change = found.goal.change
    middle = np.array([change(each.difference) for each in these])
    ends = np.array([sorted((change(each.difference_low), change(each.difference_high))) for each in these]).reshape(
        -1, 2
    )
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": middle, "y": [told[id(each)] for each in these],
        "error_x": {"type": "data", "symmetric": False, "array": ends[:, 1] - middle, "arrayminus": middle - ends[:, 0],
                    "color": colour, "thickness": 1.5, "width": 4},
        "marker": {"size": 9, "color": colour},
        "hovertemplate": "%{y}: %{x:+.1%}<extra></extra>",
    }  # fmt: skip


def by_gpus(found: Plan) -> dict[str, Any]:
    """The best plan of fewer and of more GPUs: the objective, and trained tokens per second."""
    table = found.by_gpus
    if table.empty:
        return {"data": [], "layout": {}}
    here = (table["gpus"] == found.gpus).to_numpy()
    rate = not found.goal.more_is_better
    text = [
        f"{each.trainer_gpus:.0f}:{each.generator_gpus:.0f}, {each.concurrency:,.0f} slots"
        for each in table.itertuples()
    ]
    line = {"type": "scatter", "mode": "lines+markers", "x": table["gpus"].to_numpy(), "customdata": text}
    return {
        "data": [
            line | {"y": table["objective"].to_numpy(), "line": {"color": BLUE, "width": 2}, "name": found.goal.unit,
                    "marker": {"size": np.where(here, 12, 6), "color": [PLAN if each else BLUE for each in here]},
                    "hovertemplate": f"%{{x}} GPUs (%{{customdata}}): %{{y:,.4g}} {found.goal.unit}<extra></extra>"},
            *([line | {"y": table["trained_tokens_per_s"].to_numpy(), "yaxis": "y2", "name": "trained tokens/s",
                       "line": {"color": GREEN, "width": 2, "dash": "dot"}, "marker": {"size": 5},
                       "hovertemplate": "%{x} GPUs (%{customdata}): %{y:,.0f} trained tokens/s<extra></extra>"}] if rate else []),
        ],
        "layout": {
            "title": {"text": "GPUs to save or to add", "subtitle": {"text": "simulated · the best plan of each number"}},
            "xaxis": {"title": {"text": "GPUs in all", "font": {"size": 13}}, "fixedrange": True},
            "yaxis": {"title": axis_title(found), "fixedrange": True, "range": [0, 1.15 * float(table["objective"].max())]},
            "yaxis2": {"overlaying": "y", "side": "right", "fixedrange": True, "showgrid": False, "tickformat": ".2s",
                       "range": [0, 1.15 * float(table["trained_tokens_per_s"].max())]},
            "showlegend": False, "margin": MARGIN | {"l": 62, "r": 52 if rate else 12},
            "meta": {"key": [mark(found.goal.unit, "line", BLUE), *([mark("trained tokens/s", "dash", GREEN)] if rate else []),
                             mark("these GPUs", "dot", PLAN)]},
        },
    }  # fmt: skip


def broken(knob: str) -> str:
    """A knob's name in two lines where it is long."""
    words = knob.split("_")
    half = len(words) // 2 + len(words) % 2
    return knob if len(knob) <= LONG else f"{'_'.join(words[:half])}_<br>{'_'.join(words[half:])}"


def tornado(made: Made) -> dict[str, Any]:
    """What the plan's inputs, each alone, do to its objective."""
    bars = [bar for bar in made.bars if bar.swing > 0][:BARS][::-1]
    if not bars:
        return {"data": [], "layout": {}}
    names, here = [broken(bar.knob) for bar in bars], bars[0].at_value
    quantity = QUANTITY[made.asked.objective]
    one = {"type": "bar", "orientation": "h", "y": names, "base": here}
    return {
        "data": [
            one | {"x": np.array([getattr(bar, at) - here for bar in bars]), "marker": {"color": colour}, "name": name,
                   "customdata": [f"{getattr(bar, end):.4g} {bar.unit}" for bar in bars],
                   "hovertemplate": f"%{{y}} = %{{customdata}}: %{{x:,.4g}} {QUANTITIES[quantity]}<extra></extra>"}
            for name, at, end, colour in (("low end", "at_low", "low", SKY), ("high end", "at_high", "high", ORANGE))
        ],
        "layout": {
            "title": {"text": "Which input to measure first",
                      "subtitle": {"text": "closed form · each input alone to the ends of its range"}},
            "xaxis": {"title": {"text": f"{quantity} ({QUANTITIES[quantity]})", "font": {"size": 13}}, "fixedrange": True},
            "yaxis": {"type": "category", "fixedrange": True, "tickfont": {"size": 11}},
            "barmode": "overlay", "bargap": 0.35, "showlegend": False, "margin": MARGIN | {"l": 136},
            "shapes": [{"type": "line", "x0": here, "x1": here, "yref": "paper", "y0": 0, "y1": 1,
                        "line": {"color": INK, "width": 1}}],
            "meta": {"key": [mark("input at its low end", "box", SKY), mark("at its high end", "box", ORANGE)]},
        },
    }  # fmt: skip
