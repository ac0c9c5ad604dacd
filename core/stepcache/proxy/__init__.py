"""An OpenAI-compatible proxy: StepCache in front of any server, for any client.

    from stepcache.proxy import create_app

    app = create_app("http://127.0.0.1:8000/v1")   # for any ASGI server

``stepcache serve --upstream URL`` runs it. Needs ``stepcache[serve]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepcache.proxy._app import ProxySettings, create_app
    from stepcache.proxy._server import ProxyServer

__all__ = ["ProxyServer", "ProxySettings", "create_app"]

_HOMES = {
    "ProxyServer": "stepcache.proxy._server",
    "ProxySettings": "stepcache.proxy._app",
    "create_app": "stepcache.proxy._app",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
