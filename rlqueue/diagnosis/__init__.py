"""A log and a configuration together: who waits, what binds, and what each move would buy."""

from rlqueue.diagnosis.diagnose import Comparison, Diagnosis, Gain, diagnose

__all__ = ["Comparison", "Diagnosis", "Gain", "diagnose"]
