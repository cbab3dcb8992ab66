"""What a shell would see, as far as reading alone can tell: words of commands with their variables put in.

tree-sitter parses; nothing is run. Assignments, arrays, ``${NAME:-12}`` and ``$((1024 * 8))`` are computed; a command's
output, an unset variable or a pattern is left as a doubt. A branch that may not run counts only where nothing else sets the
variable.
"""

import re
from dataclasses import dataclass, field

from tree_sitter import Language, Node, Parser

from rlqueue.frameworks.arithmetic import computed

MOST_CHARACTERS_OF_SCRIPT = 60_000
MOST_BRACKETS = 2000
"""Of ``( ) [ | <``, in which the parser's time grows with their square and worse where a script is malformed."""
MOST_WORDS = 50_000
MOST_CHARACTERS = 20_000
MOST_DEEP = 60
_BRANCHES = {"if_statement", "case_statement", "while_statement", "for_statement", "c_style_for_statement"}
_SPLIT = {"simple_expansion", "expansion"}
_NAME = re.compile(r"\$?\{?([A-Za-z_]\w*)(?::?-([^{}]*))?\}?")


@dataclass(frozen=True, kw_only=True)
class Word:
    """One word; ``doubts`` name what only running would tell, ``branch`` the line of a branch that it came from."""

    text: str
    line: int
    doubts: tuple[str, ...] = ()
    branch: int = 0


@dataclass(kw_only=True)
class Script:
    """Commands in the order of the text, and the variables at its end; a variable is the words it would expand to."""

    commands: list[list[Word]] = field(default_factory=list)
    variables: dict[str, list[Word]] = field(default_factory=dict)


def script(text: str, given: dict[str, str] | None = None) -> Script:
    """The commands and variables of a script. ``given`` are variables set outside, which ``${NAME:-default}`` heeds.

    Raises:
        ValueError: it is longer, more bracketed, or comes to more words than any script.
    """
    if len(text) > MOST_CHARACTERS_OF_SCRIPT:
        raise ValueError(f"a script must have <= {MOST_CHARACTERS_OF_SCRIPT:,} characters")
    if sum(text.count(sign) for sign in "()[|<") > MOST_BRACKETS:
        raise ValueError(f"a script must have <= {MOST_BRACKETS:,} brackets and pipes")
    return _Reader(text, given or {}).read()


