"""YAML as values and places: no tag makes an object, no anchor is laughed a billion times, no interpolation runs.

PyYAML composes nodes, in which an alias is the anchor's own node and costs nothing; what is made of them is counted.
"""

from typing import Any

import yaml

from rlqueue.frameworks.entries import MOST_ENTRIES

MOST_DEEP = 40
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = "tag:yaml.org,2002:"
_SCALARS = {"int", "float", "bool", "null"}


def values(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The tables of a YAML text, nested, and the line of each dotted key.

    Raises:
        ValueError: not YAML, not a table of keys, a tag, an anchor inside itself, or more values than a configuration has.
    """
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(
            f"configuration is not valid YAML{where}: {getattr(error, 'problem', None) or 'malformed'}"
        ) from None
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("configuration must be a YAML table of keys and values")
    reader = _Reader()
    return reader.table(root, "", 0), reader.lines


class _Reader:
    """Makes values of nodes, and counts them."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.left = MOST_ENTRIES
        self.scalar = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        self.left -= 1
        line = node.start_mark.line + 1
        if self.left < 0:
            raise ValueError(f"a configuration must have <= {MOST_ENTRIES:,} values: this one has more")
        if depth > MOST_DEEP:
            raise ValueError(f"configuration line {line}: tables must be nested <= {MOST_DEEP} deep")
        kind = node.tag.removeprefix(_PLAIN)
        if not node.tag.startswith(_PLAIN) or kind not in {
            "map",
            "seq",
            "str",
            "merge",
            "timestamp",
            "value",
            *_SCALARS,
        }:
            raise ValueError(
                f"configuration line {line}: the YAML tag {node.tag[:60]!r} is refused: a value must be plain"
            )
        if isinstance(node, yaml.MappingNode):
            return self.table(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, "", depth + 1) for item in node.value]
        return self._scalar(node, kind)

    def _scalar(self, node: yaml.ScalarNode, kind: str) -> Any:
        if kind not in _SCALARS:
            return node.value
        try:
            return self.scalar.construct_object(node)
        except (ValueError, yaml.YAMLError, KeyError):
            return node.value

    def table(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ValueError(f"configuration line {key_node.start_mark.line + 1}: a key must be a word")
            if key_node.tag == f"{_PLAIN}merge":
                tables = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for table in tables:
                    value = self.value(table, path, depth + 1)
                    merged = (value if isinstance(value, dict) else {}) | merged
                continue
            key = key_node.value
            whole = f"{path}.{key}" if path else key
            self.lines[whole] = key_node.start_mark.line + 1
            made[key] = self.value(value_node, whole, depth + 1)
        return merged | made
