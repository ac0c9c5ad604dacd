"""Any text at all: served again only to the same request in the same words."""

from stepcache.tasks.text._task import TextTask

__all__ = ["TextTask"]
