"""`python -m benchmarks [MODULE ...]`: run the benchmarks and print them; nothing fails, since a busy machine is no defect."""

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks import Timing


def shown(seconds: float) -> str:
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def line(timing: Timing) -> str:
    limit = "" if timing.limit_s is None else f"under {shown(timing.limit_s)}"
    late = "" if timing.limit_s is None or timing.seconds < timing.limit_s else "  SLOWER"
    return f"{timing.name:<58} {shown(timing.seconds):>9}  {limit:<13} {timing.note}{late}"


def main() -> None:
    found = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    for name in sys.argv[1:] or found:
        for timing in importlib.import_module(f"benchmarks.{name}").timings():
            print(line(timing), flush=True)


if __name__ == "__main__":
    main()
