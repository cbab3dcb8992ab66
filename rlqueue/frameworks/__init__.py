"""Configurations of RL frameworks as knobs of a scenario; each value says whether it was read, defaulted or assumed."""

from rlqueue.frameworks.facts import ORIGINS, Fact, Given
from rlqueue.frameworks.reading import Reading, read, read_text
from rlqueue.frameworks.tables import frameworks

__all__ = ["ORIGINS", "Fact", "Given", "Reading", "frameworks", "read", "read_text"]
