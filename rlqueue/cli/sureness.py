"""How sure an answer is: ``rlqueue sensitivity``, and ``--band`` of ``solve`` and ``simulate``."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlqueue.cli.progress import bar
from rlqueue.plain import plain
from rlqueue.scenario import Scenario

if TYPE_CHECKING:
    from rlqueue.ranges import Range
    from rlqueue.uncertainty import Bands

SENSITIVITY = "how sure the answers are: bands from ranges of the inputs, and which input to measure first"
SAMPLES = 1024
"""Of the closed form: two seconds, and the ends of a band are within a hundredth of its width."""


def range_options(command: argparse.ArgumentParser) -> None:
    """How far inputs may be off, and what a band is."""
    command.add_argument(
        "--range", action="append", default=[], metavar="KNOB=LOW..HIGH",
        help="how far an input may be off: mfu=0.05..0.2, or mfu=+-0.02 for a standard deviation",
    )  # fmt: skip
    command.add_argument("--only-given", action="store_true", help="no default ranges for what the preset assumes")
    command.add_argument("--level", type=float, default=0.9, help="share of the samples inside a band")


def band_options(command: argparse.ArgumentParser) -> None:
    """Options of ``--band``."""
    command.add_argument(
        "--band", action="store_true", help="say how far each number may be off, over the ranges of the inputs"
    )
    range_options(command)
    command.add_argument("--samples", type=int, help="of the inputs, evenly spread over their ranges")


def sensitivity_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue sensitivity`` besides the scenario's."""
    range_options(command)
    command.add_argument("--quantity", default="usd_per_mtok", metavar="NAME", help="whose tornado")
    command.add_argument("--samples", type=int, default=SAMPLES, help="of the inputs, evenly spread over their ranges")
    command.add_argument("--simulated", type=int, default=0, metavar="N", help="also simulate so many samples")
    command.add_argument("--seed", type=int, default=0, help="of the samples")


def chosen_ranges(scenario: Scenario, options: argparse.Namespace) -> tuple[Range, ...]:
    """The ranges that a command names: those that its file gives, its preset's unless left out, and those of ``--range`` over
    them.
    """
    from rlqueue.ranges import default_ranges, file_ranges, given_range, with_given

    file = Path(options.scenario)
    if file.suffix == ".toml" and file.is_file() and not options.based_on:
        defaults = file_ranges(file, scenario)
    else:
        defaults = default_ranges(scenario, options.based_on or options.scenario)
    given = [given_range(scenario, *_knob_and_range(word)) for word in options.range]
    if options.only_given:
        defaults = tuple(each for each in defaults if each.kind == "given")
    return with_given(defaults, given)


def _knob_and_range(word: str) -> tuple[str, str]:
    knob, equals, value = word.partition("=")
    if not equals:
        raise ValueError(f"--range {word!r} must have the form KNOB=LOW..HIGH")
    return knob.strip(), value.strip()


def _required(ranges: Sequence[Range]) -> None:
    if not ranges:
        raise ValueError("no input has a range: give some by --range, or in the scenario file's [ranges]")


def band_ranges(scenario: Scenario, options: argparse.Namespace) -> tuple[Range, ...]:
    """The ranges of ``--band``; without it those of the file have to be right all the same, and its options are refused."""
    if not options.band and (options.range or options.only_given or options.samples is not None):
        raise ValueError("--range, --only-given and --samples belong to --band, which is not given")
    return chosen_ranges(scenario, options)


