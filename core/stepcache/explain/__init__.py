"""Why a request is, or is not, answered from the cache; and what a store holds.

Everything said here of a decision is what the engine's own flow says (``StepCacheEngine.inspect``):
there is no second decision that could differ from it.
"""

from __future__ import annotations

from stepcache._inspection import Inspection
from stepcache._selection import Selection
from stepcache.explain._explain import Explanation, beside, explain
from stepcache.explain._figures import Figures, entries_of, figures
from stepcache.explain._look import Found, inspect, inspect_entry, inspect_prompt
from stepcache.explain._words import (
    HIDDEN,
    candidate_facts,
    change_facts,
    entry_facts,
    facts,
    headline,
    why,
)

__all__ = [
    "HIDDEN",
    "Explanation",
    "Figures",
    "Found",
    "Inspection",
    "Selection",
    "beside",
    "candidate_facts",
    "change_facts",
    "entries_of",
    "entry_facts",
    "explain",
    "facts",
    "figures",
    "headline",
    "inspect",
    "inspect_entry",
    "inspect_prompt",
    "why",
]
