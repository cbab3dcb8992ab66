"""Published cases as files: what was run, what was measured, which rows calibrate what. docs/validation.md has the format.

A case file is data: reading one refuses what is no case, by field, value and limit, and computes nothing.
"""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rlqueue import presets
from rlqueue.calibration import Prior
from rlqueue.measures import MEASURES, SOLVERS, checked_value, knob_fields
from rlqueue.provenance import Quantity, Source, data_folder, sources
from rlqueue.refusal import is_positive, require_known
from rlqueue.scenario import Scenario
from rlqueue.validation.fields import fact_of, list_of_text, number_of, require_fields, source_of, tables_of, text_of

TOP = ("title", "source", "where", "question", "lacks", "solver", "ties_within", "scenario", "rows", "calibrations",
       "speedups", "rankings")  # fmt: skip
"""Fields of a case file."""

ROW = ("key", "title", "run", "changes", "measured", "left_out")

SPEEDUP_IN = tuple(
    name for name, each in MEASURES.items()
    if each.better and name not in {"wait_s", "logprob_s", "sync_s"} and not name.startswith("start_")
)  # fmt: skip
"""Measures with a ratio that says which of two is better: those which may be 0 have none."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One published run: the scenario as it ran, what was measured of it, and whether it is left out and why."""

    key: str
    title: str
    run: str
    scenario: Scenario
    measured: Mapping[str, Quantity]
    left_out: str


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Rows that calibrate: which of their measures, which knobs, and the rows that the knobs then hold for.

    ``factors``: by row and knob, what a fitted value is multiplied by in a row that was set up otherwise.
    """

    rows: Mapping[str, Sequence[str]]
    knobs: Sequence[str]
    priors: Mapping[str, Prior]
    holds_for: Sequence[str]
    factors: Mapping[str, Mapping[str, Quantity]]


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """By how much one row is better than another in a quantity: of times and costs ``over / of``, of rates ``of / over``."""

    of: str
    over: str
    quantity: str
    published: Quantity


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Rows to be put in order by one quantity; ``in_order``: they come lowest first, where the source gives no figures."""

    quantity: str
    rows: Sequence[str]
    in_order: bool


@dataclass(frozen=True, kw_only=True)
class Case:
    """One published case.

    Attributes:
        name: of the file. title, question: in words. source, where: of what is measured.
        lacks: what the model lacks here, in words for the reader of a miss. solver: who predicts.
        ties_within: published values closer than this relative difference are no ranking.
        facts: the scenario's knobs with their sources. rows, fits, speedups, rankings: see there.
    """

    name: str
    title: str
    question: str
    source: Source
    where: str
    lacks: Sequence[str]
    solver: str
    ties_within: float
    facts: Mapping[str, Quantity]
    rows: Sequence[Row]
    fits: Sequence[Fit]
    speedups: Sequence[Speedup]
    rankings: Sequence[Ranking]

    @property
    def calibrating(self) -> frozenset[str]:
        """Keys of the rows that calibrate something."""
        return frozenset(key for fit in self.fits for key in fit.rows)


@cache
def cases() -> tuple[Case, ...]:
    """Every case in data/cases/, in the order of the files' names."""
    return cases_from_folder(data_folder() / "cases")


def case_from_file(path: str | Path) -> Case:
    """One case from its file.

    Raises:
        ValueError: not TOML, an unknown or missing field, a value outside its limits, or an impossible scenario.
    """
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"case file {path}: cannot be read ({error})") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"case file {path} is not valid TOML: {error}") from error
    try:
        return case_from_values(raw, name=path.stem)
    except ValueError as error:
        raise ValueError(f"case file {path}: {str(error).removeprefix(f'case {path.stem}: ')}") from error


def cases_from_folder(folder: str | Path) -> tuple[Case, ...]:
    """Every case of a folder, in the order of the files' names. Raises ValueError as ``case_from_file``, and for no case."""
    found = sorted(Path(folder).glob("*.toml"))
    if not found:
        raise ValueError(f"case folder {folder}: holds no file that ends in .toml")
    return tuple(case_from_file(path) for path in found)


