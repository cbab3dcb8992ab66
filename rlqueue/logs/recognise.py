"""Whose log it is, from the names in it."""

from collections.abc import Collection

from rlqueue.logs.names import frameworks, frameworks_of, known, near_misses, title
from rlqueue.logs.source import EXPECTED
from rlqueue.refusal import require_known

SURE = 1.0
"""Weight of the names seen: one that a single framework logs, or two that two log."""


def weights(names: Collection[str]) -> dict[str, float]:
    """How much speaks for each framework: every name counts one, shared among the frameworks that log it."""
    found = dict.fromkeys(frameworks(), 0.0)
    for name in names:
        owners = frameworks_of(name)
        for owner in owners:
            found[owner] += 1 / len(owners)
    return found


def recognised(names: Collection[str], unknown: Collection[str], given: str | None, files: str) -> str:
    """The framework: the one named, else the one that most of the names speak for; ValueError where none does."""
    if given is not None:
        chosen = named(given)
        if not weights(names)[chosen]:
            likely = [framework for framework, weight in weights(names).items() if weight >= SURE]
            hint = f"; it looks like {' or '.join(map(title, likely))}" if likely else _nearest(unknown)
            raise ValueError(f"framework={given!r} logs none of the metrics found in {files}{hint}")
        return chosen
    ranked = sorted(weights(names).items(), key=lambda each: -each[1])
    (best, most), (second, less) = ranked[:2]
    if most == 0:
        raise ValueError(
            f"{files} has no metric of a known framework ({', '.join(map(title, frameworks()))}){_nearest(unknown)}"
        )
    if most == less:
        few = ", ".join(sorted(names)[:6])
        raise ValueError(
            f"{files} could be of {title(best)} or {title(second)}: too few metrics to tell ({few}); name the framework"
        )
    return best


def named(given: str) -> str:
    """A framework's name however it is spelled: ``NeMo RL``, ``miles`` (its metrics are slime's)."""
    plain = {_plain(each): each for each in frameworks()}
    plain |= {"miles": "slime", "tinker": "tinker-cookbook", "marinskyrl": "skyrl"}
    if _plain(given) in plain:
        return plain[_plain(given)]
    require_known("framework", given, frameworks())
    return given


def _plain(name: str) -> str:
    return "".join(each for each in str(name).lower() if each.isalnum())


def _nearest(unknown: Collection[str]) -> str:
    if not unknown:
        return f": expected {EXPECTED}"
    near = near_misses(list(unknown)[:60])
    if near:
        return f"; nearly: {'; '.join(near)}"
    some = ", ".join(list(unknown)[:5])
    return f"; of {len(unknown)} names found, such as {some:.200}, none is among the {len(known())} known ones"
