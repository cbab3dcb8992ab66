"""Headline numbers on every page: each with its kind in a word and how far it may be off, or of a kind that has no band."""

import asyncio
import dataclasses
import re

import numpy as np
import pytest
from test_explorer import text

from rlqueue.app import banded_way as ways
from rlqueue.app import page as parts
from rlqueue.app import validation
from rlqueue.app.banded import banded, between, note, of_chance, of_inputs, of_seeds
from rlqueue.app.banded_way import banded_way, gathered
from rlqueue.app.cards import BARE, NONE, Card, Span, html
from rlqueue.app.explorer import Explorer
from rlqueue.app.formats import count, dollars, percent, seconds
from rlqueue.app.growth import Growth
from rlqueue.app.inside import Inside
from rlqueue.app.plan import Planned
from rlqueue.app.state import State, opened, with_value
from rlqueue.app.teach import Teach
from rlqueue.app.validation import Accuracy
from rlqueue.app.way import solved, way
from rlqueue.app.your_run import YourRun
from rlqueue.ranges import default_ranges
from rlqueue.report import summary
from rlqueue.report.assumptions import Assumptions
from rlqueue.uncertainty import sampled
from rlqueue.validation import cases

SMALL = "verl-qwen3-235b-c96"
KINDS = {"closed form", "simulated", "measured", *BARE}


def still(name=SMALL, **knobs):
    state = opened(name)
    for knob, value in knobs.items():
        state = dataclasses.replace(state, scenario=with_value(state.scenario, knob, value))
    return state


def grown(steps):
    state = opened(SMALL, "what_if_answers_grow")
    scenario = dataclasses.replace(state.scenario, training_steps=steps, drift_steps=steps - 1)
    return State(preset=SMALL, scenario=scenario, opening=state.opening)


def of_run(state):
    return asyncio.run(banded_way(state))


# A card


@pytest.mark.parametrize("kind", ["closed form", "simulated", "measured"])
def test_no_card_can_be_made_without_saying_how_far_its_number_may_be_off(kind):
    with pytest.raises(ValueError, match=f"spans must say how far a number may be off that is {kind}"):
        Card(name="Wait", text="12%", kind=kind, means="")
    assert kind in html(Card(name="Wait", text="12%", kind=kind, means="", spans=(Span(),)))
    Card(name="Wait", text=NONE, kind=kind, means="there is none")


@pytest.mark.parametrize("kind", BARE)
def test_a_price_on_a_list_needs_none(kind):
    assert "rlq-band" not in html(Card(name="Hosted", text="$3.43", kind=kind, means=""))


def test_what_a_card_says_is_text_and_never_markup():
    made = Card(
        name="<b>",
        text="<b>",
        kind="<b>",
        means="<b>",
        unit="<b>",
        spread="<b>",
        spans=(Span(words="<b>", title='"<b>'),),
    )
    assert "<b>" not in html(made)


def test_a_span_says_a_unit_once_and_does_not_pretend_to_be_wide():
    assert between("inputs", seconds(221), seconds(336), "").words == "inputs 221–336 s"
    assert between("inputs", "37 min", "1.2 h", "").words == "inputs 37 min–1.2 h"
    assert between("inputs", "$5.96/Mtok", "$8.18/Mtok", "").words == "inputs $5.96–$8.18/Mtok"
    assert between("inputs", percent(0.0), percent(1e-6), "").words == "inputs 0.0% throughout"


def test_chance_is_student_s_and_of_one_part_nothing_is_known():
    assert of_chance(100.0, 2.0, 10, count, of="parts").words == "chance 96–104"  # t of nine degrees, 95 %: 1.833
    assert of_chance(1.0, 2.0, 10, count, of="parts").words == "chance 0–5"
    assert of_chance(1.0, 2.0, 10, count, of="parts", least=-np.inf).words == "chance -3–5"
    assert of_chance(1.0, np.nan, 1, count, of="parts").words == "chance unknown"
    assert of_seeds([0.1], percent).words == ""
    assert of_seeds([0.3, 0.1, 0.2], percent).words == "seeds 10.0%–30.0%"


# Bands of a run along its way


def test_a_run_that_stands_still_has_the_bands_of_its_point_at_each_step():
    """Both solve the same samples: the course of a run in which nothing moves is its point."""
    state = still()
    found, point = of_run(state), banded(state)
    for place in (0, -1):
        at = found.at(place)
        for quantity in ("trainer_wait_ratio", "usd_per_mtok", "staleness_versions", "step_s"):
            here, there = at.of(quantity), point.of(quantity)
            assert (here.low, here.high, here.value) == pytest.approx((there.low, there.high, there.value), rel=1e-9)
    whole = found.whole.of("usd_per_mtok")
    assert (whole.low, whole.high) == pytest.approx(
        (point.of("usd_per_mtok").low, point.of("usd_per_mtok").high), rel=1e-9
    )
    step = point.of("step_s")
    hours = found.whole.of("hours")
    ratio = state.scenario.training_steps / 3600.0
    assert (hours.low, hours.high) == pytest.approx((step.low * ratio, step.high * ratio), rel=1e-9)


