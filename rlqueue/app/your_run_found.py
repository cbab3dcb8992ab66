"""What the page has been given and what follows from it; text and bytes of a visitor stay in memory, and no file is opened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Any

from rlqueue.app import page_table
from rlqueue.app.banded import SAMPLES
from rlqueue.calibration import FittedKnob
from rlqueue.diagnosis import Diagnosis, diagnose
from rlqueue.frameworks import Reading, read_text
from rlqueue.logs import Measured
from rlqueue.logs.source import source
from rlqueue.presets import preset_names
from rlqueue.provenance import data_folder
from rlqueue.ranges import Range, default_ranges, ranges_of, with_given
from rlqueue.scenario import Scenario
from rlqueue.uncertainty import Bands, bands

CONFIGURATIONS = (".toml", ".yaml", ".yml", ".sh", ".py")
"""Files that are read as configurations; any other is a log, and a configuration only if it can be no log."""
LARGEST_CONFIGURATION = 1_000_000
KNOBS = frozenset(each.name for each in fields(Scenario))
SPREAD = math.sqrt(3.0)
"""Half the width of an even law over its standard deviation."""
LEAST = 1e-9
"""A knob that the log fixes closer than this has no range."""
EXAMPLE = "nemo_rl_qwen3_235b_swe_18_steps.csv"


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a visitor gave.

    Attributes:
        logs, configurations: by name; of the configurations the last is the run's, the others what it builds upon.
        preset: published run that stands for what no configuration says, "" for none. llm: "" for the configuration's own.
        framework: whose logs they are, "" to be recognised. example: whether this is what the page opens with.
    """

    logs: Mapping[str, bytes] = field(default_factory=dict)
    configurations: Mapping[str, str] = field(default_factory=dict)
    preset: str = ""
    llm: str = ""
    framework: str = ""
    example: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What follows: the log as a table, the configuration as knobs, and both together.

    ``open``: why there is no scenario. ``bands``: how far the closed form of the scenario may be off, None without one.
    """

    given: Given
    measured: Measured | None
    reading: Reading | None
    diagnosis: Diagnosis | None
    bands: Bands | None = None
    open: str = ""


def example() -> Given:
    """The log of a published run, for a page that nobody has given anything yet."""
    return Given(logs={EXAMPLE: (data_folder() / "logs" / EXAMPLE).read_bytes()}, example=True)


def added(given: Given, name: str, content: bytes) -> Given:
    """The same with one more file, which replaces one of its name; the example gives way. ValueError where it is neither kind."""
    if given.example:
        given = replace(given, logs={}, example=False)
    if PurePath(name).suffix.lower() in CONFIGURATIONS:
        return _with_configuration(given, name, content)
    try:
        logs = {**given.logs, name: content}
        Measured.from_log([content], given.framework or None, names=[name])
    except ValueError as refusal:
        try:
            found = _with_configuration(given, name, content)
            read_text(found.configurations[name], name=name)
        except ValueError:
            raise refusal from None
        return found
    return replace(given, logs=logs)


def _with_configuration(given: Given, name: str, content: bytes) -> Given:
    if len(content) > LARGEST_CONFIGURATION:
        raise ValueError(
            f"{name!r:.80} has {len(content):,} bytes, must be at most {LARGEST_CONFIGURATION:,} for a configuration"
        )
    text = content.decode(source(content, name).encoding, errors="replace")
    others = {each: words for each, words in given.configurations.items() if each != name}
    return replace(given, configurations={**others, name: text})


def found(given: Given, before: Found | None = None) -> Found:
    """Read, and put together; a log that is read already is not read again."""
    measured = _measured(given, before)
    reading, scenario, why = _scenario(given)
    if scenario is None and given.preset and not given.configurations:
        scenario = Scenario.from_data(given.preset)
    framework = reading.framework if reading else None
    diagnosis = diagnose(measured, scenario, framework=framework) if measured or scenario else None
    return Found(
        given=given, measured=measured, reading=reading, diagnosis=diagnosis, bands=_bands(diagnosis, given, reading), open=why
    )  # fmt: skip


def _bands(diagnosis: Diagnosis | None, given: Given, reading: Reading | None) -> Bands | None:
    if diagnosis is None or diagnosis.scenario is None:
        return None
    try:
        return bands(diagnosis.scenario, ranges(diagnosis, given, reading), SAMPLES)
    except ValueError:  # a run at its limits: no sample about it is possible
        return None


def ranges(diagnosis: Diagnosis, given: Given, reading: Reading | None) -> tuple[Range, ...]:
    """Ranges of a run's inputs: of knobs that the log was fitted by, as far as it fixes them, and of those that were assumed."""
    scenario = diagnosis.scenario
    chosen = default_ranges(scenario, given.preset) if given.preset else ()
    if reading is not None:
        assumed = {fact.knob: fact.origin for fact in reading.facts if fact.origin == "assumed"}
        chosen = with_given(
            chosen, ranges_of(scenario, {knob: kind for knob, kind in assumed.items() if knob in KNOBS})
        )
    fitted = diagnosis.calibration.knobs if diagnosis.calibration else ()
    chosen = [each for each in chosen if each.knob not in diagnosis.taken]
    return with_given(chosen, [_as_fitted(each) for each in fitted if LEAST < each.spread < math.inf])


