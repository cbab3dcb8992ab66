"""The command line: ``rlqueue COMMAND``, with its commands in ``_parser``; what reads or writes files is in *_command modules.

Answers go to stdout; errors go to stderr with exit status 2, and so does the progress of what takes long.
"""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rlqueue.config_command import (
    PASTE,
    READ,
    config_options,
    paste_options,
    read_lines,
    read_options,
    run_paste,
    run_read,
    scenario_named,
    wishes,
)
from rlqueue.cost import cost
from rlqueue.curriculum_presets import curriculum_knobs, curriculum_names
from rlqueue.decide_command import DECISIONS
from rlqueue.drift_presets import drift_names, growth_knobs
from rlqueue.frameworks.telling import told
from rlqueue.from_csv import pass_rate_file, series_file
from rlqueue.log_command import (
    DIAGNOSE,
    MEASURE,
    diagnose_lines,
    diagnose_options,
    measure_lines,
    measure_options,
    run_diagnose,
    run_measure,
)
from rlqueue.presets import preset, preset_names, reported
from rlqueue.provenance import table
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario
from rlqueue.tco import NodeTco, node_tco, tco
from rlqueue.validation.command import (
    CALIBRATE,
    VALIDATE,
    calibrate_lines,
    calibrate_options,
    run_calibrate,
    run_validate,
    validate_lines,
    validate_options,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        answer = options.run(options)
        text = json.dumps(answer, indent=2, allow_nan=False)
    except ValueError as refusal:
        print(f"rlqueue: {refusal}", file=sys.stderr)
        return 2
    if options.json:
        print(text)
    else:
        options.show(answer)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlqueue", description="RL post-training as a queue: trainer wait, staleness and $/Mtok of a GPU split."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, show: Any, summary: str) -> argparse.ArgumentParser:
        text = summary.replace("%", "%%")  # argparse would fill it in
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.set_defaults(run=run, show=show)
        return sub

    command("presets", _presets, _show_presets, "list the published runs that scenarios can start from")
    one = command("tco", _tco, _show, "cost of ownership of a GPU-hour")
    one.add_argument("--node", default="h200", help="whose inputs to start from")
    _settable(one, "usd_per_kwh=0.12")
    one = command("read", run_read, _show_read, READ)
    read_options(one)
    one = command("paste", _paste, _show_pasted, PASTE)
    _scenario(one, whose="--from")
    paste_options(one)
    one = command("solve", _solve, _show, "operating point and bill of a scenario, by closed form")
    _scenario(one)
    one = command("course", _course, _show_course, "a whole run by closed form: how it moves, and what it costs in all")
    _scenario(one)
    one.add_argument("--points", type=int, default=40, help="moments of the run that are solved")
    one = command("simulate", _simulate, _show, "operating point and bill of a scenario, by simulation")
    _scenario(one)
    one.add_argument("--seed", type=int, default=0, help="of the draws: the same seed gives the same run")
    one.add_argument("--steps", type=int, default=200, help="training steps")
    one = command("measure", run_measure, _lines(measure_lines), MEASURE)
    measure_options(one)
    one = command("diagnose", _diagnose, _lines(diagnose_lines), DIAGNOSE)
    diagnose_options(one)
    _settable(one, "gpu_hour_usd=2.5")
    for name, summary, options, run, lines in DECISIONS:
        one = command(name, partial(_decided, run), _show if lines is None else _lines(lines), summary)
        _scenario(one)
        options(one)
    one = command("validate", _validate, _show_validated, VALIDATE)
    validate_options(one)
    one = command("calibrate", _calibrate, _show_calibrated, CALIBRATE)
    _scenario(one)
    calibrate_options(one)
    one = command(
        "report", _report, _show_report, "every table and figure of the source report, beside what was printed"
    )
    one.add_argument("--out", required=True, metavar="DIR", help="folder to write page, tables and figures into")
    _settable(one, "node.usd_per_kwh=0.12, in every run of the report")
    return parser


def _settable(command: argparse.ArgumentParser, example: str) -> None:
    command.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help=f"override an input, e.g. {example}"
    )


def _scenario(command: argparse.ArgumentParser, whose: str = "--framework") -> None:
    command.add_argument(
        "scenario", metavar="NAME_OR_FILE", help="a preset's name, a scenario file in TOML, or a framework's own file"
    )
    config_options(command, whose)
    _settable(command, "concurrency=512")
    command.add_argument(
        "--drift",
        metavar="NAME_OR_CSV",
        help=f"let lengths move as in a published run ({', '.join(drift_names())}) or a table",
    )
    command.add_argument(
        "--curriculum",
        metavar="NAME",
        help=f"solve rates and learning of a published run ({', '.join(curriculum_names())})",
    )
    command.add_argument("--pass-rates", metavar="CSV", help="measured solve rates of prompts, one prompt a row")


def chosen_scenario(options: argparse.Namespace) -> Scenario:
    """The scenario that a command names, with its overrides; of a framework's file the reading goes to stderr."""
    scenario, reading = scenario_named(options.scenario, wishes(options), _settings(options.set))
    if reading is not None:
        print("\n".join(told(reading)), end="\n\n", file=sys.stderr)
    if options.drift:
        measured = options.drift.endswith(".csv")
        scenario = dataclasses.replace(scenario, **(series_file if measured else growth_knobs)(options.drift))
    if options.curriculum:
        scenario = dataclasses.replace(scenario, **curriculum_knobs(options.curriculum))
    if options.pass_rates:
        scenario = dataclasses.replace(scenario, **pass_rate_file(options.pass_rates))
    return scenario.with_text(_settings(options.set))


