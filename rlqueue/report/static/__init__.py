"""Style and script of the report's page."""

from pathlib import Path

FOLDER = Path(__file__).parent
PAGE_CSS = (FOLDER / "report.css").read_text(encoding="utf-8")
PAGE_JS = (FOLDER / "report.js").read_text(encoding="utf-8")
