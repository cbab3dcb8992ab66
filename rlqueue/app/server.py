"""Voila, narrowed to what a page needs: its notebooks rendered, their kernels' widget messages, and a handful of files.

Voila's own program filters kernel messages (no execute, inspect, complete, debug), so this is that program, with routes taken
away (the notebook listing, and the contents API, which hands out notebook sources) and cached assets added. Settings are in
voila.json beside this file; nothing is read from the folder where it starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tornado.web import RedirectHandler
from voila.app import Voila
from voila.shutdown_kernel_handler import VoilaShutdownKernelHandler
from voila.tornado.contentshandler import VoilaContentsHandler
from voila.tornado.treehandler import TornadoVoilaTreeHandler

from rlqueue.app.assets import ROUTE, AssetHandler, page_assets

HERE = Path(__file__).parent
FIRST_PAGE = "explorer.ipynb"


class ClosedTabHandler(VoilaShutdownKernelHandler):
    """A closing page says so with a beacon, which can carry no XSRF token; who knows a kernel's id may end that kernel anyway."""

    def check_xsrf_cookie(self) -> None:
        pass


class PageServer(Voila):
    """`Voila`, for a folder of notebooks, with the page of `FIRST_PAGE` (or of the first notebook) at /."""

    name = "voila"  # the section of voila.json, and Voila's templates, go by this name

    def setup_template_dirs(self) -> None:
        """Our template is in the package; Jupyter looks for templates along JUPYTER_PATH."""
        paths = [str(HERE / "share"), os.environ.get("JUPYTER_PATH", "")]
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, paths))
        super().setup_template_dirs()
        self.assets = page_assets()
        urls = {name.replace(".", "_"): self.base_url + found.path for name, found in self.assets.items()}
        self.voila_configuration.config.VoilaConfiguration.resources = {"rlqueue": urls}

    def init_settings(self) -> dict[str, Any]:
        return super().init_settings() | {"compress_response": True}

    def init_handlers(self) -> list[tuple]:
        dropped = (VoilaContentsHandler, TornadoVoilaTreeHandler)
        kept = [route for route in super().init_handlers() if route[1] not in dropped]
        base = self.server_url
        first = next(iter(sorted(Path(self.root_dir).glob("*.ipynb"), key=lambda path: (path.name != FIRST_PAGE, path.name))))
        return [
            (base + ROUTE, AssetHandler, {"assets": self.assets}),
            (base + r"voila/api/shutdown/(.*)", ClosedTabHandler),
            (base, RedirectHandler, {"url": f"{self.base_url}voila/render/{first.name}", "permanent": False}),
            *kept,
        ]


def run(notebooks: Path, *, host: str, port: int, browser: bool, options: list[str]) -> None:
    """Serve a folder of notebooks until interrupted; `options` are Voila's own, and win over voila.json."""
    argv = [str(notebooks), f"--port={port}", f"--Voila.ip={host}", "--Voila.port_retries=0", *options]
    if not browser:
        argv.append("--no-browser")
    PageServer.launch_instance(argv, config_file_paths=[str(HERE)])
