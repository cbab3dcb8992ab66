"""The page "side by side" without a browser: its table of differences, its knobs, its links."""

import asyncio
import csv
import dataclasses
import io

import pytest
from test_explorer import text

from rlqueue.app import compare_words, share
from rlqueue.app import page as parts
from rlqueue.app.banded import band_of, banded, words
from rlqueue.app.banded_way import known_way
from rlqueue.app.compare import Compare, read
from rlqueue.app.compare_figures import figures
from rlqueue.app.formats import whole_dollars
from rlqueue.app.state import State, opened, with_value
from rlqueue.presets import preset_names

SMALL = "slime-qwen3-235b"


def moved(name=SMALL, **knobs):
    state = opened(name)
    scenario = state.scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return State(preset=name, scenario=scenario)


@pytest.fixture
def page():
    return Compare([opened(SMALL), moved(concurrency=400)])


def cells(page, name):
    rows = page._numbers.value.split("<tr>")
    return text(next(row for row in rows if f">{name}<" in row))


def test_each_number_is_the_column_s_own_and_the_base_s_is_the_measure(page):
    bills = [each.found.shown_bill for each in page.shown]
    said = cells(page, "Self-built")
    assert f"${bills[0].usd_per_mtok:.2f}/Mtok 1.00×" in said
    assert f"${bills[1].usd_per_mtok:.2f}/Mtok {bills[1].usd_per_mtok / bills[0].usd_per_mtok:.2f}×" in said
    waits = [each.found.shown_point.trainer_wait_ratio for each in page.shown]
    apart = f"{100 * (waits[1] - waits[0]):+.1f} points".replace("-", "−")
    assert f"{waits[0]:.1%} base" in cells(page, "Trainer wait ratio")
    assert f"{waits[1]:.1%} {apart}" in cells(page, "Trainer wait ratio")


def test_any_column_can_be_the_one_that_the_others_are_measured_by(page):
    page._which.value = "b"
    bills = [each.found.shown_bill.usd_per_mtok for each in page.shown]
    assert f"{bills[0] / bills[1]:.2f}×" in cells(page, "Self-built")
    assert f"${bills[1]:.2f}/Mtok 1.00×" in cells(page, "Self-built")


def test_every_number_says_its_kind(page):
    assert cells(page, "Trainer wait ratio").count("simulated") == 2
    assert cells(page, "Trainer wait ratio").count("closed form") == 2
    assert cells(page, "Hosted").count("list price") == 2
    assert cells(page, "Whole run").count("closed form") == 2


def test_only_knobs_that_differ_are_listed_and_marked_where_they_part(page):
    said = text(page._knobs.value)
    assert "Knobs that differ (1)" in said
    assert "concurrency [rollout] 256 400" in said
    assert page._knobs.value.count("rlq-parts") == 1
    same = Compare([opened(SMALL), opened(SMALL)])
    assert "The scenarios are the same" in text(same._knobs.value)


def test_two_to_four_scenarios_stand_side_by_side(page):
    for count in (2, 3, 4):
        page._how_many.value = count
        assert len(page.shown) == count
        assert [holder.layout.display for holder in page._holders] == [""] * count + ["none"] * (4 - count)
        assert len(figures(page.shown)["waits"]["data"]) == 2 * count
        assert text(page._status.value) == ""


def test_a_slider_moves_its_own_column_and_no_other(page):
    held = next(held for control, held in page._boards[1].holders.items() if control.knob == "generator_gpus")
    before = page.columns[0]
    held.index -= 1
    assert page.columns[1].state.scenario.generator_gpus == held.options[held.index][1]
    assert page.columns[0] is before
    assert f"b={SMALL}" in page._plots._stamp


def test_the_link_holds_all_scenarios_and_the_other_pages_get_the_last(page):
    other = Compare()
    other._restored(f"?{page._share.query}")
    assert [each.state for each in other.shown] == [each.state for each in page.shown]
    assert other._share.query == page._share.query
    assert share.read(page._share.elsewhere)[0] == page.shown[-1].state


def test_a_link_from_another_page_is_compared_with_its_published_run():
    state = moved(concurrency=300)
    assert read(share.query(state)) == [opened(SMALL), state]
    assert read(share.query(state, seed=3, at="teach"))[1] == state


@pytest.mark.parametrize(
    "query", ["a=p%3Dslime-qwen3-235b", "a=&c=", "b=&c=", "a=p%3Dnobody&b=", "x=1", "a=" + "x" * 40_000]
)
def test_a_link_that_no_page_wrote_is_refused(query):
    with pytest.raises(ValueError, match=r"link|known"):
        read(query)


def test_the_table_of_all_is_told_apart_by_letter(page):
    rows = list(csv.DictReader(io.StringIO(page._csv()[1])))
    assert {row["scenario"] for row in rows} == {f"a: {SMALL}", f"b: {SMALL}"}


def test_at_rest_there_are_several_seeds_and_bands(page, monkeypatch):
    monkeypatch.setattr(parts, "REST_S", 0.0)

    async def visit():
        page._begin()
        await asyncio.wait_for(page._rest.task, 120)

    asyncio.run(visit())
    assert "8 seeds" in text(page._how.value)
    assert "all runs done" in page._how.value
    band = band_of(page.shown[0].known, "usd_per_mtok")
    assert f"inputs ${band.low:.2f}–${band.high:.2f}" in cells(page, "Self-built")
    waits = [each.trainer_wait_ratio for each in page.shown[0].found.simulated.points]
    assert f"seeds {min(waits):.1%}–{max(waits):.1%}" in cells(page, "Trainer wait ratio")
    whole = known_way(page.shown[0].state).whole.of("usd")
    assert f"inputs {whole_dollars(whole.low)}–{whole_dollars(whole.high)}" in cells(page, "Whole run")
    assert "inputs: 90% of 64 samples of the" in text(page._numbers.value)
    for row in compare_words.ROWS:
        if row.name != "Hosted":  # a list price has no band
            assert "inputs " in cells(page, row.name)


# Bands of the explorer's cards


def test_a_card_has_the_band_of_its_inputs_and_the_preset_s_fitted_knobs_are_named():
    from rlqueue.app import panels
    from rlqueue.app.answers import answer

    state = opened(SMALL)
    found = banded(state)
    band = found.of("trainer_wait_ratio")
    said = text(panels.cards(answer(state), "", found))
    assert f"inputs {band.low:.1%}–{band.high:.1%}" in said
    assert said.count("inputs ") == len(panels.merits(answer(state))) - 1 + 1  # all but the list price's, and the note
    assert words(found).startswith("Ranges: 90%")
    assert all(each.knob in words(found) for each in found.ranges)


def test_a_number_that_no_input_moves_has_no_band():
    found = banded(opened(SMALL))
    point = dataclasses.replace(found.of("trainer_wait_ratio"), low=0.3, high=0.3)
    assert band_of(dataclasses.replace(found, rows=(point,)), "trainer_wait_ratio") is None
    assert band_of(None, "trainer_wait_ratio") is None


def test_all_published_runs_have_bands():
    for name in preset_names():
        assert len(banded(opened(name)).rows) >= 15
