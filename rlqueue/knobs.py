"""One knob of a scenario: what it is called, its unit, meaning and limits, and the refusal of any other value."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from rlqueue.hardware import Gpu, gpu, gpu_keys
from rlqueue.hosted import HostedPrice, hosted_price, hosted_price_keys
from rlqueue.llm import Llm, llm, llm_keys
from rlqueue.provenance import parsed
from rlqueue.refusal import require_known
from rlqueue.tco import NodeTco, node_keys, node_tco
from rlqueue.units import after_number

LARGEST = 1e15
"""No knob without a limit of its own may be larger: arithmetic on it would lose its units."""


def knob(unit: str, meaning: str, *, low: float | None = None, high: float | None = None, above: float | None = None,
         choices: Mapping[str, str] | None = None, **more: Any) -> Any:  # fmt: skip
    """A field of Scenario with its unit, one-line meaning and limits (``above`` is an exclusive lower limit)."""
    limits = {"low": low, "high": high, "above": above, "choices": choices}
    return field(metadata={"unit": unit, "meaning": meaning, **limits}, **more)


CATALOGUES = {
    "llm": (Llm, llm, llm_keys),
    "trainer_gpu": (Gpu, gpu, gpu_keys),
    "generator_gpu": (Gpu, gpu, gpu_keys),
    "node": (NodeTco, node_tco, node_keys),
    "hosted_price": (HostedPrice, hosted_price, hosted_price_keys),
}


def from_text(text: str, like: object) -> Any:
    """A command-line word as a value of the same kind as ``like``; text stays text."""
    return text if isinstance(like, str) or dataclasses.is_dataclass(like) else parsed(text)


def _short(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else f"<a number of {len(str(abs(value)))} digits>"


def checked(each: dataclasses.Field, value: Any) -> Any:
    """The value of one knob, of its right type and inside its limits, or ValueError."""
    name, meta = each.name, each.metadata
    if name in CATALOGUES:
        return _catalogue_entry(name, value, optional=each.default is None)
    if value is None and each.default is None:
        return None
    kind = float if each.type == float | None else each.type
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and LARGEST < abs(value) < math.inf:
        raise ValueError(f"{name}={_short(value)} must be <= {LARGEST:g}: {meta['meaning']}")
    if kind is float and number:
        value = float(value)
    elif kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not kind:
        raise ValueError(f"{name}={value!r} must be {_KIND_WORDS[kind]}: {meta['meaning']}")
    if meta["choices"]:
        require_known(name, value, meta["choices"])
    if kind in (int, float):
        _require_inside(name, value, meta, endless=each.default == math.inf)
    return value


_KIND_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _require_inside(name: str, value: float, meta: Mapping[str, Any], *, endless: bool) -> None:
    unit = after_number(meta["unit"])
    if math.isnan(value) or (math.isinf(value) and not endless):
        raise ValueError(f"{name}={value} must be a finite number{unit}: {meta['meaning']}")
    reason = "one rollout is no group" if name == "group_size" else meta["meaning"]
    for limit, sign, holds in (
        (meta["low"], ">=", lambda limit: value >= limit),
        (meta["above"], ">", lambda limit: value > limit),
        (meta["high"], "<=", lambda limit: value <= limit),
    ):
        if limit is not None and not holds(limit):
            raise ValueError(f"{name}={value:g} must be {sign} {limit:g}{unit}: {reason}")


def _catalogue_entry(name: str, value: Any, *, optional: bool) -> Any:
    """A part of the scenario from its key, from a table of its fields, or as it is."""
    kind, make, keys = CATALOGUES[name]
    if isinstance(value, kind) or (value is None and optional):
        return value
    if isinstance(value, str):
        require_known(name, value, keys())
        return make(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}={value!r} must be a key of the data files or a table of {kind.__name__}'s fields")
    names = [each.name for each in fields(kind)]
    for key in value:
        require_known(f"{name} field", key, names)
    base = dataclasses.asdict(make(value["key"])) if value.get("key") in keys() else {}
    whole = base | dict(value)
    missing = [each for each in names if each not in whole]
    if missing:
        raise ValueError(f"{name} lacks {', '.join(missing)} (or give the key of a known one)")
    for each in fields(kind):
        right = isinstance(whole[each.name], str) if each.type is str else not isinstance(whole[each.name], str)
        if not right:
            raise ValueError(f"{name}.{each.name}={whole[each.name]!r} must be {_KIND_WORDS[each.type]}")
    return kind(**whole)