def case_from_values(raw: Mapping[str, Any], name: str) -> Case:
    """One case from the parsed file."""
    at = f"case {name}"
    require_fields(at, raw, TOP, needed=("title", "source", "scenario", "rows"))
    source, where = source_of(at, raw["source"]), text_of(at, raw, "where")
    solver = raw.get("solver", "simulated")
    require_known(f"{at}: solver", solver, SOLVERS)
    facts = _facts(at, raw["scenario"], source, where)
    rows = _rows(at, raw, facts, source, where)
    keys = [row.key for row in rows]
    return Case(
        name=name,
        title=text_of(at, raw, "title"),
        question=text_of(at, raw, "question"),
        source=source,
        where=where,
        lacks=tuple(list_of_text(at, raw.get("lacks", []), "lacks")),
        solver=solver,
        ties_within=number_of(at, raw, "ties_within", high=1.0, default=0.0),
        facts=facts,
        rows=rows,
        fits=_fits(at, raw, rows, source, where),
        speedups=tuple(_speedup(here, each, keys, source, where) for here, each in tables_of(at, raw, "speedups")),
        rankings=tuple(_ranking(here, each, rows) for here, each in tables_of(at, raw, "rankings")),
    )


def _facts(at: str, given: object, source: Source, where: str) -> dict[str, Quantity]:
    known = {each.name: each for each in dataclasses.fields(Scenario)}
    require_fields(f"{at}: scenario", given, ("based_on", *known))
    base = given.get("based_on")
    if base is not None:
        require_known(f"{at}: scenario.based_on", base, presets.preset_names())
    facts = presets.preset(base) if base is not None else {}
    own = {
        knob: fact_of(f"{at}: scenario.{knob}", value, known[knob].metadata["unit"], source, where)
        for knob, value in given.items()
        if knob != "based_on"
    }
    return dict(facts) | own


def _rows(
    at: str, raw: Mapping[str, Any], facts: Mapping[str, Quantity], source: Source, where: str
) -> tuple[Row, ...]:
    if not raw["rows"]:
        raise ValueError(f"{at}: rows={raw['rows']!r} must be a list of at least one table")
    rows: list[Row] = []
    for here, each in tables_of(at, raw, "rows"):
        require_fields(here, each, ROW, needed=("key", "measured"))
        text_of(here, each, "key")
        row = _row(at, each, facts, source, where)
        if row.key in [other.key for other in rows]:
            raise ValueError(f"{at}: rows: key={row.key!r} must be there once: rows are named by it")
        rows.append(row)
    return tuple(rows)


def _row(at: str, given: Mapping[str, Any], facts: Mapping[str, Quantity], source: Source, where: str) -> Row:
    key = given["key"]
    here = f"{at}: row {key!r}"
    changes, known = given.get("changes", {}), {each.name: each for each in dataclasses.fields(Scenario)}
    require_fields(f"{here}: changes", changes, known)
    values = {knob: fact.value for knob, fact in facts.items()}
    values |= {
        knob: fact_of(f"{here}: {knob}", value, known[knob].metadata["unit"], source, where).value
        for knob, value in changes.items()
    }
    require_fields(f"{here}: measured", given["measured"], MEASURES)
    measured = {}
    for name, value in given["measured"].items():
        measured[name] = fact_of(f"{here}: {name}", value, MEASURES[name].unit, source, where)
        checked_value(name, measured[name].value, here)
    try:
        scenario = Scenario.from_values(values, name=key)
    except ValueError as error:
        raise ValueError(f"{here}: {error}") from error
    return Row(
        key=key, title=text_of(here, given, "title") or key, run=text_of(here, given, "run"), scenario=scenario,
        measured=measured, left_out=text_of(here, given, "left_out"),
    )  # fmt: skip


def _fits(at: str, raw: Mapping[str, Any], rows: Sequence[Row], source: Source, where: str) -> tuple[Fit, ...]:
    by_key = {row.key: row for row in rows}
    fits = tuple(_fit(here, each, by_key, source, where) for here, each in tables_of(at, raw, "calibrations"))
    held = [key for fit in fits for key in fit.holds_for]
    if twice := sorted({key for key in held if held.count(key) > 1}):
        raise ValueError(f"{at}: calibrations: row {twice[0]!r} must be held by one of them: say holds_for in each")
    return fits


