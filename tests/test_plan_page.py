"""The page "how do I split my GPUs?" without a browser: what it asks, shows and refuses, and that a move calls a plan off."""

import asyncio
import dataclasses
from html import escape
from threading import Event

import numpy as np
import pytest
from simulation_toys import toy
from test_explorer import text

from rlqueue.app import plan_panels, plan_work
from rlqueue.app.banded import of_inputs
from rlqueue.app.origins import kind_tag
from rlqueue.app.plan import Planned, gpus_on_offer, trainers_on_offer
from rlqueue.app.plan_figures import EMPTY, NAMES, figures
from rlqueue.app.plan_paste import said
from rlqueue.app.plan_work import Asked, make
from rlqueue.app.state import opened
from rlqueue.paste import TARGETS, conversions, paste
from rlqueue.planning import sentences
from rlqueue.presets import preset_names
from rlqueue.ranges import Range

SMALL = toy(
    trainer_gpus=2, generator_gpus=2, prompts_per_step=4, concurrency=16, schedule="async-in-flight", max_staleness=2.0,
    response_sigma_between_prompts=0.6, mfu=1.5e-6, gpu_hour_usd=2.0,
)  # fmt: skip
ASKED = Asked(
    scenario=SMALL, preset="prime-rl-qwen3-235b", gpus=4, objective="usd-per-mtok", max_staleness_versions=3.0,
    max_wait_ratio=None, max_usd_per_mtok=None, max_kv_ratio=None, min_trainer_gpus=1, schedules=("async-in-flight",),
)  # fmt: skip


@pytest.fixture(scope="module")
def made():
    found = make(ASKED, Event(), lambda *_: None)
    best, ranges = found.plan.best.scenario, [Range(knob="mfu", low=1e-6, high=2e-6)]  # a toy has none of its own
    return dataclasses.replace(
        found, bars=plan_work.tornado(best, ranges, "usd_per_mtok"), bands=plan_work.bands(best, ranges, 16)
    )


def test_figures_draw_the_plan_s_own_numbers(made):
    found, drawn = made.plan, figures(made)
    assert tuple(drawn) == NAMES == tuple(EMPTY)
    best = found.best
    plan = next(trace for trace in drawn["frontier"]["data"] if trace["name"] == "plan")
    assert (plan["x"], plan["y"]) == ([best.answers["staleness_versions"]], [best.value])
    heat, star = drawn["splits"]["data"]
    for axis, mark in (("x", star["x"][0]), ("y", star["y"][0])):
        order = drawn["splits"]["layout"][f"{axis}axis"]["categoryarray"]
        assert {mark, *heat[axis]} == set(order)  # a plan between two rows of the map has one of its own
        assert sorted(order, key=float) == order
    forest = [place for trace in drawn["options"]["data"] for place in trace["y"]]
    assert len(forest) == len(set(forest))
    assert sorted(forest) == sorted(drawn["options"]["layout"]["yaxis"]["categoryarray"])
    (limit,) = drawn["frontier"]["layout"]["shapes"]
    assert limit["x0"] == 3.0
    assert drawn["gpus"]["data"][0]["x"].tolist() == found.by_gpus["gpus"].tolist()


def test_a_tornado_bar_ends_where_its_input_s_end_is_solved(made):
    low, high = figures(made)["tornado"]["data"]
    bar = made.bars[0]
    assert low["base"] + low["x"][-1] == pytest.approx(bar.at_low)
    assert high["base"] + high["x"][-1] == pytest.approx(bar.at_high)


@pytest.mark.parametrize("objective", ["tokens-per-s", "hours"])
def test_other_goals_are_drawn_as_well(objective):
    found = make(dataclasses.replace(ASKED, objective=objective, schedules=()), Event(), lambda *_: None)
    drawn = figures(found)
    assert drawn["frontier"]["layout"]["yaxis"]["title"]["text"] == found.plan.goal.unit
    assert np.isfinite(drawn["frontier"]["layout"]["yaxis"]["range"]).all()
    assert plan_panels.tables(found).count("<tr") > 5


