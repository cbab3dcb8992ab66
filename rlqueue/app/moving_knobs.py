"""Controls of what moves while a run goes on: how hard prompts are and what is learnt from them, and how answers grow."""

from __future__ import annotations

import math

from rlqueue.app.controls import MORE, Control
from rlqueue.scenario import Scenario

STEPS = Control(knob="training_steps", label="Training steps", shape="log", low=10, high=10_000, step=0.05, shown=",",
                unit="steps")  # fmt: skip

DIFFICULTY = (
    Control(knob="solve_rate_mean", label="Mean solve rate", shape="even", low=0.02, high=0.98, step=0.01, shown=".2f",
            unit="share", meaning="of the pool when the run begins"),
    Control(knob="solve_rate_concentration", label="Likeness of prompts", shape="log", low=0.1, high=100, step=0.05,
            unit="a + b", meaning="small: most prompts are hopeless or easy; large: all are alike",
            named=((math.inf, "all alike"),)),
    Control(knob="solve_rate_logit_sigma", label="Spread of prompts", shape="even", low=0, high=6, step=0.1, unit="logit sigma",
            meaning="0: all are alike; large: most prompts are hopeless or easy"),
)  # fmt: skip
LEARNING = (
    Control(knob="learning_logit_per_step", label="Learning speed", shape="log", low=1e-4, high=0.1, step=0.05,
            unit="logit per step", named=((0.0, "off"),)),
    Control(knob="learning_transfer", label="Transfer", shape="even", step=0.05, unit="share",
            meaning="1: all prompts rise together; 0: only those trained on"),
)  # fmt: skip
CHOOSING = (
    Control(knob="sampler", label="Sampler", shape="choice"),
    Control(knob="gate", label="Gate", shape="choice"),
)
OF_SAMPLERS = (
    Control(knob="band_low", label="Band from", shape="even", step=0.05, unit="observed rate"),
    Control(knob="band_high", label="Band to", shape="even", step=0.05, unit="observed rate"),
    Control(knob="retire_above", label="Retire from", shape="even", low=0.05, step=0.05, unit="observed rate"),
)
MORE_OF_CURRICULUM = (
    Control(knob="pool_prompts", label="Prompts in the pool", shape="log", low=100, high=1_000_000, step=0.05, shown=",",
            unit="prompts", named=((0, "endless"),)),
    Control(knob="learning_staleness_half", label="Staleness that halves", shape="log", low=0.5, high=100, step=0.1,
            unit="versions", named=((math.inf, "no discount"),)),
    Control(knob="solve_rate_law", label="Law of solve rates", shape="choice"),
    Control(knob="solve_rate_histogram", label="Measured rates", shape="text", unit="rate: share, ...",
            meaning="share of prompts at each solve rate, in the place of a law; empty: the law"),
)  # fmt: skip
GROWTH = (
    Control(knob="drift_length_factor", label="Growth of answers", shape="log", low=0.1, high=10, step=0.02, shown=".3g",
            unit="end : start", meaning="of the median before the cut"),
    Control(knob="drift_law", label="Growth law", shape="choice"),
    Control(knob="drift_steps", label="Over", shape="log", low=1, high=10_000, step=0.05, shown=",", unit="steps",
            meaning="then lengths stay; 0: they do not move"),
)  # fmt: skip
KV_PRECISION = Control(knob="kv_precision", label="KV cache", shape="choice")
MORE_OF_GROWTH = (
    Control(knob="drift_tool_calls_factor", label="Growth of tool calls", shape="log", low=0.1, high=10, step=0.02, shown=".3g",
            unit="end : start"),
    Control(knob="drift_prompt_factor", label="Growth of prompts", shape="log", low=0.1, high=10, step=0.02, shown=".3g",
            unit="end : start", meaning="tool results, above all"),
    Control(knob="drift_sigma_factor", label="Growth of the spread", shape="even", low=0.5, high=2, step=0.02, shown=".3g",
            unit="end : start", meaning="of both sigmas of log length"),
    Control(knob="drift_series", label="Measured lengths", shape="text", unit="step: tokens / tool calls, ...",
            meaning="means after the cut, in the place of a law; empty: the law"),
)  # fmt: skip
_BY_KNOB = {each.knob: each for each in MORE}
GROUP_SIZE, PROMPTS = _BY_KNOB["group_size"], _BY_KNOB["prompts_per_step"]
LENGTH, LONGEST = _BY_KNOB["mean_response_tokens"], _BY_KNOB["max_response_tokens"]
BETWEEN, WITHIN = _BY_KNOB["response_sigma_between_prompts"], _BY_KNOB["response_sigma_within_group"]

_ONLY = {
    "solve_rate_mean": lambda s: s.solve_rate_law != "histogram",
    "solve_rate_concentration": lambda s: s.solve_rate_law == "beta",
    "solve_rate_logit_sigma": lambda s: s.solve_rate_law == "logit-normal",
    "learning_transfer": lambda s: s.learning_logit_per_step > 0,
    "band_low": lambda s: s.sampler == "difficulty-band",
    "band_high": lambda s: s.sampler == "difficulty-band",
    "retire_above": lambda s: s.sampler == "retire-solved",
}


def applies(control: Control, scenario: Scenario) -> bool:
    """Whether the knob has a say in this scenario; where it has none, its control is left out."""
    return _ONLY.get(control.knob, lambda _: True)(scenario)
