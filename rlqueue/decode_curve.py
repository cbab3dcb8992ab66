"""A measured decode curve: how long a replica takes for a token of each of k requests, in place of a roofline.

Written as ``"1: 99, 16: 910, 100: 2400"``: requests at once, and tokens per second of the whole replica. Between the points
the time per token of one request, ``k / rate``, is linear in k; below the first it is the first's, above the last the last
line goes on.
"""

import math
from collections import defaultdict
from functools import lru_cache

import numpy as np

from rlqueue.provenance import table


@lru_cache(maxsize=64)
def points(curve: str) -> tuple[tuple[float, float], ...]:
    """Requests and seconds per token of one request, from the text of a curve. Raises ValueError where it is none."""
    found = []
    for part in curve.split(","):
        requests, colon, rate = part.partition(":")
        try:
            k, tokens_per_s = float(requests), float(rate)
        except ValueError:
            k, tokens_per_s = math.nan, math.nan
        if not colon or not (1 <= k < math.inf and 0 < tokens_per_s < math.inf):
            raise ValueError(
                f"decode_curve={curve!r} must be pairs like '1: 99, 16: 910', requests >= 1 and tokens/s > 0: "
                f"not {part.strip()!r}"
            )
        if found and k <= found[-1][0]:
            raise ValueError(f"decode_curve={curve!r} must go up in requests: {k:g} comes after {found[-1][0]:g}")
        found.append((k, k / tokens_per_s))
    return tuple(found)


def token_s(curve: str, requests: np.ndarray) -> np.ndarray:
    """Seconds for a token of each of so many requests at once."""
    k, seconds = (np.array(column) for column in zip(*points(curve), strict=True))
    beyond = np.maximum(0.0, np.asarray(requests, float) - k[-1])
    slope = max(0.0, (seconds[-1] - seconds[-2]) / (k[-1] - k[-2])) if k.size > 1 else 0.0
    return np.interp(requests, k, seconds) + slope * beyond


def line(curve: str, most: float) -> tuple[float, float]:
    """The straight line nearest to the curve from 1 to ``most`` requests: seconds at none, and per request; none negative."""
    k = np.linspace(1.0, max(2.0, most), 200)
    seconds = token_s(curve, k)
    slope = max(0.0, float(np.polyfit(k, seconds, 1)[0]))
    return max(0.0, float(np.mean(seconds - slope * k))), slope


def measured(llm: str, gpu: str, parallelism: str, *, prompt_tokens: float) -> str:
    """The curve of a server in data/decode_curves.csv with about so long prompts, as text; ValueError where there is none.

    Rates are ``requests / time per output token``, which leaves the prefill out.
    """
    rows = [
        row for row in table("decode_curves")
        if (row["llm"], row["gpu"], row["parallelism"], row["usable"]) == (llm, gpu, parallelism, "yes")
        and row["time_per_output_token_s"] and row["prompt_tokens"]
    ]  # fmt: skip
    nearest: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        off = abs(math.log(float(row["prompt_tokens"]) / prompt_tokens))
        nearest[float(row["concurrency"])].append((off, float(row["time_per_output_token_s"])))
    if not nearest:
        raise ValueError(
            f"llm={llm!r}, gpu={gpu!r}, parallelism={parallelism!r}: no usable row in data/decode_curves.csv"
        )
    return ", ".join(f"{k:g}: {k / min(found)[1]:.6g}" for k, found in sorted(nearest.items()))