def _fit(at: str, given: object, rows: Mapping[str, Row], source: Source, where: str) -> Fit:
    require_fields(at, given, ("rows", "fit", "priors", "holds_for", "factors"), needed=("rows", "fit"))
    used = given["rows"]
    if not isinstance(used, Mapping) or not used:
        raise ValueError(f"{at}: rows={used!r} must be a table: row = [its measures that are fitted to]")
    for key, names in used.items():
        require_known(f"{at}: row", key, rows)
        if not list_of_text(at, names, f"rows.{key}"):
            raise ValueError(f"{at}: rows.{key}=[] must name a measure: a row calibrates by what was measured of it")
        for name in names:
            require_known(f"{at}: rows.{key} measure", name, rows[key].measured)
    knobs = list_of_text(at, given["fit"], "fit")
    for knob in knobs:
        require_known(f"{at}: fit", knob, knob_fields())
    if not knobs:
        raise ValueError(f"{at}: fit=[] must name a knob")
    holds_for = list_of_text(at, given.get("holds_for", list(rows)), "holds_for")
    for key in holds_for:
        require_known(f"{at}: holds_for", key, rows)
    known = given.get("priors", {})
    require_fields(f"{at}: priors", known, knobs)
    priors = {knob: _prior(f"{at}: priors.{knob}", each) for knob, each in known.items()}
    held = tuple(dict.fromkeys([*used, *holds_for]))
    others = [key for key in held if key not in used]
    scaled = given.get("factors", {})
    require_fields(f"{at}: factors", scaled, others)
    factors = {key: _factors(f"{at}: factors.{key}", each, knobs, source, where) for key, each in scaled.items()}
    return Fit(rows=dict(used), knobs=tuple(knobs), priors=priors, holds_for=held, factors=factors)


def _factors(at: str, given: object, knobs: Sequence[str], source: Source, where: str) -> dict[str, Quantity]:
    """What fitted knobs are multiplied by in one row that they hold for."""
    require_fields(at, given, knobs)
    factors = {knob: fact_of(f"{at}.{knob}", each, "1", source, where) for knob, each in given.items()}
    for knob, factor in factors.items():
        if not is_positive(factor.value):
            raise ValueError(
                f"{at}: {knob}={factor.value!r} must be a finite number > 0: a fitted value is multiplied by it"
            )
    return factors


def _prior(at: str, given: object) -> Prior:
    require_fields(at, given, ("value", "spread", "source", "where", "note", "kind"), needed=("value", "spread"))
    for field in ("value", "spread"):
        value = given[field]
        if not is_positive(value):
            raise ValueError(f"{at}: {field}={value!r} must be a finite number > 0")
    if "source" in given:
        require_known(f"{at}: source", given["source"], sources())
    return Prior(value=float(given["value"]), spread=float(given["spread"]))


def _speedup(at: str, given: object, keys: Sequence[str], source: Source, where: str) -> Speedup:
    require_fields(at, given, ("of", "over", "published", "quantity"), needed=("of", "over", "published"))
    quantity = given.get("quantity", "step_s")
    require_known(f"{at}: quantity", quantity, SPEEDUP_IN)
    for field in ("of", "over"):
        require_known(f"{at}: {field}", given[field], keys)
    published = fact_of(f"{at}: published", given["published"], "1", source, where)
    if not is_positive(published.value):
        raise ValueError(f"{at}: published={published.value!r} must be a finite number > 0: a ratio")
    return Speedup(of=given["of"], over=given["over"], quantity=quantity, published=published)


def _ranking(at: str, given: object, rows: Sequence[Row]) -> Ranking:
    require_fields(at, given, ("quantity", "rows", "in_order"), needed=("quantity", "rows"))
    require_known(f"{at}: quantity", given["quantity"], MEASURES)
    by_key, in_order = {row.key: row for row in rows}, given.get("in_order", False)
    if not isinstance(in_order, bool):
        raise ValueError(f"{at}: in_order={in_order!r} must be true or false")
    named = list_of_text(at, given["rows"], "rows")
    if len(named) < 2:
        raise ValueError(f"{at}: rows={named!r} must name at least two rows: one has no rank")
    for key in named:
        require_known(f"{at}: row", key, by_key)
        if not in_order and given["quantity"] not in by_key[key].measured:
            raise ValueError(f"{at}: row {key!r} lacks a measured {given['quantity']} (or say in_order = true)")
    return Ranking(quantity=given["quantity"], rows=tuple(named), in_order=in_order)
