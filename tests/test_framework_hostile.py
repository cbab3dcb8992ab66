"""Text from anybody: it never runs, never hangs, opens nothing, and is refused with a ValueError or read."""

import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlqueue import Scenario
from rlqueue.frameworks import frameworks, read, read_text
from rlqueue.frameworks.shell_words import MOST_BRACKETS, script

CONFIGS = Path(__file__).parent / "configs"
TEXTS = {path.name: path.read_text() for path in CONFIGS.rglob("*") if path.is_file()}
BEARABLE_S = 20.0
"""Far above what any of these takes (2 s on a slow machine), far below what an unbounded parser would."""

JUNK = (
    "$((", "))", "${", "}", "`ls`", "$(touch x)", '"', "'", "(", ")", "[", "]", "{", "&a ", "*a", "<<: ", "!!python/object:x ",
    "\n", "\t", "- ", "9" * 30, "-1", "0", "1e400", "nan", "inf", "true", "null", "list(range(0,999999999))", "@ x.toml", "=",
    "--", "\\\n", "d0t0", "sglang:d4t", "\x7f", "é", "0x", "${mul:a}", "${oc.env:X}", "1.5", "7", "\x00", "\r\n", "\ufeff",
)  # fmt: skip


def read_or_refused(text, framework=None, name="configuration"):
    """Read it; a ValueError is the one way to refuse, of the text or of the scenario that it would make."""
    with contextlib.suppress(ValueError):
        reading = read_text(text, framework, name=name)
        if not reading.missing:
            Scenario.from_values(reading.values, name="x")


@given(text=st.text(max_size=400), framework=st.sampled_from([None, *frameworks()]))
def test_any_text_is_read_or_refused(text, framework):
    read_or_refused(text, framework)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(TEXTS)), cut=st.floats(0, 1))
def test_a_truncated_file_is_read_or_refused(name, cut):
    text = TEXTS[name]
    read_or_refused(text[: round(cut * len(text))], name=name)
    read_or_refused(text[round(cut * len(text)) :], name=name)


@st.composite
def damaged(draw):
    """A real configuration with pieces put in, taken out and exchanged."""
    text = draw(st.sampled_from(sorted(TEXTS.values())))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        out = draw(st.integers(0, 30))
        text = text[:at] + draw(st.sampled_from(JUNK)) + text[at + out :]
    return text


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200)
@given(text=damaged())
def test_a_damaged_file_is_read_or_refused(text):
    read_or_refused(text)


@st.composite
def other_numbers(draw):
    """A real configuration with any of its numbers exchanged for any other value."""
    text = draw(st.sampled_from(sorted(TEXTS.values())))
    numbers = list(re.finditer(r"(?<=[ =])\d+\b", text))
    if not numbers:
        return text
    found = draw(st.sampled_from(numbers))
    value = draw(st.one_of(st.integers(-(10**20), 10**20).map(str), st.floats().map(str), st.sampled_from(JUNK)))
    return text[: found.start()] + value + text[found.end() :]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200)
@given(text=other_numbers())
def test_any_number_in_any_place_is_read_or_refused(text):
    read_or_refused(text)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-32", "cp500"])
def test_a_file_in_another_encoding_is_read_or_refused_by_name(tmp_path, encoding):
    path = tmp_path / "é-run.toml"
    path.write_bytes(("# é\n" + TEXTS["prime_rl_head.toml"]).encode(encoding))
    if encoding == "utf-16":
        assert read(path).values["group_size"] == 16
        return
    with pytest.raises(ValueError, match=r"configuration|not text|cannot be read"):
        read(path)


def test_a_missing_or_unreadable_file_is_refused_by_name(tmp_path):
    for name in ("nowhere.toml", ".", "nowhere.sh"):
        with pytest.raises(ValueError, match=r"cannot be read \(.*(No such file|Is a directory)"):
            read(tmp_path / name)


def test_a_file_of_any_length_is_refused_at_once(tmp_path):
    path = tmp_path / "run.sh"
    path.write_text("python train.py\n" * 1_000_000)
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"run.sh: it must have <= 250,000 characters"):
        read(path)
    assert time.monotonic() - began < BEARABLE_S


def lines_of(line, count=1_000_000):
    return line * count


