"""The shape of every published series beside its prediction, how far off it is, and why."""

from collections.abc import Sequence

import pandas as pd

MISSES = {
    "glm_rollout_time": (
        "One step is far too long: its bar of lengths is among the highest and its time among the lowest, as if "
        "the two charts were a step apart there. Of 25 bars one was lost, perhaps before it: glm_alignment() shows "
        "what that changes."
    ),
    "prime_rollout_time": (
        "The measured time of a token grows faster than the sequence, which no reading of weights and KV cache explains "
        "at constant concurrency, nor do sandboxes, whose share falls. By Little's law the rollouts in flight grew too, "
        "several times over from the first step, which a generator that was only starting made. With that growth, which "
        "the run does not print, prime_as_concurrency_grew() says most of the rise."
    ),
    "dapo_all_solved": (
        "Too high at the end: in the law every prompt can be learned, however slowly; of real ones some have wrong "
        "answers or lie out of reach. A rise that all prompts share fits worse by far: it soon solves every "
        "prompt."
    ),
    "glm_solved_groups": (
        "Only the share of solved groups and the wait are printed. The spread of solve rates and the size of the "
        "pool are assumed, and with them how many groups no rollout solves."
    ),
}
"""Why the model is off, or what it cannot know, by function."""


def blind_error(series: pd.DataFrame) -> float:
    """Mean absolute error of the points that were not fitted (a share of the published value, or points of a share)."""
    return float(series.loc[~series["calibrated"], "error"].abs().mean())


def series_table(name: str, unit: str, source: str, rows: Sequence[tuple[int, float, float, bool]]) -> pd.DataFrame:
    """Rows of step, published, predicted, calibrated; errors are shares of the published value, of a share the difference."""
    found = pd.DataFrame(rows, columns=["step", "published", "predicted", "calibrated"])
    difference = found["predicted"] - found["published"]
    found["error"] = difference if unit == "1" else difference / found["published"]
    return found.assign(series=name, unit=unit, source=source)[
        ["series", "step", "published", "predicted", "unit", "error", "calibrated", "source"]
    ]
