"""Launch scripts: the flags and overrides of the commands that start a training run."""

import ast
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from rlqueue.frameworks import hydra, toml_text
from rlqueue.frameworks.arithmetic import ranged
from rlqueue.frameworks.entries import Document, Entry, Find, Unresolved
from rlqueue.frameworks.shell_words import Script, Word, script
from rlqueue.provenance import parsed

_OVERRIDE = re.compile(r"(?:\+{1,2}|~)?([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_CONFIGS = (".yaml", ".yml", ".toml")
_CONFIG_FLAGS = {"config", "config-name", "config_name"}
_FLAG = re.compile(r"--([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_WORDS = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "none": None,
    "": None,
}
_STARTERS = {"python", "python3", "torchrun", "uv", "rl", "accelerate", "deepspeed"}
_NO_TRAINING = {
    "pip",
    "pip3",
    "hf",
    "huggingface-cli",
    "git",
    "echo",
    "kill",
    "pkill",
    "export",
    "sleep",
    "cd",
    "mkdir",
    "apt",
}


def document(text: str, find: Find, given: Mapping[str, str] | None = None) -> Document:
    """The flags and overrides of a script's training commands, on top of the configurations that these name.

    Where no command starts a program, the text is taken for pasted flags. ``given`` are variables set outside.
    """
    script_read = script(text, dict(given or {}))
    reader = _Reader(find)
    reader.own.programs = _sourced(script_read)
    launches = [words for words in map(_launch, script_read.commands) if words]
    for words in launches:
        reader.own.programs += [word.text for word in takewhile(lambda word: not _says_a_value(word), words)]
    for words in launches or script_read.commands:
        reader.read(words)
    own = reader.own
    for name, words in script_read.variables.items():
        value = _value([word.text for word in words], tuple(doubt for word in words for doubt in word.doubts))
        own.variables[name] = Entry(key=name, value=value, line=words[0].line if words else 0)
    if not launches:
        for entry in own.variables.values():
            own.entries.setdefault(entry.key, entry)
    own.build_upon(reader.bases)
    return own


def _sourced(read: Script) -> list[str]:
    """Files that the script sources: slime's say the LLM's shape, and so its name."""
    return [words[1].text for words in read.commands if len(words) > 1 and words[0].text in {"source", "."}]


def _launch(words: list[Word]) -> list[Word]:
    """The words from the program on, for a command that starts one; empty for any other."""
    if not words or words[0].text in _NO_TRAINING:
        return []
    for at, word in enumerate(words):
        name = word.text.rsplit("/", 1)[-1]
        if name.endswith(".py"):
            return words[at:]
        if (
            word.text == "-m"
            and at + 1 < len(words)
            and any(w.text.rsplit("/", 1)[-1] in _STARTERS for w in words[:at])
        ):
            return words[at + 1 :]
        if name == "rl" and at + 1 < len(words):
            return words[at:]
    return []


def _says_a_value(word: Word) -> bool:
    """A flag, an override, or a configuration to build upon, and not the value of the flag before it."""
    override = _OVERRIDE.fullmatch(word.text)
    return word.text.startswith(("--", "@")) or (override is not None and "." in override[1])


class _Reader:
    """Takes the words of commands as entries: ``own``, and ``bases`` from the files that they name."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self.own, self.bases = Document(kind="shell"), Document(kind="shell")

    def read(self, words: list[Word]) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            flag, override = _FLAG.fullmatch(word.text), _OVERRIDE.fullmatch(word.text)
            if flag and flag[2] is None:
                values = list(takewhile(lambda next_word: not _says_a_value(next_word), words[at:]))
                at += len(values)
                based = at + 1 < len(words) and words[at].text == "@"
                if not values and based:
                    self._base(words[at + 1].text, flag[1])
                    at += 2
                else:
                    self._flag(flag[1], word, values)
            elif flag or override:
                name, value = (flag or override).groups()  # type: ignore[union-attr] # one of the two matched
                self._set(name, [Word(text=value, line=word.line, doubts=word.doubts, branch=word.branch)])
                if name in _CONFIG_FLAGS:
                    self._base(value)
            elif word.text == "@" and at < len(words):
                self._base(words[at].text)
                at += 1
            elif word.text.startswith("@") or word.text.endswith(_CONFIGS):
                self._base(word.text.removeprefix("@"))

    def _flag(self, name: str, word: Word, values: list[Word]) -> None:
        if name in _CONFIG_FLAGS and values:
            self._base(values[0].text)
        if name.startswith("no-") and not values and "." in name:
            self._set(name.removeprefix("no-"), [Word(text="false", line=word.line)])
        else:
            self._set(name, values or [Word(text="true", line=word.line, doubts=word.doubts, branch=word.branch)])

    def _set(self, key: str, words: list[Word]) -> None:
        branch = next((word.branch for word in words if word.branch), 0)
        note = f"set in a branch that starts in line {branch}, which may not run" if branch else ""
        value = _value([word.text for word in words], tuple(doubt for word in words for doubt in word.doubts))
        self.own.add(Entry(key=key, value=value, line=words[0].line, note=note))

    def _base(self, name: str, prefix: str = "") -> None:
        """Lay what is there over the configuration of that name, found beside the script; else note that it is missing."""
        for whole in (name, f"{name}.yaml", f"{name}.toml"):
            text = self.find(whole) if whole.endswith(_CONFIGS) else None
            if text is not None:
                read = toml_text.document if whole.endswith(".toml") else hydra.document
                above = Document(kind="shell")
                above.build_upon(read(text, self.find, whole), prefix)
                above.build_upon(self.bases)
                self.bases = above
                return
        if name.endswith(_CONFIGS):
            self.own.missing.append(name)


def _value(texts: list[str], doubts: tuple[str, ...]) -> Any:
    if doubts:
        return Unresolved(reason=doubts[0], text=" ".join(texts))
    if len(texts) > 1:
        return [_value([text], ()) for text in texts]
    text = texts[0].strip() if texts else ""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("[") and text.endswith("]") and len(text) < 2000 and ranged(text) is None:
        return _list(text)
    return parsed(text)


def _list(text: str) -> Any:
    """``[1,2,3]`` as Hydra writes it; words need no quotes there."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return [part.strip().strip("\"'") for part in text[1:-1].split(",")]
    return value