def test_the_words_and_tables_say_the_plan_and_every_option(made):
    words, tables = plan_panels.words(made), plan_panels.tables(made)
    assert "$" in words
    assert all(len(sentence) > 20 for sentence in sentences(made.plan))
    for option in made.plan.options:
        assert f"{option.scenario.trainer_gpus} : {option.scenario.generator_gpus}" in tables
    assert "rlq-here" in tables
    assert made.bars[0].knob in plan_panels.sure(made)


def test_the_cards_say_what_the_plan_comes_to_and_how_far_that_may_be_off(made):
    seen, best = text(plan_panels.cards(made)), made.plan.best
    low, high = (plan_panels._number(each) for each in (best.low, best.high))
    assert f"seeds {low} throughout" in seen if low == high else f"seeds {low}–{high}" in seen
    band = made.bands.of("usd_per_mtok")
    assert band.low < band.high
    assert f"inputs {plan_panels._number(band.low)}–{plan_panels._number(band.high)}" in seen
    for _, field, shown, _, _ in plan_panels.ANSWERS[1:]:
        assert f"{shown(best.answers[field])}" in seen
        assert of_inputs(made.bands, field, shown).words in seen
    assert plan_panels.cards(made).count(kind_tag("simulated")) == len(plan_panels.ANSWERS)
    assert plan_panels.cards(None) == ""


def test_the_plan_is_said_in_the_words_of_every_framework(made):
    text, best = said(made), made.plan.best.scenario
    for target in TARGETS:
        assert escape(paste(best, target)) in text
    for row in conversions(best).itertuples():
        assert f"<code>{row.key}</code></td><td>{row.value}</td>" in text
    assert said(None) == ""


def test_what_cannot_be_is_said_and_draws_nothing():
    found = make(dataclasses.replace(ASKED, max_usd_per_mtok=0.001), Event(), lambda *_: None)
    assert found.plan is None
    assert "max_usd_per_mtok=0.001 must be" in plan_panels.words(found)
    assert plan_panels.tables(found) == plan_panels.sure(found) == plan_panels.how(found) == ""


def test_a_plan_called_off_is_none_and_one_made_before_is_remembered(monkeypatch):
    called_off = Event()
    called_off.set()
    assert make(dataclasses.replace(ASKED, min_trainer_gpus=2), called_off, lambda *_: None) is None
    first = make(ASKED, Event(), lambda *_: None)
    monkeypatch.setattr(plan_work, "_made", None)
    assert make(ASKED, Event(), lambda *_: None) is first


def test_the_page_opens_at_once_and_plans_when_the_hand_rests(monkeypatch, made):
    asked = []

    def answered(question, *_):
        asked.append(question)
        return made

    monkeypatch.setattr("rlqueue.app.plan.make", answered)

    async def visit():
        page = Planned(opened("slime-qwen3-235b"))
        assert page.words.value == ""
        page.staleness.index = 4
        page.wait.index = 3
        page.goal.index = 1
        await page.rest.task
        return page

    page = asyncio.run(visit())
    (question,) = asked  # three moves, one plan
    assert (question.max_staleness_versions, question.max_wait_ratio, question.max_usd_per_mtok) == (3.0, 0.05, None)
    assert (question.objective, question.gpus, question.schedules) == ("tokens-per-s", 96, ())
    assert "rlq-verdict" in page.words.value
    assert "plan made" in page._about.value


def test_another_published_run_brings_its_gpus_and_drops_the_old_plan(monkeypatch, made):
    monkeypatch.setattr("rlqueue.app.plan.make", lambda *_: made)

    async def visit():
        page = Planned(opened("slime-qwen3-235b"))
        page.gpus.index = 0
        await page.rest.task
        assert page.words.value
        page.board.preset.value = "verl-qwen3-235b-c96"
        assert page.words.value == ""
        assert (page.gpus.value, page.asked.preset) == (56, "verl-qwen3-235b-c96")
        page.staleness.index = 2
        page.board.again.click()
        assert page.staleness.index == 0
        page.rest.stop()

    asyncio.run(visit())


@pytest.mark.parametrize("name", preset_names())
def test_the_gpus_on_offer_hold_a_replica_and_a_trainer_and_the_run_s_own(name):
    state = opened(name)
    offered, own = gpus_on_offer(state), state.start.trainer_gpus + state.start.generator_gpus
    assert own in offered
    assert all(each > state.start.gpus_per_replica for each in offered)
    assert all(each < own for each in trainers_on_offer(own))
