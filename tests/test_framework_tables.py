"""What the data files on frameworks promise: sources, units, one row for one thing, and knobs that a scenario has."""

import csv
import dataclasses
import tomllib
from pathlib import Path

import pytest

from rlqueue import Scenario
from rlqueue.frameworks.formulas import sentence
from rlqueue.frameworks.reading import REPORTED, REQUIRED
from rlqueue.frameworks.tables import ALL, formats, frameworks, keys, rules, spellings, variants
from rlqueue.knobs import CATALOGUES
from rlqueue.llm import llm_keys

DATA = Path(__file__).parents[1] / "data"
FOLDER = DATA / "frameworks"
SOURCES = tomllib.loads((DATA / "sources.toml").read_text(encoding="utf-8"))
KINDS = {"datasheet", "printed", "chart-read", "measured", "derived", "calibrated", "assumed"}
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))
FORMATS = {"toml", "yaml", "shell", "python"}
KNOBS = {each.name for each in dataclasses.fields(Scenario)}


def rows(name):
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_a_kind_a_listed_source_and_a_place_in_it(name):
    table = rows(name)
    assert list(table[0])[-4:] == ["kind", "source", "where", "note"]
    for row in table:
        assert None not in row, row
        assert None not in row.values(), row
        assert row["kind"] in KINDS, row
        assert row["source"] in SOURCES, row
        assert row["where"], row


@pytest.mark.parametrize("name", NAMES)
def test_no_row_is_there_twice(name):
    table = [tuple(row.values()) for row in rows(name)]
    assert len(set(table)) == len(table)


def test_a_key_is_stated_once_for_a_mode_of_a_framework():
    for framework in frameworks():
        stated = [(row["key"], row["variant"]) for row in rows("keys") if framework in row["framework"].split()]
        assert len(set(stated)) == len(stated)


def test_no_spelling_means_two_keys_of_a_framework():
    for framework in frameworks():
        words = [(word, key.name) for key in keys(framework).values() for word in (key.name, *key.aliases)]
        assert len(words) == len(spellings(framework)), framework


def test_every_framework_has_formats_keys_modes_and_rules_for_all_that_a_scenario_needs():
    for framework in frameworks():
        assert set(formats(framework)) <= FORMATS
        assert keys(framework)
        *_, last = variants(framework)
        assert last.programs == last.keys == ()
        for variant in variants(framework):
            given = {rule.target for rule in rules("readings", framework, variant.name)}
            missing = set(REQUIRED) - given
            # Where no key says it the replica is what holds the LLM
            assert missing <= {"gpus_per_replica"}, (framework, variant.name)


def test_the_modes_that_rows_name_are_there():
    for name in ("keys", "readings", "lines"):
        for row in rows(name):
            for framework in row["framework"].split():
                known = {variant.name for variant in variants(framework)} | {ALL}
                assert set(row["variant"].split()) & known, row
    for row in rows("launches"):
        assert all(
            row["variant"] in {variant.name for variant in variants(name)} for name in row["framework"].split()
        ), row


def test_rules_give_knobs_of_a_scenario_or_what_is_reported_or_helpers():
    for row in rows("readings"):
        assert row["knob"] in KNOBS | set(REPORTED) or row["knob"].startswith("~"), row
    for row in rows("lines"):
        assert {word for word in row["arguments"].split() if word[0] not in "!="} <= KNOBS, row


def test_assumptions_are_knobs_or_inputs_with_units_and_are_called_assumed():
    for row in rows("assumed"):
        assert row["unit"], row
        assert row["kind"] == "assumed"
        assert row["entity"] == "input" or row["quantity"] in KNOBS, row
        if row["quantity"] in CATALOGUES:
            assert row["value"] in CATALOGUES[row["quantity"]][2](), row


def test_other_names_of_llms_lead_into_the_catalogue():
    for row in rows("llm_names"):
        assert row["llm"] in llm_keys(), row
        assert row["name"] == row["name"].lower()
        assert row["name"] not in llm_keys()


def test_the_table_of_staleness_in_the_documents_is_the_data_s():
    wanted = []
    for framework, title in frameworks().items():
        for rule in rules("readings", framework, None):
            named = [keys(framework)[argument] for argument in rule.arguments if argument in keys(framework)]
            if rule.target == "max_staleness" and named:
                wanted.append(f"| {title} | `{named[0].name}` | {named[0].unit} | {sentence(rule.formula)} |")
    assert table_of("One unit of staleness") == wanted


def table_of(title):
    """The rows of the table under a title of the page on configurations."""
    text = (DATA.parent / "docs" / "configurations.md").read_text(encoding="utf-8")
    section = text.split(f"## {title}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_table_of_those_that_hold_slots_by_groups_in_the_documents_is_the_data_s():
    wanted = []
    for framework, title in frameworks().items():
        for row in rows("readings"):
            if row["knob"] == "slots_held_by" and framework in row["framework"].split():
                assert row["note"], row
                modes = [each.title for each in variants(framework) if each.name in row["variant"].split()]
                wanted.append(f"| {title} | {', '.join(modes) or 'every mode'} | {row['note']} |")
    assert table_of("What is counted in flight") == wanted
