"""One line of a console as numbers: each framework's way of printing a step, told apart by marks that are cheap to look for.

No pattern here can go back more than a bounded number of characters, so that no line, however made, takes long.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlqueue.logs.names import EVALUATED, STEP_NAMES

INTERESTING = re.compile(rb"tep|perf \d|rollout \d|eval \d|\xe2\x80\xa2|\xe2\x94[\x82\x83]|\{| - ")
"""A line without any of these has no metric."""
ANSI = re.compile(r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]")
RAY = re.compile(r"^\s{0,8}\([\w.:-]{1,100}(?: [\w.:-]{1,100})?=\d{1,12}(?:, ip=[\d.]{1,40})?\)\s?")
DEEPEST = 6
"""Objects of JSON lines that lie deeper are not looked into."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a line says.

    Attributes:
        numbers: by the framework's names. step: of these numbers, None where the line doesn't say.
        heading: the line only says which step the lines below belong to. whole: the line is a step's record of its own,
            and not one of several lines about a step.
    """

    numbers: Mapping[str, float]
    step: float | None = None
    heading: bool = False
    whole: bool = False


def clean(line: bytes) -> str:
    """The line as text, without colours and Ray's ``(TaskRunner pid=123)``."""
    return RAY.sub("", ANSI.sub("", line.decode("utf-8", errors="replace")))


def read(line: bytes) -> Found | None:
    """The numbers of a line, or which step it announces; None where it says nothing."""
    if not INTERESTING.search(line):
        return None
    text = clean(line)
    for dialect in DIALECTS:
        found = dialect(text)
        if found is not None:
            return found
    return None


def number(text: object) -> float | None:
    """A number from what JSON or a console has for one, ``np.float64(3.5)`` and ``"3.5"`` included; None for what is none."""
    if isinstance(text, bool):
        return float(text)
    if isinstance(text, int | float):
        try:
            return float(text)
        except OverflowError:
            return math.inf
    if not isinstance(text, str) or len(text) > 80:
        return None
    text = text.strip().strip("'\"")
    inside = re.fullmatch(r"[\w.]{1,30}\(([^()]{1,40})\)", text)
    try:
        return float(inside[1] if inside else text)
    except ValueError:
        return None


def record(row: Mapping[str, Any]) -> Found:
    """A JSON object as a step's record; objects inside are read as ``outer/inner``."""
    values: dict[str, float] = {}
    _flatten(row, "", values, DEEPEST)
    return Found(numbers=values, step=step_of(values), whole=True)


def _flatten(row: Mapping[str, Any], before: str, values: dict[str, float], deep: int) -> None:
    for name, value in row.items():
        if type(value) is float:
            values[before + name] = value
        elif isinstance(value, Mapping):
            if deep:
                _flatten(value, f"{before}{name}/", values, deep - 1)
        elif (found := number(value)) is not None:
            values[before + name] = found


def step_of(values: Mapping[str, float]) -> float | None:
    return next((values[name] for name in STEP_NAMES if name in values), None)


def _json(text: str) -> Found | None:
    """``{"step": 3, "perf/step_time": 4.5}``, alone or after a logger's prefix (ROLL)."""
    start = text.find('{"')
    if start < 0 or not text.rstrip().endswith("}"):
        return None
    try:
        row = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    found = record(row)
    return found if start == 0 or found.step is not None else Found(numbers=found.numbers)


PAIR = re.compile(
    r"""['"]([^'"\s]{1,200})['"]\s?:\s?['"]?(?:[\w.]{1,30}\()?['"]?"""
    r"""([-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,4})?|\.\d{1,40}|nan|inf))"""
)
LABELLED = re.compile(r"(?:^|[\s\])-])(perf|rollout|eval|Global step|Completed steps) (\d{1,12}): ?\{")


def _labelled(text: str) -> Found | None:
    """``perf 12: {'perf/step_time': np.float64(4.5)}`` (slime), ``Global step 3: {`` (OpenRLHF), ``Completed steps 3: {``."""
    label = LABELLED.search(text)
    if label is None:
        return None
    if label[1] == "eval":
        return Found(numbers={EVALUATED[1]: 1.0}, step=float(label[2]), whole=True)
    return Found(numbers=_pairs(text[label.end() - 1 :]), step=float(label[2]), whole=True)


