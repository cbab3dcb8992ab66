"""How hard prompts are and how fast they are learned, for the published runs: fitted where something is printed, else assumed."""

from functools import cache

from rlqueue.provenance import Quantity, quantities, table
from rlqueue.refusal import require_known


@cache
def curriculum_names() -> tuple[str, ...]:
    """Runs with a curriculum, in the order of data/curriculum_presets.csv: DAPO's, and one for each preset."""
    return tuple(dict.fromkeys(row["entity"] for row in table("curriculum_presets")))


@cache
def curriculum_facts(name: str) -> dict[str, Quantity]:
    """The knobs of one curriculum with their sources. Raises ValueError for an unknown name."""
    require_known("curriculum", name, curriculum_names())
    return quantities("curriculum_presets", name)


def curriculum_knobs(name: str) -> dict[str, float | str | int]:
    """The knobs of one curriculum, for ``dataclasses.replace(scenario, **curriculum_knobs(name))``."""
    idle = {
        "filtered_fraction": 0.0, "solve_rate_law": "beta", "solve_rate_logit_sigma": 0.0, "solve_rate_histogram": "",
        "solve_rate_logit_shift": 0.0,
    }  # fmt: skip
    return idle | {knob: fact.value for knob, fact in curriculum_facts(name).items()}
