"""`python -m rlqueue.app`: serve the notebooks as pages. PORT in the environment is the default of the option.

HOST is not: some shells export it as the machine's name, and a page served to a whole network must be meant.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m rlqueue.app", description="Serve rlqueue's notebooks as web pages."
    )
    parser.add_argument("--host", default="localhost", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=os.environ.get("PORT", "8866"), help="port (default %(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="don't open a browser")
    parser.add_argument(
        "--notebooks", type=Path, default=None, help="folder of notebooks (default: the ones of rlqueue)"
    )
    arguments, options = parser.parse_known_args()
    notebooks = arguments.notebooks or _own_notebooks()
    if not any(notebooks.glob("*.ipynb")):
        parser.error(f"--notebooks={notebooks} must hold a notebook: there is none")

    compiling = _compile_once()
    from rlqueue.app.server import run  # after the arguments, and meanwhile: importing Voila takes a second

    if compiling.wait():
        raise SystemExit(compiling.returncode)
    run(notebooks, host=arguments.host, port=arguments.port, browser=not arguments.no_browser, options=options)


def _compile_once() -> subprocess.Popen:
    """Have the compiled code kept on disk before a kernel needs it: a minute that no visitor should wait.

    In a process of its own, so that the server carries no compiler; where the code is there already it takes three seconds.
    """
    say = "Preparing the simulation (compiled once after an installation or update: a minute or two) ..."
    print(say, file=sys.stderr, flush=True)  # noqa: T201  a person waits at the terminal
    return subprocess.Popen([sys.executable, "-m", "rlqueue.warm_up"])


def _own_notebooks() -> Path:
    """A built wheel carries the notebooks inside the package; in the repository they are beside it."""
    package = Path(__file__).parents[1]
    inside = package / "notebooks"
    return inside if inside.is_dir() else package.parent / "notebooks"


if __name__ == "__main__":
    main()
