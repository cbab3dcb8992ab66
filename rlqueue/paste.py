"""A scenario as lines to paste into a framework's configuration, with its staleness budget in the framework's own unit.

Only what a plan decides is written: the split, the batch, the slots, the budget and the schedule. What the framework cannot
say is found by reading the lines back, and said in a comment.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from rlqueue.frameworks import Reading, frameworks, read_text
from rlqueue.frameworks.formulas import formulas, sentence, staleness
from rlqueue.frameworks.tables import ALL, Rule, keys, rules
from rlqueue.provenance import parsed, quantities, table
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

DECIDED = (
    "trainer_gpus", "generator_gpus", "gpus_per_replica", "prefill_gpus_per_replica", "prompts_per_step", "group_size",
    "updates_per_step", "steps_per_publication", "concurrency", "oversampling_factor", "schedule", "staleness_family",
    "max_staleness",
)  # fmt: skip
"""Knobs that a plan decides."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One key of a framework with the value that a scenario gives it.

    Attributes:
        formula: as a sentence. converts_staleness: whether the key holds the staleness budget. note: a remark on it.
    """

    key: str
    value: Any
    unit: str
    formula: str
    converts_staleness: bool = False
    aliases: tuple[str, ...] = ()
    note: str = ""
    source: str = ""
    where: str = ""


@cache
def targets() -> tuple[str, ...]:
    """Frameworks that lines can be written for."""
    return tuple(dict.fromkeys(name for row in table("frameworks/launches") for name in row["framework"].split()))


TARGETS = targets()


def _launch(scenario: Scenario, framework: str) -> dict[str, str]:
    require_known("framework", framework, TARGETS)
    return next(
        row for row in table("frameworks/launches")
        if framework in row["framework"].split() and (row["schedule"] == ALL or scenario.schedule in row["schedule"].split())
    )  # fmt: skip


def lines(scenario: Scenario, framework: str) -> list[Line]:
    """The keys that say the scenario's plan in a framework. Raises ValueError for a framework without lines."""
    return _lines(scenario, framework, _launch(scenario, framework)["variant"])


def _lines(scenario: Scenario, framework: str, variant: str | None) -> list[Line]:
    known = keys(framework, variant)
    made = []
    for rule in rules("lines", framework, variant):
        value = _computed(rule, scenario)
        if value is None:
            continue
        key = known[rule.target]
        made.append(
            Line(key=key.name, value=value, unit=key.unit, formula=sentence(rule.formula), aliases=key.aliases,
                 converts_staleness=hasattr(staleness, rule.formula), note=rule.note, source=rule.source, where=rule.where)
        )  # fmt: skip
    return made


def _computed(rule: Rule, scenario: Scenario) -> Any:
    colocated = scenario.schedule == "colocated-sync"
    pool = scenario.trainer_gpus + scenario.generator_gpus
    own = {
        "!gpus_per_node": _gpus_per_node(scenario),
        "!trainer_pool": pool if colocated else scenario.trainer_gpus,
        "!generator_pool": pool if colocated else scenario.generator_gpus,
    }
    own["max_staleness"] = _effective_staleness(scenario)
    arguments = [
        parsed(name[1:]) if name.startswith("=") else own[name] if name in own else getattr(scenario, name)
        for name in rule.arguments
    ]
    value = formulas()[rule.formula](*arguments)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _effective_staleness(scenario: Scenario) -> float:
    """The budget that the schedule leaves: in step nothing is ahead, one step off is one version ahead."""
    if scenario.schedule in {"colocated-sync", "sync"}:
        return 0.0
    return 1.0 if scenario.schedule == "one-step-off" else scenario.max_staleness


def _gpus_per_node(scenario: Scenario) -> int:
    facts = quantities("hardware", scenario.trainer_gpu.key)
    return int(facts["gpus_per_node"].value if "gpus_per_node" in facts else scenario.node.gpus_per_server)


