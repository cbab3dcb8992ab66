"""Validation: what is predicted was never seen, and a case is a file."""

import copy
import dataclasses
import json
import math
import tomllib
from pathlib import Path

import pytest
from test_published_cases import blind

from rlqueue.cli import main
from rlqueue.measures import MEASURES, outcome
from rlqueue.validation import Validation, case_from_file, cases, protocol, validate
from rlqueue.validation.cases import TOP, case_from_values
from rlqueue.validation.protocol import BESIDE, CALIBRATED, LEFT_OUT, PREDICTED, result
from rlqueue.validation.report import lines

CASES = {case.name: case for case in cases()}
TOY = """
title = "Toy"
source = "rlqueue"
where = "made up"
ties_within = 0.01

[scenario]
based_on = "slime-qwen3-235b"
tool_calls = { value = 0, kind = "assumed" }

[[rows]]
key = "few"
measured = { train_s = 50.0, step_s = 100.0 }

[[rows]]
key = "many"
changes = { trainer_gpus = 64 }
measured = { train_s = 25.0, trainer_wait_ratio = 0.5 }

[[rows]]
key = "most"
changes = { trainer_gpus = 128 }
measured = { train_s = 12.5 }

[[calibrations]]
rows = { few = ["train_s"] }
fit = ["mfu"]

[[speedups]]
of = "many"
over = "few"
published = 1.5

[[rankings]]
quantity = "train_s"
rows = ["few", "many", "most"]
"""


RANKS = """
title = "only ranks"
source = { title = "mine" }
scenario = { based_on = "slime-qwen3-235b" }
rankings = [{ quantity = "step_s", rows = ["more", "less"], in_order = true }]
[[rows]]
key = "less"
measured = {}
[[rows]]
key = "more"
changes = { concurrency = 512 }
measured = {}
"""


def toy(tmp_path, text=TOY):
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return case_from_file(path)


def poisoned(case):
    """The case with every measurement of a row that doesn't calibrate replaced by nonsense."""
    rows = [
        row if row.key in case.calibrating else dataclasses.replace(row, measured={
            name: dataclasses.replace(fact, value=0.123456) for name, fact in row.measured.items()
        })
        for row in case.rows
    ]  # fmt: skip
    return dataclasses.replace(case, rows=tuple(rows))


@pytest.mark.parametrize("name", CASES)
def test_a_prediction_never_saw_its_row(name):
    case = CASES[name]
    true = result(case, "closed form").comparisons
    false = result(poisoned(case), "closed form").comparisons
    assert [each.predicted for each in false] == [each.predicted for each in true]
    if any(each.role == PREDICTED for each in true):
        assert [each.published for each in false] != [each.published for each in true]


def test_a_calibrating_row_is_seen_but_only_where_the_case_says_so(tmp_path):
    case = toy(tmp_path)
    few = case.rows[0]

    def predicted_with(**values):
        measured = few.measured | {name: dataclasses.replace(few.measured[name], value=v) for name, v in values.items()}
        changed = dataclasses.replace(case, rows=(dataclasses.replace(few, measured=measured), *case.rows[1:]))
        return [each.predicted for each in result(changed, "closed form").comparisons]

    same = predicted_with()
    assert predicted_with(step_s=1.0) == same
    assert predicted_with(train_s=80.0) != same


def test_no_row_of_any_case_is_fitted_and_counted():
    for found in validate(list(CASES.values()), solver="closed form"):
        for each in found.comparisons:
            if each.role == PREDICTED and each.quantity != "speedup_ratio":
                assert each.row not in found.case.calibrating


