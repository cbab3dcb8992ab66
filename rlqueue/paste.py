"""A scenario as lines to paste into a framework's configuration, with its staleness budget in the framework's own unit.

Only what a plan decides is written: the split, the batch, the slots with their memory, the budget and the schedule. What the
framework cannot say is found by reading the lines back, and said in a comment.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from rlqueue.choices import IN_STEP
from rlqueue.frameworks import Reading, frameworks, read_text
from rlqueue.frameworks.formulas import formulas, sentence, staleness
from rlqueue.frameworks.tables import ALL, Rule, keys, rules
from rlqueue.llm import llm_keys
from rlqueue.provenance import parsed, quantities, table
from rlqueue.rates import lengths_of
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

DECIDED = (
    "trainer_gpus", "generator_gpus", "gpus_per_replica", "prefill_gpus_per_replica", "prompts_per_step", "group_size",
    "updates_per_step", "minibatches_per_update", "steps_per_publication", "concurrency", "slots_held_by",
    "oversampling_factor", "schedule", "staleness_family", "max_staleness", "memory_fraction",
)  # fmt: skip
"""Knobs that a plan decides, and the memory that its slots need."""


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
        f"{title} cannot say {name}={_word(wanted)}: it reads {_word(got)}{_meaning(scenario, name, got)}"
        for name, wanted, got in lost(scenario, framework)
    ]
    comments += [
        f"{title} says {name}={_word(wanted)} as {_word(got)}: {why}"
        for name, wanted, got, why in otherwise(scenario, framework)
    ]
    return "".join(f"# {comment}\n" for comment in comments) + body


def _meaning(scenario: Scenario, knob: str, got: Any) -> str:
    """What a loss means for the run, where the value does not say it."""
    if knob != "slots_held_by":
        return ""
    # While a group holds n places n E[L] of its n E[longest] are used; tool calls and sandboxes bring the two nearer.
    more = lengths_of(scenario).mean_group_tokens / scenario.mean_response_tokens
    if got == "group":
        return f"; a group keeps its places until its last rollout has ended: up to {more:.3g} times fewer run at once"
    return f"; a place is free when its own rollout has ended: up to {more:.3g} times more run at once"


def lost(scenario: Scenario, framework: str) -> list[tuple[str, Any, Any]]:
    """Decided knobs that come back otherwise when the lines are read: (knob, the scenario's, as read)."""
    return [(name, wanted, got) for name, wanted, got, why in _read_back(scenario, framework) if not why]


def otherwise(scenario: Scenario, framework: str) -> list[tuple[str, Any, Any, str]]:
    """Decided knobs that come back as other numbers for the same plan: (knob, the scenario's, as read, why it is the same)."""
    return [each for each in _read_back(scenario, framework) if each[-1]]


@lru_cache(maxsize=64)
def _read_back(scenario: Scenario, framework: str) -> tuple[tuple[str, Any, Any, str], ...]:
    """Decided knobs that differ when the lines are read, each with why the plan is the same nevertheless, or nothing."""
    launch = _launch(scenario, framework)
    read = _decided(
        read_text(
            _WRITERS[launch["format"]](lines(scenario, framework), launch["launch"]), framework, llm=llm_keys()[0]
        )
    )
    defaults = {each.name: each.default for each in fields(Scenario) if each.default is not MISSING}
    wanted = {name: getattr(scenario, name) for name in DECIDED} | {"max_staleness": _effective_staleness(scenario)}
    found = {name: read.get(name, defaults.get(name)) for name in DECIDED}
    same = (
        dict.fromkeys(_PER_PUBLICATION, "the same groups and updates per publication") if _alike(wanted, found) else {}
    )
    same |= _same_in_step(wanted, found)
    if _groups_ahead(wanted) == _groups_ahead(found):
        same["max_staleness"] = "the same groups ahead"
    pool = scenario.trainer_gpus + scenario.generator_gpus
    if found["schedule"] == scenario.schedule == "colocated-sync" and pool == sum(found[name] or 0 for name in _SIDES):
        same |= dict.fromkeys(_SIDES, f"one pool of {pool}")
    return tuple(
        (name, wanted[name], found[name], same.get(name, "")) for name in DECIDED if found[name] != wanted[name]
    )


_SIDES = ("trainer_gpus", "generator_gpus")
_PER_PUBLICATION = ("prompts_per_step", "updates_per_step", "steps_per_publication")


def _alike(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether five publications' worth of one step each are one of five steps: the same weights at the same moments."""
    if found["prompts_per_step"] is None:
        return False
    groups, updates = (
        [knobs[name] * knobs["steps_per_publication"] for knobs in (wanted, found)]
        for name in ("prompts_per_step", "updates_per_step")
    )
    return groups[0] == groups[1] and updates[0] == updates[1]


def _same_in_step(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    """What makes no difference: as many optimizer steps, and how they are taken where a batch is there as a whole."""
    same = {}
    steps = [knobs["updates_per_step"] * knobs["minibatches_per_update"] for knobs in (wanted, found)]
    in_step = {wanted["schedule"], found["schedule"]} <= set(IN_STEP)
    if steps[0] == steps[1] and wanted["prompts_per_step"] == found["prompts_per_step"]:
        same["minibatches_per_update"] = "the same optimizer steps of a batch"
        if in_step:
            same["updates_per_step"] = "the same optimizer steps of a batch, which is there as a whole"
    slots = min(wanted["concurrency"], found["concurrency"] or 0)
    if in_step and slots >= wanted["oversampling_factor"] * wanted["prompts_per_step"] * wanted["group_size"]:
        same["slots_held_by"] = "there is a place for each rollout of the batch"
    return same


def _groups_ahead(knobs: Mapping[str, Any]) -> float | None:
    """Groups of the staleness budget."""
    if knobs["prompts_per_step"] is None or knobs["max_staleness"] is None:
        return None
    return knobs["max_staleness"] * knobs["prompts_per_step"] * knobs["steps_per_publication"]


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
