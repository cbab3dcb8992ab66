"""The commands on frameworks' configurations: which scenario a name or file means, ``rlqueue read`` and ``rlqueue paste``."""

import argparse
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlqueue.frameworks import Reading, frameworks, read
from rlqueue.frameworks.source import SUFFIXES, file_text
from rlqueue.frameworks.telling import plain, told
from rlqueue.paste import TARGETS, lines, lost, otherwise, paste
from rlqueue.provenance import parsed
from rlqueue.scenario import Scenario

READ = "what a framework's configuration says of a run: each knob read, defaulted or assumed, with its key and line"
PASTE = "a scenario as lines to paste into a framework's configuration, its staleness in that framework's unit"


def config_options(command: argparse.ArgumentParser, whose: str = "--framework") -> None:
    """Options of every command that takes a framework's file; ``whose`` names the framework that it is of."""
    names = ", ".join(frameworks())
    command.add_argument(
        whose, dest="framework", metavar="NAME", help=f"whose file it is, if its keys don't tell: {names}"
    )
    command.add_argument("--based-on", metavar="PRESET", help="preset whose knobs stand for what the file cannot say")
    command.add_argument("--llm", metavar="KEY", help="the LLM, where the file names one that is not in the catalogue")
    command.add_argument(
        "--variable",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="variable that the script expects to be set",
    )


def read_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue read``."""
    command.add_argument("file", metavar="FILE", help="TOML, YAML, launch script or Python of a framework")
    config_options(command)


def paste_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue paste`` besides the scenario's; a framework's own file is one ``--from`` it."""
    command.add_argument("--framework", dest="into", required=True, metavar="NAME", help=f"one of {', '.join(TARGETS)}")


def wishes(options: argparse.Namespace) -> dict[str, Any]:
    """The options as arguments of ``frameworks.read``."""
    variables = {}
    for word in options.variable:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--variable {word!r} must have the form NAME=VALUE")
        variables[name] = value
    return {"framework": options.framework, "based_on": options.based_on, "llm": options.llm, "variables": variables}


def scenario_named(
    name: str, wanted: Mapping[str, Any], settings: Mapping[str, str] | None = None
) -> tuple[Scenario, Reading | None]:
    """The scenario that a preset's name, a scenario file or a framework's file means; of the last also its reading.

    Args:
        wanted: arguments of ``frameworks.read``; any of them set says that the file is a framework's.
        settings: knobs as text, which stand over a framework's file before anything follows from it.
    """
    if not name.endswith(SUFFIXES) and not Path(name).is_file():
        return Scenario.from_data(name), None
    if not any(wanted.values()) and _is_scenario(Path(name)):
        return Scenario.from_file(name), None
    knobs = {knob: parsed(text) for knob, text in (settings or {}).items() if "." not in knob and text != "none"}
    reading = read(Path(name), **wanted, knobs=knobs)
    return Scenario.from_values(reading.values, name=reading.name), reading


def _is_scenario(path: Path) -> bool:
    """Whether a file holds knobs: TOML with a knob or ``based_on`` at its top, or no table that a framework's would have."""
    if path.suffix != ".toml" or not path.is_file():
        return path.suffix == ".toml"
    try:
        values = tomllib.loads(file_text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return not file_text(path).lstrip().startswith("@")
    knobs = {each.name for each in fields(Scenario)} - {"name"} | {"based_on"}
    return bool(knobs & values.keys()) or not any(isinstance(value, dict) for value in values.values())


def run_read(options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue read``: the reading as plain data, and its lines under ``told``."""
    reading = read(Path(options.file), **wishes(options))
    return plain(reading) | {"told": list(told(reading))}


def run_paste(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue paste``: the text, and each line with its formula, and what is lost or said otherwise."""
    made = [
        {"key": line.key, "value": line.value, "unit": line.unit, "formula": line.formula, "note": line.note}
        for line in lines(scenario, options.into)
    ]
    names = ("knob", "scenario", "read")
    return {
        "scenario": scenario.name, "framework": options.into, "text": paste(scenario, options.into), "lines": made,
        "lost": [dict(zip(names, each, strict=True)) for each in lost(scenario, options.into)],
        "otherwise": [dict(zip((*names, "why"), each, strict=True)) for each in otherwise(scenario, options.into)],
    }  # fmt: skip


def read_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``read`` as text."""
    yield from answer["told"]
