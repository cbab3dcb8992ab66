"""What a sweep of runs consists of: its cells and seeds in order, cut into chunks, each a pure function of the job."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import pandas as pd

from rlqueue.cost import Bill, cost
from rlqueue.knobs import from_text
from rlqueue.operating_point import OperatingPoint
from rlqueue.provenance import data_folder
from rlqueue.ranges import value_of
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario
from rlqueue.stamp import source_stamp
from rlqueue.trials import trial

SPLIT = "split"
"""An axis of its own: ``trainer:generator`` GPUs, which move together."""


COMPUTES = ("numpy", "numba", "pandas")
"""Packages in whose other versions a figure may end in another digit."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A sweep: every combination of the axes' values, each with every seed.

    Attributes:
        scenario: what stays the same. axes: knobs with their values; ``split`` takes ``"64:192"``.
        seeds: how many, from ``first_seed``. steps: of each run. chunk: runs that are done and kept together.

    Raises:
        ValueError: an unknown knob, an impossible value or combination, or a count below one.
    """

    scenario: Scenario
    axes: tuple[tuple[str, tuple[Any, ...]], ...]
    seeds: int = 1
    first_seed: int = 0
    steps: int = 30
    chunk: int = 50

    def __post_init__(self) -> None:
        for name, low in (("seeds", 1), ("first_seed", 0), ("steps", 1), ("chunk", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ValueError(f"{name}={value!r} must be a whole number >= {low}")
        names = [name for name, _ in self.axes]
        for name, values in self.axes:
            require_known("axis", name, [SPLIT, *self.scenario.settable()])
            if not values:
                raise ValueError(f"axis {name} has no value")
        if len(set(names)) < len(names):
            raise ValueError(f"axes {', '.join(names)}: each knob may be an axis once")
        for cell in range(self.cells):
            self.at(cell)  # refuses an impossible combination before hours of others are simulated

    @property
    def cells(self) -> int:
        """Combinations of the axes' values."""
        return math.prod(len(values) for _, values in self.axes)

    @property
    def runs(self) -> int:
        return self.cells * self.seeds

    @property
    def chunks(self) -> int:
        return -(-self.runs // self.chunk)

    @property
    def fingerprint(self) -> str:
        """Says whether two tables are of the same job by the same code: scenario, axes, seeds, steps, and the sources."""
        # The whole of the scenario: a file of it names its GPU, whose peak may be another today
        return hashlib.sha256(f"{self.scenario!r} {self.terms()} {code_stamp()}".encode()).hexdigest()[:32]

    def terms(self) -> str:
        """What was asked for, as JSON: the scenario as TOML, axes, seeds, steps."""
        said = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "scenario"}
        return json.dumps({"scenario": self.scenario.to_toml(), **said})

    def changed(self, cell: int) -> dict[str, Any]:
        """The axes' values of a cell, in the order of ``itertools.product``."""
        place, found = cell, {}
        for name, values in reversed(self.axes):
            place, at = divmod(place, len(values))
            found[name] = values[at]
        return {name: found[name] for name, _ in self.axes}

    def at(self, cell: int) -> Scenario:
        """The scenario of a cell."""
        values: dict[str, Any] = {}
        for name, value in self.changed(cell).items():
            head, _, inner = name.partition(".")
            if name == SPLIT:
                values |= dict(zip(("trainer_gpus", "generator_gpus"), _split(value), strict=True))
            elif inner:
                values[head] = dataclasses.replace(values.get(head, getattr(self.scenario, head)), **{inner: value})
            else:
                values[head] = value
        return dataclasses.replace(self.scenario, **values)

    def runs_of(self, chunk: int) -> list[tuple[int, int]]:
        """Cell and seed of each run of a chunk."""
        first = chunk * self.chunk
        places = range(first, min(self.runs, first + self.chunk))
        return [(place // self.seeds, self.first_seed + place % self.seeds) for place in places]


def _split(value: Any) -> tuple[int, int]:
    try:
        trainer, generator = (int(part) for part in str(value).split(":"))
    except ValueError:
        raise ValueError(f"split={value!r} must have the form trainer:generator, e.g. 64:192") from None
    return trainer, generator


def axis_from_text(scenario: Scenario, text: str) -> tuple[str, tuple[Any, ...]]:
    """An axis from a word of the command line, ``knob=a,b,c``."""
    name, equals, values = text.partition("=")
    if not equals:
        raise ValueError(f"axis {text!r} must have the form knob=a,b,c")
    words = [word.strip() for word in values.split(",") if word.strip()]
    if name == SPLIT:
        return name, tuple(words)
    require_known("axis", name, [SPLIT, *scenario.settable()])
    like = value_of(scenario, name)
    found = [from_text(word, like) for word in words]
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in found) and isinstance(like, float):
        found = [float(each) for each in found]
    return name, tuple(found)


@cache
def code_stamp() -> int:
    """Changes with any source of a run, table of data, or version of what computes: a table is not gone on with by others.

    It is of what was there when this process loaded it: a worker that stays on is as old as its memory, not as its disk.
    """
    digest = hashlib.sha256(f"{source_stamp('*.py', 'simulation/*.py', 'bulk/*.py')}".encode())
    for path in sorted(data_folder().glob("*.csv")):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(" ".join(version(name) for name in COMPUTES).encode())
    return int.from_bytes(digest.digest()[:7], "big")


code_stamp()


def table_of(job: Job, chunk: int, stamp: int) -> pd.DataFrame:
    """One chunk of a job's table: a row per run, in order.

    Args:
        stamp: of the code that asks; a worker with other code refuses.
    """
    if code_stamp() != stamp:
        raise ValueError("a worker runs other code than the one that asks: install the same rlqueue on both")
    rows, plans = [], {cell: job.at(cell) for cell, _ in job.runs_of(chunk)}
    for cell, seed in job.runs_of(chunk):
        found = trial(plans[cell], seed, job.steps)
        answers = _nothing()
        if found.point is not None:
            answers |= vars(found.point) | vars(cost(plans[cell], found.point))
        answers = {name: math.nan if value is None else value for name, value in answers.items()}
        rows.append(
            job.changed(cell)
            | {"seed": seed}
            | answers
            | {"staleness_p95": found.staleness_p95, "events": found.events, "stalled": found.stalled}
        )
    return pd.DataFrame(rows)


def _nothing() -> dict[str, Any]:
    """The columns of a run that came to no step."""
    return {
        each.name: "" if each.type in (str, "str") else math.nan
        for kind in (OperatingPoint, Bill) for each in dataclasses.fields(kind)
    }  # fmt: skip