def _decided(run: Any, options: argparse.Namespace) -> dict[str, Any]:
    return run(chosen_scenario(options), options)


def _settings(words: Sequence[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"--set {word!r} must have the form KNOB=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def _presets(_: argparse.Namespace) -> dict[str, Any]:
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


def _tco(options: argparse.Namespace) -> dict[str, Any]:
    node = node_tco(options.node)
    names = [field.name for field in dataclasses.fields(NodeTco) if field.name != "key"]
    for name, text in _settings(options.set).items():
        require_known("input", name, names)
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"{name}={text!r} must be a number") from None
        node = dataclasses.replace(node, **{name: value})
    return dataclasses.asdict(tco(node))


def _paste(options: argparse.Namespace) -> dict[str, Any]:
    return run_paste(chosen_scenario(options), options)


def _solve(options: argparse.Namespace) -> dict[str, Any]:
    from rlqueue.at_step import without_drift
    from rlqueue.queueing import solve

    scenario = without_drift(chosen_scenario(options))  # as it is at its start, which a measured series has lengths for
    return answer(scenario, solve(scenario))


def _course(options: argparse.Namespace) -> dict[str, Any]:
    from rlqueue.course import course, totals, with_and_without

    scenario = chosen_scenario(options)
    way = course(scenario, options.points)
    tables = {
        "flips": way.flips, "without": with_and_without(scenario, options.points), "moments": way.table,
    }  # fmt: skip
    return (
        {"scenario": scenario.name}
        | _spoken(dataclasses.asdict(totals(way)))
        | {"stalled_at": way.stalled_at}
        | {name: [_spoken(row) for row in found.to_dict("records")] for name, found in tables.items()}
    )


def _spoken(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no endless number and none that is missing."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _simulate(options: argparse.Namespace) -> dict[str, Any]:
    from rlqueue.simulation import simulate

    scenario = chosen_scenario(options)
    run = simulate(scenario, seed=options.seed, steps=options.steps)
    p95 = run.staleness_p95
    more = {
        "events": run.events,
        "seconds": run.seconds,
        "staleness_p95": None if math.isnan(p95) else p95,
        "stalled": run.stalled or None,
    }
    return answer(run.settled, run.operating_point) | run.last_part | more


def _diagnose(options: argparse.Namespace) -> dict[str, Any]:
    return run_diagnose(options, lambda scenario: scenario.with_text(_settings(options.set)))


def _report(options: argparse.Namespace) -> dict[str, Any]:
    try:
        from rlqueue.report.assumptions import Assumptions
        from rlqueue.report.write import write
    except ImportError as error:
        raise ValueError(
            f"the report needs the extra packages of the pages ({error.name} is missing): rlqueue[app]"
        ) from error
    assumptions = Assumptions.of(_settings(options.set))

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    return dataclasses.asdict(write(Path(options.out), assumptions, say))


def _validate(options: argparse.Namespace) -> dict[str, Any]:
    found = run_validate(options, lambda line: print(line, file=sys.stderr, flush=True))
    return {key: value for key, value in found.items() if key != "lines" or not options.json}


def _calibrate(options: argparse.Namespace) -> dict[str, Any]:
    return run_calibrate(options, chosen_scenario(options))


def answer(scenario: Scenario, point: Any) -> dict[str, Any]:
    """Operating point and bill as one flat object, led by the scenario's name."""
    return {"scenario": scenario.name} | dataclasses.asdict(point) | dataclasses.asdict(cost(scenario, point))


def _show_presets(presets: Mapping[str, Mapping[str, Any]]) -> None:
    width = max(map(len, presets))
    for name, facts in presets.items():
        print(f"{name:{width}}  {facts['title']}  ({facts['assumed']} of {facts['knobs']} inputs assumed)")


def _show_course(found: Mapping[str, Any]) -> None:
    _show({name: value for name, value in found.items() if not isinstance(value, list)})
    for flip in found["flips"]:
        print(f"step {flip['step']}: {flip['was']} -> {flip['becomes']}")
    for run in found["without"]:
        per_mtok = "nothing trained" if run["usd_per_mtok"] is None else f"{run['usd_per_mtok']:.2f} $/Mtok"
        print(f"{run['run']}: {run['hours']:,.1f} h, ${run['usd']:,.0f}, {per_mtok}")


def _show_read(reading: Mapping[str, Any]) -> None:
    print("\n".join(read_lines(reading)))


def _show_pasted(pasted: Mapping[str, Any]) -> None:
    print(pasted["text"], end="")


def _show_report(written: Mapping[str, Any]) -> None:
    print(f"{written['page']}: {written['tables']} tables, {written['figures']} figures, {written['images']} images")
    if written["missing"]:
        print(f"missing: {written['missing']}")


def _show_validated(found: Mapping[str, Any]) -> None:
    for line in validate_lines(found):
        print(line)


def _show_calibrated(found: Mapping[str, Any]) -> None:
    for line in calibrate_lines(found):
        print(line)


def _lines(made: Callable[[Mapping[str, Any]], Iterable[str]]) -> Callable[[Mapping[str, Any]], None]:
    def show(found: Mapping[str, Any]) -> None:
        for line in made(found):
            print(line)

    return show


def _show(values: Mapping[str, Any]) -> None:
    width = max(map(len, values))
    for name, value in values.items():
        shown = f"{value:,.4f}" if isinstance(value, float) else "-" if value is None else value
        print(f"{name:{width}}  {shown}")


if __name__ == "__main__":
    sys.exit(main())
