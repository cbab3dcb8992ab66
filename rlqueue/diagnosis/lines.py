"""A diagnosis as lines for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any


def shown(found: Mapping[str, Any]) -> Iterator[str]:
    """The diagnosis as ``diagnose.as_dict`` has it."""
    if found["scenario"] and found["waiting"]:
        yield found["waiting"]["words"]
    yield found["verdict"]
    if found["taken_from_log"]:
        yield f"taken from the log: {', '.join(f'{name} = {value:,.0f}' for name, value in found['taken_from_log'].items())}"
    for knob in found["calibration"]["knobs"] if found["calibration"] else ():
        known = "not fixed by the log" if knob["high"] is None else f"{knob['low']:.4g} to {knob['high']:.4g}"
        limit = ", at its limit" if knob["at_limit"] else ""
        yield f"fitted: {knob['knob']} = {knob['value']:.4g} {_unit(knob['unit'])}({known}{limit})"
    if found["compared"]:
        width = max(len(each["quantity"]) for each in found["compared"])
        yield f"{'':{width}}  {'measured':>12} {'predicted':>12} {'error':>8}"
        for each in found["compared"]:
            share = each["unit"] == "1"
            error = "" if each["error"] is None else f"{100 * each['error']:+,.1f}{' points' if share else ' %'}"
            mark = "  (fitted)" if each["fitted"] else ""
            yield f"{each['quantity']:{width}}  {each['measured']:>12,.4g} {each['predicted']:>12,.4g} {error:>8}{mark}"
    for place, move in enumerate(found["moves"], 1):
        changes = (
            f"wait {100 * move['wait_change']:+.0f} points",
            f"{move['tokens_per_s_change']:+,.0f} tokens/s",
            f"{move['usd_per_mtok_change']:+.2f} $/Mtok",
            f"{move['hours_change']:+.1f} h in {move['hours_steps']:,} steps",
        )
        yield f"{place}. {move['move']}: {', '.join(changes)}"
        yield from (f"     {line}" for line in move["paste"])
    for what in found["missing"]:
        yield f"missing: {what}"


def _unit(unit: str) -> str:
    return "" if unit in {"", "1"} else f"{unit} "
