"""Whole-number arithmetic as scripts and configurations write it, computed without running anything."""

import ast
import operator
import re

LARGEST = 10**18
MOST_CHARACTERS = 500
_ALPHABET = re.compile(r"[0-9a-fA-FxX_.+\-*/%()\s]+")
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_RANGE = re.compile(r"\s*list\(\s*range\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?(?:,\s*(\d{1,9})\s*)?\)\s*\)\s*")


def computed(text: str, *, whole: bool = False) -> int | float:
    """The value of ``1024 * 8``, ``(512 * 400)``, ``-1.5e3``; with ``whole`` a division drops the rest, as in a shell.

    Raises:
        ValueError: anything but numbers, ``+ - * / // % **`` and parentheses, or a result beyond 1e18.
    """
    if len(text) > MOST_CHARACTERS or not _ALPHABET.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not arithmetic of <= {MOST_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        value = _value(tree.body, whole=whole)
    except (SyntaxError, RecursionError, MemoryError, ArithmeticError) as error:
        raise ValueError(f"{text[:60]!r} is not arithmetic ({type(error).__name__})") from None
    return value


def _value(node: ast.AST, *, whole: bool) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=inner):
            value = _value(inner, whole=whole)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _value(left, whole=whole), _value(right, whole=whole)
            if not 0 <= exponent <= 64 or abs(base) > 1e6:
                raise ValueError(
                    f"a power must be of a number <= 1e6 to an exponent in [0, 64], not {base} ** {exponent}"
                )
            return _bounded(base**exponent)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATIONS:
            a, b = _value(left, whole=whole), _value(right, whole=whole)
            if whole and isinstance(sign, ast.Div):
                return int(a / b) if abs(a) < 2**53 else a // b
            return _bounded(_OPERATIONS[type(sign)](a, b))
        case _:
            raise ValueError(f"{type(node).__name__} is no arithmetic")


def _bounded(value: float) -> int | float:
    if not abs(value) <= LARGEST:
        raise ValueError(f"arithmetic must stay <= {LARGEST:g}")
    return value


def ranged(text: str) -> range | None:
    """The range that ``list(range(0,16))`` stands for, without making the list; None for any other text."""
    found = _RANGE.fullmatch(text)
    if not found:
        return None
    numbers = [int(number) for number in found.groups() if number is not None]
    if len(numbers) == 3 and numbers[2] == 0:
        raise ValueError(f"{text.strip()!r} must have a step >= 1")
    return range(*numbers)
