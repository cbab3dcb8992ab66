"""The knobs of a configuration, each with where it comes from."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlqueue.frameworks.entries import Document, Entry, Unresolved
from rlqueue.frameworks.formulas import formulas, needed, sentence
from rlqueue.frameworks.interpolation import resolved
from rlqueue.frameworks.recognise import normal
from rlqueue.frameworks.tables import Key, Rule, keys, rules
from rlqueue.provenance import Quantity, parsed

ORIGINS = ("read", "defaulted", "assumed")
"""Read in the file; not in it, so the framework's default; neither says it, so a preset or data/frameworks/assumed.csv."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """One value that a knob was made of: a key of the framework, or a quantity of ours."""

    key: str
    value: Any
    origin: str
    unit: str = ""
    written: str = ""
    place: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One knob: its value, whether it was read, defaulted or assumed, what it was made of, and by which formula.

    Attributes:
        formula: as a sentence. source, where: where the formula or the assumption was found. note: a doubt.
    """

    knob: str
    value: Any
    origin: str
    givens: tuple[Given, ...] = ()
    formula: str = ""
    source: str = ""
    where: str = ""
    note: str = ""


LEAST_OF_LIMITS = {"room_for_response", "batch_on_engines"}


class Configuration:
    """The values of a document by the framework's own names, with its defaults."""

    def __init__(self, framework: str, document: Document, given: Mapping[str, str]) -> None:
        self.framework, self.document = framework, document
        plain = {name: entry.value for name, entry in document.variables.items()}
        self.variables = {
            name: str(value) for name, value in plain.items() if isinstance(value, str | int | float)
        } | dict(given)
        self.named: dict[str, Entry] = {}
        for entry in document.entries.values():
            name = normal(entry.key, framework)
            if name is not None:
                self.named[name] = entry
        for key in keys(framework).values():
            variable = next((document.variables[alias] for alias in key.aliases if alias in document.variables), None)
            if variable is not None:
                self.named.setdefault(key.name, variable)
        self.keys: dict[str, Key] = keys(framework, None)
        self.unresolved: dict[str, str] = {}

    def at(self, variant: str) -> None:
        """From now on with the defaults of that mode."""
        self.keys = keys(self.framework, variant)

    def value(self, name: str) -> Any:
        """The value read for a key, or None."""
        entry = self.named.get(name)
        if entry is None:
            return None
        value = resolved(entry, self.document.entries, self.variables)
        if isinstance(value, Unresolved):
            self.unresolved[name] = value.reason
            # A path whose beginning is unset still ends in the LLM's name.
            return value.text or None if self.keys.get(name) and self.keys[name].meaning == "LLM" else None
        if isinstance(value, str):
            text = value.strip()
            return {"null": None, "none": None, "True": True, "False": False}.get(text, parsed(text))
        return value

    def given(self, name: str) -> Given | None:
        """A key's value as read or as the framework defaults it; None where neither says anything."""
        if name not in self.keys:
            return None
        key, value = self.keys[name], self.value(name)
        if value is not None:
            entry = self.named[name]
            return Given(key=name, value=value, origin="read", unit=key.unit, written=entry.key, place=entry.place,
                         note=entry.note)  # fmt: skip
        if key.default is None:
            return None
        note = f"it is written, but {self.unresolved[name]}" if name in self.unresolved else ""
        return Given(key=name, value=key.default, origin="assumed" if note else "defaulted", unit=key.unit, note=note)


def facts(
    configuration: Configuration, variant: str, assumed: Mapping[str, Quantity], base: Mapping[str, Fact],
    settled: Mapping[str, Fact],
) -> dict[str, Fact]:  # fmt: skip
    """The knobs that the rules of a framework's mode give, in their order; helpers begin with ``~``.

    Args:
        assumed: quantities that stand for what no file says. base: knobs of a published run, better than such a guess.
        settled: knobs that are known already.
    """
    found = dict(settled)
    for rule in rules("readings", configuration.framework, variant):
        if rule.target in found:
            continue
        fact = _fact(rule, configuration, found, assumed)
        if rule.target in base and _better_known(base[rule.target], rule, fact, found):
            found[rule.target] = base[rule.target]
        elif fact is not None:
            found[rule.target] = fact
    return found


def _better_known(published: Fact, rule: Rule, fact: Fact | None, found: Mapping[str, Fact]) -> bool:
    """Whether a published run's knob stands: for a guess, where it fits the file's limits, and for the cut that no file says."""
    if rule.target == "max_response_tokens":
        said = found.get("mean_response_tokens")
        return (said is None or said.origin != "read") and fact is not None and not _reads(fact)
    if not any(argument.startswith("%") for argument in rule.arguments):
        return False
    cut = found.get("max_response_tokens")
    if rule.target == "mean_response_tokens":
        return cut is None or published.value < cut.value
    if rule.target == "mean_prompt_tokens" and fact is not None:
        return all(published.value < given.value for given in fact.givens if given.origin == "read")
    return True


def _reads(fact: Fact) -> bool:
    """Whether anything that it follows from is in the file."""
    return any(given.origin == "read" for given in fact.givens)


def _fact(
    rule: Rule, configuration: Configuration, found: Mapping[str, Fact], assumed: Mapping[str, Quantity]
) -> Fact | None:
    givens = list(_givens(rule, configuration, found, assumed))
    if any(given is None and must for given, must in zip(givens, needed(rule.formula), strict=False)):
        return None
    values = [None if given is None else given.value for given in givens]
    try:
        value = formulas()[rule.formula](*values)
    except (TypeError, AttributeError, ArithmeticError) as error:
        said = ", ".join(f"{given.key}={given.value!r}"[:80] for given in givens if given)
        raise ValueError(f"{said} must be such that {rule.target} follows ({type(error).__name__})") from None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    used = [given for given in givens if given is not None and given.key]
    # Of the limits that it is the least of, one decides.
    deciding = [given for given in used if given.value == value] if rule.formula in LEAST_OF_LIMITS else []
    origins = {given.origin for given in deciding or used}
    origin = "assumed" if "assumed" in origins else "read" if "read" in origins else "defaulted"
    notes = [given.note for given in used if given.note]
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    once = tuple({given.key: given for given in used}.values())
    return Fact(knob=rule.target, value=value, origin=origin, givens=once, formula=sentence(rule.formula),
                source=rule.source, where=rule.where, note="; ".join(notes))  # fmt: skip


def _givens(
    rule: Rule, configuration: Configuration, found: Mapping[str, Fact], assumed: Mapping[str, Quantity]
) -> Iterator[Given | None]:
    for argument in rule.arguments:
        name = argument[1:]
        if argument.startswith("@"):
            fact = found.get(name)
            if fact is None:
                yield None
                continue
            places = ", ".join(dict.fromkeys(given.place for given in fact.givens if given.place))
            yield Given(key=name, value=fact.value, origin=fact.origin, place=places, note=fact.note)
        elif argument.startswith("%"):
            yield Given(key=name, value=assumed[name].value, origin="assumed", unit=assumed[name].unit)
        elif argument.startswith("="):
            yield Given(key="", value=parsed(name), origin="defaulted")
        elif argument == "!programs":
            yield Given(key="source", value=configuration.document.programs, origin="read")
        else:
            yield configuration.given(argument)
