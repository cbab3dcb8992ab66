"""The few static files a page needs, joined, gzipped once and cacheable for ever under the digest of their content.

Untuned, Voila's front end asks for about a hundred webpack chunks in nested waves. A chunk only pushes its modules into a global
array that the runtime reads when it starts, so all the chunks a page needs can be joined into one script that runs first. Which
those are is listed in `static/chunks.txt` (`python benchmarks/browser.py --chunks` prints it); a chunk that the installed
packages don't have is left out, and the runtime asks for whatever is missing as before: a wrong list costs time, nothing else.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from jupyter_core.paths import jupyter_path
from tornado.web import HTTPError, RequestHandler

from rlqueue.app.plot import PLOTLY_JS, STATIC

TYPES = {".js": "text/javascript", ".css": "text/css"}
ROUTE = r"rlqueue/([0-9a-f]{16})/([a-z.]+)"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """One file as it goes over the wire."""

    name: str
    body: bytes
    gzipped: bytes
    digest: str

    @property
    def path(self) -> str:
        return f"rlqueue/{self.digest}/{self.name}"


def asset(name: str, body: bytes) -> Asset:
    return Asset(name=name, body=body, gzipped=gzip.compress(body, 6), digest=hashlib.sha256(body).hexdigest()[:16])


def page_assets() -> dict[str, Asset]:
    """By name: plotly.js as installed, the front end's chunks, and the template's style and script."""
    found = [
        asset("plotly.js", PLOTLY_JS.read_bytes()),
        asset("chunks.js", _joined_chunks()),
        asset("page.css", _theme() + (STATIC / "page.css").read_bytes()),
        asset("page.js", (STATIC / "page.js").read_bytes()),
    ]
    return {each.name: each for each in found}


def installed(relative: str) -> Path | None:
    """A file of some Jupyter data folder, in Jupyter's own order."""
    return next((path for root in jupyter_path() if (path := Path(root) / relative).is_file()), None)


def _joined_chunks() -> bytes:
    listed = (STATIC / "chunks.txt").read_text().split()
    return b";\n".join(path.read_bytes() for name in listed if (path := installed(name)))


def _theme() -> bytes:
    """JupyterLab's colour and size variables: ipywidgets' controls are written in them."""
    path = installed("nbconvert/templates/lab/static/theme-light.css")
    return path.read_bytes() if path else b""


class AssetHandler(RequestHandler):
    """Serves `page_assets`. An old digest is not found, rather than answered with new content under an immutable name."""

    def initialize(self, assets: dict[str, Asset]) -> None:
        self.assets = assets

    def get(self, digest: str, name: str) -> None:
        found = self.assets.get(name)
        if found is None or found.digest != digest:
            raise HTTPError(404)
        self.set_header("Content-Type", f"{TYPES[Path(name).suffix]}; charset=utf-8")
        self.set_header("Cache-Control", "public, max-age=31536000, immutable")
        self.set_header("Vary", "Accept-Encoding")
        self.set_header("X-Content-Type-Options", "nosniff")
        if "gzip" in self.request.headers.get("Accept-Encoding", ""):
            self.set_header("Content-Encoding", "gzip")
            self.finish(found.gzipped)
        else:
            self.finish(found.body)
