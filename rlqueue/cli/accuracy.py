"""``rlqueue validate`` and ``rlqueue calibrate``: their options and answers; the command line prints them."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlqueue.measures import SOLVERS
from rlqueue.provenance import parsed
from rlqueue.refusal import is_positive, require_known
from rlqueue.scenario import Scenario

VALIDATE = (
    "published runs by the protocol of docs/validation.md: a few rows calibrate, all others are predicted blind. Errors are "
    "shares in [0, 1] of predicted rows only: median_error_step 0.12 is twelve percent, median_error_wait_points 0.08 is "
    "eight points"
)
CALIBRATE = "fit a scenario to what was measured: three seconds, a decode curve, a wait ratio"


def validate_options(command: argparse.ArgumentParser) -> None:
    """The options of ``validate``."""
    command.add_argument("--out", metavar="DIR", help="write validation.csv, rankings.csv and calibrations.csv there")
    command.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="NAME_OR_FILE",
        help="this case alone, or each case of this folder; may be given again",
    )
    command.add_argument("--solver", choices=tuple(SOLVERS), help="in place of the one that each case names")


def run_validate(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """The answer of ``validate``: its summary, one entry per case, and the rows; ``say`` hears how far it is."""
    from rlqueue.validation import Validation, validate
    from rlqueue.validation.report import lines, table, write

    chosen = _chosen(options.case)
    results = []
    for number, result in enumerate(validate(chosen, solver=options.solver), start=1):
        say(f"{number}/{len(chosen)} {result.case.name}")
        results.append(result)
    validation = Validation(results=results)
    written = write(validation, Path(options.out)) if options.out else []
    by_case = {result.case.name: Validation(results=[result]).summary() for result in results}
    return validation.summary() | {
        "by_case": by_case,
        "rows": table(results),
        "written": written,
        "lines": [line for result in results for line in lines(result)],
    }


def _chosen(names: Sequence[str]) -> list[Any]:
    """The cases that are meant, each once. Raises ValueError for two of one name: answers are kept by it."""
    from rlqueue.validation import case_from_file, cases, cases_from_folder

    known = {case.name: case for case in cases()}
    if not names:
        return list(known.values())
    chosen: dict[str, tuple[Path, Any]] = {}
    for name in names:
        path = Path(name)
        if name not in known and path.is_dir():
            found = [(path / f"{case.name}.toml", case) for case in cases_from_folder(path)]
        elif name not in known and (name.endswith(".toml") or path.is_file()):
            found = [(path, case_from_file(path))]
        else:
            require_known("case", name, known)
            found = [(Path(name), known[name])]
        for at, case in found:
            there, _ = chosen.setdefault(case.name, (at, case))
            if there.resolve() != at.resolve():
                raise ValueError(f"case {case.name!r} is both {there} and {at}: answers are kept by name, rename one")
    return [case for _, case in chosen.values()]


def validate_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``validate`` as text."""
    yield from found["lines"]
    yield "c: the row calibrates; -: beside a calibrating row, or left out; all others are predicted blind"
    for name, value in found.items():
        if isinstance(value, int | float):
            yield f"{name:32} {value:,.4g}"
    for path in found["written"]:
        yield f"written: {path}"


def calibrate_options(command: argparse.ArgumentParser) -> None:
    """The options of ``calibrate`` beside those that choose the scenario."""
    command.add_argument(
        "--measured", action="append", default=[], metavar="NAME=VALUE",
        help="what was measured, e.g. generate_s=178, train_s=95, sync_s=6, trainer_wait_ratio=0.3, "
        "'decode_curve=16: 910, 100: 2400'; with its standard deviation in the same unit or in percent: 'train_s=95 +- 2', "
        "'decode_curve=16: 910, 100: 2400 +- 1%%'",
    )  # fmt: skip
    command.add_argument(
        "--fit", action="append", metavar="KNOB", help="a knob to fit; by default the one each measure sets"
    )
    command.add_argument("--solver", choices=tuple(SOLVERS), default="closed form", help="whose answers are to match")
    command.add_argument("--out", metavar="FILE", help="write the fitted scenario there, as TOML")


def run_calibrate(scenario: Scenario, options: argparse.Namespace) -> dict[str, Any]:
    """The answer of ``calibrate``: fitted knobs, residuals, and the scenario file."""
    from rlqueue.calibration import calibrate

    found = calibrate(scenario, _measured(options.measured), fit=options.fit, solver=options.solver)
    if options.out:
        try:
            Path(options.out).write_text(found.toml(), encoding="utf-8")
        except OSError as error:
            raise ValueError(f"out={options.out}: cannot be written ({error.strerror or error})") from error
    return found.as_dict() | {"toml": found.toml(), "written": options.out}


def _measured(words: Sequence[str]) -> dict[str, Any]:
    measured = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"--measured {word!r} must have the form NAME=VALUE")
        measured[name.strip()] = _with_spread(word, name.strip(), value)
    return measured


def _with_spread(word: str, name: str, text: str) -> Any:
    """The value of ``VALUE`` or ``VALUE +- SPREAD``, the spread as a calibration has it: relative, of a share absolute."""
    from rlqueue.calibration import Measured
    from rlqueue.measures import MEASURES

    text, plus_minus, said = (part.strip() for part in text.partition("+-"))
    value = text if name == "decode_curve" else parsed(text)
    if not plus_minus:
        return value
    share = name in MEASURES and MEASURES[name].share
    percent = said.endswith("%")
    spread = parsed(said.removesuffix("%").strip())
    if not is_positive(spread):
        raise ValueError(f"--measured {word!r}: the spread {said!r} after +- must be a finite number > 0, or percent")
    if percent and share:
        raise ValueError(
            f"--measured {word!r}: the spread {said!r} of a share must be plain, 2 points as 0.02: percent of what?"
        )
    if percent:
        return Measured(value=value, spread=spread / 100)
    if name == "decode_curve":
        raise ValueError(
            f"--measured {word!r}: the spread {said!r} of a curve must be in percent: it holds at each point"
        )
    relative = not share and isinstance(value, int | float) and value > 0  # any other value is refused by its own name
    return Measured(value=value, spread=spread / value if relative else spread)


def calibrate_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The answer of ``calibrate`` as text."""
    for knob in found["knobs"]:
        fixed = (
            "not fixed by the measurements"
            if knob["spread"] is None
            else f"68 %: {knob['low']:.4g} to {knob['high']:.4g}"
        )
        limit = ", at its limit" if knob["at_limit"] else ""
        yield f"{knob['knob']:32} {knob['start']:.4g} -> {knob['value']:.4g} {knob['unit']} ({fixed}{limit})"
    for each in found["residuals"]:
        yield f"{each['quantity']:32} measured {each['measured']:.4g} {each['unit']}, fitted {each['fitted']:.4g}"
    yield from found["missed"]
    if found["written"]:
        yield f"written: {found['written']}"
