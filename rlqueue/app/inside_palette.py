"""Colours and words of what trainer, generator, groups and tokens do; the same in every figure of one run."""

from rlqueue.app.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW

PALE = "#B9C2CC"
COLOURS = {
    "train": BLUE, "sync": GREY, "pause": PALE, "wait": SKY, "hold": "#A9DAF5", "fetch": "#7FA6C9",
    "trained": GREEN, "filtered": PURPLE, "surplus": "#E3B5CF", "stale": "#8F4A73", "pruned": "#B98AA6", "failed": VERMILION,
    "open": PALE, "idle": ORANGE,
}  # fmt: skip
SAID = {
    "train": "trains", "sync": "publishes", "pause": "pauses", "wait": "waits", "hold": "waits to publish",
    "fetch": "fetches a batch",
    "trained": "trained", "filtered": "filtered", "surplus": "surplus", "stale": "too stale", "pruned": "pruned",
    "failed": "failed attempts", "open": "undecided at the end", "idle": "idle",
}  # fmt: skip
IN_FLIGHT, IN_QUEUE = GREEN, YELLOW
EDGE = {"color": "#8C7F00", "width": 0.6}
"""An outline for yellow, which is weak on white."""
