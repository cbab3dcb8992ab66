"""The page "your run" without a browser: what is dropped, pasted or sent is read, refused or ignored, and stays in memory."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from log_shapes import SHAPES, as_console, as_csv, as_json_lines, prime_orchestrator, prime_trainer
from scipy.stats import ttest_1samp
from test_diagnosis import log_of, slower
from test_explorer import text

from rlqueue import Scenario
from rlqueue.app import drop as dropping
from rlqueue.app import your_run_words as words
from rlqueue.app.banded import of_inputs
from rlqueue.app.drop import Drop
from rlqueue.app.formats import seconds
from rlqueue.app.guard import status_line
from rlqueue.app.origins import kind_tag
from rlqueue.app.your_run import LONGEST_TEXT, YourRun, stamp
from rlqueue.app.your_run_figures import MOST_BARS, figures
from rlqueue.app.your_run_found import EXAMPLE, Given, added, example, found
from rlqueue.frameworks import frameworks
from rlqueue.uncertainty import QUANTITIES

CONFIGS = Path(__file__).parent / "configs"


@pytest.fixture
def page():
    return YourRun()


def said(page):
    return page._status.value


def send(page, name, content, piece=dropping.PIECE):
    """As the page's script does: begin, then pieces."""
    drop = page._drop if isinstance(page, YourRun) else page
    drop._handle_custom_msg({"kind": "begin", "name": name, "size": len(content)}, [])
    for at in range(0, len(content), piece):
        drop._handle_custom_msg({"kind": "piece"}, [memoryview(content[at : at + piece])])


def test_the_page_opens_with_a_published_run_as_an_example(page):
    assert page.found.given.example
    assert "An example" in page._parts["recognised"].value
    assert "79.3%" in page._parts["cards"].value
    assert "The trainer waits 79% of the time" in page._parts["verdict"].value
    assert figures(page.found)["times"]["data"]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("make", [lambda name: as_csv(SHAPES[name][1]), lambda name: as_json_lines(SHAPES[name][1])])
def test_a_dropped_log_replaces_the_example(page, name, make):
    send(page, "my.log", make(name).encode())
    assert said(page) == ""
    assert list(page.found.given.logs) == ["my.log"]
    assert f"Log of {text(frameworks()[SHAPES[name][0]])}" in text(page._parts["recognised"].value)
    assert "60.0%" in page._parts["cards"].value


def test_a_file_comes_in_pieces_and_is_whole_again(page):
    content = as_console("verl").encode()
    send(page, "verl.log", content, piece=777)
    assert page.found.given.logs["verl.log"] == content


def test_trainer_and_orchestrator_are_put_together_and_clear_forgets_both(page):
    send(page, "trainer.jsonl", as_json_lines(prime_trainer).encode())
    send(page, "orchestrator.jsonl", as_json_lines(prime_orchestrator).encode())
    assert list(page.found.given.logs) == ["trainer.jsonl", "orchestrator.jsonl"]
    assert {"wait_s", "generator_wait_s"} <= set(page.found.measured.table)
    page._clear.click()
    assert list(page.found.given.logs) == [EXAMPLE]


def test_log_and_configuration_give_moves_with_lines_to_paste(page):
    send(page, "verl.log", as_console("verl").encode())
    send(page, "run.sh", (CONFIGS / "verl_fully_async.sh").read_bytes())
    assert said(page) == ""
    assert "async_training." in page._parts["moves"].value
    assert "trainer.nnodes" in page._parts["configuration"].value
    assert "read" in page._parts["configuration"].value
    assert "timing_s/gen" in page._parts["log"].value
    assert "timing_s/gen reads like generation time." in text(page._parts["traps"].value)


def test_a_published_run_stands_for_the_configuration(page):
    scenario = Scenario.from_data("prime-rl-qwen3-235b")
    send(page, "run.jsonl", log_of(slower(scenario)).encode())
    page._preset.value = "prime-rl-qwen3-235b"
    assert page.found.diagnosis.scenario.decode_efficiency == pytest.approx(0.6 * scenario.decode_efficiency, rel=5e-3)
    assert "concurrency" in page._parts["moves"].value
    predicted = next(trace for trace in figures(page.found)["times"]["data"] if trace["name"] == "step as predicted")
    assert predicted["y"] == pytest.approx(page.found.measured.steady["step_s"].to_numpy(), rel=1e-3)


def test_a_measured_mean_has_the_band_of_its_chance_by_student_s_law(page):
    steady = page.found.measured.steady["step_s"].to_numpy()
    low, high = ttest_1samp(steady, 0.0).confidence_interval(0.9)
    seen = text(page._parts["cards"].value)
    spread = f"±{seconds(steady.std(ddof=1))} between steps"
    assert f"Step {seconds(steady.mean())} measured {len(steady)} steps, {spread}" in seen
    assert f"chance {low:.0f}–{high:.0f} s" in seen
    assert page._parts["cards"].value.count(kind_tag("measured")) == seen.count("chance ")
    assert "inputs" not in seen  # there is no model beside it


