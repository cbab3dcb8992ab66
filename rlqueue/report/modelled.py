"""Figures whose values the source does not give: computed by the closed form (and a few runs), labelled as model only."""

from dataclasses import replace

import numpy as np

from rlqueue.course import course
from rlqueue.curriculum_presets import curriculum_knobs
from rlqueue.presets import reported
from rlqueue.provenance import quantities
from rlqueue.queueing import solve, solve_grid
from rlqueue.rates import filtered_fraction, rates
from rlqueue.report import drawing
from rlqueue.report.assumptions import GLM, PRIME, RUNS, SLIME, TITLES, Assumptions, at_lengths
from rlqueue.report.content import OWN, REPORT, Figure, value_of
from rlqueue.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, axis
from rlqueue.report.measured import STEP, glm_points
from rlqueue.report.simulated import run
from rlqueue.scenario import Scenario
from rlqueue.simulation import lumped

SHARE = {"tickformat": ".0%", "rangemode": "tozero"}
CURRICULUM = quantities("report_assumptions", "curriculum")


def discard(assumptions: Assumptions) -> Figure:
    """What throwing rollouts away costs in wait."""
    scenario = assumptions.scenario(PRIME)
    shares = np.linspace(0.0, 0.85, 35)
    found = [solve(replace(scenario, surplus_fraction=float(share))) for share in shares]
    wait = np.array([point.trainer_wait_ratio for point in found])
    idle = np.array([point.rollout_idle_ratio for point in found])
    turn = shares[np.argmax(wait > 0.005)]
    now = solve(scenario)
    return Figure(
        name="oversampling-and-discard",
        title="Prime RL with Qwen3-235B: oversampling, and what throwing rollouts away costs",
        units="samples per second, and share of a step or of slot-time, by the share of finished rollouts that is "
        "thrown away",
        says=f"Below {turn:.0%} thrown away the generator keeps up and its surplus is free; at the "
        f"{scenario.surplus_fraction:.0%} of the run the trainer waits {now.trainer_wait_ratio:.0%}. To train on "
        f"one rollout {1 / (1 - scenario.surplus_fraction):.1f} are generated.",
        kind="closed form",
        fitted="The source prints an upper end of what is thrown away; the preset takes all of it as finished "
        "rollouts, and the concurrency is fitted so that production is the printed one.",
        sources=(REPORT, OWN),
        plot={
            "data": [
                drawing.line("generated", shares, [p.decode_tokens_per_s / scenario.mean_response_tokens for p in found], GREY),
                drawing.line("usable, production", shares, [p.production_per_s for p in found], ORANGE),
                drawing.line("trainer could consume", shares, [p.consumption_per_s for p in found], BLUE, "dash"),
                drawing.line("trainer wait ratio", shares, wait, VERMILION, yaxis="y2"),
                drawing.line("rollout slots idle", shares, idle, GREEN, yaxis="y2"),
            ],
            "layout": drawing.stacked(
                axis("share of finished rollouts thrown away", tickformat=".0%"), axis("samples / s", rangemode="tozero"),
                axis("share", **SHARE),
            ),
        },
    )  # fmt: skip


