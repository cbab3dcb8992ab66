"""Simulations by the thousand: a sweep of runs on one core, on all cores or on a Dask cluster, kept as parquet, resumable."""

from rlqueue.bulk.job import Job, axis_from_text
from rlqueue.bulk.sweeping import run_job

__all__ = ["Job", "axis_from_text", "run_job"]