def test_the_model_beside_a_mean_has_the_band_of_what_was_assumed_and_of_the_fit(page):
    scenario = Scenario.from_data("prime-rl-qwen3-235b")
    send(page, "run.jsonl", log_of(slower(scenario)).encode())
    page._preset.value = "prime-rl-qwen3-235b"
    diagnosis, of = page.found.diagnosis, {each.knob: each for each in page.found.bands.ranges}
    fitted = [each for each in diagnosis.calibration.knobs if 1e-9 < each.spread < math.inf]
    assert {each.knob for each in of.values() if each.kind == "calibrated"} >= {each.knob for each in fitted}
    for each in fitted:
        wide = math.log(of[each.knob].high / of[each.knob].low)
        assert wide == pytest.approx(12**0.5 * each.spread)  # of an even law with that standard deviation
    assert not set(of) & set(diagnosis.taken)
    shown = [
        each for each in diagnosis.comparisons if not each.fitted and each.quantity in {*words.SHOWN} & {*QUANTITIES}
    ]
    assert shown
    for each in shown:
        band = of_inputs(page.found.bands, each.quantity, words.SHOWN[each.quantity][1])
        assert band.words.startswith("inputs ")
        assert band.words in text(page._parts["cards"].value)


def test_what_a_configuration_leaves_to_be_assumed_has_a_range(page):
    send(page, "run.toml", (CONFIGS / "prime_rl_head.toml").read_bytes())
    assumed = {fact.knob for fact in page.found.reading.facts if fact.origin == "assumed"}
    of = {each.knob for each in page.found.bands.ranges}
    assert of
    assert of <= assumed


def test_a_configuration_that_names_an_unknown_llm_asks_for_one(page):
    send(page, "run.toml", (CONFIGS / "prime_rl_head.toml").read_bytes().replace(b"GLM-5", b"Unheard-Of"))
    assert "choose one with llm=" in page._parts["recognised"].value
    page._llm.value = "glm-5"
    assert "choose one with llm=" not in page._parts["recognised"].value


@pytest.mark.parametrize("config", sorted(path.name for path in CONFIGS.iterdir() if path.is_file()))
def test_every_configuration_is_taken_alone_or_says_what_it_lacks(page, config):
    send(page, config, (CONFIGS / config).read_bytes())
    assert said(page) == ""
    assert "Configuration of" in page._parts["recognised"].value
    assert page.found.diagnosis is not None or "It makes no scenario yet" in page._parts["recognised"].value


def test_pasted_lines_are_read_and_the_field_is_free_again(page):
    page._pasted.value = as_console("slime")
    assert list(page.found.given.logs) == ["pasted 1"]
    assert page._pasted.value == ""
    page._pasted.value = (CONFIGS / "slime_async.sh").read_text(encoding="utf-8")
    assert list(page.found.given.configurations) == ["pasted 2"]


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("x.log", b"hello\nworld\n", "no metric of a known framework"),
        ("x.log", b"\x1f\x8b\x08\0\0\0", "gzip: unpack it first"),
        ("x.csv", b"step,perf/step_time\n", "no row"),
        ("x.toml", b"[nothing]\nx = 1\n", ""),
        ("x.yaml", b"a: &a [1, 2]\nb: !!python/object/apply:os.system ['true']\n", ""),
        ("<script>.log", b"nothing here\n", "no metric"),
    ],
)
def test_what_is_no_run_is_refused_and_nothing_changes(page, name, content, refusal):
    before = page.found
    send(page, name, content)
    assert 'role="alert"' in said(page)
    assert refusal in said(page)
    assert "<script>" not in said(page)
    assert page.found is before


HOSTILE = (
    None, 3, "begin", [], {}, {"kind": None}, {"kind": "piece"}, {"kind": "refused", "why": 3},
    *({"kind": "begin"} | more for more in (
        {}, {"name": 3, "size": 3}, {"name": "x" * 201, "size": 3}, {"name": "", "size": 3}, {"name": "x", "size": 0},
        {"name": "x", "size": -1}, {"name": "x", "size": 1e3}, {"name": "x", "size": True},
        {"name": "x", "size": dropping.LARGEST + 1}, {"name": ["x"], "size": {}},
    )),
)  # fmt: skip


@pytest.mark.parametrize("message", HOSTILE, ids=repr)
@pytest.mark.parametrize("buffers", [[], None, [memoryview(b"x")], [memoryview(b"x")] * 2])
def test_messages_that_no_page_sends_change_nothing(message, buffers):
    page = YourRun()
    before = page.found
    page._drop._handle_custom_msg(message, buffers)
    assert 'role="alert"' in said(page)
    assert page.found is before
    assert page._drop._content == b""


def test_more_than_was_announced_or_fits_is_refused_and_forgotten():
    taken = []
    status = status_line()
    drop = Drop(lambda *file: taken.append(file), status)
    drop._handle_custom_msg({"kind": "begin", "name": "x", "size": 5}, [])
    drop._handle_custom_msg({"kind": "piece"}, [memoryview(b"123456")])
    assert "sends more than the 5 bytes" in status.value
    drop._handle_custom_msg({"kind": "piece"}, [memoryview(b"12345")])
    assert "a piece of no file" in status.value
    drop._handle_custom_msg({"kind": "begin", "name": "x", "size": dropping.PIECE + 1}, [])
    drop._handle_custom_msg({"kind": "piece"}, [memoryview(bytes(dropping.PIECE + 1))])
    assert "sends more than" in status.value
    assert taken == []
    send(drop, "x", b"12345")
    assert taken == [("x", b"12345")]