def solve_shares(assumptions: Assumptions) -> Figure:
    """Zero-solve and all-solve shares as the policy learns, from where the source says that GLM-5 stood."""
    preset = assumptions.scenario(GLM)
    steps, block = int(value_of(CURRICULUM["course_steps"])), int(value_of(CURRICULUM["averaged_steps"]))
    learns = replace(preset, **curriculum_knobs(GLM), training_steps=steps)
    found = course(learns).table
    tried = run(lumped(learns), steps).steps
    blocks = [each.mean(numeric_only=True) for _, each in tried.groupby(tried["step"] // block)]
    traces, apart = [], []
    for name, words, colour in SOLVED:
        dots = np.array([each[name] for each in blocks])
        middles = [each["step"] for each in blocks]
        apart.append(np.abs(dots - np.interp(middles, found["step"], found[name])).mean())
        mark = {"mode": "markers", "marker": {"size": 6, "color": colour}, "showlegend": False}
        traces += [
            drawing.line(words, found["step"], found[name], colour),
            drawing.line(f"{words}, simulated", middles, dots, colour) | mark,
        ]
    traces.append(drawing.line("mean solve rate", found["step"], found["solve_rate"], GREY, "dot"))
    every, taught = found["all_solved_fraction"], found["informative_fraction"]
    soon = float(np.interp(preset.training_steps - 1, found["step"], every))
    wait = found["trainer_wait_ratio"]
    return Figure(
        name="solve-shares",
        title="GLM-5: groups that teach nothing, as the policy learns",
        units=f"share of finished groups of {preset.group_size} rollouts by training step · lines: closed form of the pool in "
        f"the mean, dots: simulation, means of {block} steps",
        says=f"The printed {every.iloc[0]:.0%} of groups that all rollouts solve mean a mean solve rate of "
        f"{found['solve_rate'].iloc[0]:.2f}. In the {preset.training_steps} steps of the run they move by "
        f"{100 * abs(soon - every.iloc[0]):.1f} points: so few steps come to each prompt once at most. Over {steps:,} "
        f"steps all-solved groups grow to {every.iloc[-1]:.0%}, what is left to train on falls from "
        f"{taught.iloc[0]:.0%} to {taught.iloc[-1]:.0%}, and with it the wait rises from {wait.iloc[0]:.0%} to "
        f"{wait.iloc[-1]:.0%}. The simulation lies {100 * np.mean(apart):.1f} points away on average.",
        kind="closed form, simulation",
        fitted="The start is fitted to the printed share. The spread of the solve rates and the size of the pool are assumed; "
        "how fast a prompt is learned is fitted to another run, DAPO's.",
        sources=(REPORT, "dapo", OWN),
        plot=drawing.plot(
            traces,
            axis("training step", rangemode="tozero"),
            axis("share of groups", tickformat=".0%", range=[0, 1.02]),
        ),
    )


SOLVED = (
    ("all_solved_fraction", "all rollouts solve", ORANGE),
    ("none_solved_fraction", "no rollout solves", PURPLE),
    ("informative_fraction", "informative", GREEN),
)


def glm_trainer_and_generator(assumptions: Assumptions) -> Figure:
    """Consumption and production of the GLM-5 run as its answers grow."""
    found, facts = glm_points(assumptions), reported(GLM)
    steps = [each.step for each in found]
    consumption = np.array([each.point.consumption_per_s for each in found])
    production = np.array([each.point.production_per_s for each in found])
    ratio = consumption / production
    return Figure(
        name="glm-5-trainer-and-generator",
        title="Prime RL with GLM-5: trainer against generator",
        units="samples per second, and trainer wait ratio, by training step · closed form at the length read off "
        "the drift chart",
        says=f"Consumption over production rises from {ratio[0]:.1f} to {ratio[-1]:.1f} as answers grow, the wait "
        f"from {found[0].point.trainer_wait_ratio:.0%} to {found[-1].point.trainer_wait_ratio:.0%}: longer contexts "
        "slow decoding more than training. The source prints about "
        f"{value_of(facts['consumption_over_production']):g} times for the run, "
        f"{value_of(facts['consumption_over_production_text']):g} in its text, and a wait of "
        f"{value_of(facts['trainer_wait_ratio']):.0%}.",
        kind="closed form",
        fitted="Concurrency is fitted to the printed wait; the MFU is that of the other Prime RL run, assumed.",
        sources=(REPORT, OWN),
        plot={
            "data": [
                drawing.dotted("trainer consumes while computing", steps, consumption, BLUE),
                drawing.dotted("generator produces", steps, production, ORANGE),
                drawing.dotted(
                    "trainer wait ratio",
                    steps,
                    [each.point.trainer_wait_ratio for each in found],
                    VERMILION,
                    yaxis="y2",
                ),
            ],
            "layout": drawing.stacked(
                STEP | {"dtick": 4}, axis("samples / s", rangemode="tozero"), axis("wait ratio", **SHARE)
            ),
        },
    )


def advantage(assumptions: Assumptions) -> Figure:
    """What a group teaches at each solve rate."""
    p = np.linspace(0.0, 1.0, 101)
    sizes = sorted({assumptions.scenario(name).group_size for name in RUNS})
    inner = p[1:-1]
    traces = [
        drawing.line(f"informative groups, {n} rollouts", p, 1 - p**n - (1 - p) ** n, colour)
        for n, colour in zip(sizes, (BLUE, ORANGE), strict=False)
    ]
    traces += [
        drawing.line("p (1 - p), the size of the gradient", p, p * (1 - p), GREEN, "dash"),
        drawing.line("advantage of a correct rollout", inner, np.sqrt((1 - inner) / inner), PURPLE, yaxis="y2"),
        drawing.line("advantage of a wrong rollout", inner, -np.sqrt(inner / (1 - inner)), GREY, yaxis="y2"),
    ]
    edge = 1 - 0.9 ** sizes[0] - 0.1 ** sizes[0]
    return Figure(
        name="advantage",
        title="Advantage against solve rate",
        units="upper: share of groups, and variance of the reward; lower: advantage in standard deviations of the "
        "group's reward, by solve rate p",
        says=f"A group of n rollouts teaches with probability 1 - pⁿ - (1 - p)ⁿ: at p = 0.9 and n = {sizes[0]} that "
        f"is {edge:.0%}. Its gradient goes with p (1 - p), greatest at one half. The normalised advantage of the "
        "rare outcome grows without limit where nearly all or nearly none solve.",
        kind="closed form",
        fitted="Nothing: rewards of 0 and 1, advantage = (reward - mean) / standard deviation.",
        sources=(OWN,),
        plot={
            "data": traces,
            "layout": drawing.stacked(
                axis("solve rate p"), axis("share; variance", range=[0, 1.02]), axis("advantage [σ]", range=[-5, 5])
            ),
        },
    )


TRIED_BUDGETS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])


