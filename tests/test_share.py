"""A scenario in an address: what is written is read back exactly, and nothing of a link is believed unchecked."""

import csv
import dataclasses
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_explorer import text

from rlqueue import Scenario
from rlqueue.app import share
from rlqueue.app.compare import Compare
from rlqueue.app.explorer import Explorer
from rlqueue.app.growth import Growth
from rlqueue.app.inside import Inside
from rlqueue.app.plan import Planned
from rlqueue.app.state import State, opened, started, with_value
from rlqueue.app.teach import Teach
from rlqueue.app.validation import Accuracy
from rlqueue.app.your_run import YourRun
from rlqueue.knobs import CATALOGUES
from rlqueue.presets import preset_names

SMALL = "slime-qwen3-235b"


def moved(name=SMALL, **knobs):
    state = opened(name)
    scenario = state.scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return State(preset=name, scenario=scenario)


@pytest.mark.parametrize("name", preset_names())
def test_a_published_run_is_its_name(name):
    assert share.query(opened(name)) == f"p={name}"
    assert share.read(f"p={name}")[0] == opened(name)
    assert share.read("")[0] == opened()


KNOBS = st.fixed_dictionaries(
    {
        "concurrency": st.integers(1, 5_000),
        "max_staleness": st.floats(0, 32),
        "mean_response_tokens": st.floats(100, 20_000),
        "gpu_hour_usd": st.none() | st.floats(0, 100),
        "hosted_price": st.sampled_from([None, CATALOGUES["hosted_price"][1]("tinker/Qwen3-235B-A22B/2026-06-11")]),
        "node.usd_per_kwh": st.floats(0, 1),
        "solve_rate_mean": st.floats(0, 1),
        "gate": st.sampled_from(["none", "zero-advantage"]),
    }
)


@given(KNOBS)
def test_what_is_written_is_read_back_exactly(knobs):
    state = moved(**knobs)
    query = share.query(state, seed=3)
    found, own = share.read(f"?{query}", own=("seed",))
    assert found == state
    assert own == {"seed": "3"}


def test_texts_of_any_kind_survive_an_address():
    state = moved(drift_series="0: 8000 / 10, 20: 12000 / 40")
    assert share.read(share.query(state))[0] == state
    assert " " not in share.query(state)


def test_a_link_has_short_keys_and_full_names_are_read_as_well():
    state = moved(generator_gpus=48, concurrency=300)
    assert share.query(state) == f"p={SMALL}&t=48&g=48&c=300"
    assert share.read(f"p={SMALL}&trainer_gpus=48&generator_gpus=48&concurrency=300")[0] == state
    assert len(set(share.SHORT.values())) == len(share.SHORT)
    assert not set(share.SHORT) & {share.PRESET, share.PLACE}
    assert set(share.SHORT.values()) <= set(started(SMALL).settable())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("p=nobody", "p='nobody' is not known"),
        ("foo=3", "knob='foo' is not known"),
        ("g=abc", "generator_gpus='abc' must be a whole number"),
        ("g=-1", "generator_gpus=-1 must be >= 1"),
        ("g=1e9", "generator_gpus=1000000000 must be <= 16384"),
        ("pool=10000000&solve=0.5", "pool_prompts=10000000 must be <= 1000000"),
        ("c=1&c=2", "each key must come once"),
        ("g=8&generator_gpus=16", "by its short key or by its name"),
        ("llm=nobody", "llm='nobody' is not known"),
        ("name=x", "has the name of its preset"),
        ("kwh=cheap", "usd_per_kwh='cheap' must be a finite number"),
        ("t=nan", "trainer_gpus=nan must be"),
        ("out=1e99", "mean_response_tokens=1e+99 must be"),
        ("c=" + "9" * 9_000, "must be <= 8000"),
        ("&".join(f"x{k}=1" for k in range(200)), "fields"),
    ],
)
def test_what_no_page_would_write_is_refused_by_name(query, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace("+", r"\+")):
        share.read(query)


@given(st.text(max_size=300))
def test_no_text_does_anything_else_than_being_read_or_refused(query):
    try:
        state, _ = share.read(query)
    except ValueError:
        return
    assert state.preset in preset_names()


# The pages


@pytest.mark.parametrize("kind", [Explorer, Inside, Teach, Growth])
def test_a_page_opened_at_its_own_link_is_the_page_that_wrote_it(kind):
    page = kind()
    held = next(held for control, held in board(page).holders.items() if control.knob == "concurrency")
    held.index -= 2
    written = sharing(page).query
    other = kind()
    other._restored(f"?{written}")
    assert other.state == page.state
    assert sharing(other).query == written


def board(page):
    return getattr(page, "_board", None) or page.board


def sharing(page):
    return getattr(page, "_share", None) or page.sharing


def test_a_run_from_the_explorer_gets_what_the_other_pages_are_about_and_keeps_its_knobs():
    query = share.query(moved(concurrency=300, solve_rate_mean=0.45))
    teach, growth = Teach(), Growth()
    teach._restored(query)
    assert (teach.state.scenario.concurrency, teach.state.scenario.solve_rate_mean) == (300, 0.45)
    assert teach.state.scenario.learning_logit_per_step > 0
    growth._restored(query)
    assert (growth.state.scenario.concurrency, growth.state.scenario.drift_law) == (300, "linear")