LONG = {
    "empty lines": lines_of("\n"),
    "assignments": lines_of("a=1\n"),
    "one word": "a" * 2_000_000,
    "flags of a script": "python train.py " + " ".join(f"--f{i} {i}" for i in range(4000)),
    "toml tables": "\n".join(f"[a{i}.b]\nc = 1" for i in range(10_000)),
    "toml parts": ".".join("a" * 100_000) + " = 1",
    "toml brackets": "a = " + "[" * 200_000,
    "yaml keys": "\n".join(f"k{i}: {i}" for i in range(18_000)),
    "yaml depth": "\n".join(" " * i + "a:" for i in range(600)),
    "yaml brackets": "[" * 200_000,
    "yaml aliases": "a: &a [x]\n" + "\n".join(f"b{i}: *a" for i in range(15_000)),
    "shell pipes": "a|" * 25_000,
    "shell brackets": "a=(\n" * 12_000,
    "shell documents": "<<E\n" * 12_000,
    "shell quotes": '"' * 50_000,
    "shell defaults": "x=" + "${a:-" * 9_000,
    "shell sums": "x=$((" + "(" * 50_000,
    "python depth": "x = " + "-" * 50_000 + "1",
    "python sum": "x = " + "1+" * 25_000 + "1",
    "python calls": "f(" * 20_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_text_takes_bounded_time(text):
    began = time.monotonic()
    read_or_refused(text)
    assert time.monotonic() - began < BEARABLE_S


@pytest.mark.parametrize("pattern", ["(a)", "x=(", "a|&", "|", "a |\n", "$[1+", "a) ", "a=(\n", "<<A\nA\n", "[[ a && "])
def test_the_most_brackets_that_a_script_may_have_are_bearable_and_one_more_is_refused(pattern):
    signs = sum(pattern.count(sign) for sign in "()[|<")
    text = pattern * (MOST_BRACKETS // signs)
    began = time.monotonic()
    script(text)
    assert time.monotonic() - began < BEARABLE_S
    with pytest.raises(ValueError, match="must have <= 2,000 brackets and pipes"):
        script(text + "|" * 2)


BOMBS = {
    "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "\n".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]" for i in range(12)),
    "merged laughs": "a: &a {k: x}\n"
    + "\n".join(f"{chr(98 + i)}: &{chr(98 + i)} {{<<: [{','.join(['*' + chr(97 + i)] * 9)}]}}" for i in range(12)),
    "itself": "a: &a [*a]",
    "itself below": "a: &a {b: *a}",
    "doubling": "a: ${b}${b}\n"
    + "\n".join(f"{chr(97 + i)}: ${{{chr(98 + i)}}}${{{chr(98 + i)}}}" for i in range(1, 24))
    + "\ny: xx",
    "shell doubling": "A=xx\n" + "A=$A$A\n" * 64 + "python t.py --x $A",
    "shell arrays": "A=(x x)\n" + "A=(${A[@]} ${A[@]})\n" * 64 + "python t.py ${A[@]}",
    "power": "python t.py --x $((9**9**9**9))",
    "range": "rollout_batch_size: 4\nactor_train: &a {device_mapping: 'list(range(0,999999999))'}\nactor_infer: *a",
    "ring": "toml_files = ['configuration']\n[orchestrator]\nbatch_size = 8",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_small_text_that_unfolds_is_bounded(text):
    began = time.monotonic()
    for framework in (None, "areal", "slime", "roll"):
        read_or_refused(text, framework)
    assert time.monotonic() - began < BEARABLE_S


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system ['touch x']", "!!python/name:os.system", "!!binary aGk=", "!x y"]
)
def test_a_yaml_tag_is_refused_by_line(tag):
    with pytest.raises(ValueError, match=r"line 3: the YAML tag .* is refused"):
        read_text(f"actor:\n  path: x\n  dtype: {tag}\n", name="a.yaml")


def test_files_that_name_each_other_by_the_hundred_are_refused():
    files = {
        f"f{i}.toml": "toml_files = [" + ", ".join(f'"f{j}.toml"' for j in range(40)) + "]\nx = 1" for i in range(40)
    }
    with pytest.raises(ValueError, match="must build upon <= 64 files"):
        read_text('toml_files = ["f0.toml"]\n[orchestrator]\nbatch_size = 8\n', files=files, name="a.toml")


FAR_PROGRAM = """
from rlqueue.frameworks.shell_words import script
for code in range(0x80, 0x110000, 0x3f1):
    if not 0xd800 <= code < 0xe000:
        script('{' + chr(code) + '5')
        script(f'A{chr(code)}=({chr(code)} "${chr(code)}" <<{chr(code)}')
"""


def test_no_character_of_unicode_ends_the_process():
    ended = subprocess.run([sys.executable, "-c", FAR_PROGRAM], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


HOSTILE_PROGRAM = """
import os, sys
from pathlib import Path
from rlqueue.frameworks import read_text

texts = [path.read_text() for path in Path(sys.argv[1]).rglob('*') if path.is_file()]
attack = '''A=$(touch ran)\\nB=`touch ran`\\ntouch ran > ran\\n: > ran\\ncat < /etc/passwd\\neval "touch ran"\\n. ./ran.sh\\n'''
attack += '''python3 train.py --rollout-batch-size $(touch ran) --hf-checkpoint "`touch ran`" --n <(touch ran)\\n'''
texts += [attack, 'open("ran", "w").write("x")\\nAsyncConfig(max_steps_off_policy=__import__("os").system("touch ran"))',
          'defaults: [/etc/passwd, ../../etc/hosts]\\nactor: {path: x}', '@ /etc/passwd.toml\\n[orchestrator]\\nbatch_size = 1',
          '/etc/passwd', 'ran.toml', '--config /etc/x.yaml grpo.num_prompts_per_step=1']
for text in texts:  # whatever loads lazily is loaded now
    try:
        read_text(text)
    except ValueError:
        pass
seen = []
DONE = ('open', 'os.', 'subprocess.', 'socket.', 'shutil.', 'pty.', 'exec', 'ctypes.dlopen', 'import')
# Python's own parser looks for the line of a syntax error in a file that it takes the text to be from.
OWN = ('open', "('<unknown>', 'rb', 0)")
def hook(event, arguments):
    if event.startswith(DONE) and (event, str(arguments)) != OWN:
        seen.append((event, str(arguments)[:80]))
sys.addaudithook(hook)
for text in texts:
    try:
        read_text(text)
    except ValueError:
        pass
print(seen, os.path.exists('ran'))
sys.exit(bool(seen) or os.path.exists('ran'))
"""


def test_reading_text_opens_nothing_starts_nothing_and_executes_nothing(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", HOSTILE_PROGRAM, str(CONFIGS)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert list(tmp_path.iterdir()) == []
