"""Whatever is given: a table or a ValueError that names what was expected, in bounded time, and no traceback on the terminal."""

import json
import math
import re
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_shapes import CONSOLES, SHAPES, as_console, as_csv, as_json_lines, prime_console_orchestrator, verl

from rlqueue import Measured
from rlqueue.cli import main
from rlqueue.logs import dialects
from rlqueue.logs.columns import RATIOS, SIGNED
from rlqueue.logs.names import known

calm = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(given, framework=None):
    """The table or None: nothing but a ValueError may come out."""
    try:
        measured = Measured.from_log(given, framework)
    except ValueError as refusal:
        assert str(refusal)  # noqa: PT017
        return None
    sane(measured)
    return measured


def sane(measured):
    table = measured.table
    assert table.index.is_monotonic_increasing
    assert table.index.is_unique
    numbers = table.drop(columns="kind")
    assert np.isfinite(numbers.to_numpy()[~np.isnan(numbers.to_numpy())]).all()
    for name in numbers:
        if name in RATIOS:
            assert numbers[name].dropna().between(0, 1).all()
        elif name not in SIGNED:
            assert (numbers[name].dropna() >= 0).all(), name
    for name, each in measured.means().items():
        assert each.rows >= 1
        assert math.isfinite(each.mean), name
    assert measured.waiting().words
    measured.left_out()


@calm
@given(st.text(max_size=2000))
def test_any_text_is_a_table_or_refused(text):
    read(text + "\n")


@calm
@given(st.binary(max_size=2000))
def test_any_bytes_are_a_table_or_refused(content):
    read(content)


names = st.sampled_from(sorted(known()))
values = st.one_of(
    st.floats(), st.integers(), st.none(), st.booleans(), st.text(max_size=8), st.lists(st.integers(), max_size=2)
)
steps = st.one_of(st.integers(-5, 40), st.floats(), st.none(), st.text(max_size=3), st.integers(10**11, 10**400))


@calm
@given(
    st.lists(st.tuples(steps, st.dictionaries(names, values, max_size=8)), max_size=12),
    st.sampled_from([None, *{f for f, _ in SHAPES.values()}]),
)
def test_known_names_with_any_values_are_a_table_or_refused(rows, framework):
    text = "".join(json.dumps({"step": step, **row}) + "\n" for step, row in rows)
    read(text + "\n", framework)


@calm
@given(st.data())
def test_a_csv_of_known_names_with_any_cells_is_a_table_or_refused(data):
    header = data.draw(st.lists(names, min_size=1, max_size=6, unique=True))
    cells = st.one_of(st.floats().map(str), st.text(max_size=6), st.integers().map(str))
    rows = data.draw(st.lists(st.lists(cells, max_size=8), max_size=10))
    read("step," + ",".join(header) + "\n" + "\n".join(",".join(row) for row in rows) + "\n")


@calm
@given(
    st.sampled_from(sorted(CONSOLES)),
    st.sampled_from(["console", "json", "csv"]),
    st.integers(1, 4000),
    st.integers(0, 3999),
)
def test_a_log_cut_anywhere_is_read_as_far_as_it_goes(name, form, end, start):
    make = {
        "console": as_console,
        "json": lambda name: as_json_lines(SHAPES[name][1]),
        "csv": lambda name: as_csv(SHAPES[name][1]),
    }
    read(make[form](name)[start : start + end] + "\n")


@calm
@given(st.sampled_from(sorted(CONSOLES)), st.lists(st.tuples(st.integers(0, 5000), st.characters()), max_size=30))
def test_a_log_with_characters_changed_is_a_table_or_refused(name, changes):
    text = list(as_console(name))
    for place, character in changes:
        text[place % len(text)] = character
    read("".join(text))


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_json_log_cut_in_a_line_keeps_all_steps_before(name):
    text = as_json_lines(SHAPES[name][1])
    assert list(Measured.from_log(text[: text.rindex('"time"')]).table.index)[:9] == list(range(9))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le", "cp500"])
