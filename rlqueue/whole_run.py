"""What a run costs from its first step to its last, whoever computed its steps."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlqueue.cost import PARTS, hosted_usd
from rlqueue.scenario import Scenario
from rlqueue.units import TOKENS_PER_MTOK


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """What a run costs from its first step to its last.

    Attributes:
        steps, hours, gpu_hours: how long (fewer steps than asked for where it gets nowhere any more).
        usd: what its GPUs and sandboxes cost [$], the sum of the parts ``trainer_busy_usd`` ... ``sandbox_usd``.
        trained_tokens, informative_tokens: of trained samples; of those in groups whose rewards differ.
        hosted_usd: the hosted price of the same trained tokens [$]; None without a price row.
        usd_per_mtok, usd_per_informative_mtok: of the whole run; NaN where nothing was trained, None where no token taught.
        solve_rate_start, solve_rate_end: mean over the pool; NaN without solve rates.
    """

    steps: int
    hours: float
    gpu_hours: float
    usd: float
    trainer_busy_usd: float
    trainer_waiting_usd: float
    generator_useful_usd: float
    generator_discarded_usd: float
    generator_idle_usd: float
    sandbox_usd: float
    trained_tokens: float
    informative_tokens: float
    hosted_usd: float | None
    usd_per_mtok: float
    usd_per_informative_mtok: float | None
    solve_rate_start: float
    solve_rate_end: float


def summed(
    scenario: Scenario, *, steps: int, hours: float, parts_usd: Mapping[str, float], prompt_tokens: float,
    trained_tokens: float, informative_tokens: float, solve_rates: Sequence[float],
) -> WholeRun:  # fmt: skip
    """A whole run from its sums.

    Args:
        parts_usd: dollars by part of a bill. prompt_tokens, trained_tokens: of trained samples, the latter with responses.
        solve_rates: mean over the pool at the start and at the end.
    """
    usd = sum(parts_usd[part] for part in PARTS)
    hosted = None
    if scenario.hosted_price is not None:
        hosted = hosted_usd(scenario.hosted_price, prompt_tokens, trained_tokens - prompt_tokens).total_usd
    return WholeRun(
        steps=steps,
        hours=hours,
        gpu_hours=hours * (scenario.trainer_gpus + scenario.generator_gpus),
        usd=usd,
        **{f"{part}_usd": parts_usd[part] for part in PARTS},
        trained_tokens=trained_tokens,
        informative_tokens=informative_tokens,
        hosted_usd=hosted,
        usd_per_mtok=usd / trained_tokens * TOKENS_PER_MTOK if trained_tokens > 0 else math.nan,
        usd_per_informative_mtok=usd / informative_tokens * TOKENS_PER_MTOK if informative_tokens > 0 else None,
        solve_rate_start=float(solve_rates[0]),
        solve_rate_end=float(solve_rates[1]),
    )
