"""Measured tables from CSV files: read as they are meant, refused where they are not."""

import dataclasses
import math

import numpy as np
import pytest

from rlqueue import Scenario
from rlqueue.at_step import drift_path, solve_rates
from rlqueue.curriculum import histogram
from rlqueue.from_csv import MOST_RATES, histogram_text, pass_rate_file, series_file, series_text

PRIME = Scenario.from_data("prime-rl-qwen3-235b")


def written(folder, text):
    file = folder / "table.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_counts_of_solved_rollouts_become_shares_of_prompts(tmp_path):
    file = written(tmp_path, "task,solved,rollouts\na,0,8\nb,4,8\nc,2,4\nd,8,8\n")
    assert histogram(histogram_text(file)).rates == (0.0, 0.5, 1.0)
    assert histogram(histogram_text(file)).shares == pytest.approx((0.25, 0.5, 0.25))


def test_rates_may_stand_for_many_prompts(tmp_path):
    law = histogram(histogram_text(written(tmp_path, "\ufeffsolve_rate, prompts\n0.125,30\n0.875,10\n")))
    assert law.mean == pytest.approx(0.75 * 0.125 + 0.25 * 0.875)


def test_thousands_of_rates_are_gathered_at_the_mean_of_what_each_bin_holds(tmp_path):
    rates = np.random.default_rng(0).beta(0.5, 1.0, 5000)
    law = histogram(histogram_text(written(tmp_path, "solve_rate\n" + "\n".join(f"{rate:.9f}" for rate in rates))))
    assert len(law.rates) <= MOST_RATES
    assert law.mean == pytest.approx(rates.mean(), abs=1e-6)
    # 5,000 prompts in 128 bins: powers of a group of 8 move by less than a thousandth
    assert law.powers(8)[0] == pytest.approx(np.mean(rates**8), abs=1e-3)


def test_what_is_never_or_always_solved_stays_apart_from_what_nearly_is(tmp_path):
    rates = [0.0] * 200 + [1.0] * 100 + [0.002 + 0.996 * i / 299 for i in range(300)]
    law = histogram(histogram_text(written(tmp_path, "solve_rate\n" + "\n".join(f"{rate:.6f}" for rate in rates))))
    assert len(law.rates) <= MOST_RATES
    assert (law.rates[0], law.rates[-1]) == (0.0, 1.0)
    assert (law.shares[0], law.shares[-1]) == pytest.approx((1 / 3, 1 / 6), abs=1e-8)


def test_rates_that_are_written_alike_are_one(tmp_path):
    law = histogram(histogram_text(written(tmp_path, f"solve_rate\n0.33333333333\n{1 / 3}\n0.5\n")))
    assert law.shares == pytest.approx((2 / 3, 1 / 3))


def test_measured_rates_replace_whatever_law_was_there(tmp_path):
    file = written(tmp_path, "solve_rate\n0.5\n1\n")
    for before in (PRIME, dataclasses.replace(PRIME, solve_rate_mean=0.3, solve_rate_concentration=2.0)):
        scenario = dataclasses.replace(before, **pass_rate_file(file))
        assert solve_rates(scenario).mean == pytest.approx(0.75)
        assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_lengths_over_steps_become_a_series(tmp_path):
    file = written(
        tmp_path, "step,mean_response_tokens,tool_calls,mean_prompt_tokens\n0,8000,10,4000\n10,9000,12,5000\n"
    )
    scenario = dataclasses.replace(PRIME, **series_file(file))
    path = drift_path(scenario, 100)
    assert path["mean_response_tokens"][[0, -1]] == pytest.approx([8000, 9000])
    assert path["tool_calls"][5] == 11
    assert path["prompt_tokens"][-1] == 5000
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_a_series_replaces_whatever_law_was_there(tmp_path):
    file = written(tmp_path, "step,mean_response_tokens\n0,8000\n5,8500\n")
    before = dataclasses.replace(PRIME, drift_law="linear", drift_steps=9, drift_length_factor=1.5)
    assert drift_path(dataclasses.replace(before, **series_file(file)), 9)["mean_response_tokens"][-1] == 8500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"holds no prompts"),
        ("rate\n0.5\n", r"row 1: columns must hold 'solve_rate', or 'solved' and 'rollouts': not rate"),
        ("solve_rate\n0.5\n1.5\n", r"row 2: solve rate 1.5 must be <= 1"),
        ("solve_rate\n-0.5\n", r"row 1: solve_rate='-0.5' must be a number >= 0"),
        ("solve_rate\nnan\n", r"solve_rate='nan' must be a number"),
        ("solved,rollouts\n1,0\n", r"rollouts=0 must be > 0"),
        ("solved,rollouts\n9,8\n", r"solve rate 1.125 must be <= 1"),
        ("solved,rollouts\n1,many\n", r"row 1: rollouts='many' must be a number"),
        ("solve_rate,prompts\n0.5,0\n", r"holds no prompts"),
        ("solved,rollouts\n1\n", r"rollouts='' must be a number"),
        ("solve_rate\n0.5\n0,5\n", r"row 2: 2 cells must be <= 1, one for each column \(a decimal comma\?\)"),
        ("solve_rate, solve_rate\n0.5,0.7\n", r"column 'solve_rate' is there twice"),
    ],
)
def test_a_table_of_no_pass_rates_is_refused_by_row(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        histogram_text(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"holds no steps"),
        ("step,tokens\n0,5\n", r"column 'mean_response_tokens' is missing"),
        ("mean_response_tokens\n5\n", r"column 'step' is missing"),
        ("step,mean_response_tokens\n0,x\n", r"row 1: mean_response_tokens='x' must be a number"),
        ("step,mean_response_tokens\n0,0\n", r"response tokens > 0"),
        ("step,mean_response_tokens\n1,5\n1,6\n", r"must go up in steps: 1 comes after 1"),
        ("step,mean_response_tokens,mean_prompt_tokens\n1,5,3\n", r"mean_prompt_tokens needs tool_calls"),
        ("step,mean_response_tokens,tool_calls\n1,5,3\n2,5,\n", r"must give as many numbers"),
    ],
)
def test_a_table_of_no_lengths_is_refused_by_row(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        series_text(written(tmp_path, text))


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        histogram_text(tmp_path / "missing.csv")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00solve")
    with pytest.raises(ValueError, match="cannot be read"):
        series_text(binary)


def test_few_rollouts_spread_measured_rates_wider_than_they_are(tmp_path):
    rng = np.random.default_rng(1)
    rates = rng.beta(2.0, 2.0, 20_000)
    solved = rng.binomial(8, rates)
    law = histogram(histogram_text(written(tmp_path, "solved,rollouts\n" + "\n".join(f"{k},8" for k in solved))))
    spread = np.dot(np.square(law.rates), law.shares) - law.mean**2
    assert spread == pytest.approx(rates.var() + np.mean(rates * (1 - rates)) / 8, abs=4 * math.sqrt(0.05 / 20_000))
