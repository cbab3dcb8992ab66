"""Reading large logs: seconds and memory for 100 MB in each format, or for as many as RLQUEUE_LOG_MB says (1000: a gigabyte)."""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Timing

MEGABYTES = int(os.environ.get("RLQUEUE_LOG_MB", "100"))
NOISE = "\x1b[36m(AgentLoopWorker pid={}, ip=10.0.0.7)\x1b[0m 2026-08-01 10:00:00,123 INFO [request {}] {} tokens in {:.2f} s\n"
READ = """
import json, resource, sys, time
from rlqueue import Measured
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, begun = peak(), time.perf_counter()
found = Measured.from_log(sys.argv[1])
print(json.dumps([time.perf_counter() - begun, peak() - before, len(found.table)]))
"""


def timings() -> Iterator[Timing]:
    with tempfile.TemporaryDirectory() as folder:
        for form in ("console", "json", "csv"):
            log = Path(folder) / f"run.{form}"
            _write(log, form)
            ended = subprocess.run([sys.executable, "-c", READ, str(log)], capture_output=True, text=True, check=True)  # noqa: S603
            seconds, memory, steps = json.loads(ended.stdout)
            rate = log.stat().st_size / 1e6 / seconds
            note = f"{rate:,.0f} MB/s, {memory:,.0f} MB of memory more, {steps:,} steps"
            yield Timing(name=f"a {form} log of {MEGABYTES:,} MB", seconds=seconds, limit_s=0.2 * MEGABYTES, note=note)
            log.unlink()


def _write(log: Path, form: str) -> None:
    """A verl run: 60 metrics that nobody asks for beside the ones that are read; on the console 400 lines of workers a step."""
    draw = random.Random(1)  # noqa: S311  no secret
    others = [f"actor/metric_{number}" for number in range(60)]
    with log.open("w", encoding="utf-8") as out:
        written = step = 0
        while written < MEGABYTES * 1_000_000:
            step += 1
            row = {name: draw.random() for name in others}
            row |= {
                "timing_s/gen": 100 + draw.random(),
                "timing_s/update_actor": 200.0,
                "timing_s/step": 310 + draw.random(),
            }
            if form == "json":
                written += out.write(json.dumps({"_step": step, **row}) + "\n")
            elif form == "csv":
                head = ",".join(["_step", *row]) + "\n" if step == 1 else ""
                written += out.write(head + ",".join(map(str, [step, *row.values()])) + "\n")
            else:
                for _ in range(400):
                    written += out.write(
                        NOISE.format(draw.randrange(99999), step, draw.randrange(4096), 100 * draw.random())
                    )
                written += out.write(f"step:{step} - {' - '.join(f'{key}:{value}' for key, value in row.items())}\n")