def test_a_run_that_moves_has_at_each_step_the_percentiles_of_its_samples():
    state = grown(steps=50)
    found, own = of_run(state), way(state)
    cases_, refused = sampled(state.scenario, default_ranges(state.scenario, SMALL), ways.SAMPLES)
    place = 9
    costs = [solved(each).table["usd_per_mtok"].iloc[place] for each in cases_]
    band = found.at(place).of("usd_per_mtok")
    assert (band.low, band.median, band.high) == pytest.approx(np.percentile(costs, [5, 50, 95]))
    assert band.value == own.at["usd_per_mtok"][place]
    assert found.whole.samples + found.whole.refused == ways.SAMPLES
    assert refused <= found.whole.refused


def test_a_sample_that_gets_nowhere_counts_up_to_there_and_not_for_the_whole():
    state = grown(steps=50)
    own, good = way(state), solved(state.scenario)
    half = dataclasses.replace(good, table=good.table.iloc[: len(good.table) // 2], stalled_at=25)
    dear = dataclasses.replace(half, table=half.table.assign(usd_per_mtok=2.0 * half.table["usd_per_mtok"]))
    found = gathered(own, [good, dear], (), 0)
    early, late = found.at(0).of("usd_per_mtok"), found.at(len(own.steps) - 1).of("usd_per_mtok")
    assert early.high == pytest.approx(1.95 * early.value)
    assert late.low == late.high == late.value
    assert (found.whole.samples, found.whole.refused) == (1, 1)


def test_what_the_reader_set_has_no_range():
    state = still()
    knobs = {each.knob for each in of_run(state).whole.ranges}
    assert "mfu" in knobs
    fewer = of_run(still(mfu=0.2))
    assert {each.knob for each in fewer.whole.ranges} == knobs - {"mfu"}
    assert of_inputs(None, "usd", dollars).words == ""
    without = dataclasses.replace(fewer.whole, ranges=())
    assert of_inputs(without, "usd", dollars).words == "inputs without a range"


def test_the_line_below_the_cards_names_the_inputs_to_who_points_at_it():
    found = banded(still())
    line = note(found, "before.", "after.")
    assert line.words.startswith("before. inputs: 90% of ")
    assert line.words.endswith("after.")
    assert [each.knob for each in found.ranges if each.knob not in line.title] == []
    assert note(None).title == ""


# The pages, when the hand rests


def shown(page):
    """All cards of a page, as HTML."""
    texts, open_ = [], [page.box]
    while open_:
        widget = open_.pop()
        open_ += getattr(widget, "children", ())
        texts.append(str(getattr(widget, "value", "")))
    return re.findall(r'<div class="rlq-card.*?</div>', "".join(texts))


def rested(make, begin):
    async def visit():
        page = make()
        begin(page)
        rest = getattr(page, "_rest", None) or page.rest
        await asyncio.wait_for(rest.task, 240)
        return page

    return asyncio.run(visit())


PAGES = {
    "explorer": (lambda: Explorer(opened(SMALL)), lambda page: page._begin(), 8),
    "which prompts teach": (Teach, lambda page: page._begin(), 6),
    "what if answers grow": (Growth, lambda page: page._begin(), 7),
    "inside one run": (lambda: Inside(opened(SMALL)), lambda page: page._begin(), 8),
    "plan": (lambda: Planned(opened(SMALL)), lambda page: page._begin(), 5),
    "validation": (Accuracy, lambda page: page._begin(), 6),
}


@pytest.mark.parametrize("name", PAGES)
def test_at_rest_every_card_has_its_kind_and_its_band(name, monkeypatch):
    make, begin, least = PAGES[name]
    monkeypatch.setattr(parts, "REST_S", 0.0)
    monkeypatch.setattr(validation, "cases", lambda: cases()[:2])
    cards = shown(rested(make, begin))
    assert len(cards) >= least
    for card in cards:
        check(card)


def test_every_card_of_a_run_of_one_s_own_has_its_kind_and_its_band():
    page = YourRun()
    page._preset.value = SMALL
    assert len(shown(page)) >= 5
    for card in shown(page):
        check(card)


def test_every_number_of_the_closed_form_in_the_report_s_key_data_has_a_band_that_holds_it():
    rows = summary.key_data(Assumptions())
    modelled = [each for each in rows if each.how == "closed form"]
    assert len(modelled) >= 14
    for each in modelled:
        low, high = each.band
        assert low <= each.computed * (1.0 + 1e-9), each.quantity
        assert each.computed <= high * (1.0 + 1e-9), each.quantity
    wait = next(each for each in rows if each.quantity == "trainer wait" and "slime" in each.run)
    of_samples = banded(opened("slime-qwen3-235b")).of("trainer_wait_ratio")
    assert wait.band == pytest.approx((of_samples.low, of_samples.high))
    assert {each.band for each in rows if each.test == summary.ARITHMETIC} == {None}


def check(card):
    number = re.search(r'<dd class="rlq-number">([^<]*)<', card)[1]
    kinds = re.findall(r'<span class="rlq-tag [^"]*" title="[^"]*">([^<]+)</span>', card)
    assert kinds[0] in KINDS, card
    if number == NONE or kinds[0] in BARE:
        return
    spans = re.findall(r'<dd class="rlq-band" title="([^"]*)">([^<]*)</dd>', card)
    assert spans, card
    for title, words in spans:
        assert title, card
        assert re.match(r"(inputs|chance|seeds|cases|one case)\b", text(words)), card
