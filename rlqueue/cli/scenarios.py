"""Which scenario a command is about: a preset, a file, a framework's configuration, and what is set over it."""

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from rlqueue.cli.configs import config_options, scenario_named, wishes
from rlqueue.curriculum_presets import curriculum_knobs, curriculum_names
from rlqueue.drift_presets import drift_names, growth_knobs
from rlqueue.frameworks.telling import told
from rlqueue.from_csv import pass_rate_file, series_file
from rlqueue.scenario import Scenario


def settable(command: argparse.ArgumentParser, example: str) -> None:
    command.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help=f"override an input, e.g. {example}"
    )


def scenario_options(command: argparse.ArgumentParser, whose: str = "--framework") -> None:
    command.add_argument(
        "scenario", metavar="NAME_OR_FILE", help="a preset's name, a scenario file in TOML, or a framework's own file"
    )
    config_options(command, whose)
    settable(command, "concurrency=512")
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
    scenario, reading = scenario_named(options.scenario, wishes(options), settings(options.set))
    if reading is not None:
        print("\n".join(told(reading)), end="\n\n", file=sys.stderr)
    if options.drift:
        measured = options.drift.endswith(".csv")
        scenario = dataclasses.replace(scenario, **(series_file if measured else growth_knobs)(options.drift))
    if options.curriculum:
        scenario = dataclasses.replace(scenario, **curriculum_knobs(options.curriculum))
    if options.pass_rates:
        scenario = dataclasses.replace(scenario, **pass_rate_file(options.pass_rates))
    return scenario.with_text(settings(options.set))


def settings(words: Sequence[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"--set {word!r} must have the form KNOB=VALUE")
        settings[name.strip()] = value.strip()
    return settings