def _pairs(text: str) -> dict[str, float]:
    return {pair[1]: float(pair[2]) for pair in PAIR.finditer(text)}


def _dictionary(text: str) -> Found | None:
    """A Python dictionary without a label, or JSON cut off; values by the names it has."""
    start = text.find("{")
    values = _pairs(text[start:]) if start >= 0 else {}
    return Found(numbers=values, step=step_of(values), whole=True) if values else None


def _dashed(text: str) -> Found | None:
    """``step:12 - timing_s/gen:4.5 - ...`` (verl, SkyRL)."""
    if " - " not in text or ":" not in text:
        return None
    values: dict[str, float] = {}
    for part in text.split(" - "):
        name, colon, value = part.rpartition(":")
        words = name.split()
        if colon and words and len(words[-1]) <= 200 and (found := number(value)) is not None:
            values[words[-1]] = found
    return Found(numbers=values, step=step_of(values), whole=True) if any("/" in name for name in values) else None


STEP_LINE = re.compile(r"\bStep (\d{1,12}) \| ")
FIELD = re.compile(r"([A-Za-z][A-Za-z. -]{0,30}?):? ([-+]?\d[\d,]{0,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,4})?)")
DURATION = re.compile(r"(?:(\d{1,6})d )?(?:(\d{1,6})h )?(?:(\d{1,6})m )?(\d{1,12}(?:\.\d{1,12})?) ?s?")


def _step_line(text: str) -> Found | None:
    """``Step 12 | Time: 72.00s | Reward: 0.34`` or ``Step 12 | 1m 3s | Loss 0.1`` (prime-rl)."""
    start = STEP_LINE.search(text)
    if start is None:
        return None
    values: dict[str, float] = {}
    for part in text[start.end() :].split(" | "):
        spent = DURATION.fullmatch(part.strip().removeprefix("Time: "))
        if spent is not None:
            days, hours, minutes, seconds = (float(each or 0) for each in spent.groups())
            values["console/Time"] = 86400 * days + 3600 * hours + 60 * minutes + seconds
            continue
        field = FIELD.match(part.strip())
        if field is not None:
            values[f"console/{field[1]}"] = float(field[2].replace(",", ""))
    return Found(numbers=values, step=float(start[1]), whole=True)


BULLET = re.compile(r"•\s{0,4}([^:•]{1,80}): {0,4}([-+]?\d[\d,]{0,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,4})?)")


def _bullet(text: str) -> Found | None:
    """``• exposed_generation: 308.17s (79.2%)`` (NeMo-RL): one of many lines about a step."""
    if "•" not in text:
        return None
    values = {f"console/{each[1].strip()}": float(each[2].replace(",", "")) for each in BULLET.finditer(text)}
    return Found(numbers=values) if values else None


def _boxed(text: str) -> Found | None:
    """``│ timeperf/rollout │ 8.8992e+01 │ rollout/reward │ 2.62e-01 │`` (AReaL, tinker)."""
    if "│" not in text:
        return None
    cells = [cell.strip() for cell in text.split("│")]
    cells = [cell for cell in cells if cell]
    pairs = zip(cells[::2], cells[1::2], strict=False)
    values = {name: found for name, value in pairs if len(name) <= 200 and (found := number(value)) is not None}
    return Found(numbers=values, step=step_of(values)) if values else None


HEADINGS = (
    re.compile(r"===== {0,4}Step (\d{1,12})/"),  # NeMo-RL
    re.compile(r"\bTrain step (\d{1,12})/\d{1,12} done"),  # AReaL
    re.compile(r"\bpipeline step (\d{1,12}) "),  # ROLL
    re.compile(r"^\s{0,200}Step (\d{1,12})\s{0,200}$"),  # tinker's table
)


def _heading(text: str) -> Found | None:
    for heading in HEADINGS:
        found = heading.search(text)
        if found is not None:
            return Found(numbers={}, step=float(found[1]), heading=True)
    return None


DIALECTS: tuple[Callable[[str], Found | None], ...] = (
    _json, _labelled, _step_line, _bullet, _boxed, _heading, _dashed, _dictionary,
)  # fmt: skip
"""In the order in which they are tried: the first that finds something has the line."""
