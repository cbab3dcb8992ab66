"""A running page server of a test's own: on a free port, with preheated kernels, and gone afterwards with all it started."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

PAGE = Path(__file__).parent / "page"  # a notebook of the explorer's size, with a made-up model
# Without these a headless Chromium looks for updates and accounts at every start, on a network that may be closed.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",  # a page has to work without any network
]


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, kw_only=True)
class Server:
    url: str
    port: int
    log_file: Path
    process: subprocess.Popen

    def answer(self, path: str, method: str = "GET", headers: dict | None = None) -> Answer:
        """To a path exactly as written: urllib would tidy it up first, and an intruder doesn't."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=30)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode(errors="replace"))
        finally:
            connection.close()

    def kernel_of_a_visit(self) -> tuple[str, str]:
        """Ask for the page as a browser does; the id of the kernel it got, and its HTML."""
        page = self.answer(self.answer("/").headers["Location"]).body
        return re.search('"kernelId": "([^"]+)"', page)[1], page

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def wait_for_pool(self, fills: int = 1, *, timeout_s: float = 60) -> None:
        """Until kernels have been heated so many times; what a kernel runs before the first visit takes a little longer."""
        wait_until(lambda: self.log().count("Kernel pool of") >= fills, timeout_s, lambda: f"no kernel:\n{self.log()}")


def wait_until(done, timeout_s: float, complaint) -> None:
    end = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(complaint())
        time.sleep(0.1)


@contextlib.contextmanager
def serve(notebooks: Path = PAGE, *options: str) -> Iterator[Server]:
    """`python -m rlqueue.app` as a user starts it. Ended by SIGKILL: with preheated kernels, Voila can outlive SIGTERM."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "rlqueue.app",
        "--no-browser",
        "--port",
        str(port),
        "--notebooks",
        str(notebooks),
        *options,
    ]
    # A shell's HOST must change nothing: the page is for localhost unless --host says otherwise.
    environment = {name: value for name, value in os.environ.items() if name != "PORT"} | {"HOST": "0.0.0.0"}  # noqa: S104
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "server.log"
        with log_file.open("w") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder, start_new_session=True
            )
        server = Server(url=f"http://localhost:{port}/", port=port, log_file=log_file, process=process)
        try:
            wait_until(lambda: _answers(server), 60, lambda: f"the server does not answer:\n{server.log()}")
            server.wait_for_pool()
            yield server
        finally:
            _end(process)
            wait_until(lambda: not _listening(port), 10, lambda: f"port {port} is still taken")


def _end(process: subprocess.Popen) -> None:
    """The server's own group, and its kernels, which live in groups of their own."""
    kernels = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    for kernel in kernels:
        with contextlib.suppress(psutil.NoSuchProcess):
            kernel.kill()
    psutil.wait_procs(kernels, timeout=10)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def _listening(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("localhost", port)) == 0


def _answers(server: Server) -> bool:
    if server.process.poll() is not None:
        raise RuntimeError(f"the server ended with status {server.process.returncode}:\n{server.log()}")
    try:
        # Not the page itself: asking for that would use up its preheated kernel.
        return server.answer("/voila/static/voila.js").status == 200
    except OSError:
        return False
