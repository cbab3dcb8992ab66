"""What a trained token costs: self-built by two methods, hosted by price list, and where each dollar goes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlqueue.hosted import HostedPrice
from rlqueue.operating_point import OperatingPoint
from rlqueue.provenance import table
from rlqueue.scenario import Scenario
from rlqueue.tco import tco
from rlqueue.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK

Numbers = float | np.ndarray


@dataclass(frozen=True, kw_only=True)
class Bill:
    """The cost of an operating point. The denominator is always *trained* tokens: prompt and response of trained samples.

    Attributes:
        usd_per_gpu_hour: what a GPU-hour costs [$]. usd_per_step: GPUs and sandboxes of one step [$].
        usd_per_mtok: wall-clock method: GPU-hours of the run over trained tokens, sandboxes included [$/Mtok].
        usd_per_informative_mtok: the same over tokens of groups whose rewards differ; None where no group's do [$/Mtok].
        usd_per_mtok_report_method: the report's: mean rollout time charged once per step, GPU price rounded to the cent.
        trainer_busy_usd_per_mtok ... sandbox_usd_per_mtok: the parts that ``usd_per_mtok`` is the sum of.
        hosted_usd_per_mtok: the hosted service's price for the same mix of tokens; None without a price row.
        cost_ratio: usd_per_mtok / hosted_usd_per_mtok; cost_ratio_report_method likewise.
    """

    usd_per_gpu_hour: float
    usd_per_step: float
    usd_per_mtok: float
    usd_per_informative_mtok: float | None
    usd_per_mtok_report_method: float
    trainer_busy_usd_per_mtok: float
    trainer_waiting_usd_per_mtok: float
    generator_useful_usd_per_mtok: float
    generator_discarded_usd_per_mtok: float
    generator_idle_usd_per_mtok: float
    sandbox_usd_per_mtok: float
    hosted_usd_per_mtok: float | None
    cost_ratio: float | None
    cost_ratio_report_method: float | None


PARTS = ("trainer_busy", "trainer_waiting", "generator_useful", "generator_discarded", "generator_idle", "sandbox")
"""The parts of a bill, in the order they are stacked."""


def usd_per_gpu_hour(scenario: Scenario) -> float:
    """The scenario's price of a GPU-hour: its own, or the cost of ownership of its node [$/GPU-h]."""
    return tco(scenario.node).total_usd_per_gpu_hour if scenario.gpu_hour_usd is None else scenario.gpu_hour_usd


def hosted_usd_per_mtok(price: HostedPrice, prompt_tokens: float, response_tokens: float) -> float:
    """Hosted price of a trained Mtok [$/Mtok].

    ``prefill price * prompt share + sample price * response share + train price``: each trained token is once prefilled or
    sampled, and once trained.
    """
    return (
        hosted_usd(price, prompt_tokens, response_tokens).total_usd
        / (prompt_tokens + response_tokens)
        * TOKENS_PER_MTOK
    )


@dataclass(frozen=True, kw_only=True)
class HostedUsd:
    """Dollars for a number of tokens at a hosted service, by kind of work."""

    prefill_usd: float
    decode_usd: float
    train_usd: float
    total_usd: float


def hosted_usd(price: HostedPrice, prompt_tokens: float, response_tokens: float) -> HostedUsd:
    """What a hosted service charges to prefill, sample and train those tokens [$]."""
    prefill = price.prefill_usd_per_mtok * prompt_tokens / TOKENS_PER_MTOK
    decode = price.sample_usd_per_mtok * response_tokens / TOKENS_PER_MTOK
    train = price.train_usd_per_mtok * (prompt_tokens + response_tokens) / TOKENS_PER_MTOK
    return HostedUsd(prefill_usd=prefill, decode_usd=decode, train_usd=train, total_usd=prefill + decode + train)


def latency_charged_usd_per_mtok(gpus: int, gpu_hour_usd: float, rollout_s: float, tokens: float) -> float:
    """The report's cost of a step [$/Mtok]: every GPU charged for the mean rollout time, over the step's trained tokens.

    It is no wall-clock cost: steps overlap the rollouts of other steps. The price is rounded to the cent, as printed.
    """
    return gpus * round(gpu_hour_usd, 2) * rollout_s / SECONDS_PER_HOUR / tokens * TOKENS_PER_MTOK


def measured_report_method(scenario: Scenario) -> float | None:
    """The report's method on its own table of measured steps: the mean of the steps' quotients [$/Mtok]; None without one."""
    if not scenario.measured_run:
        return None
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    steps = [
        latency_charged_usd_per_mtok(
            gpus, usd_per_gpu_hour(scenario), float(row["rollout_s"]),
            scenario.samples_per_step * float(row["mean_sequence_tokens"]),
        )
        for row in table(scenario.measured_run)
    ]  # fmt: skip
    return sum(steps) / len(steps)