def solved_band(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """What ``solve --band`` adds: bands of the closed form; nothing without ``--band``."""
    ranges = band_ranges(scenario, options)
    if not options.band:
        return {}
    from rlqueue.uncertainty import bands

    _required(ranges)
    return _plain_bands([bands(scenario, ranges, _samples(options, SAMPLES), level=options.level)])


def simulated_band(
    scenario: Scenario, ranges: Sequence[Range], options: argparse.Namespace, own: Mapping[str, Any]
) -> dict[str, Any]:
    """What ``simulate --band`` adds: bands of runs of the same length over the ranges and other seeds; nothing without it.

    Args:
        ranges: without any, chance is alone. own: the answer of the run that was asked for, whose numbers are the bands' values.
    """
    if not options.band:
        return {}
    from rlqueue.uncertainty import SIMULATED_SAMPLES, simulated_bands

    with bar(1, "run") as tell:
        found = simulated_bands(
            scenario, ranges, _samples(options, SIMULATED_SAMPLES), options.seed, options.level, steps=options.steps,
            progress=lambda done, of: tell(done, "", of),
        )  # fmt: skip
    rows = tuple(dataclasses.replace(row, value=own[row.quantity]) for row in found.rows)
    return _plain_bands([dataclasses.replace(found, rows=rows)])


def _samples(options: argparse.Namespace, usual: int) -> int:
    return usual if options.samples is None else options.samples


def _plain_bands(found: Sequence[Bands]) -> dict[str, Any]:
    """Bands as plain values; the samples of each of them in a list."""
    return {
        "level": found[0].level,
        "samples": [each.samples for each in found],
        "refused": [each.refused for each in found],
        "ranges": [dataclasses.asdict(each) for each in found[0].ranges],
        "bands": [dataclasses.asdict(band) for each in found for band in each.rows],
    }


def run_sensitivity(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue sensitivity``: bands and a tornado as plain values."""
    from rlqueue.at_step import without_drift
    from rlqueue.uncertainty import bands, measure_first, simulated_bands, tornado

    start = without_drift(scenario)  # what ``solve`` answers for
    ranges = chosen_ranges(start, options)
    _required(ranges)
    shared = {"seed": options.seed, "level": options.level}
    found = [bands(start, ranges, options.samples, **shared)]
    if options.simulated:
        with bar(1, "run") as tell:
            found.append(
                simulated_bands(
                    scenario, ranges, options.simulated, **shared, progress=lambda done, of: tell(done, "", of)
                )
            )
    bars = tornado(start, ranges, options.quantity)
    return (
        {"scenario": scenario.name}
        | _plain_bands(found)
        | {
            "quantity": options.quantity,
            "tornado": [plain(dataclasses.asdict(each)) for each in bars],
            "measure_first": measure_first(bars, options.quantity),
        }
    )


def sensitivity_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``sensitivity`` as text."""
    yield from band_lines(answer)
    yield ""
    yield answer["measure_first"]
    yield f"{'':32} {'from':>12} {'to':>12} {answer['quantity']:>26} {'swing':>10}  kind"
    for each in answer["tornado"]:
        moved = f"{each['at_low']:,.4g} to {each['at_high']:,.4g}"
        yield (
            f"{each['knob']:32} {each['low']:12,.4g} {each['high']:12,.4g} {moved:>26} {each['swing']:10,.3g}  "
            f"{each['kind']}: {each['reason']}"
        )


def band_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Bands as a table."""
    yield f"{answer['level']:.0%} of the samples lie between low and high"
    yield f"{'':28} {'kind':12} {'as it is':>12} {'low':>12} {'median':>12} {'high':>12}  unit"
    for band in answer["bands"]:
        numbers = " ".join(f"{band[name]:12,.4g}" for name in ("value", "low", "median", "high"))
        yield f"{band['quantity']:28} {band['kind']:12} {numbers}  {band['unit']}"


def answer_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``solve`` or ``simulate`` as text, each number with its band where it has one."""
    known = {band["quantity"]: band for band in answer.get("bands", ())}
    single = {name: value for name, value in answer.items() if not isinstance(value, list) and name != "level"}
    width = max(map(len, single))
    for name, value in single.items():
        shown = f"{value:,.4f}" if isinstance(value, float) else "-" if value is None else f"{value}"
        band = known.get(name)
        more = f"  {band['low']:,.4g} to {band['high']:,.4g}" if band else ""
        yield f"{name:{width}}  {shown:>16}{more}" if known else f"{name:{width}}  {shown}"
    if not known:
        return
    chance = " and seeds" if answer["kind"] == "simulated" else ""
    over = ", ".join(f"{each['knob']} {each['low']:.4g}..{each['high']:.4g}" for each in answer["ranges"]) or "no input"
    yield ""
    yield (
        f"{answer['kind']}; {answer['level']:.0%} of {answer['samples'][0]} samples{chance} lie between the two numbers "
        f"at the right. Over: {over}."
    )