class _Reader:
    def __init__(self, text: str, given: dict[str, str]) -> None:
        import tree_sitter_bash

        # The grammar's scanner looks characters up in C tables of 256 and reads beyond them for others. With one byte for each
        # character a node's place in the bytes is its place in the text.
        plain = re.sub(r"[^\x00-\x7f]", "_", text).encode("ascii")
        self.source = text
        self.root = Parser(Language(tree_sitter_bash.language())).parse(plain).root_node
        self.given = given
        self.script = Script(variables={name: [Word(text=value, line=0)] for name, value in given.items()})
        self.words = 0

    def read(self) -> Script:
        left = [(self.root, 0)]
        while left:
            node, branch = left.pop()
            if node.type == "command":
                self._command(node, branch)
            elif node.type == "variable_assignment":
                self._assign(node, branch)
            elif node.type not in {
                "command_substitution",
                "process_substitution",
                "heredoc_body",
                "comment",
                "test_command",
            }:
                inside = node.start_point[0] + 1 if node.type in _BRANCHES and not branch else branch
                left += [(child, inside) for child in reversed(node.children)]
        return self.script

    def _command(self, node: Node, branch: int) -> None:
        words: list[Word] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, branch)
            elif child.type == "command_name":
                words += [word for part in child.children for word in self._expanded(part, branch)]
            elif child.type not in {"comment", "heredoc_redirect", "file_redirect", "herestring_redirect"}:
                words += self._expanded(child, branch)
        self._count(words)
        self.script.commands.append(words)

    def _assign(self, node: Node, branch: int) -> None:
        name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name_node is None or name_node.type != "variable_name":
            return
        name = self._text(name_node)
        if name in self.given:
            return
        if value is None:
            words = [Word(text="", line=node.start_point[0] + 1, branch=branch)]
        elif value.type == "array":
            words = [w for part in value.named_children if part.type != "comment" for w in self._expanded(part, branch)]
        else:
            words = [self._joined(value, branch, 0)]
        self._count(words)
        before = self.script.variables.get(name)
        if any(child.type == "+=" for child in node.children):
            self.script.variables[name] = (before or []) + words
        elif not branch or before is None or any(word.branch for word in before):
            self.script.variables[name] = words

    def _count(self, words: list[Word]) -> None:
        self.words += len(words)
        if self.words > MOST_WORDS:
            raise ValueError(f"a script must come to <= {MOST_WORDS:,} words: this one has more")

    def _expanded(self, node: Node, branch: int) -> list[Word]:
        """A word, or the many that an array or an unquoted variable stands for."""
        if node.type in _SPLIT or (node.type == "string" and self._text(node).endswith('[@]}"')):
            inner = node if node.type in _SPLIT else next((c for c in node.children if c.type in _SPLIT), node)
            name = self._variable_name(inner)
            array = self.script.variables.get(name)
            if array is not None and self._text(inner).endswith(("[@]}", "[*]}", name, f"{name}}}")):
                line = node.start_point[0] + 1
                if "[" in self._text(inner) or len(array) > 1:
                    return list(array)
                split = array[0].text.split() if node.type in _SPLIT and array else []
                first = array[0] if array else Word(text="", line=line)
                if len(split) > 1:
                    return [
                        Word(text=text, line=first.line, doubts=first.doubts, branch=first.branch) for text in split
                    ]
            if name in {"@", "*"}:
                return []
        return [self._joined(node, branch, 0)]

    def _joined(self, node: Node, branch: int, depth: int) -> Word:
        """One word of a node: its parts' texts joined, their doubts collected."""
        line = node.start_point[0] + 1
        text, doubts, via = self._value(node, depth)
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"script line {line}: a value must have <= {MOST_CHARACTERS:,} characters")
        return Word(text=text, line=line, doubts=tuple(doubts), branch=branch or via)

    def _value(self, node: Node, depth: int) -> tuple[str, list[str], int]:
        text = self._text(node)
        # Inside ${NAME:=...} the grammar takes arithmetic for a command in parentheses.
        sum_inside = text.startswith("$((") and text.endswith("))")
        if node.type in {"string", "concatenation", "translated_string", *_SPLIT} and depth <= MOST_DEEP:
            return self._variable(node, depth) if node.type in _SPLIT else self._parts(node, depth)
        if node.type == "arithmetic_expansion" or sum_inside:
            return self._arithmetic(text)
        if node.type in {"command_substitution", "process_substitution"} or depth > MOST_DEEP:
            return "", [f"{text[:40]} would have to be run"], 0
        if node.type in {"raw_string", "ansi_c_string"}:
            return text[text.index("'") + 1 : -1], [], 0
        return re.sub(r"\\(.)", r"\1", text.replace("\\\n", "")), [], 0

    def _parts(self, node: Node, depth: int) -> tuple[str, list[str], int]:
        text, doubts, branch, at = "", [], 0, None
        for child in node.children:
            if child.type == '"':
                at = child.end_byte
                continue
            # Blanks between the parts of a string are no node of their own.
            if at is not None and child.start_byte > at and node.type == "string":
                text += self.source[at : child.start_byte]
            inner, more, via = self._value(child, depth + 1)
            text, doubts, branch, at = text + inner, doubts + more, branch or via, child.end_byte
            if len(text) > MOST_CHARACTERS:
                raise ValueError(
                    f"script line {node.start_point[0] + 1}: a value must have <= {MOST_CHARACTERS:,} characters"
                )
        return text, doubts, branch

    def _variable(self, node: Node, depth: int) -> tuple[str, list[str], int]:
        name = self._variable_name(node)
        signs = [
            child for child in node.children if not child.is_named and child.type.strip(":") in {"-", "=", "+", "?"}
        ]
        known = self.script.variables.get(name)
        if known is not None and not signs and len(node.named_children) > 1:
            return "", [f"{self._text(node)[:40]} would have to be run"], 0
        if known is not None and (not signs or (known[:1] and known[0].text)):
            if signs and signs[0].type.endswith("+"):
                return self._after(node, signs[0], depth)
            return (
                " ".join(word.text for word in known),
                [doubt for word in known for doubt in word.doubts],
                next((word.branch for word in known if word.branch), 0),
            )
        if signs and signs[0].type.strip(":") in {"-", "="}:
            text, doubts, branch = self._after(node, signs[0], depth)
            if signs[0].type.endswith("="):
                self.script.variables[name] = [Word(text=text, line=node.start_point[0] + 1, doubts=tuple(doubts))]
            return text, doubts, branch
        if signs and signs[0].type.endswith("+"):
            return "", [], 0
        return "", [f"${name} is not set in the file"], 0

    def _after(self, node: Node, sign: Node, depth: int) -> tuple[str, list[str], int]:
        """The word after ``:-``."""
        text, doubts, branch = "", [], 0
        for child in node.children:
            if child.start_byte >= sign.end_byte and child.type != "}":
                inner, more, via = self._value(child, depth + 1)
                text, doubts, branch = text + inner, doubts + more, branch or via
        return text, doubts, branch

    def _arithmetic(self, text: str) -> tuple[str, list[str], int]:
        expression = text.removeprefix("$((").removesuffix("))").removeprefix("$[").removesuffix("]")
        doubts: list[str] = []
        for _ in range(8):
            put = _NAME.sub(lambda found: self._number(found, doubts), expression)
            if put == expression or doubts or len(put) > MOST_CHARACTERS:
                break
            expression = put
        if doubts:
            return "", doubts, 0
        try:
            return f"{computed(put, whole=True):g}" if "e" in put.lower() else str(computed(put, whole=True)), [], 0
        except ValueError as error:
            return "", [str(error)], 0

    def _number(self, found: re.Match[str], doubts: list[str]) -> str:
        name, default = found[1], found[2]
        if re.fullmatch(r"0?[xX][0-9a-fA-F]+", name):
            return found[0]
        known = self.script.variables.get(name)
        if known and known[0].text and not known[0].doubts:
            return f"({known[0].text})"
        if default:
            return f"({default})"
        doubts.append(f"${name} is not set in the file")
        return "0"

    def _variable_name(self, node: Node) -> str:
        found = re.match(r"\$\{?([A-Za-z_]\w*|[0-9@*#?])", self._text(node))
        return found[1] if found else ""

    def _text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte]
