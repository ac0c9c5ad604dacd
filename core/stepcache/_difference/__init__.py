"""Stored request against new request: what is left of the text once the typed parts are taken out.

A task reads its constraints from spans of the request's text. The rest is the *residue*; of it, the
task's closed list of neutral words cannot change an answer, and every other token can. Two requests
mean the same beyond their constraints only if what remains is equal, in order: law 2. No similarity
is computed here, and no token is ever forgiven. Differences are named by kind for whoever reads the
trace; the name changes nothing about the refusal.
"""

from stepcache._difference._compare import residue_differences
from stepcache._difference._tokens import WORDING, content, masked, residue, tokens

__all__ = ["WORDING", "content", "masked", "residue", "residue_differences", "tokens"]
