"""All turns of a rollout in one: far fewer events where there are many tool calls, and the same answer within two points."""

import dataclasses

from rlqueue import drift
from rlqueue.operating_point import OperatingPoint
from rlqueue.rates import prefilled_tokens
from rlqueue.scenario import Scenario


def lumped(scenario: Scenario) -> Scenario:
    """The single-turn equivalent: all time of the tool calls in one piece, the prompt at once and as long as it is on average.

    A context grows turn by turn; here it is from the start as long as it is in the mean over the turns (see
    ``rates.mean_context_tokens``), so that the decode batches are as heavy. MFU and prefill rate are set so that the trainer
    takes as long for a step, and the generator for all prefill. A scenario without turns is its own equivalent, and so is one
    whose tool calls or prompt move over the steps, which their time in one piece and the MFU would not. Where responses move,
    the MFU is that of the start: at twice the length the trainer takes 6 % longer than it should.
    """
    if not scenario.tool_calls or _turns_move(scenario):
        return scenario
    s, turns = scenario, scenario.tool_calls + 1.0
    prompt = s.mean_prompt_tokens * (turns + 1.0) / (2.0 * turns)
    whole = s.mean_prompt_tokens + s.mean_response_tokens
    made = dataclasses.replace(
        s, mean_prompt_tokens=prompt, tool_calls=0.0, reward_s=s.reward_s + s.tool_calls * s.tool_call_s,
        mfu=s.mfu * (prompt + s.mean_response_tokens) / whole,
    )  # fmt: skip
    before, after = prefilled_tokens(s), prefilled_tokens(made)
    return dataclasses.replace(made, prefill_mfu=min(1.0, s.prefill_mfu * after / before)) if before and after else made


def _turns_move(scenario: Scenario) -> bool:
    if scenario.drift_law == "series":
        return any(moved is not None for moved in drift.series(scenario.drift_series)[2:])
    return scenario.drift_tool_calls_factor != 1.0 or scenario.drift_prompt_factor != 1.0


def unlumped(point: OperatingPoint, scenario: Scenario) -> OperatingPoint:
    """The point of a scenario's single-turn equivalent, with the scenario's own tokens."""
    short = lumped(scenario)
    if short is scenario:
        return point
    more = scenario.trained_tokens_per_step / short.trained_tokens_per_step
    names = ("trained_tokens_per_s", "mfu_computing", "mfu_wall_clock")
    return dataclasses.replace(point, **{name: getattr(point, name) * more for name in names})
