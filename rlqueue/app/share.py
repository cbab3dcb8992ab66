"""A state as the query of an address, and back: the preset, and the knobs that differ from it, short keys for those moved often.

``?p=slime-qwen3-235b&g=40&t=56&c=320`` is that run at another split and concurrency. A value is text as on a command line, so
the scenario refuses what is impossible by name, value and limit; nothing of a query is believed before that. Full knob names are
read as well as short keys, so that a key may change without old links losing their meaning.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import parse_qsl, urlencode

from rlqueue.app.state import State, opened, started
from rlqueue.knobs import CATALOGUES
from rlqueue.presets import preset_names
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

PRESET = "p"
PLACE = "at"
"""Key of the page that a link was made on: there it is exact, elsewhere a page may add what it is about."""
SHORT = {
    "t": "trainer_gpus", "g": "generator_gpus", "c": "concurrency", "s": "max_staleness", "b": "prompts_per_step",
    "n": "group_size",
    "in": "mean_prompt_tokens", "out": "mean_response_tokens", "max": "max_response_tokens", "tools": "tool_calls",
    "steps": "training_steps", "usd": "gpu_hour_usd", "host": "hosted_price", "kwh": "node.usd_per_kwh",
    "rule": "staleness_family",
    "sched": "schedule", "solve": "solve_rate_mean", "k": "solve_rate_concentration", "learn": "learning_logit_per_step",
    "grow": "drift_length_factor", "law": "drift_law", "over": "drift_steps", "pool": "pool_prompts",
}  # fmt: skip
"""Short keys and their knobs."""
LONG = {knob: key for key, knob in SHORT.items()}
REACH = {
    "trainer_gpus": 16_384, "generator_gpus": 16_384, "concurrency": 1_000_000, "prompts_per_step": 65_536, "group_size": 1_024,
    "updates_per_step": 65_536, "training_steps": 100_000, "drift_steps": 100_000, "pool_prompts": 1_000_000,
}  # fmt: skip
"""How far a link may go: a page draws every split, and simulates every group."""
LONGEST = 8_000
"""Characters of a query; browsers and servers take about as much."""
MOST = 100
"""Keys of a query."""


def settings(scenario: Scenario, base: Scenario) -> dict[str, str]:
    """What of a scenario differs from another, as text that ``Scenario.with_text`` reads."""
    found = {}
    for each in fields(Scenario):
        here, there = getattr(scenario, each.name), getattr(base, each.name)
        if each.name == "name" or here == there:
            continue
        if each.name in CATALOGUES and here is not None:
            key = here.key
            found |= {} if there is not None and there.key == key else {each.name: key}
            plain = CATALOGUES[each.name][1](key)
            found |= {
                f"{each.name}.{inner.name}": _text(getattr(here, inner.name))
                for inner in fields(here)
                if inner.name != "key" and getattr(here, inner.name) != getattr(plain, inner.name)
            }
        else:
            found[each.name] = _text(here)
    return found


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def query(state: State, **more: Any) -> str:
    """The query that restores a state, without its question mark. ``more``: what a page adds of its own, such as a seed."""
    pairs = {PRESET: state.preset} | {
        LONG.get(knob, knob): text for knob, text in settings(state.scenario, started(state.preset)).items()
    }
    return urlencode(pairs | {key: _text(value) for key, value in more.items()})


def read(text: str, *, opening: str = "", own: tuple[str, ...] = ()) -> tuple[State, dict[str, str]]:
    """The state that a query means, and what it holds under a page's own keys.

    Raises:
        ValueError: too long, an unknown preset or knob, or an impossible scenario; the message names key, value and limit.
    """
    if len(text) > LONGEST:
        raise ValueError(f"link: {len(text)} characters must be <= {LONGEST}")
    pairs = parse_qsl(text.removeprefix("?"), keep_blank_values=True, max_num_fields=MOST)
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("link: each key must come once")
    page_s_own = {key: values.pop(key) for key in own if key in values}
    values.pop(PLACE, None)
    name = values.pop(PRESET, preset_names()[0])
    require_known("p", name, preset_names())
    changed = {SHORT.get(key, key): value for key, value in values.items()}
    if len(changed) < len(values):
        raise ValueError("link: a knob must come once, by its short key or by its name")
    scenario = _set(started(name), changed)
    for knob, most in REACH.items():
        if getattr(scenario, knob) > most:
            raise ValueError(f"link: {knob}={getattr(scenario, knob)} must be <= {most}: a page computes no larger run")
    return dataclasses.replace(opened(name, opening), scenario=scenario), page_s_own


def _set(scenario: Scenario, changed: Mapping[str, str]) -> Scenario:
    """The scenario with knobs from text; parts of a catalogue entry after the entry itself."""
    if "name" in changed:
        raise ValueError("link: a run has the name of its preset")
    first = {key: value for key, value in changed.items() if "." not in key and key in CATALOGUES}
    rest = {key: value for key, value in changed.items() if key not in first}
    return scenario.with_text({**first, **rest})
