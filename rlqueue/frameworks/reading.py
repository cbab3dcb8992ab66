"""Reading a framework's configuration: its knobs, where each comes from, and what is still missing for a scenario."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

from rlqueue.frameworks.entries import Find
from rlqueue.frameworks.facts import ORIGINS, Configuration, Fact, Given, facts
from rlqueue.frameworks.recognise import KINDS, documents, normal, recognised, variant_of
from rlqueue.frameworks.sizing import longest_context, sized_replica
from rlqueue.frameworks.source import among, as_path, at_most, beside, checked_text, file_text
from rlqueue.frameworks.tables import frameworks, rules, variants
from rlqueue.llm import llm_keys
from rlqueue.presets import preset
from rlqueue.provenance import Quantity, quantities
from rlqueue.refusal import require_known

MOST_FILES = 64
REPORTED = ("optimizer_updates_per_version",)
"""What a reading tells besides the knobs of a scenario."""
REQUIRED = (
    "llm", "trainer_gpus", "generator_gpus", "gpus_per_replica", "prompts_per_step", "group_size", "mean_prompt_tokens",
    "mean_response_tokens", "max_response_tokens", "concurrency", "schedule", "staleness_family", "max_staleness",
)  # fmt: skip


SILENT = (
    "prefill_gpus_per_replica", "updates_per_step", "minibatches_per_update", "steps_per_publication", "oversampling_factor",
    "slots_held_by", "cluster_gpus", "measured_run",
)  # fmt: skip
"""Knobs that are off where a configuration says nothing of them, whatever another run did."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a configuration says of a run, and what it does not.

    Attributes:
        framework, title, variant: whose file it is and its mode, such as ``fully asynchronous``.
        facts: knobs with value, origin and place, one each.
        reported: facts that are no knobs, such as the optimizer updates that a version is worth.
        unknown: keys that the framework's table does not hold: (key, value as text, place). unused: keys that it holds and
            that no knob follows from.
        unresolved: keys whose value only running the file would give, with the reason.
        absent: files that it builds upon and that were not at hand.
        missing: what stands between this and a scenario, as sentences; empty: ``values`` make one.
    """

    name: str
    framework: str
    title: str
    variant: str
    facts: tuple[Fact, ...]
    reported: tuple[Fact, ...] = ()
    unknown: tuple[tuple[str, str, str], ...] = ()
    unused: tuple[tuple[str, str, str], ...] = ()
    unresolved: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, Any]:
        """Knobs by name, for a scenario. Raises ValueError where something is missing, and says what."""
        if self.missing:
            raise ValueError(f"{self.title} configuration {self.name!r}: {'; '.join(self.missing)}")
        return {fact.knob: fact.value for fact in self.facts}

    def fact(self, knob: str) -> Fact:
        """The fact of one knob or reported quantity. Raises ValueError for another."""
        known = {fact.knob: fact for fact in (*self.facts, *self.reported)}
        require_known("knob", knob, known)
        return known[knob]


def read(
    path_or_text: str | Path, framework: str | None = None, *, based_on: str | None = None, llm: str | None = None,
    variables: Mapping[str, str] | None = None, knobs: Mapping[str, Any] | None = None,
) -> Reading:  # fmt: skip
    """Read a configuration from a file, with the files that it builds upon beside it, or from text.

    Args:
        path_or_text: a path, or the configuration itself; a text of one line is a path where it ends like one or such a
            file is there. What strangers hand in goes to ``read_text``, which opens no file.
        framework: its name, where the keys do not tell. based_on: preset whose knobs stand for what the file cannot say.
        llm: key of the LLM, instead of the file's. variables: of the shell's environment, by name.
        knobs: knobs that you know better than the file; what follows from them does so.

    Raises:
        ValueError: it cannot be read, is nobody's configuration, or holds what no configuration holds.
    """
    path = as_path(path_or_text)
    if path is None:
        return _read(str(path_or_text), among({}), "configuration", (framework, based_on, variables, _said(llm, knobs)))
    return _read(file_text(path), beside(path), path.name, (framework, based_on, variables, _said(llm, knobs)))


def read_text(
    text: str, framework: str | None = None, *, files: Mapping[str, str] | None = None, name: str = "configuration",
    based_on: str | None = None, llm: str | None = None, variables: Mapping[str, str] | None = None,
    knobs: Mapping[str, Any] | None = None,
) -> Reading:  # fmt: skip
    """Read a configuration from text alone: it opens no file, and builds only upon ``files``, texts by name.

    The ending of ``name`` says its format; without one it may be any. Otherwise as ``read``.
    """
    return _read(text, among(files or {}), name, (framework, based_on, variables, _said(llm, knobs)))


def _said(llm: str | None, knobs: Mapping[str, Any] | None) -> dict[str, Fact]:
    """What the caller says of the run, as facts."""
    values = dict(knobs or {}) | ({} if llm is None else {"llm": llm})
    if "llm" in values:
        require_known("llm", values["llm"], llm_keys())
    return {
        knob: Fact(knob=knob, value=value, origin="read", formula="as you say",
                   givens=(Given(key=knob, value=value, origin="read", written=knob),))
        for knob, value in values.items()
    }  # fmt: skip


def _read(
    text: str,
    find: Find,
    name: str,
    wishes: tuple[str | None, str | None, Mapping[str, str] | None, Mapping[str, Fact]],
) -> Reading:
    framework, based_on, variables, said = wishes
    given = dict(variables or {})
    path = PurePosixPath(name)
    candidates = documents(checked_text(text), at_most(find, MOST_FILES), given, path.suffix.lower())
    framework, document = recognised(candidates, framework)
    configuration = Configuration(framework, document, given)
    variant = variant_of(framework, document, configuration.value)
    configuration.at(variant.name)
    base = _base(based_on)
    found = _knobs(configuration, variant.name, base, said)
    used = {given.key for fact in found.values() for given in fact.givens}
    entries = [(e.key, f"{e.value}"[:80], e.place, normal(e.key, framework)) for e in document.entries.values()]
    told = {argument for rule in rules("readings", framework, None) for argument in rule.arguments}
    told |= {key for each in variants(framework) for key in each.keys}
    knobs = [fact for knob, fact in found.items() if knob not in REPORTED and not knob.startswith("~")]
    return Reading(
        name=path.stem if path.suffix.lower() in KINDS else name,
        framework=framework,
        title=frameworks()[framework],
        variant=variant.title,
        facts=tuple(sorted(knobs, key=lambda fact: ORIGINS.index(fact.origin))),
        reported=tuple(found[knob] for knob in REPORTED if knob in found),
        unknown=tuple(entry[:3] for entry in entries if entry[3] is None),
        unused=tuple(
            entry[:3] for entry in entries if entry[3] and entry[3] not in used and not _tells(entry[3], told)
        ),
        unresolved=tuple(configuration.unresolved.items()),
        absent=tuple(dict.fromkeys(document.missing)),
        missing=tuple(_missing(found, configuration)),
    )


def _tells(key: str, told: set[str]) -> bool:
    """Whether a key decides on the mode, by being there or by its value."""
    return any(condition == key or condition.startswith((f"{key}=", f"{key}>", f"{key}~")) for condition in told)


def _base(based_on: str | None) -> dict[str, Fact]:
    """Knobs of a preset as assumptions, but for those that a configuration decides by its silence."""
    if based_on is None:
        return {}
    return {
        knob: _assumption(knob, quantity, f"preset {based_on}")
        for knob, quantity in preset(based_on).items() if knob not in SILENT
    }  # fmt: skip


def _assumption(knob: str, quantity: Quantity, whose: str) -> Fact:
    note = "; ".join(part for part in (whose, quantity.note) if part)
    return Fact(
        knob=knob, value=quantity.value, origin="assumed", source=quantity.source, where=quantity.where, note=note
    )


def _knobs(
    configuration: Configuration, variant: str, base: Mapping[str, Fact], said: Mapping[str, Fact]
) -> dict[str, Fact]:
    inputs = quantities("frameworks/assumed", "input")
    general = {k: _assumption(k, quantity, "") for k, quantity in quantities("frameworks/assumed", "knob").items()}
    found = general | base | facts(configuration, variant, inputs, base, said)
    replica = sized_replica(found)
    if replica is not None:
        found = general | base | facts(configuration, variant, inputs, base, {**said, "gpus_per_replica": replica})
        generator = found.get("generator_gpus")
        if generator and generator.origin == "assumed" and generator.value < replica.value:
            found["generator_gpus"] = dataclasses.replace(generator, value=replica.value, note="one replica of the LLM")
    return found | longest_context(found)


def _missing(found: Mapping[str, Fact], configuration: Configuration) -> list[str]:
    """What a scenario still needs, each with the keys that would give it."""
    sentences = []
    for knob in REQUIRED:
        if knob in found:
            continue
        wanted = [r.arguments for r in rules("readings", configuration.framework, None) if r.target == knob]
        names = list(dict.fromkeys(key for row in wanted for key in row if key in configuration.keys))
        if knob == "llm":
            said = next((configuration.value(key) for key in names if configuration.value(key)), None)
            near = get_close_matches(str(said).rsplit("/", 1)[-1].lower(), llm_keys(), n=3, cutoff=0.3) if said else []
            elsewhere = (
                f", unless {', '.join(configuration.document.missing)} does" if configuration.document.missing else ""
            )
            nobody = f"it names no LLM ({names[0]}){elsewhere}"
            shown = f"{names[0]}={said!r} is not in the catalogue of LLMs" if said else nobody
            nearest = f"; the nearest names are {', '.join(near)}" if near else ""
            sentences.append(f"{shown}: choose one with llm={nearest}")
        else:
            doubt = next(
                (f" ({configuration.unresolved[key]})" for key in names if key in configuration.unresolved), ""
            )
            sentences.append(f"{knob} is missing: it follows from {', '.join(names) or 'no key'}{doubt}")
    return sentences
