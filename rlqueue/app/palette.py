"""Colours, margins, axes and keys that the figures of all pages share."""

from __future__ import annotations

from typing import Any

from rlqueue.app.answers import Answer
from rlqueue.app.plot import PALETTE
from rlqueue.cost import PARTS

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY, YELLOW = PALETTE
INK = "#1B2733"
WAIT, IDLE, NOW, REPORTED = BLUE, ORANGE, INK, VERMILION
PART_COLOURS = dict(zip(PARTS, (BLUE, SKY, GREEN, PURPLE, ORANGE, GREY), strict=True))
PART_NAMES = {
    "trainer_busy": "trainer busy",
    "trainer_waiting": "trainer waiting",
    "generator_useful": "generator useful",
    "generator_discarded": "discarded",
    "generator_idle": "generator idle",
    "sandbox": "sandboxes",
}
MARGIN = {"l": 48, "r": 12, "t": 12, "b": 44}


def mark(name: str, shape: str, colour: str) -> dict[str, str]:
    """One entry of the key above a figure."""
    return {"name": name, "shape": shape, "colour": colour}


def split_axis(answer: Answer) -> dict[str, Any]:
    splits, step = answer.frame.splits, answer.state.scenario.gpus_per_replica
    return {"title": {"text": f"generator GPUs (of {answer.frame.gpus})", "font": {"size": 13}}, "fixedrange": True,
            "range": [int(splits[0]) - 0.6 * step, int(splits[-1]) + 0.6 * step]}  # fmt: skip
