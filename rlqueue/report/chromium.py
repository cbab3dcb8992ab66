"""The Chromium that draws the report's pictures and that browser tests drive: which one, and how to get it."""

import os
import shutil
import subprocess
import sys

VARIABLE = "RLQUEUE_CHROMIUM"
NAMES_ON_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW_TO_GET_ONE = f"name a Chromium or Chrome in {VARIABLE}, or install your system's chromium package"


def find_chromium() -> str | None:
    """The path of one that starts, or None: the one named in RLQUEUE_CHROMIUM, the system's, or Playwright's.

    Raises:
        ValueError: the one that was named does not start.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        if path is None or not _starts(path):
            raise ValueError(f"{VARIABLE}={named} does not run: it must be the path of a Chromium or Chrome program")
        return path
    on_path = filter(None, map(shutil.which, NAMES_ON_PATH))
    return next(filter(_starts, on_path), None) or _playwrights()


def _starts(path: str) -> bool:
    """Ubuntu's /usr/bin/chromium-browser, for one, may be a stub that only asks for a snap."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False


def _playwrights() -> str | None:
    """Asked in a process of its own: Playwright refuses to start twice in one, and a test may have it running."""
    ask = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False, text=True)  # noqa: S603
    path = answer.stdout.strip()
    return path if path and _starts(path) else None
