"""Small logs written for the tests: every framework's own names, in every format it has, with numbers known beforehand.

Ten steps. Step 0 starts up (300 s more of waiting), step 7 is held up by an evaluation that the framework logs in its own way
where it does; the others wait 60 s, train 30 s and publish weights in 10 s.
"""

import csv
import io
import json
from collections.abc import Callable

WAIT, TRAIN, SYNC = 60.0, 30.0, 10.0
STEPS = range(10)
FIRST_WAIT = 360.0


def wait(step: int) -> float:
    return FIRST_WAIT if step == 0 else WAIT


def whole(step: int) -> float:
    return wait(step) + TRAIN + SYNC


def prime_trainer(step: int) -> dict:
    return {
        "time/step": whole(step), "time/wait_for_batch": wait(step), "time/load_data": 0.0, "time/forward_backward": TRAIN,
        "time/broadcast_weights": SYNC, "time/save_ckpt": 0.0, "perf/throughput": 9000.0, "perf/mfu": 25.0,
        "perf/peak_memory": 90.0,
    }  # fmt: skip


def prime_orchestrator(step: int) -> dict:
    return {
        "time/step": whole(step) - 1, "time/wait_for_policy": 2.0, "off_policy/mean": 1.5, "off_policy/max": 3.0,
        "train/agg/effective/reward/mean": 0.4, "train/agg/all/num_input_tokens/mean": 200.0,
        "train/agg/all/num_output_tokens/mean": 1800.0, "train/agg/all/is_truncated/mean": 0.05,
    }  # fmt: skip


def slime(step: int) -> dict:
    # The framework's own wait holds the weight update and the offload, too.
    return {
        "perf/step_time": whole(step) + 5, "perf/train_time": TRAIN, "perf/actor_train_time": TRAIN,
        "perf/train_wait_time": wait(step) + SYNC + 5, "perf/wait_time_ratio": 1 - TRAIN / (whole(step) + 5),
        "perf/update_weights_time": SYNC, "perf/sleep_time": 2.0, "perf/wake_up_time": 3.0, "perf/rollout_time": 58.0,
        "rollout/response_len/mean": 1800.0, "rollout/truncated_ratio": 0.05, "rollout/raw_reward": 0.4,
    }  # fmt: skip


def miles(step: int) -> dict:
    return slime(step) | {
        "rollout/fully_async/avg_staleness": 0.75, "rollout/fully_async/max_staleness": 3, "staleness/bound/train/mean": 0.495,
    }  # fmt: skip


def verl(step: int) -> dict:
    return {
        "timing_s/step": wait(step) + TRAIN, "timing_s/gen": wait(step), "timing_s/old_log_prob": 10.0, "timing_s/adv": 1.0,
        "timing_s/update_actor": 19.0, "timing_s/timing_s/param_sync": SYNC, "fully_async/trainer/idle_ratio": 0.02,
        "fully_async/rollouter/idle_ratio": 0.01, "fully_async/count/current_param_version": step,
        "response_length/mean": 1800.0, "prompt_length/mean": 200.0, "response_length/clip_ratio": 0.05,
        "perf/total_num_tokens": 64000, "critic/score/mean": 0.4,
    }  # fmt: skip


def verl_sync(step: int) -> dict:
    return {
        "timing_s/step": whole(step), "timing_s/gen": wait(step), "timing_s/old_log_prob": 10.0, "timing_s/adv": 1.0,
        "timing_s/update_actor": 19.0, "timing_s/update_weights": SYNC, "perf/total_num_tokens": 64000, "critic/score/mean": 0.4,
    }  # fmt: skip


def areal(step: int) -> dict:
    return {
        "timeperf/rollout": wait(step), "timeperf/recompute_logp": 8.0, "timeperf/train_step": 22.0,
        "timeperf/update_weights": SYNC,
        "timeperf/save": 0.0, "ppo_actor/seq_len/avg": 2000.0, "rollout/reward": 0.4,
        "ppo_actor/update/version_stats/sample_staleness_theta_avg": 1.5, "ppo_actor/update/lr": 5e-6,
    }  # fmt: skip


def skyrl(step: int) -> dict:
    return {
        "timing/step": whole(step), "timing/wait_for_generation_buffer": wait(step), "timing/run_training": TRAIN,
        "timing/policy_train": 20.0, "timing/train_critic_and_policy": 20.0, "timing/fwd_logprobs_values_reward": 10.0,
        "timing/sync_weights": SYNC, "async/staleness_mean": 1.5, "generate/avg_num_tokens": 1800.0, "reward/avg_raw_reward": 0.4,
    }  # fmt: skip


