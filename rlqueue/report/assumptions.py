"""What a reader may change before the report is computed: knobs, set alike in every run that it looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlqueue.provenance import table
from rlqueue.scenario import Scenario
from rlqueue.tco import NodeTco, node_tco

PRIME, GLM, SLIME = "prime-rl-qwen3-235b", "prime-rl-glm-5", "slime-qwen3-235b"
VERL = ("verl-qwen3-235b-c96", "verl-qwen3-235b-c256", "verl-qwen3-235b-c360")
RUNS = (PRIME, GLM, SLIME, *VERL)
TITLES = {row["preset"]: row["title"] for row in table("presets")}
PRICED = (PRIME, SLIME)
"""Runs whose cost the report gives."""


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Knobs as text, as on the command line (``node.usd_per_kwh=0.12``); none: the report's own."""

    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Assumptions":
        """From a mapping of knob to text; raises ValueError where a run can't take one."""
        made = cls(settings=tuple(settings.items()))
        for name in RUNS:
            if made.scenario(name).hosted_price is None:
                raise ValueError("hosted_price=none: the report compares with a hosted price, so a row must be named")
        return made

    def scenario(self, name: str) -> Scenario:
        """A published run with the reader's changes."""
        return Scenario.from_data(name).with_text(dict(self.settings))

    @property
    def node(self) -> NodeTco:
        """The H200 server with the reader's changes."""
        return self.scenario(PRIME).node


def moneyless(scenario: Scenario) -> Scenario:
    """The run with no prices: what happens in it is the same, and is computed once for all of them."""
    return replace(scenario, node=node_tco("h200"), gpu_hour_usd=None, hosted_price=None, sandbox_usd_per_hour=0.0)


def at_lengths(scenario: Scenario, prompt_tokens: float, response_tokens: float) -> Scenario:
    """The run with other mean lengths and the same longest sequence."""
    longest = scenario.mean_prompt_tokens + scenario.max_response_tokens
    return replace(
        scenario,
        mean_prompt_tokens=prompt_tokens,
        mean_response_tokens=response_tokens,
        max_response_tokens=longest - prompt_tokens,
    )