def _as_fitted(knob: FittedKnob) -> Range:
    """Every factor alike between two ends that are so far apart that it has the fit's own standard deviation."""
    factor = math.exp(SPREAD * knob.spread)
    return Range(
        knob=knob.knob, low=knob.value / factor, high=knob.value * factor, law="log", kind="calibrated",
        reason="as far as the log fixes it",
    )  # fmt: skip


def _measured(given: Given, before: Found | None) -> Measured | None:
    if not given.logs:
        return None
    if before and before.given.logs == given.logs and before.given.framework == given.framework:
        return before.measured
    return Measured.from_log(list(given.logs.values()), given.framework or None, names=list(given.logs))


def _scenario(given: Given) -> tuple[Reading | None, Scenario | None, str]:
    """The last configuration as a scenario, or why it is none yet."""
    if not given.configurations:
        return None, None, ""
    name = next(reversed(given.configurations))
    others = {each: text for each, text in given.configurations.items() if each != name}
    reading = read_text(
        given.configurations[name], name=name, files=others, based_on=given.preset or None, llm=given.llm or None
    )
    if reading.missing:
        return reading, None, " ".join(reading.missing)
    try:
        return reading, Scenario.from_values(reading.values, name=reading.name), ""
    except ValueError as refusal:
        return reading, None, str(refusal)


def rows(found: Found) -> list[tuple[Any, ...]]:
    """What was measured and what the model says of it, for a file, in the columns of ``page_table``."""
    name = " + ".join((*found.given.logs, *found.given.configurations))
    made = []
    for quantity, mean in found.measured.means().items() if found.measured is not None else ():
        numbers = {"mean": mean.mean, "sd": mean.sd, "steps": mean.rows}
        made += [(name, "measured", quantity, "steady steps", at, value) for at, value in numbers.items()]
    diagnosis = found.diagnosis
    made += [
        (name, "fitted" if each.fitted else "closed form", each.quantity, "", "", each.predicted)
        for each in (diagnosis.comparisons if diagnosis else ())
    ]
    for band in found.bands.rows if found.bands else ():
        made += page_table.of_band(name, band)
    for gain in diagnosis.gains if diagnosis else ():
        numbers = {
            "trainer_wait_ratio": gain.move.point.trainer_wait_ratio,
            "usd_per_mtok": gain.move.bill.usd_per_mtok,
        }
        made += [(name, "closed form", quantity, "move", gain.move.words, value) for quantity, value in numbers.items()]
    return made


__all__ = ["CONFIGURATIONS", "EXAMPLE", "Found", "Given", "added", "example", "found", "preset_names"]
