"""A proxy before an OpenAI-compatible endpoint that counts what goes over the wire.

So that what is said of calls and tokens can be held against what the server delivered, and not
against itself.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

__all__ = ["CountingProxy"]

_TIMEOUT = 600.0


class CountingProxy:
    """Passes ``POST`` requests on and adds up the ``usage`` in the answers, streams included.

    Args:
        target: Base URL of the endpoint, with its ``/v1``.

    Attributes:
        calls: Requests so far.
        tokens: The server's own ``total_tokens``, added up.
    """

    def __init__(self, target: str) -> None:
        self.calls = 0
        self.tokens = 0
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"proxy": self, "target": target.rstrip("/")})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        """Base URL, with ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> CountingProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def note(self, *, calls: int = 0, tokens: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            self.calls += calls
            self.tokens += tokens


class _Handler(BaseHTTPRequestHandler):
    proxy: CountingProxy
    target: str

    def log_message(self, *args: object) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        """Pass one request on, line by line."""
        self.proxy.note(calls=1)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = urllib.request.Request(  # noqa: S310 - the caller's own endpoint
            self.target + self.path.removeprefix("/v1"),
            data=body,
            headers={"content-type": "application/json"},
        )
        try:
            answer = urllib.request.urlopen(request, timeout=_TIMEOUT)  # noqa: S310
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            self.send_response(answer.status or 502)
            self.send_header("content-type", answer.headers.get("content-type") or "")
            self.end_headers()
            for line in answer:
                self._count(line)
                self.wfile.write(line)
                self.wfile.flush()
        self.close_connection = True

    def _count(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").removeprefix("data: ").strip()
        if text.startswith("{"):
            usage = json.loads(text).get("usage") or {}
            self.proxy.note(tokens=int(usage.get("total_tokens") or 0))
