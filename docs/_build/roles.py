"""Docstrings point at names with reStructuredText roles; here they become plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|mod|attr|data|exc|obj):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Shows ``:class:`~stepcache.Outcome``` as ``Outcome``."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(_shown, obj.docstring.value)


def _shown(role: re.Match[str]) -> str:
    return f"`{role[1].rpartition('.')[2]}`"