def mean_of_quotients(scenario: Scenario) -> float:
    """How far a mean of per-step quotients ``rollout_s / tokens`` is from the quotient of the means, in the measured run.

    The report averages per step while lengths and times drift, which gives 0.7 % less (Prime RL) or 0.4 % more (slime) than
    the averages do. 1 without a measured run.
    """
    if not scenario.measured_run:
        return 1.0
    rows = [(float(row["rollout_s"]), float(row["mean_sequence_tokens"])) for row in table(scenario.measured_run)]
    return sum(s / n for s, n in rows) / len(rows) / (sum(s for s, _ in rows) / sum(n for _, n in rows))


def parts_usd_per_mtok(
    scenario: Scenario, answers: Mapping[str, Numbers], trainer_gpus: Numbers, generator_gpus: Numbers
) -> dict[str, Numbers]:
    """Where the dollars of a trained Mtok go [$/Mtok]: the parts of a bill, for one operating point or a grid of them.

    The trainer's GPU time is split by its wait ratio (publication and pauses count as busy). The generator's is split by
    slot-time: unused slots are idle, and of the used ones the accepted share is useful, the rest discarded. With a
    colocated schedule all GPUs are the generator's while the trainer waits. Dollars buy the tokens that *were* trained: a rule
    that drops what is old prefers short rollouts, which a step's usual number of tokens would hide.

    Args:
        answers: step_s, trainer_wait_ratio, rollout_idle_ratio, accepted_ratio, in_flight_rollouts; numbers or arrays; and
            trained_tokens_per_s, without which a step trains the scenario's usual tokens.
        trainer_gpus, generator_gpus: the split they belong to.
    """
    step_s, wait = answers["step_s"], answers["trainer_wait_ratio"]
    rate = answers.get("trained_tokens_per_s")
    tokens = scenario.trained_tokens_per_step if rate is None else rate * step_s
    per_gpu_s = usd_per_gpu_hour(scenario) / SECONDS_PER_HOUR / tokens * TOKENS_PER_MTOK
    idle, accepted = answers["rollout_idle_ratio"], answers["accepted_ratio"]
    if scenario.schedule == "colocated-sync":
        gpus = trainer_gpus + generator_gpus
        trainer_s, waiting_s, generator_s = gpus * step_s * (1.0 - wait), 0.0 * wait, gpus * step_s * wait
    else:
        trainer_s = trainer_gpus * step_s * (1.0 - wait)
        waiting_s = trainer_gpus * step_s * wait
        generator_s = generator_gpus * step_s
    used_s = generator_s * (1.0 - idle)
    sandboxes = answers["in_flight_rollouts"] if scenario.sandbox_start_s > 0 else 0.0
    sandbox_usd = sandboxes * scenario.sandbox_usd_per_hour * step_s / SECONDS_PER_HOUR
    return {
        "trainer_busy": trainer_s * per_gpu_s,
        "trainer_waiting": waiting_s * per_gpu_s,
        "generator_useful": used_s * accepted * per_gpu_s,
        "generator_discarded": used_s * (1.0 - accepted) * per_gpu_s,
        "generator_idle": generator_s * idle * per_gpu_s,
        "sandbox": sandbox_usd / tokens * TOKENS_PER_MTOK,
    }


def cost(scenario: Scenario, point: OperatingPoint) -> Bill:
    """The bill of an operating point, whoever computed it.

    Args:
        scenario: what was run. point: how it runs.
    """
    gpu_hour = usd_per_gpu_hour(scenario)
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    tokens = point.trained_tokens_per_s * point.step_s
    parts = parts_usd_per_mtok(scenario, vars(point), scenario.trainer_gpus, scenario.generator_gpus)
    total = sum(parts.values())
    report = latency_charged_usd_per_mtok(gpus, gpu_hour, point.rollout_s, tokens) * mean_of_quotients(scenario)
    hosted = None
    if scenario.hosted_price is not None:
        hosted = hosted_usd_per_mtok(scenario.hosted_price, scenario.mean_prompt_tokens, scenario.mean_response_tokens)
    return Bill(
        usd_per_gpu_hour=gpu_hour,
        usd_per_step=total * tokens / TOKENS_PER_MTOK,
        usd_per_mtok=total,
        usd_per_informative_mtok=total / point.informative_ratio if point.informative_ratio else None,
        usd_per_mtok_report_method=report,
        hosted_usd_per_mtok=hosted,
        cost_ratio=total / hosted if hosted else None,
        cost_ratio_report_method=report / hosted if hosted else None,
        **{f"{part}_usd_per_mtok": value for part, value in parts.items()},
    )
