"""The commands on logs: ``rlqueue measure``, and ``rlqueue diagnose`` of a log and a configuration."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlqueue.cli.configs import config_options, scenario_named, wishes
from rlqueue.scenario import Scenario

MEASURE = "what the logs of a run say: one table in our names, its means, who waits"
DIAGNOSE = "what holds a run back and what to change, from its logs and its configuration"


def measure_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue measure``."""
    _logs(command, "+")
    command.add_argument(
        "--framework", dest="log_framework", metavar="NAME", help="whose log it is, if its names don't tell"
    )
    command.add_argument("--out", metavar="CSV", help="write the table of steps here")


def diagnose_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue diagnose`` besides --set."""
    _logs(command, "*")
    command.add_argument(
        "--config", metavar="NAME_OR_FILE", help="a framework's configuration, a scenario, or a preset"
    )
    command.add_argument(
        "--framework", dest="log_framework", metavar="NAME", help="whose log it is, if its names don't tell"
    )
    config_options(command, "--config-framework")


def _logs(command: argparse.ArgumentParser, count: str) -> None:
    command.add_argument(
        "log", nargs=count, metavar="LOG", help="console output, JSON lines or a W&B export; several of one run"
    )


def run_measure(options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue measure``: the summary; the table of steps goes to --out."""
    from rlqueue.logs.report import summary

    measured = read_logs(options.log, options.log_framework)
    if options.out:
        try:
            measured.table.to_csv(options.out)
        except OSError as error:
            raise ValueError(f"--out {options.out!r} cannot be written: {error.strerror or error}") from error
    return summary(measured)


def run_diagnose(options: argparse.Namespace, changed: Callable[[Scenario], Scenario]) -> dict[str, Any]:
    """``rlqueue diagnose``; ``changed`` applies --set."""
    from rlqueue.diagnosis import diagnose
    from rlqueue.diagnosis.diagnose import as_dict

    measured = read_logs(options.log, options.log_framework) if options.log else None
    scenario, reading = scenario_named(options.config, wishes(options)) if options.config else (None, None)
    framework = reading.framework if reading else None
    return as_dict(diagnose(measured, changed(scenario) if scenario else None, framework=framework))


def read_logs(paths: Sequence[str], framework: str | None) -> Any:
    """The logs of a run, with a bar on a terminal."""
    from tqdm import tqdm

    from rlqueue.logs import Measured

    with tqdm(unit="B", unit_scale=True, file=sys.stderr, disable=None, leave=False, desc="reading") as bar:

        def tell(done: int, size: int) -> None:
            bar.total = size
            bar.update(done - bar.n)

        return Measured.from_log([Path(each) for each in paths], framework, progress=tell)


def measure_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``measure`` as text."""
    from rlqueue.logs.report import shown

    return shown(found)


def diagnose_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``diagnose`` as text."""
    from rlqueue.diagnosis.lines import shown

    return shown(found)