def test_a_wrong_encoding_is_a_table_or_refused(encoding):
    read(as_console("verl").encode(encoding, errors="replace"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x1f\x8b\x08\x00" + b"\0" * 50, "gzip: unpack it first"),
        (b"PK\x03\x04" + b"\0" * 50, "zip archive"),
        (b":W&B" + b"\0" * 50, "export the run's history as CSV"),
        (b"PAR1" + b"\0" * 50, "parquet"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "binary data"),
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"hello\nworld\n", "no metric of a known framework"),
        (b'{"step": 1, "perf/steptime": 4.0}\n', "perf/steptime (meant: perf/step_time?)"),
        (b'{"step": 1, "loss": 4.0}\n', "none is among the"),
        (b'{"step": 1, "perf/actor_train_tflops": 4.0}\n', "expected perf/step_time"),
        (b'{"step": 1, "critic/score/mean": 0.4}\n', "name the framework"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_what_was_expected(content, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Measured.from_log(content)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "must be a path, a text or bytes"),
        ([], "0 logs were given"),
        ("nowhere.log", "is not there"),
        ("/", "is no file"),
        ("/dev/null", "is no file"),
    ],
)
def test_what_is_no_log_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        Measured.from_log(given)


def test_a_framework_that_is_not_the_log_s_is_refused_with_what_it_looks_like():
    with pytest.raises(ValueError, match="looks like verl"):
        Measured.from_log(as_json_lines(verl), "AReaL")
    with pytest.raises(ValueError, match="framework='trl' is not known"):
        Measured.from_log(as_json_lines(verl), "trl")


def test_nan_and_infinity_are_holes_and_counted():
    rows = "".join(
        json.dumps({"step": step, **verl(step), "critic/score/mean": bad}) + "\n"
        for step, bad in enumerate([0.4, math.nan, math.inf, -math.inf, 1e300, 0.4, 0.4])
    )
    measured = Measured.from_log(rows)
    assert measured.table["reward"].count() == 3
    assert "3 values were infinite or absurd" in " ".join(measured.notes)


def test_a_negative_time_is_a_hole():
    measured = Measured.from_log(as_json_lines(lambda step: verl(step) | ({"timing_s/gen": -1.0} if step == 3 else {})))
    assert math.isnan(measured.table["wait_s"][3])
    assert "1 values were negative" in " ".join(measured.notes)


BAITS = {
    "ansi": "\x1b[" + "0;" * 200_000,
    "escapes": "\x1b[" * 300_000,
    "quotes": "perf 3: {" + "'" * 500_000,
    "open keys": "perf 3: {" + "'a" * 300_000,
    "digits": "step:3 - a/b:" + "1" * 900_000,
    "numbers": "Step 3 | Time: " + "1" * 900_000,
    "dashes": " - " * 300_000 + ":",
    "bars": "Step 3 | " + " | " * 300_000,
    "bullets": "•" * 300_000,
    "bullet": "• " + "a" * 900_000 + ": 3",
    "boxes": "│" * 300_000,
    "equals": "=" * 900_000 + " Step 3/",
    "blanks": " " * 900_000 + "Step 3",
    "brackets": "{" + '"a":[' * 150_000,
    "braces": '{"' * 400_000 + "}",
    "ray": "(" * 500_000 + "pid=3)",
    "duration": "Step 3 | " + "1d " * 300_000,
}


@pytest.mark.parametrize("bait", BAITS)
def test_no_line_can_make_a_pattern_go_back_and_forth(bait):
    begun = time.perf_counter()
    for end in ("", "\x00", "}", " x"):
        dialects.read((BAITS[bait] + end).encode()[: 1 << 20])
    # Linear in the line: the largest of them takes some tenths of a second, where a quadratic pattern takes hours.
    assert time.perf_counter() - begun < 8


def test_time_goes_with_the_length_of_a_bait():
    def seconds(times):
        line = (" - a/b:'{\"" * times).encode()
        return min(_timed(line) for _ in range(3))

    small, large = seconds(10_000), seconds(80_000)
    assert large < 8 * 6 * max(small, 1e-3)


def _timed(line):
    begun = time.perf_counter()
    dialects.read(line)
    return time.perf_counter() - begun


def test_a_line_without_end_is_not_kept_in_memory():
    text = "x" * (40 << 20) + "\n" + prime_console_orchestrator(3)
    assert list(Measured.from_log(text.encode()).table.index) == [3]


