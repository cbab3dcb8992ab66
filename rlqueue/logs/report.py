"""What a log holds, as one JSON object and as lines for a terminal."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rlqueue.logs.columns import COLUMNS
from rlqueue.logs.kinds import KINDS
from rlqueue.logs.measured import Measured
from rlqueue.logs.names import title


def summary(measured: Measured) -> dict[str, Any]:
    """Everything but the rows: framework, means with how many steps they rest on, who waits, what was avoided and left out."""
    steps = measured.table.index
    return {
        "framework": measured.framework,
        "files": list(measured.files),
        "formats": list(measured.formats),
        "first_step": int(steps[0]),
        "last_step": int(steps[-1]),
        "steps": len(steps),
        "steady_steps": int((measured.table["kind"] == "steady").sum()),
        "left_out": measured.left_out().to_dict("records"),
        "means": {
            name: {"mean": each.mean, "sd": None if math.isnan(each.sd) else each.sd, "rows": each.rows, "unit": COLUMNS[name][0]}
            for name, each in measured.means().items()
        },
        "waiting": asdict(measured.waiting()),
        "traps": [asdict(each) for each in measured.traps],
        "notes": list(measured.notes),
        "missing": measured.missing,
        "read": [asdict(each) for each in measured.readings],
        "unknown_names": len(measured.unknown),
    }  # fmt: skip


def shown(found: Mapping[str, Any]) -> Iterator[str]:
    """The summary as lines."""
    files = [f"{name} ({form})" for name, form in zip(found["files"], found["formats"], strict=True)]
    yield f"{title(found['framework'])}: {', '.join(files)}"
    yield f"steps {found['first_step']} to {found['last_step']}: {found['steps']}, of which {found['steady_steps']} steady"
    for each in found["left_out"]:
        yield f"  left out: {each['steps']} {each['kind']} ({each['share']:.1%} of the time): {KINDS[each['kind']]}"
    yield found["waiting"]["words"]
    width = max(map(len, found["means"]))
    for name, each in found["means"].items():
        sd = "" if each["sd"] is None else f" ± {each['sd']:,.4g}"
        yield f"{name:{width}}  {each['mean']:,.4f}{sd} {'' if each['unit'] == '1' else each['unit']} ({each['rows']} steps)"
    for trap in found["traps"]:
        yield f"avoided: {trap['reads_like']} {trap['taken_as']}"
    for note in found["notes"]:
        yield f"note: {note}"
    for name, where in found["missing"].items():
        yield f"missing: {name}: {where}"
