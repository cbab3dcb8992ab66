"""What a simulated run costs from its first step to its last, start-up and drift included."""

from rlqueue.cost import parts_usd_per_mtok
from rlqueue.simulation import Run
from rlqueue.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK
from rlqueue.whole_run import WholeRun, summed


def simulated_whole_run(run: Run) -> WholeRun:
    """The cost of all steps a run has completed, split as a bill is (see ``cost.parts_usd_per_mtok``).

    Raises:
        ValueError: a run without a step.
    """
    s, steps = run.scenario, run.steps
    if steps.empty:
        raise ValueError(f"steps={run.asked_steps}: no step was completed ({run.stalled})")
    span = float(steps["end_s"].iloc[-1])
    length = (steps["end_s"] - steps["start_s"]).to_numpy()
    in_flight = float(steps["in_flight_rollouts"].to_numpy() @ length / span)
    trained = float(steps["trained_tokens"].sum())
    dispatched = float(run.world.arrays["steps"]["dispatched"][len(steps) - 1])
    answers = {
        "step_s": span / len(steps),
        "trainer_wait_ratio": float(steps["wait_s"].sum()) / span,
        "rollout_idle_ratio": max(0.0, 1.0 - in_flight / s.concurrency),
        "accepted_ratio": min(1.0, len(steps) * s.samples_per_step / dispatched),
        "in_flight_rollouts": in_flight,
    }
    # Per Mtok of the scenario's own lengths, which is a way to say per step
    per_step = s.trained_tokens_per_step / TOKENS_PER_MTOK
    parts = parts_usd_per_mtok(s, answers, s.trainer_gpus, s.generator_gpus)
    response = float(steps["mean_response_tokens"].sum()) * s.samples_per_step
    return summed(
        s, steps=len(steps), hours=span / SECONDS_PER_HOUR,
        parts_usd={part: value * per_step * len(steps) for part, value in parts.items()},
        prompt_tokens=trained - response, trained_tokens=trained, informative_tokens=float(steps["informative_tokens"].sum()),
        solve_rates=run.solve_rate_means[[0, -1]],
    )  # fmt: skip
