"""What the frameworks call their metrics, and what each is in our terms: the tables log_metrics and log_traps of data/."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from rlqueue.provenance import table

Key = tuple[str, str]
"""(role, name): the role tells two processes apart that log one name for two things, and is "" for all other names."""

STEP_NAMES = (
    "step", "rollout/step", "trainer/global_step", "training/global_step", "train/global_step", "global_step",
    "progress/batch", "stats/completed_steps", "train/step", "Step", "_step",
)  # fmt: skip
"""Where a row says which step it belongs to, best first: W&B's own counter goes up with every call, and comes last."""
EVALUATIONS = ("eval/", "val/", "val-core/", "val-aux/", "validation/", "test/")
"""A name that begins so was logged by an evaluation."""
EVALUATED: Key = ("", "an evaluation")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One name of one framework.

    Attributes:
        column: ours, "" for a name that only helps to recognise the framework. scale: our unit over theirs.
        use: ``value`` (the first name that has one wins), ``part`` (added up), ``counter`` (since the start of the run, so
            differenced), ``mark`` (recognised only), ``lies`` (never read).
        trap: id of what would go wrong if it were taken at its word.
    """

    framework: str
    role: str
    key: str
    column: str
    scale: float
    use: str
    trap: str
    source: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Trap:
    """A metric that reads like something else, and what it was taken as."""

    trap: str
    framework: str
    reads_like: str
    taken_as: str
    source: str
    where: str


@cache
def metrics() -> tuple[Metric, ...]:
    """All names of all frameworks, in the order in which they win."""
    names = ("framework", "role", "key", "column", "use", "trap", "source", "where")
    return tuple(
        Metric(scale=float(row["scale"]), **{name: row[name] for name in names}) for row in table("log_metrics")
    )


@cache
def traps() -> dict[str, Trap]:
    names = ("trap", "framework", "reads_like", "taken_as", "source", "where")
    return {row["trap"]: Trap(**{name: row[name] for name in names}) for row in table("log_traps")}


@cache
def frameworks() -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.framework for each in metrics()))


@cache
def title(framework: str) -> str:
    """What a framework calls itself."""
    return next(row["title"] for row in table("frameworks/frameworks") if row["framework"] == framework)


@cache
def of(framework: str) -> tuple[Metric, ...]:
    return tuple(each for each in metrics() if each.framework == framework)


@cache
def roles() -> dict[str, tuple[str, ...]]:
    """The roles that log a name, of those names that more than one role logs or that only one may."""
    found: dict[str, tuple[str, ...]] = {}
    for each in metrics():
        if each.role:
            found[each.key] = tuple(dict.fromkeys((*found.get(each.key, ()), each.role)))
    return found


@cache
def known() -> frozenset[str]:
    return frozenset(each.key for each in metrics())


@cache
def frameworks_of(key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.framework for each in metrics() if each.key == key))


def role_of(names: Iterable[str]) -> str:
    """The role of whoever logged these names together; "" where none of them tells."""
    for name in names:
        who = roles().get(name, ())
        if len(who) == 1:
            return who[0]
    return ""


def key_of(name: str, role: str) -> Key:
    """The key under which a value is kept: with the role where the name alone is ambiguous."""
    return (role or roles()[name][0], name) if len(roles().get(name, ())) > 1 else ("", name)


def near_misses(unknown: Iterable[str], most: int = 4) -> list[str]:
    """``"perf/steptime (perf/step_time?)"`` for names that are nearly one we know."""
    found = []
    for name in unknown:
        near = get_close_matches(name, known(), n=1, cutoff=0.75)
        if near:
            found.append(f"{name} (meant: {near[0]}?)")
        if len(found) == most:
            break
    return found
