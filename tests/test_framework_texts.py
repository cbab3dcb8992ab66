"""How the formats are read: words of a shell, interpolations and bases of YAML, inheritance of TOML, keywords of Python."""

import pytest

from rlqueue.frameworks import hydra, python_text, shell_text, shell_words, toml_text
from rlqueue.frameworks.arithmetic import computed, ranged
from rlqueue.frameworks.entries import Unresolved
from rlqueue.frameworks.interpolation import resolved


def nothing(_):
    return None


def shell_values(text, **given):
    return {entry.key: entry.value for entry in shell_text.document(text, nothing, given).entries.values()}


def yaml_values(text, find=nothing, variables=None):
    document = hydra.document(text, find)
    return {entry.key: resolved(entry, document.entries, variables or {}) for entry in document.entries.values()}


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("N=8\npython t.py --x $N", 8),
        ("N=8\npython t.py --x ${N}", 8),
        ("python t.py --x ${N:-12}", 12),
        ("N=\npython t.py --x ${N:-12}", 12),
        ("N=4\npython t.py --x ${N:-12}", 4),
        ("python t.py --x ${A:-${B:-7}}", 7),
        (': "${N:=5}"\npython t.py --x $N', 5),
        (': "${A:=5}"\n: "${N:=$(( A * (3 + 1) ))}"\npython t.py --x $N', 20),
        ("python t.py --x $((1024*8))", 8192),
        ("python t.py --x $(((512*400)))", 204800),
        ("A=2\npython t.py --x $((A * 3 + $A))", 8),
        ("A='1024 * 2'\npython t.py --x $((A * 2))", 4096),
        ("python t.py --x $((7 / 2))", 3),
        ("python t.py --x=7", 7),
        ("python t.py --x '7'", 7),
        ('export N="9"\npython t.py --x "$N"', 9),
        ("ARGS=(--y 1 --x 6)\npython t.py ${ARGS[@]}", 6),
        ('ARGS=(--y 1)\nARGS+=(--x 6)\npython t.py "${ARGS[@]}"', 6),
        ('MORE="--x 6 --z 1"\npython t.py $MORE', 6),
        ("python t.py --x 1 --x 2", 2),
        ("python t.py \\\n  --x \\\n  3", 3),
        ("python t.py --x true", True),
        ("python t.py --y 1 --x", True),
        ("python t.py --x null", None),
        ("python t.py --x 1 2 4 8", [1, 2, 4, 8]),
        ("python t.py x=['console','wandb']", ["console", "wandb"]),
        ("python t.py +x=3", 3),
        ("uv run --isolated --extra vllm -m a.b x=3", 3),
        ("ray job submit --address=a -- python3 -m a.b --x 3", 3),
        ("# --x 9\npython t.py --x 3 # --x 8", 3),
        ("--x 3 \\\n --y 4", 3),
        ("P=/données/😀/Qwen\npython t.py --y ü --x $P/ß", "/données/😀/Qwen/ß"),
        ("main() {\n  python t.py --x 3\n}\nmain", 3),
        ("pip install --x 4\nray start --x 5\npython t.py --x 3", 3),
    ],
)
def test_a_flag_has_the_value_that_a_shell_would_give_it(script, value):
    assert shell_values(script)["x"] == value


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("python t.py --x $N", "$N is not set in the file"),
        ("python t.py --x ${N%.*}", "$N is not set in the file"),
        ("N=8.5\npython t.py --x ${N%.*}", "${N%.*} would have to be run"),
        ("python t.py --x $(nproc)", "$(nproc) would have to be run"),
        ("python t.py --x `nproc`", "`nproc` would have to be run"),
        ("N=$(nproc)\npython t.py --x $N", "$(nproc) would have to be run"),
        ("python t.py --x $((N * 2))", "$N is not set in the file"),
        ("python t.py --x $1", "$1 is not set in the file"),
    ],
)
def test_what_only_running_would_tell_stays_a_doubt(script, reason):
    assert shell_values(script)["x"].reason == reason


def test_a_variable_given_from_outside_wins_over_the_script_s_own():
    assert shell_values("N=${N:-2}\npython t.py --x $N", N="16")["x"] == 16


def test_a_branch_counts_only_where_nothing_else_sets_the_variable_and_is_noted():
    text = "A=1\nif [ $Z ]; then\n  A=2\n  B=3\nfi\npython t.py --a $A --b $B"
    entries = shell_text.document(text, nothing).entries
    assert (entries["a"].value, entries["a"].note) == (1, "")
    assert (entries["b"].value, entries["b"].note) == (3, "set in a branch that starts in line 2, which may not run")


def test_words_know_their_lines():
    read = shell_words.script("ARGS=(\n  --a 1\n  --b 2\n)\npython t.py ${ARGS[@]} --c 3")
    assert [(word.text, word.line) for word in read.commands[0][2:]] == [
        ("--a", 2), ("1", 2), ("--b", 3), ("2", 3), ("--c", 5), ("3", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2\nx: ${a}", 2),
        ("b: {c: 2, d: '${.c}'}\nx: ${b.d}", 2),
        ("b:\n  c: ${..a}\na: 3\nx: ${b.c}", 3),
        ("a: 4\nx: ${mul:${a},3}", 12),
        ("x: ${div:9,2}", 4.5),
        ("x: ${oc.env:HOME,5}", 5),
        ("x: ${oc.select:nowhere,6}", 6),
        ("a: Qwen\nx: ${a}/${a}-8B", "Qwen/Qwen-8B"),
        ("x: 2024-01-01", "2024-01-01"),
        ("a: &a {y: 1, z: 2}\nb: {<<: *a, y: 3}\nx: ${b.z}", 2),
    ],
)
def test_an_interpolation_has_its_value(text, value):
    assert yaml_values(text)["x"] == value