def nemo(step: int) -> dict:
    return {
        "timing/train/total_step_time": whole(step), "timing/train/exposed_generation": wait(step),
        "timing/train/policy_training": 25.0, "timing/train/policy_and_reference_logprobs": 5.0, "timing/train/weight_sync": SYNC,
        "performance/training_worker_idle_time_ratio": 0.0, "train/avg_trajectory_age": 1.5, "train/reward": 0.4,
        "train/mean_gen_tokens_per_sample": 1800.0,
    }  # fmt: skip


def openrlhf(step: int) -> dict:
    return {
        "timing/step_total": whole(step), "timing/make_experience": 12.0, "timing/ppo_train": 18.0, "timing/broadcast": SYNC,
        "timing/generation": 95.0, "rollout/reward_mean": 0.4, "rollout/response_length_mean": 1800.0, "rollout/num_samples": 32,
    }  # fmt: skip


def roll(step: int) -> dict:
    return {
        "time/step_total": whole(step), "time/step_generate": wait(step), "time/step_train": 20.0, "time/old_log_probs": 10.0,
        "time/step_model_update": SYNC, "tokens/response_length/mean": 1800.0, "tokens/prompt_length/mean": 200.0,
        "scheduler/off_policy_ratio": 1.5, "critic/score/mean": 0.4,
    }  # fmt: skip


def pipelinerl(step: int) -> dict:
    # In flight updates: no weight sync stops the trainer, so its 40 s besides waiting are training.
    return {
        "throughput/sec_per_step": whole(step), "stats/time_waiting_for_data": sum(wait(each) for each in range(step + 1)),
        "stats/samples": 1024 * (step + 1), "stats/lag": 1536, "throughput/tokens_per_step": 64000, "rl/reward": 0.4,
        "stats/completed_steps": step,
    }  # fmt: skip


def tinker(step: int) -> dict:
    return {
        "time/total": whole(step), "time/do_train_step_and_get_sampling_client": TRAIN + SYNC,
        "time/save_checkpoint_and_get_sampling_client": SYNC, "time/sampling_time_mean": 55.0, "progress/batch": step,
        "sampling_client/step_mean": step - 1.5 if step > 1 else 0.0, "training_client/step": step, "env/all/reward/total": 0.4,
    }  # fmt: skip


SHAPES: dict[str, tuple[str, Callable[[int], dict]]] = {
    "prime-rl": ("prime-rl", prime_trainer), "slime": ("slime", slime), "miles": ("slime", miles), "verl": ("verl", verl),
    "verl synchronous": ("verl", verl_sync), "AReaL": ("areal", areal), "SkyRL": ("skyrl", skyrl), "NeMo-RL": ("nemo-rl", nemo),
    "OpenRLHF": ("openrlhf", openrlhf), "ROLL": ("roll", roll), "PipelineRL": ("pipelinerl", pipelinerl),
    "tinker": ("tinker-cookbook", tinker),
}  # fmt: skip


def as_csv(row: Callable[[int], dict], steps=STEPS) -> str:
    """A W&B history: every key on a row of its own half of the time, so full of holes."""
    names = list(row(0))
    text = io.StringIO()
    out = csv.writer(text)
    out.writerow(["_step", "step", "_timestamp", *names])
    for step in steps:
        values = row(step)
        half = len(names) // 2
        out.writerow(
            [2 * step, step, 1e9 + step, *[values[name] for name in names[:half]], *[""] * (len(names) - half)]
        )
        out.writerow([2 * step + 1, step, 1e9 + step, *["NaN"] * half, *[values[name] for name in names[half:]]])
    return text.getvalue()


def as_json_lines(row: Callable[[int], dict], steps=STEPS) -> str:
    return "".join(json.dumps({"step": step, "time": 1e9 + step, **row(step)}) + "\n" for step in steps)


RAY = "\x1b[36m(TaskRunner pid=12345, ip=10.0.0.7)\x1b[0m "


def _python_dictionary(values: dict) -> str:
    """As a console prints it, numpy's numbers included."""
    shown = ", ".join(f"'{k}': {f'np.float64({v})' if i % 2 else v}" for i, (k, v) in enumerate(values.items()))
    return "{" + shown + "}"


def _box(values: dict) -> str:
    pairs = list(values.items())
    lines = ["╭─────┬─────╮"]
    for (a, x), (b, y) in zip(pairs[::2], [*pairs[1::2], ("", "")], strict=False):
        right = f" {b} │ {y:.4e} │" if b else ""
        lines.append(f"│ {a} │ {x:.4e} │{right}")
    return "\n".join(lines)


