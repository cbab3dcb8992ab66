"""``${a.b}`` and ``${mul:2,${c}}`` in a YAML value, by OmegaConf's own grammar but with nobody's environment.

OmegaConf itself would read environment variables for a text from anywhere (``oc.env``), and has no bound on how long a
value may grow; so its parser is used, and what a reference or a resolver gives is decided here.
"""

import math
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from rlqueue.frameworks.arithmetic import computed
from rlqueue.frameworks.entries import Entry, Unresolved

MOST_CHARACTERS = 2000
MOST_STEPS = 2000
MOST_DEEP = 20


def _numbers(args: tuple[Any, ...]) -> list[float]:
    values = [computed(str(arg)) for arg in args]
    if not values:
        raise ValueError("a resolver of numbers must have one at least")
    return values


def _folded(step: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *args: reduce(step, _numbers(args))


RESOLVERS: dict[str, Callable[..., Any]] = {
    "mul": _folded(operator.mul), "multiply": _folded(operator.mul), "prod": _folded(operator.mul),
    "add": _folded(operator.add), "sum": _folded(operator.add), "sub": _folded(operator.sub),
    "div": _folded(operator.truediv), "divide": _folded(operator.truediv), "floordiv": _folded(operator.floordiv),
    "max": lambda *args: max(_numbers(args)), "min": lambda *args: min(_numbers(args)),
    "int": lambda *args: int(_numbers(args)[0]), "ceil": lambda *args: math.ceil(_numbers(args)[0]),
    "eval": lambda *args: computed(str(args[0])),
}  # fmt: skip
"""Resolvers that frameworks register (``mul`` in NeMo-RL, ``multiply`` in AReaL forks): arithmetic, and nothing else."""


def resolved(entry: Entry, entries: Mapping[str, Entry], variables: Mapping[str, str]) -> Any:
    """The value of an entry with its interpolations done, or ``Unresolved``.

    Args:
        entries: where ``${a.b}`` is looked up. variables: what ``${oc.env:NAME}`` may know.
    """
    return _Resolution(entries, variables).value(entry)


class _Resolution:
    def __init__(self, entries: Mapping[str, Entry], variables: Mapping[str, str]) -> None:
        self.entries, self.variables = entries, variables
        self.known: dict[str, Any] = {}
        self.open: list[str] = []
        self.steps = 0

    def value(self, entry: Entry) -> Any:
        if not isinstance(entry.value, str) or "${" not in entry.value:
            return entry.value
        if entry.key not in self.known:
            self.open.append(entry.key)
            try:
                self.known[entry.key] = self._text(entry.value)
            except (ValueError, ArithmeticError, RecursionError) as error:
                self.known[entry.key] = Unresolved(reason=f"{entry.value[:60]}: {error}"[:160])
            self.open.pop()
        return self.known[entry.key]

    def _text(self, text: str) -> Any:
        from omegaconf.errors import GrammarParseError
        from omegaconf.grammar_parser import parse
        from omegaconf.grammar_visitor import GrammarVisitor

        if len(text) > MOST_CHARACTERS or text.count("${") > MOST_DEEP:
            raise ValueError(
                f"an interpolation must have <= {MOST_CHARACTERS} characters and <= {MOST_DEEP} references"
            )
        visitor = GrammarVisitor(
            node_interpolation_callback=self._reference, resolver_interpolation_callback=self._resolver, memo=None
        )
        try:
            value = visitor.visit(parse(text, parser_rule="text"))
        except GrammarParseError:
            raise ValueError("not OmegaConf's grammar") from None
        value = getattr(value, "value", value)
        if isinstance(value, str) and len(value) > MOST_CHARACTERS:
            raise ValueError(f"a value must have <= {MOST_CHARACTERS} characters")
        return value

    def _reference(self, key: Any, _: Any) -> Any:
        self._step()
        parts = list(key.parts)
        if key.relative_dots:
            own = self.open[-1].split(".")[: -key.relative_dots]
            parts = own + parts
        name = ".".join(map(str, parts))
        if name in self.open:
            raise ValueError(f"{name} refers to itself")
        if name not in self.entries:
            raise ValueError(f"{name} is not in the file")
        return self._sure(self.value(self.entries[name]))

    def _resolver(self, name: str, args: tuple[Any, ...], args_str: tuple[str, ...]) -> Any:  # noqa: ARG002 - OmegaConf names them
        self._step()
        args = tuple(getattr(arg, "value", arg) for arg in args)
        if name in {"oc.env", "env"} and args:
            return self._variable(str(args[0]), args[1:])
        if name in {"oc.select", "oc.deprecated"} and args:
            if args[0] in self.entries and args[0] not in self.open:
                return self._sure(self.value(self.entries[args[0]]))
            return self._sure(args[1] if len(args) > 1 else Unresolved(reason=f"{args[0]} is not in the file"))
        if name not in RESOLVERS:
            raise ValueError(f"the resolver {name} is not known here")
        return RESOLVERS[name](*args)

    def _variable(self, name: str, default: tuple[Any, ...]) -> Any:
        if name in self.variables:
            return self.variables[name]
        if not default:
            raise ValueError(f"${name} is not set in the file")
        return default[0]

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise ValueError(f"interpolations must take <= {MOST_STEPS} steps")

    def _sure(self, value: Any) -> Any:
        if isinstance(value, Unresolved):
            raise ValueError(value.reason)
        return value
