"""Refusing bad input early: every message names the field, the value, the limit, and why."""

import math
from collections.abc import Collection, Hashable
from difflib import get_close_matches


def require_known(field: str, key: object, keys: Collection[str]) -> None:
    """Raise ValueError unless ``key`` is one of ``keys``; the message names the nearest of them."""
    if isinstance(key, Hashable) and key in keys:
        return
    near = get_close_matches(str(key), keys, n=3, cutoff=0.6)
    if near:
        raise ValueError(f"{field}={key!r} is not known; did you mean {' or '.join(near)}? ({len(keys)} are known)")
    raise ValueError(f"{field}={key!r} is not known, must be one of {', '.join(list(keys)[:12])} ({len(keys)} in all)")


def is_positive(value: object) -> bool:
    """Whether it is a finite number above zero."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def require_positive(thing: object, *fields: str) -> None:
    """Raise ValueError unless each named field of ``thing`` is a finite number above zero."""
    for field in fields:
        value = getattr(thing, field)
        if not is_positive(value):
            raise ValueError(f"{field}={value!r} must be a finite number > 0")
