"""The command line: ``rlqueue COMMAND``. Each command's options and answer are in the module of its subject.

Answers go to stdout; errors go to stderr with exit status 2, and so does the progress of what takes long.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from rlqueue.cli.accuracy import (
    CALIBRATE,
    VALIDATE,
    calibrate_lines,
    calibrate_options,
    run_calibrate,
    run_validate,
    validate_lines,
    validate_options,
)
from rlqueue.cli.configs import PASTE, READ, paste_options, read_lines, read_options, run_paste, run_read
from rlqueue.cli.deciding import DECISIONS
from rlqueue.cli.logs import (
    DIAGNOSE,
    MEASURE,
    diagnose_lines,
    diagnose_options,
    measure_lines,
    measure_options,
    run_diagnose,
    run_measure,
)
from rlqueue.cli.scenarios import chosen_scenario, scenario_options, settable, settings
from rlqueue.cli.showing import lines_of, show, show_course, show_pasted, show_presets, show_report
from rlqueue.cli.solving import run_course, run_presets, run_report, run_simulate, run_solve, run_tco
from rlqueue.cli.sureness import answer_lines, band_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        answer = options.run(options)
        text = json.dumps(answer, indent=2, allow_nan=False)
    except ValueError as refusal:
        print(f"rlqueue: {refusal}", file=sys.stderr)
        return 2
    try:
        if options.json:
            print(text)
        else:
            options.show(answer)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough; what Python flushes at its end must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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

    command("presets", run_presets, show_presets, "list the published runs that scenarios can start from")
    one = command("tco", run_tco, show, "cost of ownership of a GPU-hour")
    one.add_argument("--node", default="h200", help="whose inputs to start from")
    settable(one, "usd_per_kwh=0.12")
    one = command("read", run_read, lines_of(read_lines), READ)
    read_options(one)
    one = command("paste", partial(_of_scenario, run_paste), show_pasted, PASTE)
    scenario_options(one, whose="--from")
    paste_options(one)
    one = command("solve", run_solve, lines_of(answer_lines), "operating point and bill of a scenario, by closed form")
    scenario_options(one)
    band_options(one)
    one = command(
        "course", run_course, show_course, "a whole run by closed form: how it moves, and what it costs in all"
    )
    scenario_options(one)
    one.add_argument("--points", type=int, default=40, help="moments of the run that are solved")
    one = command(
        "simulate", run_simulate, lines_of(answer_lines), "operating point and bill of a scenario, by simulation"
    )
    scenario_options(one)
    band_options(one)
    one.add_argument("--seed", type=int, default=0, help="of the draws: the same seed gives the same run")
    one.add_argument("--steps", type=int, default=200, help="training steps")
    one = command("measure", run_measure, lines_of(measure_lines), MEASURE)
    measure_options(one)
    one = command("diagnose", _diagnose, lines_of(diagnose_lines), DIAGNOSE)
    diagnose_options(one)
    settable(one, "gpu_hour_usd=2.5")
    for name, summary, options, run, lines in DECISIONS:
        one = command(name, partial(_of_scenario, run), show if lines is None else lines_of(lines), summary)
        scenario_options(one)
        options(one)
    one = command("validate", _validate, lines_of(validate_lines), VALIDATE)
    validate_options(one)
    one = command("calibrate", partial(_of_scenario, run_calibrate), lines_of(calibrate_lines), CALIBRATE)
    scenario_options(one)
    calibrate_options(one)
    one = command(
        "report", run_report, show_report, "every table and figure of the source report, beside what was printed"
    )
    one.add_argument("--out", required=True, metavar="DIR", help="folder to write page, tables and figures into")
    settable(one, "node.usd_per_kwh=0.12, in every run of the report")
    return parser


def _of_scenario(run: Any, options: argparse.Namespace) -> dict[str, Any]:
    return run(chosen_scenario(options), options)


def _diagnose(options: argparse.Namespace) -> dict[str, Any]:
    return run_diagnose(options, lambda scenario: scenario.with_text(settings(options.set)))


def _validate(options: argparse.Namespace) -> dict[str, Any]:
    found = run_validate(options, lambda line: print(line, file=sys.stderr, flush=True))
    return {key: value for key, value in found.items() if key != "lines" or not options.json}
