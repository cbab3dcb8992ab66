"""The commands that help to decide: ``rlqueue plan``, ``sensitivity``, ``tenancy`` and ``sweep``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from rlqueue.choices import SCHEDULES
from rlqueue.cli.progress import bar
from rlqueue.cli.sureness import SENSITIVITY, run_sensitivity, sensitivity_lines, sensitivity_options
from rlqueue.scenario import Scenario

PLAN = "how to split the GPUs: the best split, slots, staleness budget and schedule for a goal, within limits"
SWEEP = "simulate every combination of knobs' values with many seeds into a parquet file, on all cores or a cluster"
TENANCY = (
    "what sharing the GPUs with runs like this one buys: wait, decode and cost of a trained token by number of tenants"
)
LIMITS = ("max_staleness_versions", "max_wait_ratio", "max_usd_per_mtok", "max_kv_ratio", "min_trainer_gpus")


def plan_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue plan`` besides the scenario's."""
    command.add_argument("--gpus", type=int, help="trainer and generator together; by default the scenario's")
    command.add_argument(
        "--objective",
        default="usd-per-mtok",
        choices=("usd-per-mtok", "tokens-per-s", "hours"),
        help="what is to be best",
    )
    command.add_argument("--training-steps", type=float, metavar="N", help="length of the run, for hours")
    command.add_argument("--training-tokens", type=float, metavar="N", help="the same by trained tokens")
    number = {"type": float, "metavar": "X"}
    command.add_argument("--max-staleness-versions", **number, help="mean staleness of a trained group")
    command.add_argument("--max-wait", dest="max_wait_ratio", **number, help="trainer wait ratio")
    command.add_argument("--max-usd", dest="max_usd_per_mtok", **number, help="dollars per trained Mtok")
    command.add_argument("--max-kv", dest="max_kv_ratio", **number, help="share of the KV cache in use")
    command.add_argument(
        "--min-trainer-gpus",
        type=int,
        default=1,
        metavar="N",
        help="that the trainer's own memory needs (not modelled)",
    )
    command.add_argument(
        "--schedule", action="append", default=[], metavar="NAME", help=f"only these of {', '.join(SCHEDULES)}"
    )
    command.add_argument("--seed", type=int, default=0, help="first of the seeds: the plan is a function of it")
    command.add_argument("--workers", type=int, help="threads; by default all cores")


def run_plan(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue plan``: the plan as plain values, told in sentences."""
    from rlqueue.planning import Goal, Limits, as_object, plan

    length = {"training_steps": options.training_steps, "training_tokens": options.training_tokens}
    given = any(value is not None for value in length.values())
    goal = Goal(objective=options.objective, **length) if given else Goal.of(scenario, options.objective)
    limits = Limits(**{name: getattr(options, name) for name in LIMITS}, schedules=tuple(options.schedule))
    with bar(100, "%") as tell:
        found = plan(
            scenario, goal, limits, gpus=options.gpus, seed=options.seed, workers=options.workers,
            progress=lambda share, what: tell(round(100 * share), what),
        )  # fmt: skip
    return {"scenario": scenario.name} | as_object(found)


def plan_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``plan`` as text: sentences, then the options and the frontier as tables."""
    unit = answer["unit"]
    yield f"{answer['scenario']}, {answer['gpus']} GPUs, best {unit}:"
    for sentence in answer["sentences"]:
        yield f"- {sentence}"
    yield ""
    yield "Against the plan: its loss or gain seed by seed, with 95 % confidence; not distinguishable where that holds none"
    head = f"{'':26} {'split':>9} {'slots':>7} {'budget':>6} {unit:>12} {'against the plan':>20} {'stale':>6}"
    yield f"{head} {'wait':>6}  schedule"
    for each in answer["options"]:
        split = f"{each['trainer_gpus']}:{each['generator_gpus']}"
        other = each["role"] != "plan"
        change = f"{100 * each['change_low']:+.1f} to {100 * each['change_high']:+.1f} %" if other else ""
        tied = " = not distinguishable" if other and not each["distinguishable"] else ""
        broken = "" if each["kept"] else " ! breaks a limit"
        yield (
            f"{each['role']:26} {split:>9} {each['concurrency']:7,d} {each['max_staleness']:6g} {each['value']:12,.4g} "
            f"{change:>20} {each['staleness_versions']:6.1f} {each['trainer_wait_ratio']:6.1%}  {each['schedule']}{tied}{broken}"
        )
    yield ""
    yield f"Frontier: least staleness for its {unit}"
    for each in answer["frontier"]:
        split = f"{each['trainer_gpus']}:{each['generator_gpus']}"
        yield (
            f"  staleness {each['staleness_versions']:5.1f}  {each['objective']:12,.4g}  {split:>9}, {each['concurrency']:,.0f} "
            f"slots, budget {each['max_staleness']:g}, {each['schedule']}"
        )


def sweep_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue sweep`` besides the scenario's."""
    command.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="KNOB=A,B,C",
        help="values of a knob, or split=TRAINER:GENERATOR,...",
    )
    command.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each combination")
    command.add_argument("--steps", type=int, default=30, help="training steps of each run")
    command.add_argument("--out", required=True, metavar="FILE.parquet", help="table to write, one row per run")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, help="processes; by default all cores")
    where.add_argument("--cluster", default="", metavar="ADDRESS", help="a Dask scheduler, e.g. tcp://10.0.0.1:8786")
    command.add_argument("--resume", action="store_true", help="go on with a table that was begun")


