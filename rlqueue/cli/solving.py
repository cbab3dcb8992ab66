"""The commands that need nothing but a scenario: what there is, what it costs, how it runs, and the report."""

import argparse
import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

from rlqueue.cli.scenarios import chosen_scenario, settings
from rlqueue.cli.sureness import band_ranges, simulated_band, solved_band
from rlqueue.cost import cost
from rlqueue.plain import plain
from rlqueue.presets import preset, preset_names, reported
from rlqueue.provenance import table
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario
from rlqueue.tco import NodeTco, node_tco, tco


def run_presets(_: argparse.Namespace) -> dict[str, Any]:
    titles = {row["preset"]: row["title"] for row in table("presets")}
    return {
        name: {
            "title": titles[name],
            "assumed": sum(fact.kind == "assumed" for fact in preset(name).values()),
            "knobs": len(preset(name)),
            "reported": {key: fact.value for key, fact in reported(name).items()},
        }
        for name in preset_names()
    }


def run_tco(options: argparse.Namespace) -> dict[str, Any]:
    node = node_tco(options.node)
    names = [field.name for field in dataclasses.fields(NodeTco) if field.name != "key"]
    for name, text in settings(options.set).items():
        require_known("input", name, names)
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"{name}={text!r} must be a number") from None
        node = dataclasses.replace(node, **{name: value})
    return dataclasses.asdict(tco(node))


def run_solve(options: argparse.Namespace) -> dict[str, Any]:
    from rlqueue.at_step import without_drift
    from rlqueue.queueing import solve

    scenario = without_drift(chosen_scenario(options))  # as it is at its start, which a measured series has lengths for
    return answer(scenario, solve(scenario)) | solved_band(scenario, options)


def run_course(options: argparse.Namespace) -> dict[str, Any]:
    from rlqueue.course import course, totals, with_and_without

    scenario = chosen_scenario(options)
    way = course(scenario, options.points)
    tables = {
        "flips": way.flips, "without": with_and_without(scenario, options.points), "moments": way.table,
    }  # fmt: skip
    return (
        {"scenario": scenario.name}
        | plain(dataclasses.asdict(totals(way)))
        | {"stalled_at": way.stalled_at}
        | {name: plain(found.to_dict("records")) for name, found in tables.items()}
    )


def run_simulate(options: argparse.Namespace) -> dict[str, Any]:
    from rlqueue.simulation import simulate

    scenario = chosen_scenario(options)
    ranges = band_ranges(scenario, options)  # refused before anything runs
    run = simulate(scenario, seed=options.seed, steps=options.steps)
    p95 = run.staleness_p95
    more = {
        "events": run.events,
        "seconds": run.seconds,
        "staleness_p95": None if math.isnan(p95) else p95,
        "stalled": run.stalled or None,
    }
    found = answer(run.settled, run.operating_point) | run.last_part | more
    return found | simulated_band(scenario, ranges, options, found)


def run_report(options: argparse.Namespace) -> dict[str, Any]:
    try:
        from rlqueue.report.assumptions import Assumptions
        from rlqueue.report.write import write
    except ImportError as error:
        raise ValueError(
            f"the report needs the extra packages of the pages ({error.name} is missing): rlqueue[app]"
        ) from error
    assumptions = Assumptions.of(settings(options.set))

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return dataclasses.asdict(write(Path(options.out), assumptions, say))


def answer(scenario: Scenario, point: Any) -> dict[str, Any]:
    """Operating point and bill as one flat object, led by the scenario's name."""
    return {"scenario": scenario.name} | dataclasses.asdict(point) | dataclasses.asdict(cost(scenario, point))
