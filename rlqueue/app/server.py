"""Voila, narrowed to what a page needs: its notebooks rendered, their kernels' widget messages, and a handful of files.

Voila's own program filters kernel messages (no execute, inspect, complete, debug), so this is that program, with routes taken
away (the notebook listing, and the contents API, which hands out notebook sources) and cached assets added. Settings are in
voila.json beside this file; nothing is read from the folder where it starts.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RedirectHandler
from voila.app import Voila
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler
from voila.tornado.contentshandler import VoilaContentsHandler
from voila.tornado.kernel_websocket_handler import VoilaKernelWebsocketHandler
from voila.tornado.treehandler import TornadoVoilaTreeHandler

from rlqueue.app.assets import ROUTE, AssetHandler, page_assets

HERE = Path(__file__).parent
ORDER = (
    "explorer",
    "inside_one_run",
    "which_prompts_teach",
    "what_if_answers_grow",
    "plan",
    "your_run",
    "compare",
    "validation",
    "report",
)
"""Notebooks in the order of the links between the pages; the first one there is also the one at /. Others follow by name."""
HEATED = ("explorer", "inside_one_run", "which_prompts_teach", "what_if_answers_grow")
"""Pages for which a kernel stands ready: those whose figures one drags. Each takes 100 to 160 MB, and 3 s of a core to start."""
PROTOCOL = "v1.kernel.websocket.jupyter.org"
MOST_OFFSETS = 64  # six parts of a message and their end, and a page's controls send no buffers


class ClosedTabHandler(VoilaShutdownKernelHandler):
    """A closing page says so with a beacon, which can carry no XSRF token; who knows a kernel's id may end that kernel anyway."""

    def check_xsrf_cookie(self) -> None:
        pass


class KernelHandler(VoilaKernelWebsocketHandler):
    """Voila's, made prompt, and deaf to what would hang the server for everybody.

    Prompt: a slider's answer is several small frames, and Nagle's algorithm holds all but the first back for up to 40 ms.
    Deaf: Voila reads every binary frame as the v1 protocol, whose first 8 bytes count the offsets that follow; a frame of the
    older protocol, or a made-up one, makes that a loop of 10**18 rounds. A page's front end speaks v1.
    """

    async def get(self, kernel_id: str) -> None:
        if PROTOCOL not in self.request.headers.get("Sec-WebSocket-Protocol", ""):
            raise HTTPError(400, f"the websocket must speak {PROTOCOL}")
        await super().get(kernel_id)

    async def open(self, kernel_id: str) -> None:
        self.set_nodelay(True)
        await super().open(kernel_id)

    def on_message(self, ws_message: str | bytes) -> None:
        if isinstance(ws_message, bytes) and int.from_bytes(ws_message[:8], "little") <= MOST_OFFSETS:
            super().on_message(ws_message)
        else:
            self.close(1002, "not a kernel message")


class PageServer(Voila):
    """`Voila`, for a folder of notebooks, with the first of them at /.

    The first page's kernel is heated at once, the others' one after the other when that is done: all at the same time, as Voila
    does it, the first visitor would wait for eight.
    """

    name = "voila"  # the section of voila.json, and Voila's templates, go by this name

    def setup_template_dirs(self) -> None:
        """Our template is in the package; Jupyter looks for templates along JUPYTER_PATH."""
        paths = [str(HERE / "share"), os.environ.get("JUPYTER_PATH", "")]
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, paths))
        os.environ["JUPYTER_WIDGETS_ECHO"] = (
            "0"  # each page has a kernel of its own: nobody else wants to hear of a change
        )
        super().setup_template_dirs()
        self.assets = page_assets()
        ours: dict[str, Any] = {
            name.replace(".", "_"): self.base_url + found.path for name, found in self.assets.items()
        }
        ours["pages"] = [
            {"name": path.stem, "title": _title(path), "url": f"{self.base_url}voila/render/{path.name}"}
            for path in pages(Path(self.root_dir))
        ]
        self.voila_configuration.config.VoilaConfiguration.resources = {"rlqueue": ours}

    def init_settings(self) -> dict[str, Any]:
        first = pages(Path(self.root_dir))[0]
        self.config.VoilaKernelManager.kernel_pools_config = {"default": {"pool_size": 0}, first.name: {"pool_size": 1}}
        return super().init_settings() | {"compress_response": True}

    def listen(self) -> None:
        if self.voila_configuration.preheat_kernel:
            IOLoop.current().add_callback(_heat, self.kernel_manager, heated(Path(self.root_dir)))
        super().listen()

    def init_handlers(self) -> list[tuple]:
        dropped = (VoilaContentsHandler, TornadoVoilaTreeHandler)
        ours = {VoilaKernelWebsocketHandler: KernelHandler, VoilaShutdownKernelHandler: ClosedTabHandler}
        kept = [
            (path, ours.get(handler, handler), *options)
            for path, handler, *options in super().init_handlers()
            if handler not in dropped
        ]
        base = self.server_url
        first = pages(Path(self.root_dir))[0]
        return [
            (base + ROUTE, AssetHandler, {"assets": self.assets}),
            (base, RedirectHandler, {"url": f"{self.base_url}voila/render/{first.name}", "permanent": False}),
            *kept,
        ]


def pages(folder: Path) -> list[Path]:
    """The folder's notebooks in the order of their links."""
    places = {name: place for place, name in enumerate(ORDER)}
    return sorted(folder.glob("*.ipynb"), key=lambda path: (places.get(path.stem, len(ORDER)), path.name))


def heated(folder: Path) -> list[str]:
    """The notebooks for which kernels stand ready, the first page first."""
    first, *others = pages(folder)
    return [first.name, *(each.name for each in others if each.stem in HEATED)]


async def _heat(manager: Any, names: list[str]) -> None:
    """Fill the pools of these notebooks, each when the one before has run; the first is being filled already."""
    for name in names:
        if name not in manager.kernel_pools_config:
            manager.kernel_pools_config = manager.kernel_pools_config | {name: {"pool_size": 1}}
            manager.fill_if_needed(delay=0, notebook_name=name)
        started = list(manager._pools.get(name, ()))  # noqa: SLF001  Voila has no other way to know when a kernel is ready
        if started:
            await asyncio.wait(started)
            await asyncio.wait([each.result()["task"] for each in started if not each.exception()] or started)


def _title(notebook: Path) -> str:
    """By what name other pages link to a notebook: ``nav`` in its metadata, or else the heading of its first cell."""
    held = json.loads(notebook.read_text(encoding="utf-8"))
    cells = held["cells"]
    heading = "".join(cells[0]["source"]).partition("\n")[0] if cells else ""
    return held["metadata"].get("nav") or heading.lstrip("# ") or notebook.stem


def run(notebooks: Path, *, host: str, port: int, browser: bool, options: list[str]) -> None:
    """Serve a folder of notebooks until interrupted; `options` are Voila's own, and win over voila.json."""
    argv = [str(notebooks), f"--port={port}", f"--Voila.ip={host}", "--Voila.port_retries=0", *options]
    if not browser:
        argv.append("--no-browser")
    PageServer.launch_instance(argv, config_file_paths=[str(HERE)])