def paste(scenario: Scenario, framework: str) -> str:
    """The scenario's plan as text for a framework: TOML for prime-rl, overrides for verl, flags for slime, YAML for the others.

    Comments say how the staleness budget was converted and what the framework cannot say. Raises ValueError for a framework
    without lines.
    """
    launch = _launch(scenario, framework)
    made = lines(scenario, framework)
    body = _WRITERS[launch["format"]](made, launch["launch"])
    title = frameworks()[framework]
    name = " ".join(scenario.name.split())[:80]
    comments = [f"{name} for {title}: {launch['launch']}"]
    comments += [
        f"{line.key}={_word(line.value)} [{line.unit}]: {line.formula}; max_staleness is {scenario.max_staleness:g} versions"
        f"{'; ' + line.note if line.note else ''}"
        for line in made if line.converts_staleness
    ]  # fmt: skip
    comments += [
        f"{title} cannot say {name}={_word(wanted)}: it reads {_word(got)}"
        for name, wanted, got in lost(scenario, framework)
    ]
    return "".join(f"# {comment}\n" for comment in comments) + body


def lost(scenario: Scenario, framework: str) -> list[tuple[str, Any, Any]]:
    """Decided knobs that come back otherwise when the lines are read: (knob, the scenario's, as read)."""
    launch = _launch(scenario, framework)
    back = read_text(
        _WRITERS[launch["format"]](lines(scenario, framework), launch["launch"]), framework, llm=scenario.llm.key
    )
    read = _decided(back)
    defaults = {each.name: each.default for each in fields(Scenario) if each.default is not MISSING}
    if scenario.schedule == "colocated-sync" and read.get("schedule") == scenario.schedule:
        pool = scenario.trainer_gpus + scenario.generator_gpus
        if read.get("trainer_gpus", 0) + read.get("generator_gpus", 0) == pool:
            read |= {"trainer_gpus": scenario.trainer_gpus, "generator_gpus": scenario.generator_gpus}
    wanted = {name: getattr(scenario, name) for name in DECIDED} | {"max_staleness": _effective_staleness(scenario)}
    found = {name: read.get(name, defaults.get(name)) for name in DECIDED}
    other = [name for name in DECIDED if found[name] != wanted[name]]
    if found["prompts_per_step"] is None or found["max_staleness"] is None:
        return [(name, wanted[name], found[name]) for name in other]
    # Five publications of one step each and one of five steps are the same weights at the same moments.
    same = [_per_publication(knobs) for knobs in (wanted, found)]
    alike = set(_PER_PUBLICATION) if same[0][:2] == same[1][:2] else set()
    alike |= {"max_staleness"} if same[0][2] == same[1][2] else set()
    return [(name, wanted[name], found[name]) for name in other if name not in alike]


_PER_PUBLICATION = ("prompts_per_step", "updates_per_step", "steps_per_publication")


def _per_publication(knobs: Mapping[str, Any]) -> tuple[float, float, float]:
    """Groups, updates, and groups of the staleness budget, per publication."""
    steps = knobs["steps_per_publication"]
    groups = knobs["prompts_per_step"] * steps
    return groups, knobs["updates_per_step"] * steps, knobs["max_staleness"] * groups


def _decided(reading: Reading) -> dict[str, Any]:
    return {fact.knob: fact.value for fact in reading.facts if fact.knob in DECIDED}


def conversions(scenario: Scenario) -> "pd.DataFrame":
    """The scenario's staleness budget in every framework's own knob: one row each.

    Columns: framework, key, value, unit, formula, other_names, remark, source, where.
    """
    import pandas as pd

    return pd.DataFrame(
        {
            "framework": title, "key": line.key, "value": line.value, "unit": line.unit, "formula": line.formula,
            "other_names": ", ".join(line.aliases), "remark": line.note, "source": line.source, "where": line.where,
        }
        for framework, title in frameworks().items() for line in _lines(scenario, framework, None) if line.converts_staleness
    )  # fmt: skip


def _nested(made: list[Line]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for line in made:
        *parents, name = line.key.split(".")
        inner = tree
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = line.value
    return tree


def _toml(made: list[Line], _: str) -> str:
    import tomli_w

    return tomli_w.dumps(_nested(made))


def _yaml(made: list[Line], _: str) -> str:
    import yaml

    return yaml.safe_dump(_nested(made), sort_keys=False)


def _shell(made: list[Line], launch: str) -> str:
    dotted = any("." in line.key for line in made)
    words = [f"{line.key}={_word(line.value)}" if dotted else _flag(line) for line in made]
    return " \\\n   ".join([launch, *words]) + "\n"


def _flag(line: Line) -> str:
    return f"--{line.key}" if line.value is True else f"--{line.key} {_word(line.value)}"


def _word(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


_WRITERS: Mapping[str, Any] = {"toml": _toml, "yaml": _yaml, "shell": _shell}
