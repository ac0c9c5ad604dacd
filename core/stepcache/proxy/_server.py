"""Running the application: uvicorn, on a socket that is bound first."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn
from starlette.applications import Starlette

from stepcache._errors import ConfigurationError

__all__ = ["ProxyServer"]

_BACKLOG = 2048
_IDLE_SECONDS = 75
"""Longer than clients keep a connection for later: one that both ends use at once fails."""
_START_SECONDS = 30.0


class ProxyServer:
    """Serves an application; ``run`` until a signal ends it, or in the background as a context.

    On SIGTERM or SIGINT it takes no more connections, lets running answers end, and closes the
    store.

    Args:
        app: Of :func:`~stepcache.proxy.create_app`.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        grace: Seconds that running answers get when the server is to end.

    Raises:
        ConfigurationError: Nobody can listen there.
    """

    def __init__(
        self, app: Starlette, *, host: str = "127.0.0.1", port: int = 0, grace: float = 30.0
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except (OSError, OverflowError) as error:
            raise ConfigurationError(f"nobody can listen on {host}:{port}: {error}") from None
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="on",
                log_level="warning",
                # Addresses may hold what a user asked for.
                access_log=False,
                # The upstream's own fields stand in its answers.
                server_header=False,
                date_header=False,
                timeout_keep_alive=_IDLE_SECONDS,
                timeout_graceful_shutdown=max(1, round(grace)),
            )
        )
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Base URL for OpenAI clients."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"

    def run(self) -> None:
        """Serve until a signal comes."""
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> ProxyServer:
        self._thread = threading.Thread(target=self.run, daemon=True, name="stepcache-proxy")
        self._thread.start()
        limit = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > limit:
                raise RuntimeError("the proxy did not start")
            time.sleep(0.005)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join()