def test_a_new_case_is_a_file_and_its_exact_answers_come_out(tmp_path):
    found = result(toy(tmp_path), "simulated")
    by_key = {(each.row, each.quantity): each for each in found.comparisons}
    # Training time is inverse to the GPUs where nothing is fixed.
    assert by_key["few", "train_s"].predicted == pytest.approx(50.0, rel=0.02)
    assert by_key["many", "train_s"].predicted == pytest.approx(25.0, rel=0.02)
    roles = {key: each.role for key, each in by_key.items()}
    assert roles["few", "train_s"] == CALIBRATED
    assert roles["few", "step_s"] == BESIDE
    assert roles["many", "train_s"] == PREDICTED
    assert [(pair.lower, pair.higher, pair.right) for pair in found.pairs] == [
        ("many", "few", True), ("most", "few", True), ("most", "many", True),
    ]  # fmt: skip
    assert by_key["many", "trainer_wait_ratio"].error == pytest.approx(
        by_key["many", "trainer_wait_ratio"].predicted - 0.5
    )
    summary = Validation(results=[found]).summary()
    assert (summary["cases"], summary["predicted_rows"], summary["ranked_pairs"]) == (1, 2, 3)
    assert summary["median_error_step"] is None
    assert summary["rankings_right"] == 1.0


def test_a_row_left_out_is_shown_and_not_counted(tmp_path):
    case = toy(tmp_path, TOY.replace('key = "most"', 'key = "most"\nleft_out = "another machine"'))
    found = result(case, "closed form")
    assert [each.role for each in found.comparisons if each.row == "most"] == [LEFT_OUT]
    assert Validation(results=[found]).predicted_rows == 1


def test_pairs_that_the_source_does_not_tell_apart_are_no_ranking(tmp_path):
    case = toy(tmp_path, TOY.replace("train_s = 12.5", "train_s = 25.1"))
    assert [(pair.lower, pair.higher) for pair in result(case, "closed form").pairs] == [
        ("many", "few"), ("most", "few"),
    ]  # fmt: skip


def test_a_pair_that_the_model_does_not_tell_apart_is_wrong(tmp_path):
    text = TOY.replace("changes = { trainer_gpus = 128 }", "changes = { trainer_gpus = 64 }")
    wrong = [pair for pair in result(toy(tmp_path, text), "closed form").pairs if not pair.right]
    assert [(pair.lower, pair.higher) for pair in wrong] == [("most", "many")]


def test_an_order_without_figures_is_the_order_of_the_rows(tmp_path):
    text = TOY.replace(
        'quantity = "train_s"\nrows = ["few", "many", "most"]',
        'quantity = "step_s"\nrows = ["most", "few"]\nin_order = true',
    )
    (pair,) = result(toy(tmp_path, text), "closed form").pairs
    assert (pair.lower, pair.higher) == ("most", "few")


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ('title = "Toy"', "", "case toy lacks title"),
        ('source = "rlqueue"', 'source = "hearsay"', "source='hearsay' is not known"),
        ("ties_within = 0.01", "ties_within = 2", r"ties_within=2 must be a number in \[0, 1\]"),
        ("ties_within = 0.01", "tie_within = 0", "did you mean ties_within"),
        ("ties_within = 0.01", 'solver = "guess"', "solver='guess' is not known"),
        ("trainer_gpus = 64", "trainer_gpu = 64", "trainer_gpu=64 must be a key"),
        ("trainer_gpus = 64", "trainer_gpus = 0", "row 'many': trainer_gpus=0 must be >= 1 GPU"),
        ("trainer_gpus = 64", "gpus = 64", "field='gpus' is not known"),
        ('key = "many"', 'key = "few"', "key='few' must be there once"),
        ("trainer_wait_ratio = 0.5", "trainer_wait_ratio = 50", r"trainer_wait_ratio=50 must be in \[0, 1\]"),
        ("trainer_wait_ratio = 0.5", "wait_ratio = 0.5", "field='wait_ratio' is not known"),
        ("train_s = 25.0", 'train_s = "long"', "train_s='long' must be a finite number"),
        ("train_s = 25.0", "train_s = -1", "train_s=-1 must be >= 0"),
        ("train_s = 25.0", 'train_s = { value = 1, kind = "guess" }', "kind='guess' is not known"),
        ("train_s = 25.0", 'train_s = { kind = "printed" }', "lacks value"),
        ('rows = { few = ["train_s"] }', 'rows = { one = ["train_s"] }', "row='one' is not known"),
        ('rows = { few = ["train_s"] }', 'rows = { few = ["wait_s"] }', "measure='wait_s' is not known"),
        ('rows = { few = ["train_s"] }', "rows = { few = [] }", "must name a measure"),
        ('fit = ["mfu"]', 'fit = ["mfuu"]', "did you mean mfu"),
        ('fit = ["mfu"]', "fit = []", "must name a knob"),
        ('fit = ["mfu"]', 'fit = ["mfu"]\npriors = { mfu = { value = 0, spread = 1 } }', "value=0 must be a finite"),
        ('fit = ["mfu"]', 'fit = ["mfu"]\npriors = { mfu = { value = 1 } }', "lacks spread"),
        ("published = 1.5", "published = 0", "published=0 must be a finite number > 0"),
        ('over = "few"', 'over = "none"', "over='none' is not known"),
        ('quantity = "train_s"', 'quantity = "step_s"', "row 'many' lacks a measured step_s"),
        ('rows = ["few", "many", "most"]', 'rows = ["few"]', "must name at least two rows"),
    ],
)  # fmt: skip
def test_what_is_no_case_is_refused_by_field_value_and_limit(tmp_path, was, becomes, words):
    assert was in TOY
    with pytest.raises(ValueError, match=words):
        toy(tmp_path, TOY.replace(was, becomes, 1))


