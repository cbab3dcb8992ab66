"""Shares of prompts that all rollouts solve: DAPO's rising one, and what GLM-5's costs."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from rlqueue.cost import cost
from rlqueue.course import course, rules_of
from rlqueue.curriculum import Beta
from rlqueue.curriculum_presets import curriculum_facts
from rlqueue.pool import Pool, after, opened, read
from rlqueue.provenance import quantities, table
from rlqueue.published.series import series_table
from rlqueue.queueing import solve
from rlqueue.scenario import Scenario
from rlqueue.units import TOKENS_PER_MTOK

GLM, PRIME, DAPO = "prime-rl-glm-5", "prime-rl-qwen3-235b", "dapo-32b"


@cache
def dapo_all_solved(transfer: float = 0.0, fitted_points: int = 3) -> pd.DataFrame:
    """Share of prompts that all rollouts solve, under DAPO: 0, .25, .40, .50, .57 at steps 0 to 9,000.

    Fitted on the first three points: mean and concentration of a Beta law of solve rates at the start, and the learning speed.

    Args:
        transfer: share of the rise that all prompts get. With 0 each prompt learns from its own groups only.
    """
    points = [row for row in table("curriculum_series") if row["series"] == "dapo-all-solved"]
    steps = np.array([float(row["step"]) for row in points])
    published = np.array([float(row["value"]) for row in points])
    predicted = dapo_shares(
        steps, *_dapo_fit(tuple(steps[:fitted_points]), tuple(published[:fitted_points]), transfer), transfer
    )
    rows = [(int(steps[i]), published[i], predicted[i], i < fitted_points) for i in range(len(points))]
    learns = (
        "from its own groups"
        if transfer == 0
        else "from all groups"
        if transfer == 1
        else f"{transfer:g} from all groups"
    )
    return series_table(f"DAPO all-solved share, a prompt learns {learns}", "1", "dapo", rows)


@cache
def _dapo_fit(steps: tuple[float, ...], published: tuple[float, ...], transfer: float) -> tuple[float, float, float]:
    """Mean, concentration and speed."""
    from scipy.optimize import least_squares

    from rlqueue.curriculum import expit

    visits = _dapo_facts()["prompts_per_step"] / _dapo_facts()["pool_prompts"]
    each = transfer + (1.0 - transfer) * visits  # what a speed of 1 makes a prompt at one half rise in a step, about

    def misses(x: np.ndarray) -> np.ndarray:
        shares = dapo_shares(
            np.array(steps), float(expit(x[0])), float(np.exp(x[1])), float(np.exp(x[2])) / each, transfer
        )
        return shares - published

    best = min(
        (
            least_squares(misses, [start, 0.0, np.log(5.0 / steps[-1])], bounds=([-6, -4, -16], [3, 4, 0]))
            for start in (-2.5, -1.0)
        ),
        key=lambda found: found.cost,
    )
    return float(expit(best.x[0])), float(np.exp(best.x[1])), float(np.exp(best.x[2])) / each


def _dapo_facts() -> dict[str, float]:
    facts = quantities("curriculum", DAPO) | curriculum_facts(DAPO)
    return {name: float(fact.value) for name, fact in facts.items()}


def dapo_shares(steps: np.ndarray, mean: float, concentration: float, speed: float, transfer: float) -> np.ndarray:
    """All-solved shares at those steps, from 0 up, of DAPO's pool with such a law and speed."""
    facts = _dapo_facts()
    rules = replace(
        rules_of(Scenario.from_data(PRIME)), group_size=int(facts["group_size"]), groups=facts["prompts_per_step"],
        prompts=int(facts["pool_prompts"]), gate="zero-advantage", speed=speed, transfer=transfer,
    )  # fmt: skip
    pool: Pool = opened(Beta(mean=mean, concentration=concentration), rules)
    shares, at = [], 0.0
    for step in steps:
        parts = 10
        for _ in range(parts):
            pool = after(pool, rules, (step - at) / parts)
        shares.append(read(pool, rules).all_solved)
        at = step
    return np.array(shares)


def all_solved_mean(share: float, concentration: float, group_size: int) -> float:
    """The mean solve rate of a Beta law at which that share of groups is solved by all its rollouts."""
    from scipy.optimize import brentq

    def over(mean: float) -> float:
        return Beta(mean=mean, concentration=concentration).powers(group_size)[0] - share

    return brentq(over, 1e-6, 1.0 - 1e-6)


@cache
def glm_solved_groups() -> pd.DataFrame:
    """What the 55 % of GLM-5's groups that all rollouts solve cost, and what would be saved by trying other prompts.

    The law of solve rates has the printed share of all-solved groups; its spread, the size of the pool and the thresholds of the
    samplers are assumed (data/curriculum.csv). Nothing is learned meanwhile, and each prompt has been tried three times.

    Returns:
        One row per way to deal with them: way, finished groups per trained one, shares all solved, none solved and informative
        of finished groups, trainer_wait_ratio, step_s, usd_per_mtok, usd_per_informative_mtok, and usd_per_step_more: dollars
        per step above what the same informative tokens would cost if no group were all solved.
    """
    facts = {name: fact.value for name, fact in quantities("curriculum", "glm-5").items()}
    preset = Scenario.from_data(GLM)
    mean = all_solved_mean(preset.filtered_fraction, facts["solve_rate_concentration"], preset.group_size)
    pool = replace(
        preset, filtered_fraction=0.0, solve_rate_mean=mean, solve_rate_concentration=facts["solve_rate_concentration"],
        pool_prompts=int(facts["pool_prompts"]),
    )  # fmt: skip
    ways = {
        "drop them and refill (as printed)": {},
        "train on them": {"gate": "none"},
        "difficulty band": {
            "sampler": "difficulty-band",
            "band_low": facts["band_low"],
            "band_high": facts["band_high"],
        },
        "retire solved": {"sampler": "retire-solved", "retire_above": facts["retire_above"]},
        "adaptive": {"sampler": "adaptive"},
    }
    rows = []
    for way, knobs in ways.items():
        scenario = replace(pool, **knobs)
        finished = scenario.prompts_per_step / (1.0 - preset.filtered_fraction)
        steps = 3 * int(scenario.pool_prompts / finished)
        last = course(replace(scenario, training_steps=steps)).table.iloc[-1]
        rows.append({"way": way, **{name: last[name] for name in SOLVED_COLUMNS}})
    found = pd.DataFrame(rows)
    never = replace(pool, solve_rate_mean=0.0, solve_rate_concentration=np.inf, filtered_fraction=_none_solved(pool))
    bill = cost(never, solve(never))
    trained = scenario.trained_tokens_per_step / TOKENS_PER_MTOK
    found.insert(1, "finished_per_trained", 1.0 / (1.0 - found["filtered_fraction"]))
    informative = found["usd_per_mtok"] / found["usd_per_informative_mtok"]
    found["usd_per_step_more"] = (found["usd_per_informative_mtok"] - bill.usd_per_mtok) * informative * trained
    return found


SOLVED_COLUMNS = (
    "all_solved_fraction", "none_solved_fraction", "informative_fraction", "filtered_fraction", "trainer_wait_ratio", "step_s",
    "usd_per_mtok", "usd_per_informative_mtok",
)  # fmt: skip


def _none_solved(scenario: Scenario) -> float:
    """Share that no rollout solves among groups that not all rollouts solve."""
    all_solved, none_solved = Beta(
        mean=scenario.solve_rate_mean, concentration=scenario.solve_rate_concentration
    ).powers(scenario.group_size)
    return none_solved / (1.0 - all_solved)
