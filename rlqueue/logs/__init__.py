"""Logs of real runs, of ten frameworks, as one tidy table in our names and units."""

from rlqueue.logs.columns import COLUMNS
from rlqueue.logs.measured import Mean, Measured, Reading

__all__ = ["COLUMNS", "Mean", "Measured", "Reading"]
