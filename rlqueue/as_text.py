"""A scenario as text: read from a preset's data, TOML or a framework's configuration, set from words, written as TOML."""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Self

from rlqueue import presets
from rlqueue.knobs import CATALOGUES, checked, from_text
from rlqueue.refusal import require_known


class AsText:
    """What ``Scenario`` can do because its fields are knobs (``knobs.knob``): each has a name, limits and a form in text."""

    @classmethod
    def from_data(cls, name: str) -> Self:
        """The preset of that name (``rlqueue presets`` lists them). Raises ValueError for an unknown one."""
        return cls.from_values({quantity: fact.value for quantity, fact in presets.preset(name).items()}, name=name)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """A scenario from a TOML file of knobs.

        With ``based_on = "<preset>"`` the knobs not named are the preset's; without it all that have no default must be
        named. ``llm``, ``trainer_gpu``, ``generator_gpu``, ``node`` and ``hosted_price`` are keys of the data files, or
        tables with the fields of your own; a table with a known ``key`` takes what it leaves out from that entry.

        Raises:
            ValueError: not TOML, an unknown key, a wrong type or an impossible value.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"scenario file {path}: cannot be read ({error})") from error
        return cls.from_toml(text, name=path.stem)

    @classmethod
    def from_config(cls, path_or_text: str | Path, framework: str | None = None, **wishes: Any) -> Self:
        """A scenario from a framework's configuration, file or text; ``wishes`` and refusals as of ``frameworks.read``."""
        from rlqueue.frameworks import read

        reading = read(path_or_text, framework, **wishes)
        return cls.from_values(reading.values, name=reading.name)

    @classmethod
    def from_toml(cls, text: str, name: str = "scenario") -> Self:
        """A scenario from TOML text; see ``from_file``."""
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"scenario {name!r} is not valid TOML: {error}") from error
        values.pop("ranges", None)  # how far inputs may be off: rlqueue.ranges reads them
        base = values.pop("based_on", None)
        if base is not None:
            if not isinstance(base, str):
                raise ValueError(f"based_on={base!r} must be the name of a preset")
            values = {key: fact.value for key, fact in presets.preset(base).items()} | values
        return cls.from_values(values, name=name)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], name: str) -> Self:
        """A scenario from knobs by name; unknown and missing ones are refused."""
        known = {each.name: each for each in fields(cls)}
        for key in values:
            require_known("knob", key, known)
        missing = [
            each.name for each in known.values()
            if each.name not in values and each.name != "name" and each.default is MISSING
        ]  # fmt: skip
        if missing:
            raise ValueError(f"scenario {name!r} lacks {', '.join(missing)} (or name a preset as based_on)")
        return cls(**({"name": name} | dict(values)))

    def with_text(self, settings: Mapping[str, str]) -> Self:
        """A copy with knobs set from text, as on a command line; ``node.usd_per_kwh`` reaches into a part.

        All are set together, so that knobs that only make sense together may come in any order.
        """
        known = {each.name: each for each in fields(self)}
        values = {name: getattr(self, name) for name in known}
        for key, text in settings.items():
            require_known("knob", key, _settable(values))
            knob_name, _, inner = key.partition(".")
            part = values[knob_name]
            if inner:
                values[knob_name] = dataclasses.replace(part, **{inner: from_text(text, getattr(part, inner))})
            else:
                value = None if text == "none" and known[knob_name].default is None else from_text(text, part)
                values[knob_name] = checked(known[knob_name], value) if knob_name in CATALOGUES else value
        return dataclasses.replace(self, **values)

    def settable(self) -> list[str]:
        """Names that ``with_text`` takes: every knob, and ``knob.field`` for the fields of parts such as the node."""
        return _settable({each.name: getattr(self, each.name) for each in fields(self)})

    def to_toml(self) -> str:
        """The scenario as TOML text, which ``from_file`` reads back to an equal one."""
        import tomli_w

        values = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in CATALOGUES and value is not None:
                make, keys = CATALOGUES[each.name][1:]
                same = value.key in keys() and make(value.key) == value
                value = value.key if same else dataclasses.asdict(value)
            if value is not None:
                values[each.name] = value
        return tomli_w.dumps(values)


def _settable(values: Mapping[str, Any]) -> list[str]:
    parts = {name: values[name] for name in CATALOGUES if values[name]}
    return [
        *values,
        *(f"{name}.{each.name}" for name, part in parts.items() for each in fields(part) if each.name != "key"),
    ]