DOCS = (Path(__file__).parents[1] / "docs" / "validation.md").read_text(encoding="utf-8")


def test_the_case_in_the_documentation_is_one(tmp_path):
    found = result(toy(tmp_path, DOCS.split("```toml")[1].split("```")[0]), "closed form")
    roles = {(each.row, each.quantity): each.role for each in found.comparisons}
    assert roles == {
        ("eta 0", "step_s"): CALIBRATED, ("eta 8", "step_s"): PREDICTED, ("eta 8", "trainer_wait_ratio"): PREDICTED,
        ("eta 8, other machine", "step_s"): LEFT_OUT, ("eta 8", "speedup_ratio"): PREDICTED,
    }  # fmt: skip


def test_the_documentation_has_every_measure_and_every_field():
    for name in MEASURES:
        assert f"`{name}`" in DOCS, name
    for field in TOP:
        assert field in DOCS, field


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not valid TOML"):
        toy(tmp_path, "title = ")
    with pytest.raises(ValueError, match="cannot be read"):
        case_from_file(tmp_path / "none.toml")


def test_a_row_that_cannot_run_is_named(tmp_path, monkeypatch):
    def stalled(scenario, *_, **__):
        if scenario.name == "most":
            raise ValueError("steps=1000: no step was completed")
        return outcome(scenario, "closed form")

    monkeypatch.setattr(protocol, "outcome", stalled)
    with pytest.raises(ValueError, match="case toy: row 'most': steps=1000: no step was completed"):
        result(toy(tmp_path), "closed form")


def test_each_row_of_two_calibrations_is_held_by_one(tmp_path):
    twice = TOY + '\n[[calibrations]]\nrows = { many = ["train_s"] }\nfit = ["decode_efficiency"]\n'
    with pytest.raises(ValueError, match="must be held by one of them"):
        toy(tmp_path, twice)


def test_where_another_share_of_the_weights_is_exchanged_a_fitted_time_is_multiplied(tmp_path):
    half = '[calibrations.factors.many]\nmfu = { value = 0.5, kind = "derived" }\n'
    plain, scaled = (
        result(toy(tmp_path), "closed form"),
        result(toy(tmp_path, TOY.replace("[[rankings]]", half + "[[rankings]]", 1)), "closed form"),
    )
    before, after = (blind(each, "train_s") for each in (plain, scaled))
    assert after["many"].predicted == pytest.approx(2 * before["many"].predicted)
    assert after["most"].predicted == pytest.approx(before["most"].predicted)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ("[calibrations.factors.few]\nmfu = 2", r"factors: field='few' is not known, must be one of many, most"),
        ("[calibrations.factors.many]\nmfus = 2", r"factors.many: field='mfus' is not known; did you mean mfu"),
        ("[calibrations.factors.many]\nmfu = 0", r"factors.many: mfu=0 must be a finite number > 0"),
        ("[calibrations.factors]\nmany = 2", r"factors.many=2 must be a table with mfu"),
    ],
)
def test_a_factor_is_of_a_fitted_knob_in_a_row_that_does_not_calibrate(tmp_path, factors, message):
    with pytest.raises(ValueError, match=message):
        toy(tmp_path, TOY.replace("[[rankings]]", factors + "\n[[rankings]]", 1))


