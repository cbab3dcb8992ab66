"""Answers as lines for a person."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def show_presets(presets: Mapping[str, Mapping[str, Any]]) -> None:
    width = max(map(len, presets))
    for name, facts in presets.items():
        print(f"{name:{width}}  {facts['title']}  ({facts['assumed']} of {facts['knobs']} inputs assumed)")


def show_course(found: Mapping[str, Any]) -> None:
    show({name: value for name, value in found.items() if not isinstance(value, list)})
    for flip in found["flips"]:
        print(f"step {flip['step']}: {flip['was']} -> {flip['becomes']}")
    for run in found["without"]:
        per_mtok = "nothing trained" if run["usd_per_mtok"] is None else f"{run['usd_per_mtok']:.2f} $/Mtok"
        print(f"{run['run']}: {run['hours']:,.1f} h, ${run['usd']:,.0f}, {per_mtok}")


def show_pasted(pasted: Mapping[str, Any]) -> None:
    print(pasted["text"], end="")


def show_report(written: Mapping[str, Any]) -> None:
    print(f"{written['page']}: {written['tables']} tables, {written['figures']} figures, {written['images']} images")
    if written["missing"]:
        print(f"missing: {written['missing']}")


def lines_of(made: Callable[[Mapping[str, Any]], Iterable[str]]) -> Callable[[Mapping[str, Any]], None]:
    def show(found: Mapping[str, Any]) -> None:
        for line in made(found):
            print(line)

    return show


def show(values: Mapping[str, Any]) -> None:
    width = max(map(len, values))
    for name, value in values.items():
        shown = f"{value:,.4f}" if isinstance(value, float) else "-" if value is None else value
        print(f"{name:{width}}  {shown}")
