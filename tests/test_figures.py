"""The figures' numbers against solve and cost, one split or cell at a time; plotly's own validation of what they are made of."""

import dataclasses
import itertools
import math

import numpy as np
import plotly.graph_objects as go
import pytest

from rlqueue import cost, solve
from rlqueue.app.answers import answer, reported_value
from rlqueue.app.figures import PART_NAMES, cost_ceiling, figures, nice
from rlqueue.app.map_figure import APART, decades, on_line
from rlqueue.app.runs import outcome
from rlqueue.app.simulated import GIVEN_UP, QUICK_EVENTS, quick_fidelity
from rlqueue.app.state import State, opened, with_value
from rlqueue.cost import PARTS
from rlqueue.presets import preset_names


def moved(state, **knobs):
    scenario = state.scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return State(preset=state.preset, scenario=scenario)


def trace(figure, name):
    return next(each for each in figure["data"] if each.get("name") == name)


@pytest.fixture(params=preset_names())
def found(request):
    return answer(opened(request.param))


def test_plotly_knows_every_attribute(found):
    for figure in figures(found).values():
        go.Figure(figure)


def test_every_figure_has_a_title_and_says_its_method(found):
    for figure in figures(found).values():
        title = figure["layout"]["title"]
        assert title["text"]
        assert title["subtitle"]["text"].startswith(("simulated", "closed form"))
    assert figures(found)["wait"]["layout"]["title"]["subtitle"]["text"].startswith(
        f"simulated, seed 0, {'' if not found.simulated.curve_fidelity.cut else 'up to '}"
    )


def test_the_thin_lines_are_those_of_solve_at_each_split(found):
    figure = figures(found)["wait"]
    for name, field in (("trainer waits", "trainer_wait_ratio"), ("rollout slots idle", "rollout_idle_ratio")):
        drawn = trace(figure, f"{name}, closed form")
        assert drawn["line"]["width"] < trace(figure, name)["line"]["width"]
        for gpus, value in zip(drawn["x"], drawn["y"], strict=True):
            scenario = with_value(found.state.scenario, "generator_gpus", int(gpus))
            assert value == pytest.approx(getattr(solve(scenario), field), abs=1e-12)


def test_the_present_point_is_the_scenario_s():
    found = answer(moved(opened(), generator_gpus=128, concurrency=4_000))
    now = trace(figures(found)["wait"], "this scenario")
    assert now["x"] == [128, 128]
    point = found.simulated.point
    assert point.kind == "simulated"
    assert now["y"] == [point.trainer_wait_ratio, point.rollout_idle_ratio]
    assert figures(found)["wait"]["layout"]["shapes"][0]["x0"] == 128


def test_the_reported_point_stays_where_the_run_was():
    drawn = trace(figures(answer(moved(opened(), generator_gpus=128)))["wait"], "reported wait")
    assert (drawn["x"], drawn["y"], drawn["error_y"]["visible"]) == ([192], [0.3], False)
    ranged = trace(figures(answer(opened("verl-qwen3-235b-c256")))["wait"], "reported wait")
    assert ranged["y"] == [pytest.approx(0.45)]
    assert ranged["error_y"]["value"] == pytest.approx(0.15)


def test_the_curves_go_through_what_was_simulated(found):
    figure, fidelity = figures(found)["wait"], quick_fidelity(found.state)
    drawn = trace(figure, "trainer waits")
    splits = [int(split) for split in found.simulated.curve.simulated]
    assert found.state.scenario.generator_gpus in splits
    for split in splits:
        point = outcome(
            with_value(found.state.scenario, "generator_gpus", split), fidelity, 0, GIVEN_UP * QUICK_EVENTS
        ).point
        assert drawn["y"][list(drawn["x"]).index(split)] == point.trainer_wait_ratio
    assert list(trace(figure, "simulated splits")["x"]) == 2 * splits


def test_the_bars_of_a_split_add_up_to_its_cost(found):
    figure, curve = figures(found)["cost"], found.simulated.curve
    bars = [trace(figure, PART_NAMES[part]) for part in PARTS]
    thin = trace(figure, "in sum, closed form")
    for place, gpus in enumerate(found.frame.splits):
        scenario = with_value(found.state.scenario, "generator_gpus", int(gpus))
        assert sum(bar["y"][place] for bar in bars) == pytest.approx(curve.by_split["usd_per_mtok"][place], rel=1e-12)
        assert thin["y"][place] == pytest.approx(cost(scenario, solve(scenario)).usd_per_mtok, rel=1e-9)
    here = list(found.frame.splits).index(found.state.scenario.generator_gpus)
    assert sum(bar["y"][here] for bar in bars) == pytest.approx(found.simulated.bill.usd_per_mtok, rel=1e-9)