def _console_slime(step: int, values: dict) -> str:
    perf = {k: v for k, v in values.items() if k.startswith("perf/") and k != "perf/rollout_time"}
    rest = {k: v for k, v in values.items() if k not in perf}
    return (
        f"\x1b[36m(RolloutManager pid=7)\x1b[0m [2026-08-01 10:00:00] rollout.py:1 - perf {step}: {_python_dictionary(rest)}\n"
        f"\x1b[36m(MegatronTrainRayActor pid=8)\x1b[0m [2026-08-01 10:00:01] train_metric_utils.py:44 - perf {step}: "
        f"{_python_dictionary(perf)}\n"
    )


def _console_verl(step: int, values: dict) -> str:
    shown = " - ".join(f"{k}:{f'np.float64({v})' if i % 3 == 1 else v}" for i, (k, v) in enumerate(values.items()))
    return f"{RAY}step:{step} - {shown}\n"


def _console_areal(step: int, values: dict) -> str:
    return (
        f"20260801-10:00:00.000 StatsLogger INFO: Epoch 1/10 Step {step + 1}/100 Train step {step}/1000 done.\n"
        f"20260801-10:00:00.000 StatsLogger INFO: Stats (1/1):\n{_box(values)}\n"
    )


def _console_nemo(step: int, values: dict) -> str:
    names = {k: v for k, v in values.items() if k.startswith("timing/train/") and k != "timing/train/total_step_time"}
    total = values["timing/train/total_step_time"]
    parts = "".join(
        f"  • {k.removeprefix('timing/train/')}: {v:.2f}s ({100 * v / total:.1f}%)\n" for k, v in names.items()
    )
    return (
        f"\n{'=' * 25} Step {step}/100 {'=' * 25}\n📊 Training Results:\n  • Loss: 0.0123\n"
        f"  • Avg Reward: {values['train/reward']:.4f}\n"
        f"  • Avg Trajectory Age: {values['train/avg_trajectory_age']:.2f} steps\n"
        f"  • Mean Generation Length: {values['train/mean_gen_tokens_per_sample']:.4f}\n"
        f"⏱️  Timing:\n  • Total step time: {total:.2f}s\n{parts}  • Training Worker Idle Time Ratio: 0.00%\n"
    )


def _console_roll(step: int, values: dict) -> str:
    return (
        f"[2026-08-01 10:00:00] [rlvr_pipeline.py (500)] [INFO] pipeline step {step} start...\n"
        f"[2026-08-01 10:00:01] [rlvr_pipeline.py (720)] [INFO] {json.dumps(values)}\n"
        f"[2026-08-01 10:00:01] [rlvr_pipeline.py (730)] [INFO] pipeline step {step} finished\n"
    )


CONSOLES: dict[str, Callable[[int, dict], str]] = {
    "slime": _console_slime, "miles": _console_slime, "verl": _console_verl, "verl synchronous": _console_verl,
    "SkyRL": _console_verl, "AReaL": _console_areal, "NeMo-RL": _console_nemo, "ROLL": _console_roll,
    "OpenRLHF": lambda step, values: f"{RAY}2026-08-01 INFO: Global step {step}: {_python_dictionary(values)}\n",
    "PipelineRL": lambda step, values: (
        f"[finetune]: 2026-08-01 - INFO - Completed steps {step}: { {k: f'{v:.3f}' for k, v in values.items()} }\n"
    ),
    "tinker": lambda step, values: f"{'':20}Step {step}{'':20}\n{_box(values)}\n",
}  # fmt: skip
NOISE = (
    "2026-08-01 10:00:00 | INFO | loading weights\n",
    "Traceback (most recent call last):\n",
    "Generating rollouts (train): 100%|██████████| 512/512 [01:08<00:00,  7.44it/s]\n",
    "{'unrelated': 3}\n",
)


def as_console(name: str, steps=STEPS) -> str:
    row = SHAPES[name][1]
    return "".join(NOISE[step % len(NOISE)] + CONSOLES[name](step, row(step)) for step in steps)


def prime_console_trainer(step: int) -> str:
    minutes, seconds = divmod(int(whole(step)), 60)
    return (
        f"\x1b[32m10:00:00\x1b[0m SUCCESS Step {step} | {minutes}m {seconds}s | Loss 0.0012 | "
        "Entropy 0.31 | Mismatch KL 0.0004 | Grad. Norm 0.12 | LR 1.00e-06 | Throughput 9000 tokens/s | MFU 25.0% | "
        "Peak Mem. 90.0 GiB\n"
    )


def prime_console_orchestrator(step: int) -> str:
    return (
        f"10:00:00 SUCCESS Step {step} | 1m 39s | Reward 0.4000 | Trainable 120/128 (93.8%) | Turns 1.0 | Branches 1.0 | "
        "Max Off-Policy 3 | Error 0.0% | Cancelled 1.0% | Truncation 5.0%\n"
    )