@pytest.mark.parametrize(
    "text", ["x: ${x}", "a: ${x}\nx: ${a}", "x: ${nowhere}", "x: ${oc.env:HOME}", "x: ${shell:ls}", "x: ${"]
)
def test_an_interpolation_that_cannot_be_done_stays_a_doubt(text):
    assert isinstance(yaml_values(text)["x"], Unresolved)


def test_the_environment_is_never_read(monkeypatch):
    monkeypatch.setenv("RLQUEUE_SECRET", "secret")
    for text in (
        "x: ${oc.env:RLQUEUE_SECRET}",
        "a: oc.env\nx: ${${a}:RLQUEUE_SECRET}",
        "x: ${oc.decode:${oc.env:RLQUEUE_SECRET}}",
    ):
        value = yaml_values(text)["x"]
        assert isinstance(value, Unresolved)
        assert "secret" not in value.reason
    assert isinstance(shell_values("python t.py --x $RLQUEUE_SECRET")["x"], Unresolved)
    assert yaml_values("x: ${oc.env:NODES}", variables={"NODES": "4"})["x"] == "4"


def test_hydra_s_defaults_lie_below_or_above_as_the_list_says():
    files = {"base.yaml": "x: 1\ny: 1\n", "over.yaml": "x: 3\n", "part/small.yaml": "z: 4\n"}
    assert yaml_values("defaults: [base, _self_]\nx: 2", files.get) == {"x": 2, "y": 1}
    assert yaml_values("defaults: [base, _self_, over]\nx: 2", files.get)["x"] == 3
    assert yaml_values("defaults: ./base.yaml\nx: 2", {"./base.yaml": "x: 1\ny: 1\n"}.get) == {"x": 2, "y": 1}
    assert yaml_values("defaults:\n  - part: small\n  - part@a.b: small\nx: 2", files.get) == {
        "x": 2,
        "part.z": 4,
        "a.b.z": 4,
    }
    assert hydra.document("defaults: [elsewhere]\nx: 2", nothing).missing == ["elsewhere"]


def test_a_chain_of_bases_is_followed_and_a_ring_ends():
    chain = {"a.yaml": "defaults: b.yaml\nx: 1", "b.yaml": "defaults: c.yaml\nx: 2\ny: 2", "c.yaml": "x: 3\ny: 3\nz: 3"}
    assert yaml_values("defaults: a.yaml", chain.get) == {"x": 1, "y": 2, "z": 3}
    assert yaml_values("defaults: r.yaml\nx: 1", {"r.yaml": "defaults: r.yaml\ny: 2"}.get) == {"x": 1, "y": 2}


def test_toml_lies_over_the_files_before_it():
    files = {"a.toml": "x = 1\n[t]\ny = 1\nz = 1\n", "b.toml": "[t]\ny = 2\n"}
    for text in ("@ a.toml\n@ b.toml\n[t]\nw = 3\n", 'toml_files = ["a.toml", "b.toml"]\n[t]\nw = 3\n'):
        read = toml_text.document(text, files.get)
        assert {entry.key: entry.value for entry in read.entries.values()} == {"x": 1, "t.y": 2, "t.z": 1, "t.w": 3}


def test_toml_keys_know_their_lines_in_every_way_of_writing_them():
    text = "a = 1\n[b]\n  c = 2\nd.e = 3\n'f' = { g = 4 }\n[[h]]\ni = 5\n[j.k]\nl = '''\nm = 1\n'''\n"
    lines = {entry.key: entry.line for entry in toml_text.document(text, nothing).entries.values()}
    assert lines == {"a": 1, "b.c": 3, "b.d.e": 4, "b.f.g": 5, "h": 6, "j.k.l": 9}


def test_python_gives_its_plain_keywords():
    text = "from a.b import c\nX = 5\ny: int = 6\nf(z=7, w=g(v=8), u=h())\n"
    document = python_text.document(text)
    assert {entry.key: (entry.value, entry.line) for entry in document.entries.values()} == {
        "X": (5, 2), "y": (6, 3), "z": (7, 4), "v": (8, 4),
    }  # fmt: skip
    assert document.programs == ["a.b.c"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1024 * 8", 8192), ("2 ** 10", 1024), ("-3 + 1", -2), ("(1 + 2) * 3", 9), ("7 // 2", 3), ("1e3", 1000)],
)
def test_arithmetic_is_computed(text, value):
    assert computed(text) == value


@pytest.mark.parametrize(
    "text", ["", "a", "1 / 0", "9 ** 9 ** 9", "f(1)", "1 if 1 else 2", "(" * 400, "9" * 400, "1;2", "[1]"]
)
def test_what_is_no_arithmetic_is_refused(text):
    with pytest.raises(ValueError, match=r"arithmetic|power|characters"):
        computed(text)


def test_a_range_is_counted_and_not_made():
    assert ranged("list(range(0,16))") == range(16)
    assert ranged("list(range(0, 16, 2))") == range(0, 16, 2)
    assert len(ranged("list(range(0,999999999))")) == 999_999_999
    assert ranged("list(range(f()))") is None
    with pytest.raises(ValueError, match="step >= 1"):
        ranged("list(range(0,8,0))")
