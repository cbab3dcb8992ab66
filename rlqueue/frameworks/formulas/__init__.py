"""Formulas between a framework's keys and our knobs, by name: one function each, its first line the formula itself.

The data files say which formula takes which keys. A formula answers None where its arguments do not determine the knob.
"""

import inspect
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from rlqueue.frameworks.formulas import batches, gpus, staleness, words

MODULES: tuple[ModuleType, ...] = (gpus, batches, staleness, words)


@cache
def formulas() -> dict[str, Callable[..., Any]]:
    """Every formula by name."""
    return {
        name: function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }


@cache
def sentence(name: str) -> str:
    """The formula as text: the first line of its docstring."""
    return (inspect.getdoc(formulas()[name]) or "").split("\n")[0].rstrip(".")


@cache
def needed(name: str) -> tuple[bool, ...]:
    """Whether each argument must be there; one with a default may be missing."""
    parameters = inspect.signature(formulas()[name]).parameters.values()
    return tuple(parameter.default is parameter.empty for parameter in parameters)