def test_a_million_lines_take_seconds_and_little_memory(tmp_path):
    file = tmp_path / "long.log"
    line = "(AgentLoopWorker pid=12345, ip=10.0.0.7) INFO request 1234 finished with 1234 tokens in 12.34 s\n"
    block = line * 1_000
    with file.open("w", encoding="utf-8") as out:
        for step in range(1_000):
            out.write(block + CONSOLES["verl"](step, verl(step)))
    code = (
        "import resource, sys, time; from rlqueue import Measured; import pandas;"
        "a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "t = time.process_time(); m = Measured.from_log(sys.argv[1]); t = time.process_time() - t;"
        "print(len(m.table), t, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a) / 1024)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    steps_read, seconds, megabytes = map(float, ended.stdout.split())
    assert steps_read == 1_000
    # About 5 s for these 100 MB on a quiet core of 2024; a second pass or a slow pattern would show.
    assert seconds < 60
    # The file is 100 MB; what is kept of it is under 1.
    assert megabytes < 60


def test_of_four_hundred_thousand_rows_each_step_s_last_values_are_kept():
    count = 200_000
    rows = "".join(f"{step % count},{60 + step // count},30,10,{100 + step // count}\n" for step in range(2 * count))
    header = "step,timing/wait_for_generation_buffer,timing/run_training,timing/sync_weights,timing/step\n"
    measured = Measured.from_log(header + rows)
    assert len(measured.table) == count
    assert (measured.table["wait_s"] == 61).all()


def test_later_lines_of_a_step_replace_earlier_ones_and_never_mix_steps():
    text = "".join(
        json.dumps({"step": 5, "timing_s/gen": float(each), "timing_s/step": 100.0}) + "\n" for each in range(50)
    )
    measured = Measured.from_log(text)
    assert list(measured.table["wait_s"]) == [49.0]


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(12)))
def test_the_order_of_the_steps_changes_nothing(order):
    rows = as_json_lines(verl, range(12)).splitlines(keepends=True)
    assert Measured.from_log("".join(rows[place] for place in order)).table.equals(
        Measured.from_log("".join(rows)).table
    )


@pytest.mark.parametrize(
    "content", [b"", b"\0\1\2", b"hello\n", b'{"step": 1, "perf/steptime": 4.0}\n', b"step,perf/step_time\n"]
)
def test_the_command_refuses_without_a_traceback(tmp_path, capsys, content):
    file = tmp_path / "bad.log"
    file.write_bytes(content)
    assert main(["measure", str(file), "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("rlqueue: ")


@pytest.mark.parametrize(
    "arguments", [["measure", "nowhere.log"], ["measure", "/"], ["measure"], ["measure", "x", "--framework", "trl"]]
)
def test_the_command_as_a_process_never_shows_a_traceback(arguments):
    ended = subprocess.run(
        [sys.executable, "-m", "rlqueue.cli", *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_the_command_prints_means_rows_and_traps_and_writes_the_table(tmp_path, capsys):
    file, table = tmp_path / "verl.log", tmp_path / "steps.csv"
    file.write_text(as_console("verl"), encoding="utf-8")
    assert main(["measure", str(file), "--json", "--out", str(table)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["framework"] == "verl"
    assert found["means"]["wait_s"] == {"mean": 60.0, "sd": 0.0, "rows": 9, "unit": "s"}
    assert found["waiting"]["side"] == "trainer"
    assert [trap["trap"] for trap in found["traps"]] == ["verl-gen-is-wait", "verl-idle-ratio"]
    lines = table.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("step,kind,step_s,wait_s,train_s,sync_s")
    assert len(lines) == 11
    assert main(["measure", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "The trainer waits 60% of the time: the generator is the bottleneck." in shown
    assert "avoided: timing_s/gen reads like generation time." in shown
    assert main(["measure", str(file), "--out", str(tmp_path / "no" / "folder.csv")]) == 2


def test_pairs_of_rising_steps_are_what_the_table_has():
    table = Measured.from_log(as_csv(verl)).table
    assert all(b - a == 1 for a, b in pairwise(table.index))
