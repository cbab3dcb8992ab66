"""How accurate is it? Published runs: a few rows calibrate, all others are predicted blind and compared."""

from rlqueue.validation.cases import Case, case_from_file, cases, cases_from_folder
from rlqueue.validation.protocol import CaseResult, Validation, validate
from rlqueue.validation.report import table

__all__ = ["Case", "CaseResult", "Validation", "case_from_file", "cases", "cases_from_folder", "table", "validate"]