def test_a_part_that_is_nowhere_is_not_in_the_key():
    figure = figures(answer(opened()))["cost"]
    shown = {bar["name"]: bar["visible"] for bar in figure["data"] if bar["type"] == "bar"}
    assert shown["sandboxes"] is False
    assert shown["discarded"] is True
    assert [each["name"] for each in figure["layout"]["meta"]["key"]] == [
        "trainer busy", "trainer waiting", "generator useful", "discarded", "hosted $3.43", "closed form",
        "this scenario",
    ]  # fmt: skip
    priced = dataclasses.replace(opened().scenario, sandbox_usd_per_hour=0.1)
    drawn = figures(answer(State(preset=opened().preset, scenario=priced)))["cost"]
    assert trace(drawn, "sandboxes")["visible"] is True


def test_the_hosted_line_is_the_hosted_price():
    found = answer(opened())
    line = trace(figures(found)["cost"], "hosted $3.43")
    assert line["y"] == [found.bill.hosted_usd_per_mtok] * 2
    without = State(preset=opened().preset, scenario=dataclasses.replace(opened().scenario, hosted_price=None))
    hidden = next(each for each in figures(answer(without))["cost"]["data"] if each["name"].startswith("hosted"))
    assert hidden["visible"] is False


def test_the_cost_axis_stands_still_until_the_cost_would_leave_it():
    ends = [cost_ceiling(answer(moved(opened(), generator_gpus=gpus))) for gpus in range(120, 232, 8)]
    assert len(set(ends)) == 1
    for gpus in (8, 16, 48, 248):
        found = answer(moved(opened(), generator_gpus=gpus))
        assert cost_ceiling(found) > found.shown_bill.usd_per_mtok


def test_every_cell_of_the_map_is_what_solve_gives(found):
    heat = figures(found)["map"]["data"][0]
    for row in (0, 7, 15):
        for column in range(len(heat["x"])):
            scenario = with_value(found.state.scenario, "generator_gpus", int(heat["x"][column]))
            scenario = with_value(scenario, "concurrency", int(heat["customdata"][row, column]))
            assert heat["z"][row, column] == pytest.approx(solve(scenario).trainer_wait_ratio, abs=1e-9)
            assert 10 ** heat["y"][row] == pytest.approx(scenario.concurrency, abs=0.51)


def test_the_map_marks_preset_and_present():
    points = figures(answer(moved(opened(), generator_gpus=128, concurrency=4_000)))["map"]["data"][-1]
    assert points["x"] == [192, 128]
    assert points["y"] == [math.log10(2_808), math.log10(4_000)]


def test_moving_on_the_map_leaves_the_map_alone():
    first, second = (answer(moved(opened(), generator_gpus=gpus)).wait_map for gpus in (64, 128))
    assert first is second
    assert answer(moved(opened(), max_staleness=1.0)).wait_map is not first


def test_nothing_but_the_cost_axis_may_change_its_range():
    for name in ("wait", "map"):
        axes = set()
        for gpus in (8, 128, 248):
            layout = figures(answer(moved(opened(), generator_gpus=gpus)))[name]["layout"]
            axes.add((tuple(layout["xaxis"]["range"]), tuple(layout["yaxis"]["range"])))
        assert len(axes) == 1


def test_a_point_on_a_line_of_equal_wait():
    x, y = np.arange(5.0), np.linspace(0.0, 1.0, 11)
    z = np.broadcast_to(1.0 - y[:, None], (11, 5))
    assert on_line(x, y, z, 0.25, 0.5) == (2.0, pytest.approx(0.75))
    assert on_line(x, y, z, 0.25, 0.0) == (0.0, pytest.approx(0.75))
    assert on_line(x, y, z + 1.0, 0.25, 0.5) is None


def test_labels_of_equal_wait_keep_apart(found):
    texts = [each for each in figures(found)["map"]["data"] if each.get("mode") == "text"]
    x, y = found.wait_map.generator_gpus, np.log10(found.wait_map.concurrency)
    places = [
        (a / (x[-1] - x[0]), b / (y[-1] - y[0])) for each in texts for a, b in zip(each["x"], each["y"], strict=True)
    ]
    assert len(places) >= 2
    for one, other in itertools.combinations(places, 2):
        assert abs(one[0] - other[0]) >= APART[0] or abs(one[1] - other[1]) >= APART[1]


@pytest.mark.parametrize(("value", "ceiling"), [(5.5, 7.0), (7.0, 7.0), (7.01, 10.0), (0.34, 0.4), (132.0, 150.0)])
def test_axes_end_at_round_numbers(value, ceiling):
    assert nice(value) == pytest.approx(ceiling)


@pytest.mark.parametrize(("low", "high"), [(2, 700), (31, 13_000), (1, 9), (3, 2_000_000)])
def test_an_axis_in_powers_of_ten_has_few_ticks_inside_it(low, high):
    ticks = decades(low, high)
    assert 2 <= len(ticks) <= 8
    assert all(low <= tick <= high for tick in ticks)


def test_a_range_is_reported_where_the_source_prints_one():
    found = reported_value("verl-qwen3-235b-c96", "trainer_wait_ratio")
    assert (found.low, found.high, found.fact.kind) == (0.3, 0.6, "printed")
    assert reported_value("prime-rl-qwen3-235b", "trainer_wait_ratio").low == 0.3
    assert reported_value("prime-rl-qwen3-235b", "staleness_versions") is None
