"""Values as JSON knows them."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """The value with dicts and lists inside it; None for a number that is endless or missing, of which JSON knows neither."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
