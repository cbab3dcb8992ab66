"""The Chromium that the browser tests drive: skipped, failed or installed where there is none.

`make test` runs this file as a program before pytest, so a missing browser is installed once and outside the tests; the
tests' fixture calls `chromium_or_skip`. Which one it is `rlqueue.report.chromium` says, for the report's pictures as well.
"""

import os
import shutil
import subprocess
import sys

from rlqueue.report.chromium import VARIABLE, find_chromium

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
HOW_TO_GET_ONE = (
    f"no Chromium for the browser tests: name one in {VARIABLE}, install your system's chromium package, "
    "or run `.venv/bin/python -m playwright install --with-deps chromium`"
)


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
