"""The page "how accurate is it?": published beside predicted for each case, closed form first, and nothing claimed beyond it."""

import asyncio
import re
from html import escape

import pytest

pytest.importorskip("anywidget")

from test_explorer import text

from rlqueue.app.origins import kind_tag
from rlqueue.app.validation import Accuracy, computed
from rlqueue.app.validation_figures import figures
from rlqueue.app.validation_words import MERITS, cards, case_html, progress
from rlqueue.validation import Validation, cases
from rlqueue.validation.protocol import PREDICTED

CASES = cases()
NAMES = [case.name for case in CASES]
STALENESS = "applied-compute-staleness"


def test_before_anything_is_computed_the_page_has_every_case_and_no_figure_of_merit():
    page = Accuracy()
    assert len(page._tables) == len(CASES)
    assert list(page._folds.titles) == [case.title for case in CASES]
    assert page._cards.value.count("–") == 6
    assert "case 1 of" in page._about.value


def test_a_computed_case_shows_each_published_figure_beside_the_predicted_one():
    page = Accuracy()
    found = computed(STALENESS, "closed form")
    page.take(found)
    html = page._tables[NAMES.index(STALENESS)].value
    assert html.count("<tr class=") == len(found.comparisons)
    for each in found.comparisons:
        assert f"{each.published:.3g} version" in html
        assert f"{each.predicted:.3g} version" in html
    for words in found.case.lacks:
        assert escape(words) in html


def test_a_closed_form_never_replaces_what_was_simulated():
    page = Accuracy()
    simulated = computed(STALENESS, "simulated")
    page.take(simulated)
    page.take(computed(STALENESS, "closed form"))
    assert page.results[STALENESS] is simulated


def test_rows_that_calibrate_have_another_mark_than_those_predicted():
    found = computed("verl-7b-scaling", "closed form")
    trace = next(trace for trace in figures([found], NAMES)["times"]["data"] if trace.get("name") == "verl-7b-scaling")
    roles = [text.split("<br>")[2].partition(":")[0] for text in trace["text"]]
    marks = dict(zip(roles, trace["marker"]["symbol"], strict=True))
    assert marks[PREDICTED] != marks["beside"]
    table = case_html(found)
    assert len(re.findall('<tr class="rlq-calibrates"', table)) == 4
    assert "Fitted by least squares" in table


def test_tokens_per_second_are_drawn_as_the_step_time_they_stand_for():
    found = computed("areal-staleness-8", "closed form")
    trace = next(
        trace for trace in figures([found], NAMES)["times"]["data"] if trace.get("name") == "areal-staleness-8"
    )
    tokens = found.case.rows[0].scenario.trained_tokens_per_step
    assert trace["x"][0] == pytest.approx(tokens / found.comparisons[0].published)


def test_each_case_has_a_colour_of_its_own():
    from rlqueue.app.validation_figures import COLOURS

    assert len(set(COLOURS)) >= len(cases())


def test_an_aim_that_is_missed_is_called_missed():
    html = cards([computed("verl-7b-tools", "closed form")])
    wait = html.split("Trainer wait ratio")[1].split("</div>")[0]
    assert "missed" in wait
    assert "17.0 points" in wait
    alone = cards([computed("areal-staleness-8", "closed form")])
    assert "rlq-met" in alone.split("Step time")[1].split("</div>")[0]


def test_each_figure_of_merit_has_its_kind_and_the_band_over_cases_that_holds_it():
    some = [computed(name, "closed form") for name in NAMES]
    html = cards(some)
    assert html.count(kind_tag("closed form")) == len(MERITS)
    wait = text(html).split("Trainer wait ratio")[1]
    value = float(wait.split(" points")[0])
    low, high = (float(each) for each in re.search(r"cases ([\d.]+)–([\d.]+) points", wait).groups())
    assert low < value < high
    alone = sorted(Validation(results=[each]).summary()["median_error_wait_points"] or 0.0 for each in some)
    assert low > 100 * alone[0]
    assert high <= 100 * alone[-1] + 0.05
    assert "one case only" in text(html).split("Staleness")[1]  # of a single case nothing is told
    assert "cases " not in text(html).split("Staleness")[1].split("Rollout")[0]
    simulated = cards([computed(STALENESS, "simulated")])
    assert kind_tag("simulated") in simulated
    assert kind_tag("closed form") not in simulated


def test_the_page_says_who_computed_what_it_shows():
    closed = [computed(STALENESS, "closed form")]
    assert "closed form" in progress(closed, CASES[:1], "closed form")
    assert "all simulated" in progress([computed(STALENESS, "simulated")], CASES[:1], "simulated")


def test_opening_the_page_computes_every_case_by_itself(monkeypatch):
    page = Accuracy()
    monkeypatch.setattr(page, "cases", CASES[:1])
    asyncio.run(page._compute())
    assert page.results[STALENESS].solver == "simulated"
