"""One self-contained HTML page about what a cache did: ``stepcache report``.

From a store, a trace log or a benchmark's record to rows (:class:`Row`), from rows to a page that
needs no network: styles, script and data are inside it.
"""

from __future__ import annotations

from stepcache.report._page import page, write_page
from stepcache.report._rows import Report, Row, Shown
from stepcache.report._sources import SourceError, read_source

__all__ = ["Report", "Row", "Shown", "SourceError", "page", "read_source", "write_page"]