def test_traits_of_the_drop_field_cannot_be_set_by_a_page(page):
    for sent in ({"largest": 1 << 40}, {"label": "<b>x</b>"}, {"piece": -1, "hint": 3}):
        page._drop.set_state(sent)
    assert page._drop.largest == dropping.LARGEST
    assert page._drop.piece == dropping.PIECE
    assert "Drop a run's logs" in page._drop.label


@pytest.mark.parametrize("sent", [3, None, ["x"], {"a": 1}, "x" * (LONGEST_TEXT + 1)])
def test_pasted_values_that_are_no_text_or_too_long_are_refused(page, sent):
    before = page.found
    page._pasted.set_state({"value": sent})
    assert "must be" in said(page)
    assert page.found is before


@pytest.mark.parametrize("name", ["_preset", "_llm", "_framework"])
@pytest.mark.parametrize("sent", [99, -1, "verl", None, 1.5, True])
def test_choices_take_a_place_among_their_options_only(page, name, sent):
    before = page.found
    getattr(page, name).set_state({"index": sent})
    assert "must be a whole number in" in said(page)
    assert page.found is before


def test_a_wrong_framework_is_refused_and_the_choice_goes_back(page):
    send(page, "verl.log", as_console("verl").encode())
    page._framework.value = "areal"
    assert "looks like verl" in said(page)
    assert page._framework.value == ""
    assert page.found.measured.framework == "verl"


def test_whatever_a_visitor_names_is_escaped(page):
    name = "<img src=x onerror=alert(1)>"
    row = SHAPES["verl"][1]
    send(page, name, as_json_lines(lambda step: row(step) | {"<b>name</b>": 3.0}).encode())
    page._preset.value = "prime-rl-qwen3-235b"
    for part in page._parts.values():
        assert "<img" not in part.value
        assert "<b>name" not in part.value
    assert "&lt;img" in page._parts["recognised"].value


def test_long_runs_are_drawn_as_means_of_neighbouring_steps():
    long = found(Given(logs={"x": as_csv(SHAPES["SkyRL"][1], range(2_000)).encode()}))
    times = figures(long)["times"]
    assert len(times["data"][0]["x"]) <= MOST_BARS
    assert times["data"][0]["y"] == pytest.approx(60)
    assert "mean of 7 steady steps" in times["layout"]["title"]["subtitle"]["text"]


def test_the_bars_are_the_table_and_pale_where_left_out(page):
    table = page.found.measured.table
    bars = {trace["name"]: trace for trace in figures(page.found)["times"]["data"]}
    assert list(bars["trainer waits"]["y"]) == list(table["wait_s"])
    assert list(bars["weight sync"]["y"]) == list(table["sync_s"])
    pale = np.asarray(bars["trains"]["marker"]["opacity"]) < 1
    assert list(table.index[pale]) == [1, 9, 16]
    # The two stalls would flatten all others: they are cut off, with their time above.
    assert bars["cut off"]["text"] == ["▲ 1,219 s", "▲ 1,236 s"]
    assert figures(page.found)["times"]["layout"]["yaxis"]["range"][1] < 700


def test_a_log_is_not_read_again_for_another_choice(page):
    send(page, "verl.log", as_console("verl").encode())
    measured = page.found.measured
    page._preset.value = "prime-rl-qwen3-235b"
    assert page.found.measured is measured


def test_the_stamp_names_the_files(page):
    assert stamp(page.found) == f"{EXAMPLE} | "
    assert stamp(found(added(example(), "a.log", as_console("verl").encode()))) == "a.log | "


def test_a_log_alone_says_what_would_tell_more(page):
    assert "a configuration" in words.missing(page.found)


def test_nothing_is_written_or_sent_anywhere(tmp_path):
    log = tmp_path / "verl.log"
    log.write_text(as_console("verl"), encoding="utf-8")
    code = f"""
import sys
from rlqueue.app.your_run import YourRun
page = YourRun()
content = open({str(log)!r}, 'rb').read()
config = open({str(CONFIGS / "verl_fully_async.sh")!r}, 'rb').read()
page._dropped('warm.log', content); page._dropped('warm.sh', config); page._clear.click()  # what is imported late is imported now
seen = []
def hook(event, args):
    if event == 'open' and (not isinstance(args[1], str) or set(args[1]) & set('wax+')): seen.append((event, str(args[0])))
    if event.startswith(('socket.connect', 'socket.sendto', 'subprocess', 'os.system', 'os.exec', 'os.mkdir', 'os.rename')):
        seen.append((event, str(args)))
sys.addaudithook(hook)
page._dropped('verl.log', content)
page._dropped('verl.sh', config)
page._pasted.value = content.decode()
print(seen)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ended.stdout.strip().splitlines()[-1] == "[]", ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["verl.log"]
