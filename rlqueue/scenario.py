"""The question: one run of RL post-training, described completely.

A ``Scenario`` is frozen and refuses impossible values by name, value and limit. It states no number of its own: presets
live in data/presets/, and only mechanisms that are switched off have a default (a factor of 1, a share of 0, no limit).
"""

import math
from dataclasses import dataclass, fields

from rlqueue.as_text import AsText
from rlqueue.choices import (
    DRIFT_LAWS,
    GATES,
    PRECISIONS,
    SAMPLERS,
    SCHEDULES,
    SLOTS_HELD,
    SOLVE_RATE_LAWS,
    STALENESS_FAMILIES,
)
from rlqueue.drift import DriftLaw, DriftStart
from rlqueue.hardware import Gpu
from rlqueue.hosted import HostedPrice
from rlqueue.impossible import refuse_impossible
from rlqueue.knobs import checked, knob
from rlqueue.llm import Llm
from rlqueue.tco import NodeTco


@dataclass(frozen=True, kw_only=True)
class Scenario(AsText):
    """One run: hardware, LLM, batch, lengths, sandboxes, generator, trainer, schedule, money.

    Each field's ``metadata`` holds unit, meaning and limits. Shares are in [0, 1]. A *version* is one publication of
    weights; a *step* trains on ``prompts_per_step`` groups.

    Raises:
        ValueError: a value is of the wrong type, outside its limit, or the whole is impossible. The message names field,
            value and limit.
    """

    name: str = knob("", "what this scenario is called")

    # The machine and the LLM
    llm: Llm = knob("", "shape of the LLM that is trained")
    trainer_gpu: Gpu = knob("", "GPU that trains")
    generator_gpu: Gpu = knob("", "GPU that generates")
    trainer_gpus: int = knob("GPU", "GPUs that train", low=1)
    generator_gpus: int = knob("GPU", "GPUs that generate rollouts", low=1)
    cluster_gpus: int = knob("GPU", "GPUs there are; 0 = as many as trainer and generator use", low=0, default=0)
    gpus_per_replica: int = knob("GPU", "GPUs that serve one copy of the LLM for generation", low=1)
    prefill_gpus_per_replica: int = knob(
        "GPU", "of these, GPUs that only prefill (disaggregated); 0 = prefill and decode share", low=0, default=0
    )
    generator_weights_precision: str = knob("", "precision of the generator's weights", choices=PRECISIONS)
    kv_precision: str = knob("", "precision of the KV cache", choices=PRECISIONS)
    memory_fraction: float = knob("1", "share of GPU memory that the inference engine may fill", above=0, high=1)
    activation_bytes_per_gpu: float = knob("byte", "memory kept for activations on a generator GPU", low=0)

    # The batch
    prompts_per_step: int = knob("group", "groups trained in one step", low=1)
    group_size: int = knob("rollout", "rollouts of one prompt", low=2)
    updates_per_step: int = knob(
        "1", "batches that a step is trained in, each as soon as the queue holds it", low=1, default=1
    )
    minibatches_per_update: int = knob("1", "optimizer steps in which one update is made", low=1, high=10**6, default=1)
    steps_per_publication: int = knob("step", "steps between two publications of weights", low=1, default=1)
    training_steps: int = knob("step", "steps of the whole run", low=1, high=10**7, default=1)

    # Lengths and tools
    mean_prompt_tokens: float = knob("token", "mean tokens not sampled: task prompt and tool results", low=0)
    mean_response_tokens: float = knob("token", "mean sampled tokens of a rollout, after the cut", above=0)
    response_sigma_between_prompts: float = knob("1", "spread of log length between prompts", low=0, high=3)
    response_sigma_within_group: float = knob("1", "spread of log length within a group", low=0, high=3)
    max_response_tokens: float = knob("token", "length at which a response is cut", above=0)
    tool_calls: float = knob("1", "mean tool calls of a rollout", low=0, high=1000, default=0.0)
    tool_call_s: float = knob("s", "mean time of one tool call", low=0, default=0.0)
    tool_call_sigma: float = knob(
        "1", "spread of its logarithm; 0 = every call takes the mean", low=0, high=3, default=0.0
    )
    reward_s: float = knob("s", "time to score a finished rollout", low=0, default=0.0)

    # Sandboxes
    sandbox_start_s: float = knob("s", "mean start-up time of a sandbox; 0 = none is used", low=0, default=0.0)
    sandbox_start_sigma: float = knob("1", "spread of its logarithm", low=0, high=3, default=0.0)
    sandbox_creates_per_s: float = knob("1/s", "create rate the provider allows", above=0, default=math.inf)
    sandbox_cap: float = knob("sandbox", "sandboxes the account may run at once", low=1, default=math.inf)
    sandbox_failure_ratio: float = knob("1", "share of starts that fail", low=0, high=0.99, default=0.0)
    sandbox_run_failure_ratio: float = knob("1", "share of rollouts whose sandbox dies", low=0, high=0.99, default=0.0)
    sandbox_retries: int = knob("1", "further tries after a failed start", low=0, high=1000, default=3)
    sandbox_timeout_s: float = knob("s", "time after which a start counts as failed", above=0, default=math.inf)

    # The generator
    concurrency: int = knob("rollout", "slots: rollouts in flight at most, over all replicas", low=1)
    slots_held_by: str = knob("", "what keeps a slot taken", choices=SLOTS_HELD, default="rollout")
    decode_efficiency: float = knob("1", "share of peak bandwidth and compute that decoding reaches", above=0, high=1)
    decode_overhead_s: float = knob("s", "fixed time of one decode iteration", low=0, default=0.0)
    prefill_mfu: float = knob("1", "share of peak compute that prefill reaches", above=0, high=1)
    accept_length: float = knob("token", "tokens a request gains per iteration (speculative decoding)", low=1, high=16,
                                default=1.0)  # fmt: skip
    decode_curve: str = knob("", "measured decode rate of a replica, 'requests: tokens/s, ...', in place of the roofline; "
                             "empty = none", default="")  # fmt: skip
    prefix_cache: bool = knob("", "whether a later turn reuses the KV cache of the earlier ones", default=True)

    # The trainer
    mfu: float = knob("1", "model FLOP/s while computing over the dense bf16 peak", above=0, high=1)
    trainer_overhead_s: float = knob("s", "fixed time of one optimizer step", low=0, default=0.0)
    batch_fetch_s: float = knob("s", "time of a step in which the trainer fetches and assembles batches that are ready, and "
                                "computes nothing", low=0, default=0.0)  # fmt: skip
    logprob_passes: int = knob("1", "extra forward passes over the batch (old policy, reference)", low=0, high=8,
                               default=0)  # fmt: skip
    weight_sync_s: float = knob("s", "time the trainer spends to publish weights", low=0)
    evaluate_every_steps: int = knob("step", "steps between evaluations; 0 = none", low=0, default=0)
    evaluation_s: float = knob("s", "pause of the trainer for one evaluation", low=0, default=0.0)
    checkpoint_every_steps: int = knob("step", "steps between checkpoints; 0 = none", low=0, default=0)
    checkpoint_s: float = knob("s", "pause of the trainer for one checkpoint", low=0, default=0.0)

    # The schedule and its budget
    schedule: str = knob("", "who waits for whom", choices=SCHEDULES)
    staleness_family: str = knob("", "how the staleness budget is kept", choices=STALENESS_FAMILIES)
    max_staleness: float = knob("version", "staleness budget", low=0, high=1e6)
    oversampling_factor: float = knob("1", "groups dispatched per group of a batch; unfinished ones are aborted when it is "
                                      "full (early pruning)", low=1, high=100, default=1.0)  # fmt: skip
    surplus_fraction: float = knob("1", "share of finished groups thrown away as surplus", low=0, high=0.99,
                                   default=0.0)  # fmt: skip
    filtered_fraction: float = knob("1", "share of finished groups dropped for zero advantage (all or none solved)", low=0,
                                    high=0.99, default=0.0)  # fmt: skip

    # Curriculum: how hard the prompts are, which of them are tried, which groups are trained on, and what that teaches
    solve_rate_mean: float = knob("1", "mean solve rate of the prompts at the start, which then decides what is filtered; "
                                  "0 = filtered_fraction does", low=0, high=1, default=0.0)  # fmt: skip
    solve_rate_law: str = knob(
        "", "how solve rates are spread over the prompts", choices=SOLVE_RATE_LAWS, default="beta"
    )
    solve_rate_concentration: float = knob("1", "a + b of the solve rates' Beta(a, b); endless = all prompts are alike",
                                           above=0, default=math.inf)  # fmt: skip
    solve_rate_logit_sigma: float = knob("1", "spread of the logit of the solve rates (logit-normal)", low=0, high=20,
                                         default=0.0)  # fmt: skip
    solve_rate_histogram: str = knob(
        "", "measured solve rates, 'rate: share of prompts, ...'; empty = none", default=""
    )
    solve_rate_logit_shift: float = knob("1", "rise of every prompt's logit since that law was measured", low=-300, high=300,
                                         default=0.0)  # fmt: skip
    pool_prompts: int = knob("prompt", "prompts there are; 0 = endless, none comes twice", low=0, high=10**7, default=0)
    gate: str = knob("", "which finished groups are trained on", choices=GATES, default="zero-advantage")
    sampler: str = knob("", "which prompts are tried", choices=SAMPLERS, default="uniform")
    band_low: float = knob("1", "lowest observed solve rate that a difficulty band tries", low=0, high=1, default=0.0)
    band_high: float = knob("1", "highest observed solve rate that a difficulty band tries", low=0, high=1, default=1.0)
    retire_above: float = knob(
        "1", "observed solve rate above which a prompt is retired; 1 = none is", low=0, high=1, default=1.0
    )
    learning_logit_per_step: float = knob("1", "rise of logit p in a step whose groups all teach and are fresh",
                                          low=0, high=10, default=0.0)  # fmt: skip
    learning_transfer: float = knob("1", "share of that rise which all prompts get; the rest is earned by the prompt "
                                    "trained on, by its own signal", low=0, high=1, default=1.0)  # fmt: skip
    learning_staleness_half: float = knob("version", "staleness at which a group teaches half as much; endless = it always "
                                          "teaches the same", above=0, default=math.inf)  # fmt: skip

    # Drift: how lengths move while the run goes on
    drift_law: str = knob("", "how lengths move over the steps", choices=DRIFT_LAWS, default="constant")
    drift_steps: int = knob("step", "steps over which they move; 0 = they do not", low=0, high=10**7, default=0)
    drift_length_factor: float = knob("1", "median response before the cut, at the end over at the start", above=0, high=1e3,
                                      default=1.0)  # fmt: skip
    drift_tool_calls_factor: float = knob("1", "tool calls at the end over at the start (none stay none: a series can "
                                          "begin with none)", low=0, high=1e3, default=1.0)  # fmt: skip
    drift_prompt_factor: float = knob("1", "prompt tokens (tool results with them) at the end over at the start", low=0,
                                      high=1e3, default=1.0)  # fmt: skip
    drift_sigma_factor: float = knob("1", "both spreads of log length at the end over at the start", low=0, high=10,
                                     default=1.0)  # fmt: skip
    drift_series: str = knob("", "measured lengths, 'step: response tokens [/ tool calls [/ prompt tokens]], ...'; means "
                             "after the cut; empty = none", default="")  # fmt: skip

    # Other tenants of the same GPUs
    tenants: int = knob("1", "runs like this one that share the generator and the trainer", low=1, high=64, default=1)
    tenant_start_gap_s: float = knob("s", "time from one tenant's start to the next one's", low=0, default=0.0)
    adapter_switch_s: float = knob("s", "time the trainer takes to go over to another tenant's adapter", low=0,
                                   default=0.0)  # fmt: skip
    adapter_bytes: float = knob("byte", "memory that a tenant's adapter takes on each replica", low=0, default=0.0)

    # Money
    gpu_hour_usd: float | None = knob("$/GPU-h", "price of a GPU-hour; unset = cost of ownership of the node",
                                      low=0, high=1e4, default=None)  # fmt: skip
    node: NodeTco = knob("", "cost of ownership of a node")
    sandbox_usd_per_hour: float = knob("$/h", "price of one running sandbox", low=0, default=0.0)
    hosted_price: HostedPrice | None = knob("", "row of a hosted price list to compare with", default=None)
    measured_run: str = knob("", "table of a measured run's steps in data/; empty = none", default="")

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, checked(each, getattr(self, each.name)))
        refuse_impossible(self)

    @property
    def has_solve_rates(self) -> bool:
        """Whether prompts have solve rates, which then decide what is filtered."""
        return self.solve_rate_law == "histogram" or self.solve_rate_mean > 0

    @property
    def drift(self) -> DriftLaw:
        """The law by which lengths move."""
        return DriftLaw(
            name=self.drift_law, steps=self.drift_steps, length_factor=self.drift_length_factor,
            tool_calls_factor=self.drift_tool_calls_factor, prompt_factor=self.drift_prompt_factor,
            sigma_factor=self.drift_sigma_factor, series=self.drift_series,
        )  # fmt: skip

    @property
    def drift_start(self) -> DriftStart:
        """The lengths at step 0 that it moves."""
        return DriftStart(
            mean_response_tokens=self.mean_response_tokens, sigma_between=self.response_sigma_between_prompts,
            sigma_within=self.response_sigma_within_group, max_response_tokens=self.max_response_tokens,
            tool_calls=self.tool_calls, prompt_tokens=self.mean_prompt_tokens,
        )  # fmt: skip

    @property
    def replicas(self) -> int:
        """Whole replicas of the generator; GPUs left over stay idle."""
        return self.generator_gpus // self.gpus_per_replica

    @property
    def fewest_slots(self) -> int:
        """Slots without which nothing runs [rollout]: those of a whole group where groups hold them."""
        return self.group_size if self.slots_held_by == "group" else 1

    @property
    def samples_per_step(self) -> int:
        """Rollouts trained in one step."""
        return self.prompts_per_step * self.group_size

    @property
    def trained_tokens_per_step(self) -> float:
        """Prompt and response tokens of the rollouts trained in one step: the denominator of $/Mtok."""
        return self.samples_per_step * (self.mean_prompt_tokens + self.mean_response_tokens)

    @property
    def kv_room_bytes(self) -> float:
        """Memory of one replica's decode GPUs that is left for KV cache [byte]; may be negative.

        ``decode GPUs * (HBM * memory_fraction - activations) - weights - tenants * adapter``.
        """
        decode_gpus = self.gpus_per_replica - self.prefill_gpus_per_replica
        per_gpu = self.generator_gpu.hbm_bytes * self.memory_fraction - self.activation_bytes_per_gpu
        weights = self.llm.weights_bytes(self.generator_weights_precision) + self.tenants * self.adapter_bytes
        return decode_gpus * per_gpu - weights