def run_sweep(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue sweep``: where the table is, and how large."""
    from rlqueue.bulk import Job, axis_from_text, run_job

    axes = tuple(axis_from_text(scenario, text) for text in options.axis)
    job = Job(scenario=scenario, axes=axes, seeds=options.seeds, steps=options.steps)
    with bar(job.runs, "run") as tell:
        table = run_job(
            job, options.out, workers=options.workers, cluster=options.cluster, resume=options.resume,
            progress=lambda done, of: tell(done, "", of),
        )  # fmt: skip
    return {
        "out": options.out,
        "runs": len(table),
        "combinations": job.cells,
        "seeds": job.seeds,
        "steps": job.steps,
        "without_a_step": int(table["step_s"].isna().sum()),
        "fingerprint": job.fingerprint,
    }


def tenancy_options(command: argparse.ArgumentParser) -> None:
    """Options of ``rlqueue tenancy`` besides the scenario's."""
    command.add_argument("--tenants", type=int, default=8, metavar="N", help="the largest number of them")
    command.add_argument("--seed", type=int, default=0, help="of all runs; the first tenant's is the single run's")
    command.add_argument("--steps", type=int, default=48, help="training steps of each tenant, at least")
    command.add_argument(
        "--lumped", action="store_true", help="all tool calls of a rollout in one piece: many times faster"
    )


def run_tenancy(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """``rlqueue tenancy``: one entry for each number of tenants."""
    from rlqueue.tenancy import tenancy

    if options.tenants < 1:
        raise ValueError(f"--tenants={options.tenants} must be >= 1")
    found = tenancy(
        scenario, range(1, options.tenants + 1), seed=options.seed, steps=options.steps, lump=options.lumped
    )
    rows = found.astype(object).where(found.notna(), None).to_dict("records")
    return {"scenario": scenario.name, "sharing": rows}


def tenancy_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``tenancy`` as text: a line for each number of tenants."""
    yield f"{answer['scenario']}, shared by runs like it (simulated)"
    yield f"{'tenants':>7} {'trainer idle':>12} {'slots used':>10} {'$/Mtok':>8} {'hosted':>8}  binding"
    for row in answer["sharing"]:
        hosted = "-" if row["hosted_usd_per_mtok"] is None else f"{row['hosted_usd_per_mtok']:.2f}"
        yield (
            f"{row['tenants']:7d} {row['trainer_wait_ratio']:12.1%} {row['slot_use_ratio']:10.1%} {row['usd_per_mtok']:8.2f} "
            f"{hosted:>8}  {row['binding_constraint']}"
        )


DECISIONS = (
    ("plan", PLAN, plan_options, run_plan, plan_lines),
    ("sensitivity", SENSITIVITY, sensitivity_options, run_sensitivity, sensitivity_lines),
    ("tenancy", TENANCY, tenancy_options, run_tenancy, tenancy_lines),
    ("sweep", SWEEP, sweep_options, run_sweep, None),
)
"""Each command's name, summary, options, answer and text; None where the answer is shown field by field."""
