"""Configurations that are Python: keyword arguments with plain values, read from the syntax tree and never executed."""

import ast
import io
import tokenize
import warnings

from rlqueue.frameworks.entries import Document, Entry

MOST_CHARACTERS = 60_000
MOST_TOKENS = 1000
"""In one statement: Python's own parser may end the process on a deeper one."""


def document(text: str) -> Document:
    """The keyword arguments, annotated defaults and constants of a Python text, by name; the last one wins.

    ``AsyncConfig(max_steps_off_policy=8)`` gives ``max_steps_off_policy``. Raises ValueError where it is not Python.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"configuration in Python must have <= {MOST_CHARACTERS:,} characters")
    try:
        _refuse_long_statements(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            nodes = list(ast.walk(tree))
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"configuration is not valid Python: {getattr(error, 'msg', None) or type(error).__name__}"
        ) from None
    found = Document(kind="python")
    for node in nodes:
        match node:
            case ast.keyword(arg=str() as name, value=ast.Constant(value=value)):
                _add(found, name, value, node.value.lineno)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                _add(found, name, value, node.lineno)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                _add(found, name, value, node.lineno)
            case ast.ImportFrom(module=str() as module):
                found.programs += [f"{module}.{alias.name}" for alias in node.names]
            case ast.Import():
                found.programs += [alias.name for alias in node.names]
    return found


def _refuse_long_statements(text: str) -> None:
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        tokens = 0 if token.type == tokenize.NEWLINE else tokens + 1
        if tokens > MOST_TOKENS:
            raise ValueError(f"a statement must have <= {MOST_TOKENS:,} tokens")


def _add(found: Document, name: str, value: object, line: int) -> None:
    if isinstance(value, int | float | str | None):
        found.add(Entry(key=name, value=value, line=line))