PAGES = (Explorer, Inside, Teach, Growth, Planned, Compare)


@pytest.mark.parametrize("kind", PAGES)
def test_what_links_to_other_pages_carry_is_read_by_each_of_them(kind):
    page = kind()
    carried = sharing(page).elsewhere or sharing(page).query
    for other in (each() for each in PAGES):
        other._restored(f"?{carried}")
        assert carried.split("&")[0].removeprefix("p=") in sharing(other).query


@pytest.mark.parametrize("kind", [*PAGES, YourRun, Accuracy])
def test_each_page_offers_its_files_and_the_scenario_among_them_is_its_own(kind):
    page = kind()
    button, sent = sharing(page), []
    button.send = sent.append
    for key, label, title in button.files:
        assert label
        assert title
        button._handle_custom_msg({"kind": "file", "which": key}, [])
        assert sent[-1]["which"] == key
        assert sent[-1]["name"].endswith(f".{key.partition('-')[0]}")
    files = {message["which"]: message["text"] for message in sent}
    assert "csv" in files
    if kind is Compare:
        for letter, each in zip("ab", page.shown, strict=True):
            assert Scenario.from_toml(files[f"toml-{letter}"]) == each.state.scenario
    elif kind in PAGES:
        assert Scenario.from_toml(files["toml"]) == page.state.scenario
    else:
        assert "toml" not in files  # an example without a configuration, and a page about many runs


def test_a_run_of_one_s_own_has_a_scenario_file_once_there_is_a_configuration():
    page = YourRun()
    page._preset.value = SMALL
    assert [key for key, *_ in page._share.files] == ["toml", "csv"]
    assert Scenario.from_toml(page._scenario()[1]) == page.found.diagnosis.scenario
    rows = list(csv.DictReader(io.StringIO(page._csv()[1])))
    assert {"measured", "closed form"} <= {row["kind"] for row in rows}


def test_a_plan_s_question_is_its_link():
    page = Planned(opened(SMALL))
    assert page.sharing.query == f"p={SMALL}"
    page.gpus.index += 1
    page.goal.index, page.staleness.index, page.schedule.index, page.usd.index, page.trainers.index = 1, 4, 2, 3, 2
    other = Planned()
    other._restored(f"?{page.sharing.query}")
    assert other.asked == page.asked
    assert other.sharing.query == page.sharing.query
    moved_on = share.query(moved(concurrency=300))
    other._restored(moved_on)
    assert other.asked.scenario.concurrency == 300
    assert other.asked.max_staleness_versions is None  # what the link before had asked for is gone
    with pytest.raises(ValueError, match="goal='fame' is not known"):
        other._restored("goal=fame")


def test_a_seed_is_part_of_the_link_of_a_run():
    page = Inside()
    page._restored("p=slime-qwen3-235b&seed=7")
    assert page.seed == 7
    with pytest.raises(ValueError, match="seed='99' must be"):
        page._restored("seed=99")


def test_a_bad_link_is_refused_in_the_status_line_and_the_page_opens_as_always():
    page = Explorer()
    page._share._handle_custom_msg({"kind": "open", "query": "?g=many"}, [])
    assert "generator_gpus='many' must be a whole number" in text(page._status.value)
    assert page.state == opened()
    for message in (
        "open",
        {"kind": "open", "query": 3},
        {"kind": "file", "which": "exe"},
        {"kind": "file", "which": ["csv"]},
        None,
    ):
        page._share._handle_custom_msg(message, [])
        assert text(page._status.value) == ""
    assert page.state == opened()


def test_a_page_may_send_messages_and_set_nothing():
    page = Explorer()
    page._share.set_state({"query": "p=x", "stem": "x"})
    assert (page._share.query, page._share.stem) == (share.query(opened()), opened().scenario.name)


@pytest.mark.parametrize("kind", [Explorer, Teach, Growth])
def test_the_table_has_the_numbers_of_the_page_with_their_kind(kind):
    page = kind()
    name, text_of = page._csv()
    assert name.endswith(".csv")
    rows = list(csv.DictReader(io.StringIO(text_of)))
    assert set(rows[0]) == {"scenario", "kind", "quantity", "along", "at", "value"}
    whole = next(row for row in rows if (row["quantity"], row["along"]) == ("usd", "whole run"))
    way = page._way if kind is Explorer else page.way
    assert float(whole["value"]) == way.whole.usd
    if kind is Explorer:
        wait = [row for row in rows if row["quantity"] == "trainer_wait_ratio" and row["along"] == ""]
        assert {row["kind"]: float(row["value"]) for row in wait} == {
            "closed form": page._found.point.trainer_wait_ratio,
            "simulated": page._found.simulated.point.trainer_wait_ratio,
        }


def test_a_name_is_not_part_of_a_link():
    state = moved()
    renamed = dataclasses.replace(state, scenario=dataclasses.replace(state.scenario, name="mine"))
    assert share.query(renamed) == share.query(state)
