"""The explorer without a browser: its state, its panels, and its widgets as a kernel sees them."""

import dataclasses
import html
import re
from dataclasses import fields

import pytest

from rlqueue import Scenario, cost, solve
from rlqueue.app import controls, findings, origins, panels, way_words, whole_run
from rlqueue.app.answers import answer
from rlqueue.app.explorer import Explorer, stamp
from rlqueue.app.runs import Fidelity
from rlqueue.app.sharing import scenario_file
from rlqueue.app.state import State, kind_of, opened, value_of, with_value
from rlqueue.app.way import way
from rlqueue.presets import preset, preset_names, reported


def text(markup):
    """What a reader sees of HTML."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", markup))).strip()


def moved(state, **knobs):
    scenario = state.scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return State(preset=state.preset, scenario=scenario)


@pytest.fixture
def page():
    return Explorer()


def holder(page, knob):
    return next(held for control, held in page._board.holders.items() if control.knob == knob)


def said(page):
    return text(page._status.value)


# State


def test_a_split_moves_gpus_and_makes_none():
    scenario = with_value(opened().scenario, "generator_gpus", 200)
    assert (scenario.trainer_gpus, scenario.generator_gpus) == (56, 200)


def test_a_knob_inside_a_part_can_be_moved():
    scenario = with_value(opened().scenario, "node.usd_per_kwh", 0.2)
    assert value_of(scenario, "node.usd_per_kwh") == 0.2
    assert value_of(scenario, "node") == "h200"


def test_where_a_value_comes_from_is_known_until_it_is_changed():
    state = opened()
    kinds = {knob: kind_of(state, knob) for knob in ("mfu", "tool_calls", "concurrency", "tool_call_s", "reward_s")}
    assert kinds == {"mfu": "printed", "tool_calls": "assumed", "concurrency": "calibrated", "tool_call_s": "derived",
                     "reward_s": "default"}  # fmt: skip
    assert kind_of(state, "node.usd_per_kwh") == "printed"
    assert kind_of(moved(state, tool_calls=20.0), "tool_calls") == "changed"
    assert kind_of(moved(state, **{"node.usd_per_kwh": 0.2}), "node.usd_per_kwh") == "changed"
    assert state.untouched
    assert not moved(state, tool_calls=20.0).untouched


# Panels


def test_the_cards_hold_what_solve_and_cost_give():
    found = answer(moved(opened(), generator_gpus=160, concurrency=3_000, max_staleness=4.0))
    point = solve(found.state.scenario)
    bill = cost(found.state.scenario, point)
    shown = {merit.name: merit.text for merit in (*panels.merits(found), *panels.lesser_merits(found))}
    assert shown == {
        "Trainer wait ratio": f"{point.trainer_wait_ratio:.1%}",
        "Rollout idle ratio": f"{point.rollout_idle_ratio:.1%}",
        "Staleness": f"{point.staleness_versions:.1f}",
        "Trained tokens": f"{point.trained_tokens_per_s:,.0f}",
        "Self-built": f"${bill.usd_per_mtok:.2f}",
        "Hosted": f"${bill.hosted_usd_per_mtok:.2f}",
        "Self-built / hosted": f"{bill.cost_ratio:.2f}×",
        "Step": f"{point.step_s:,.0f} s",
        "Consumption": f"{point.consumption_per_s:.2f}/s",
        "Production": f"{point.production_per_s:.2f}/s",
        "In flight": f"{point.in_flight_rollouts:,.0f}",
        "Rollout": f"{point.rollout_s:,.0f} s",
        "MFU computing": f"{point.mfu_computing:.1%}",
        "MFU wall-clock": f"{point.mfu_wall_clock:.1%}",
        "Report's method": f"${bill.usd_per_mtok_report_method:.2f}/Mtok",
    }


def test_each_card_is_simulated_and_has_the_closed_form_beside_it():
    found = answer(opened())
    simulated, closed = panels.shown_merits(found), panels.merits(found)
    seen = panels.cards(found)
    for merit, other in zip(simulated, closed, strict=True):
        assert f">{merit.text}<" in seen
        if merit.name != "Hosted":
            assert f'<dd class="rlq-closed"><b>{other.text}</b> {origins.kind_tag("closed form")}</dd>' in seen
    assert seen.count(origins.kind_tag("simulated")) == len(closed) - 1
    assert seen.count(origins.kind_tag("list price")) == 1


def test_what_was_simulated_is_said_exactly():
    found = answer(opened())
    assert found.simulated.fidelity == Fidelity(steps=8, lumped=True)
    said = text(panels.how(found))
    assert "Cards: seed 0, 8 steps, tool calls lumped." in said
    assert f"Curves through {len(found.simulated.curve.simulated)} splits: seed 0, " in said


def test_a_cost_on_an_assumed_price_says_so():
    assert "assumed" not in panels.cards(answer(opened()))
    assert (
        panels.cards(answer(opened("prime-rl-glm-5"))).count(">assumed price<") == 1
    )  # the hosted row is another LLM's
    assert panels.cards(answer(opened("verl-qwen3-235b-c96"))).count(">assumed price<") == 2
    priced = moved(opened("verl-qwen3-235b-c96"), gpu_hour_usd=2.0)
    assert panels.cards(answer(priced)).count(">assumed price<") == 1


def test_reported_values_stand_beside_with_kind_and_deviation():
    seen = text(panels.cards(answer(opened())))
    point, bill = answer(opened()).simulated.point, answer(opened()).simulated.bill
    apart = f"{100 * (point.trainer_wait_ratio - 0.3):+.1f} points".replace("-", "−")
    assert f"reported 30% (printed), here {apart}" in seen
    apart = f"{100 * (bill.usd_per_mtok / reported('prime-rl-qwen3-235b')['usd_per_mtok'].value - 1):+.1f}%"
    assert f"reported $3.17 (derived), here {apart.replace('-', '−')}" in seen
    assert "reported $3.43 (printed), here the same" in seen
    behind = text(panels.lesser(answer(opened())))
    assert "reported 2.75/s (printed), here +0.1%" in behind
    assert "reported $6.90 (printed)" in behind
    ranged = text(panels.cards(answer(opened("verl-qwen3-235b-c256"))))
    assert "reported 30% to 60% (printed), here inside" in ranged


def test_a_changed_run_is_not_measured_against_the_report():
    seen = text(panels.cards(answer(moved(opened(), generator_gpus=160))))
    assert "reported 30% (printed)" in seen
    assert "here" not in seen


def test_what_was_fitted_is_said_to_be_no_test():
    assert "Fitted to this run: concurrency, decode_efficiency." in text(panels.lesser(answer(opened())))


def test_without_a_hosted_price_there_is_no_ratio():
    none = State(preset=opened().preset, scenario=dataclasses.replace(opened().scenario, hosted_price=None))
    shown = {merit.name: merit.text for merit in panels.merits(answer(none))}
    assert (shown["Hosted"], shown["Self-built / hosted"]) == ("–", "–")


def test_both_costs_are_explained_with_their_numbers():
    seen = text(findings.two_costs(answer(opened())))
    assert "$3.17 by wall-clock" in seen
    assert "$6.90 by the report's method" in seen
    assert "steps overlap: 2.2 of them end in that time" in seen
    assert "a ratio of 2.01" in seen
    assert "a ratio of 0.92" in seen or "a ratio of 0.93" in seen


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "prime-rl-qwen3-235b",
            ["1.95/s in the text and 1.98/s", "“Ratio 2.01”", "$299 per GPU-month", "$298.53", "$319.78"],
        ),
        (
            "prime-rl-glm-5",
            ["3.85 times production", "5 times, which would be a wait of 80%", "gives the 74% to slime"],
        ),
        (
            "slime-qwen3-235b",
            ["hosted price of $4.86", "16.23 / 3.34 = 4.86", "The price is $3.34", "waits 74%", "says 60%"],
        ),
        ("verl-qwen3-235b-c96", ["30% to 60%"]),
    ],
)
def test_facts_that_do_not_agree_are_reconciled_openly(name, words):
    seen = text(findings.open_facts(name))
    assert [word for word in words if word not in seen] == []


@pytest.mark.parametrize("name", preset_names())
def test_every_knob_is_in_the_table_of_origins_with_its_kind(name):
    rows = {row.name: row for row in origins.knob_rows(opened(name))}
    assert set(rows) == {each.name for each in fields(Scenario)} - {"name"}
    for knob, fact in preset(name).items():
        assert rows[knob].fact == fact
    seen = text(origins.origins(opened(name)))
    assert all(knob in seen for knob in rows)
    assert seen.count(" assumed ") >= sum(fact.kind == "assumed" for fact in preset(name).values())


def test_the_table_says_what_was_changed_and_from_what():
    state = moved(opened(), tool_calls=20.0, **{"node.usd_per_kwh": 0.2})
    row = next(row for row in origins.knob_rows(state) if row.name == "tool_calls")
    assert (row.value, row.fact.kind, row.fact.note) == (20.0, "changed", "set on this page; the preset has 15")
    node = next(rows for title, rows in origins.part_rows(state) if title.startswith("Cost of ownership"))
    assert next(row for row in node if row.name == "usd_per_kwh").fact.kind == "changed"


def test_what_data_say_is_text_and_never_markup():
    assert "<b>" not in origins._source(dataclasses.replace(preset("slime-qwen3-235b")["llm"], where="<b>"))
    row = origins.Row(name="<i>", meaning="<i>", value="<i>", unit="<i>", fact=origins.DEFAULT)
    assert "<i>" not in origins._line(row)


def test_the_scenario_file_is_the_scenario():
    state = moved(opened("verl-qwen3-235b-c96"), concurrency=120, **{"node.usd_per_kwh": 0.2})
    name, held = scenario_file(state.scenario)
    assert name == "verl-qwen3-235b-c96.toml"
    assert Scenario.from_toml(held) == state.scenario


# The page


def test_a_page_opens_with_the_first_run_as_it_was_published(page):
    assert page.state == opened(preset_names()[0])
    assert page._plots._stamp == "64:192 S=16 C=2808"
    assert said(page) == ""


@pytest.mark.parametrize("knob", [control.knob for control in controls.MAIN])
def test_a_slider_makes_the_scenario_that_the_page_then_shows(page, knob):
    slider = holder(page, knob)
    slider.index -= 1
    value = slider.options[slider.index][1]
    assert value != value_of(opened().scenario, knob)
    assert page.state.scenario == with_value(opened().scenario, knob, value)
    found = answer(page.state)
    assert page._cards.value == panels.cards(found, way_words.card(way(page.state)))
    assert page._plots._stamp == stamp(page.state.scenario)
    assert "rlq-changed" in page._changed.value


@pytest.mark.parametrize("control", controls.MORE, ids=lambda control: control.knob)
def test_each_control_of_the_second_group_moves_its_knob_and_reset_brings_it_back(page, control):
    held = holder(page, control.knob)
    if control.knob == "gpu_hour_usd":
        held.value = "2.5"
    elif control.knob == "llm":
        held.value = "qwen3-30b-a3b-thinking-2507"
    else:
        held.index += 1 if held.index + 1 < len(held.options) else -1
    assert said(page) == ""
    assert value_of(page.state.scenario, control.knob) == controls.meant(control, held.value)
    assert not page.state.untouched
    page._board.again.click()
    assert page.state == opened()
    assert held.value == controls.held(control, opened().scenario)


def test_each_preset_can_be_chosen_and_left_again(page):
    for name in (*preset_names(), *reversed(preset_names())):
        page._board.preset.value = name
        assert page.state == opened(name)
        assert said(page) == ""
        for control, held in page._board.holders.items():
            assert held.value == controls.held(control, opened(name).scenario)


def test_a_move_from_the_list_is_applied_as_it_was_promised(page):
    promised = answer(page.state).moves
    assert [button.layout.display for button in page._moves] == ["", "", "none"]
    assert page._moves[0].description == panels.move_words(promised[0])
    page._moves[0].click()
    assert page.state.scenario == promised[0].scenario
    assert holder(page, "concurrency").value == promised[0].scenario.concurrency
    assert answer(page.state).bill == promised[0].bill


def test_a_button_for_a_move_that_is_no_longer_there_does_nothing(page):
    page._moves[2].click()
    assert page.state == opened()
    assert said(page) == ""


def test_an_llm_that_does_not_fit_is_refused_by_name_and_nothing_is_lost(page):
    holder(page, "concurrency").index -= 3
    before = page.state
    holder(page, "llm").value = "kimi-k2"
    assert "gpus_per_replica=8 leaves" in said(page)
    assert "one sequence of" in said(page)
    assert page.state == before
    assert holder(page, "llm").value == before.scenario.llm.key
    holder(page, "concurrency").index -= 1
    assert said(page) == ""


def test_a_mean_beyond_the_cut_is_refused_by_name(page):
    holder(page, "mean_response_tokens").value = 50_100.0
    assert "mean_response_tokens=50100 must be < max_response_tokens=27177" in said(page)
    assert holder(page, "mean_response_tokens").value == 12_704.0


@pytest.mark.parametrize("sent", [{"index": 10_000}, {"index": -1}, {"index": "4"}, {"_options_labels": ["x"]}])
def test_what_no_slider_can_send_is_refused(page, sent):
    slider = holder(page, "generator_gpus")
    slider.set_state(sent)
    assert said(page).startswith("Refused: GPU split")
    assert page.state == opened()
    slider.set_state({"index": 3})
    assert page.state.scenario.generator_gpus == slider.options[3][1]
    assert said(page) == ""


def test_long_texts_are_written_when_they_are_unfolded_and_follow_then(page):
    assert [long.value for long in page._texts] == ["", ""]
    page._folds.selected_index = 3
    assert "changed" not in text(page._texts[1].value)
    holder(page, "max_staleness").index += 1
    assert "set on this page; the preset has 16" in text(page._texts[1].value)
    page._folds.selected_index = 2
    assert "by wall-clock" in text(page._texts[0].value)
    page._folds.selected_index = 0
    page._folds.selected_index = None


def test_assumed_values_are_marked_at_their_controls(page):
    tags = {control.knob: text(line.value) for control, line in page._board.hints.items()}
    assert tags["tool_calls"].startswith("assumed")
    assert tags["concurrency"].startswith("117 slots on each replica calibrated")
    assert not tags["mfu"].startswith(("assumed", "calibrated"))
    assert tags["gpu_hour_usd"].startswith("$1.5919 from the cost of ownership")


# The whole run


def test_a_point_is_that_of_the_first_step_and_the_whole_run_is_beside_it(page):
    page._whole.grow.value = True
    state = page.state
    assert state.scenario.drift_law == "linear"
    assert page._found.state.scenario == state.first.scenario
    assert page._found.point == answer(opened()).point
    found = way(state)
    said = text(page._cards.value)
    assert f"Whole run ${found.whole.usd:,.0f}" in said
    assert f"if nothing moved ${found.whole_still.usd:,.0f}" in said
    assert found.whole.usd > found.whole_still.usd
    assert f"hosted ${found.whole.hosted_usd:,.0f}" in said


def test_growth_and_learning_are_switched_off_and_on_again_as_they_were(page):
    page._whole.pick.value = "prime-rl-qwen3-235b"
    page._whole.learn.value = True
    assert said(page) == ""
    both = page.state.scenario
    assert both.has_solve_rates
    page._whole.grow.value = False
    assert page.state.scenario.drift_law == "constant"
    assert page._whole.pick.value == ""
    page._whole.learn.value = False
    assert page.state.scenario.learning_logit_per_step == 0.0
    page._whole.learn.value = True
    page._whole.grow.value = True
    assert page.state.scenario == both


def test_learning_keeps_the_solve_rates_that_there_are():
    scenario = dataclasses.replace(opened("slime-qwen3-235b").scenario, filtered_fraction=0.0, solve_rate_mean=0.5)
    found = whole_run.learning(scenario, {})
    assert (found.solve_rate_mean, found.solve_rate_law) == (0.5, "beta")
    assert found.learning_logit_per_step > 0


def test_a_move_from_the_list_keeps_drift_and_learning(page):
    page._whole.grow.value = True
    before = page.state.scenario
    page._moves[0].click()
    assert page.state.scenario.concurrency != before.concurrency
    assert dataclasses.replace(page.state.scenario, concurrency=before.concurrency) == before


def test_a_run_whose_groups_are_all_filtered_has_no_whole(page):
    page._go(moved(opened("slime-qwen3-235b"), solve_rate_mean=1.0))
    assert "the run goes no further" in text(page._cards.value)
    assert "the run goes no further" in text(page._whole.table.value)
    assert said(page) == ""