def staleness_budget(assumptions: Assumptions) -> Figure:
    """What a staleness budget buys and wastes."""
    budgets = np.arange(0.0, TRIED_BUDGETS[-1] + 1)
    traces, said, apart = [], [], []
    for name, colour in ((PRIME, BLUE), (SLIME, ORANGE)):
        scenario = assumptions.scenario(name)
        grid = solve_grid(scenario, max_staleness=budgets)
        wait = grid["trainer_wait_ratio"]
        base = (1 - scenario.surplus_fraction) * (1 - filtered_fraction(scenario))
        stale = 1 - grid["accepted_ratio"] / base
        tried = [run(replace(scenario, max_staleness=float(budget))) for budget in TRIED_BUDGETS]
        simulated = np.array([each.operating_point.trainer_wait_ratio for each in tried])
        apart.append(np.abs(simulated - wait[TRIED_BUDGETS.astype(int)]).mean())
        short = TITLES[name].split(" · ")[0]
        dots = drawing.line(f"{short}, wait, simulated", TRIED_BUDGETS, simulated, colour)
        traces += [
            drawing.line(f"{short} ({scenario.staleness_family}), wait", budgets, wait, colour),
            dots | {"mode": "markers", "marker": {"size": 8, "color": colour}},
            drawing.line(f"{short}, too old", budgets, np.maximum(stale, 0.0), colour, "dot"),
        ]
        enough = int(budgets[np.argmax(wait <= wait.min() + 0.005)])
        said.append(
            f"{short}: wait {wait[0]:.0%} in step with the trainer, {wait.min():.0%} from a budget of {enough} on"
        )
    return Figure(
        name="staleness-budget",
        title="Staleness budget against wait and waste",
        units="share of a step that the trainer waits, and share of finished rollouts dropped for age, by "
        "staleness budget in versions · lines: closed form, dots: simulation",
        says="; ".join(said) + f". The simulation lies {100 * np.mean(apart):.1f} points of wait away on average. A "
        "budget of 0 is a synchronous run. Beyond the point where the generator is the narrow side, more budget "
        "buys nothing.",
        kind="closed form, simulation",
        fitted="Lengths' spread is assumed for both runs, and with it how many groups are late.",
        sources=(REPORT, OWN),
        plot=drawing.plot(traces, axis("staleness budget (versions)", dtick=2), axis("share", **SHARE)),
    )


def kv_slots(scenario: Scenario) -> float:
    """Rollouts that fit into the KV memory of the whole generator at the same time."""
    return scenario.replicas * float(rates(scenario)["kv_slots"][0])


def concurrency_by_length(assumptions: Assumptions) -> Figure:
    """How many rollouts fit into memory as answers grow."""
    traces, said = [], []
    for name, colour in zip((PRIME, GLM, SLIME, RUNS[-1]), (BLUE, PURPLE, ORANGE, GREEN), strict=True):
        scenario = assumptions.scenario(name)
        total = scenario.mean_prompt_tokens + scenario.mean_response_tokens
        share = scenario.mean_prompt_tokens / total
        longest = (scenario.mean_prompt_tokens + scenario.max_response_tokens) * 0.8
        lengths = np.geomspace(4000.0, longest, 30)
        fits = [kv_slots(at_lengths(scenario, share * each, (1 - share) * each)) for each in lengths]
        short = TITLES[name].rpartition(" · ")[0] if name == RUNS[-1] else TITLES[name]
        now = kv_slots(scenario)
        traces.append(drawing.line(short, lengths / 1e3, fits, colour))
        traces.append(
            drawing.line(f"{short}: slots used", [total / 1e3], [scenario.concurrency], colour, showlegend=False)
            | {"mode": "markers", "marker": {"size": 11, "color": colour, "line": {"color": drawing.INK, "width": 1.5}}}
        )
        said.append(
            f"{TITLES[name].split(' · ')[0]} {TITLES[name].split(' · ')[1]}: {now:,.0f} fit, "
            f"{scenario.concurrency:,} are used"
        )
    return Figure(
        name="concurrency-by-length",
        title="Maximum concurrency against mean length",
        units="rollouts whose KV cache fits into the generator at once, by mean sequence length in thousand "
        "tokens, both logarithmic · dots: the runs' length and slots",
        says="; ".join(said) + ". A running request holds about half of its final length, long ones for longer; twice "
        "the length leaves half the slots.",
        kind="closed form",
        fitted="Memory fraction, KV precision and activations are assumed; the slots of the H200 runs are fitted.",
        sources=(REPORT, OWN),
        plot=drawing.plot(
            traces,
            axis("mean sequence [1,000 tokens]", type="log", tickvals=[5, 10, 20, 40, 80]),
            axis("rollouts", type="log", dtick="D2"),
        ),
    )


def figures(assumptions: Assumptions) -> tuple[Figure, ...]:
    """All figures of this module, in the order of the page."""
    makes = (discard, solve_shares, advantage, glm_trainer_and_generator, staleness_budget, concurrency_by_length)
    return tuple(make(assumptions) for make in makes)