def test_the_command_line_gives_the_figures_as_json_and_the_tables_as_csv(tmp_path, capsys):
    path = tmp_path / "toy.toml"
    path.write_text(TOY)
    assert main(["validate", "--case", str(path), "--out", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("cases", "predicted_rows", "median_error_step", "median_error_wait_points", "rankings_right"):
        assert name in found
    assert found["cases"] == 1
    assert 0 <= found["median_error_wait_points"] <= 1
    lines = (tmp_path / "out" / "validation.csv").read_text().splitlines()
    assert lines[0].startswith("case,row,title,role,solver,quantity,unit,published,kind,predicted,error,error_points")
    assert len(lines) == 1 + len(found["rows"])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "validation.csv",
        "rankings.csv",
        "calibrations.csv",
    }
    assert main(["validate", "--case", str(path)]) == 0
    text = capsys.readouterr().out
    assert "fitted on few: mfu=" in text
    assert "rankings right: 3 of 3" in text


def test_the_command_line_refuses_an_unknown_case(capsys):
    assert main(["validate", "--case", "toy"]) == 2
    assert "case='toy' is not known" in capsys.readouterr().err


def test_the_command_line_calibrates_and_writes_a_scenario_that_solves(tmp_path, capsys):
    out = tmp_path / "fitted.toml"
    words = [
        "calibrate",
        "slime-qwen3-235b",
        "--measured",
        "generate_s=178",
        "--measured",
        "train_s=95",
        "--out",
        str(out),
    ]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["knob"] for each in found["knobs"]] == ["decode_efficiency", "mfu"]
    assert main(["solve", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["train_s"] == pytest.approx(95.0, rel=1e-6)
    assert main(words) == 0
    assert "mfu" in capsys.readouterr().out
    assert main(["calibrate", "slime-qwen3-235b", "--measured", "generate_s"]) == 2
    assert "must have the form NAME=VALUE" in capsys.readouterr().err


def test_every_measure_has_a_unit_and_a_meaning():
    for name, measure in MEASURES.items():
        assert measure.unit, name
        assert measure.meaning, name
        assert not (measure.share and name.endswith("_s"))


SHAPES = (None, True, -1, math.nan, math.inf, "", "x", [], {}, [1], [{}], [None], [["eta 0"]], {"a": 1}, {"value": None},
          {"value": [1]}, {"value": 1, "kind": ["x"]}, {"value": 1, "source": 4}, {"eta 0": [1]}, {"key": 3})  # fmt: skip


def _places(value, place=()):
    if place:
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _places(each, (*place, key))


def test_whatever_stands_in_a_case_file_is_read_or_refused_by_the_case_s_name():
    whole = tomllib.loads(DOCS.split("```toml")[1].split("```")[0])
    refused = []
    for place in _places(whole):
        for shape in SHAPES:
            changed = copy.deepcopy(whole)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = shape
            try:
                case_from_values(changed, "odd")
            except ValueError as error:
                refused.append(str(error))
    assert len(refused) > 1000
    assert [words for words in refused if not words.startswith("case odd: ")] == []


def test_a_refusal_names_the_file_and_which_of_several_tables(tmp_path):
    text = TOY + '[[speedups]]\nof = "most"\nover = "few"\npublished = -1\n'
    with pytest.raises(
        ValueError, match=rf"case file {tmp_path}/toy.toml: speedups: number 2: published=-1 must be a finite"
    ):
        toy(tmp_path, text)


def test_a_speed_up_may_be_of_a_rate_or_a_cost(tmp_path):
    """The better of two by its own measure: more tokens a second, fewer dollars; a share has no speed-up."""
    text = RANKS + '[[speedups]]\nof = "more"\nover = "less"\npublished = 2\nquantity = "which"\n'
    ratios = []
    for quantity in ("step_s", "trained_tokens_per_s", "usd_per_mtok"):
        found = result(toy(tmp_path, text.replace("which", quantity)), "closed form")
        ratios += [each.predicted for each in found.comparisons if each.quantity == "speedup_ratio"]
    # One batch, one price, one number of GPUs: all three are the same ratio
    assert ratios[0] > 1.05
    assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-9)
    for other in ("trainer_wait_ratio", "wait_s"):
        with pytest.raises(ValueError, match=f"quantity='{other}' is not known"):
            toy(tmp_path, text.replace("which", other))


@pytest.mark.parametrize("other", ["trained_samples_per_s", "trained_tokens_per_s_per_gpu", "run_h"])
def test_a_row_with_only_throughput_has_the_error_of_the_step_time_it_stands_for(tmp_path, other):
    case = toy(tmp_path, TOY)
    row = next(each for each in case.rows if each.key not in case.calibrating)
    point = outcome(row.scenario, "closed form")
    scenario = row.scenario
    gpus = scenario.trainer_gpus + scenario.generator_gpus
    published = {
        "trained_samples_per_s": scenario.samples_per_step / point.point.step_s,
        "trained_tokens_per_s_per_gpu": point.point.trained_tokens_per_s / gpus,
        "run_h": scenario.training_steps * point.point.step_s / 3600,
    }[other]
    # A rate that is published a quarter higher is a step a fifth shorter; hours a quarter longer
    fact = dataclasses.replace(next(iter(row.measured.values())), value=1.25 * published)
    only = dataclasses.replace(
        case, rows=[dataclasses.replace(row, measured={other: fact})], fits=(), speedups=(), rankings=()
    )
    validation = Validation(results=[result(only, "closed form")])
    expected = 0.2 if other == "run_h" else 0.25
    assert validation.summary()["median_error_step"] == pytest.approx(expected, rel=1e-9)
    assert validation.summary()["predicted_rows"] == 1


def test_rows_that_are_only_ranked_are_predicted_rows(tmp_path):
    found = Validation(results=[result(toy(tmp_path, RANKS), "closed form")]).summary()
    assert (found["predicted_rows"], found["rankings_right"]) == (2, 1.0)
    assert found["median_error_step"] is None


def test_what_the_closed_form_cannot_say_is_named(tmp_path):
    text = RANKS.replace('"step_s"', '"staleness_p95"').replace("measured = {}", "measured = { staleness_p99 = 3 }", 1)
    case = toy(tmp_path, text)
    closed, run = result(case, "closed form"), result(case, "simulated")
    assert len(closed.not_compared) == 3
    assert closed.not_compared[0] == "less: staleness_p99 is simulated only, and this is the closed form"
    assert any(closed.not_compared[0] in line for line in lines(closed))
    assert run.not_compared == ()
    assert [each.quantity for each in run.comparisons] == ["staleness_p99"]


def test_a_calibration_that_misses_its_measure_says_so(tmp_path):
    text = RANKS.replace("measured = {}", "measured = { generate_s = 0.001 }", 1) + (
        '[[calibrations]]\nrows = { less = ["generate_s"] }\nfit = ["decode_efficiency"]\n'
    )
    assert any("generate_s of 0.001 s is not met" in line for line in lines(result(toy(tmp_path, text), "closed form")))


def test_a_folder_of_cases_is_validated_and_two_of_one_name_are_not(tmp_path, capsys):
    for folder, name in (("a", "first"), ("a", "second"), ("b", "first")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.toml").write_text(RANKS)
    words = ["validate", "--solver", "closed form", "--json", "--case"]
    assert main([*words, str(tmp_path / "a"), "--case", str(tmp_path / "a/first.toml")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cases"], list(found["by_case"])) == (2, ["first", "second"])
    assert {"predicted_rows", "median_error_step", "median_error_wait_points", "rankings_right"} <= set(found)
    assert main([*words, str(tmp_path / "a"), "--case", str(tmp_path / "b")]) == 2
    assert "answers are kept by name, rename one" in capsys.readouterr().err
    (tmp_path / "none").mkdir()
    assert main([*words, str(tmp_path / "none")]) == 2
    assert "holds no file that ends in .toml" in capsys.readouterr().err


def test_a_speed_up_over_a_row_that_is_left_out_is_left_out(tmp_path):
    text = RANKS.replace('key = "less"', 'key = "less"\nleft_out = "another machine"')
    found = result(toy(tmp_path, text + '[[speedups]]\nof = "more"\nover = "less"\npublished = 2\n'), "closed form")
    assert [each.role for each in found.comparisons] == [LEFT_OUT]
