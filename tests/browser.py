"""The Chromium that the browser tests drive: which one, and how to get it.

`make test` runs this file as a program before pytest, so a missing browser is installed once and outside the tests; the
tests' fixture calls `chromium_or_skip`. Both look in the same places in the same order: the variable RLQUEUE_CHROMIUM,
the system's browser, Playwright's own.
"""

import os
import shutil
import subprocess
import sys

VARIABLE = "RLQUEUE_CHROMIUM"
NAMES_ON_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
HOW_TO_GET_ONE = (
    f"no Chromium for the browser tests: name one in {VARIABLE}, install your system's chromium package, "
    "or run `.venv/bin/python -m playwright install --with-deps chromium`"
)


def find_chromium() -> str | None:
    """The path of a Chromium that starts, or None; ValueError if the one that the user named does not start."""
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        if path is None or not _starts(path):
            raise ValueError(f"{VARIABLE}={named} does not run: it must be the path of a Chromium or Chrome program")
        return path
    on_path = filter(None, map(shutil.which, NAMES_ON_PATH))
    return next(filter(_starts, on_path), None) or _playwrights_own()


def chromium_or_skip() -> str:
    """`find_chromium` for a fixture: without a browser the test is skipped, and in CI it fails."""
    import pytest

    path = find_chromium()
    if path is None:
        (pytest.fail if IN_CI else pytest.skip)(HOW_TO_GET_ONE)
    return path


def install_chromium() -> None:
    """Debian's package where we may install it, else the build that Playwright brings."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], env=quiet, check=False)
    if find_chromium() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def _starts(path: str) -> bool:
    """Ubuntu's /usr/bin/chromium-browser, for one, may be a stub that only asks for a snap."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _playwrights_own() -> str | None:
    """Asked in a process of its own: Playwright refuses to start twice in one, and a test may have it running."""
    ask = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False, text=True)
    path = answer.stdout.strip()
    return path if path and _starts(path) else None


def main() -> int:
    """Exit status 1 only in CI: elsewhere the rest of the tests is still worth running."""
    path = find_chromium()
    if path is None:
        print("Installing Chromium for the browser tests, once.", flush=True)
        install_chromium()
        path = find_chromium()
    if path is not None:
        print(f"Browser for the tests: {path}")
        return 0
    bar = "!" * 100
    outcome = "In CI that is a failure." if IN_CI else "They are SKIPPED."
    print(f"\n{bar}\n{HOW_TO_GET_ONE}\n{outcome}\n{bar}\n", file=sys.stderr)
    return 1 if IN_CI else 0


if __name__ == "__main__":
    sys.exit(main())
