"""Deterministic repair of damaged JSON: layout only, never content.

Whatever a repair yields must spell, sign for sign and in order, what the damaged text spells once
quotes, backslashes, brackets, commas, colons and white space are set aside. So no key or value is
made up, none is lost, and a text that was cut off stays broken.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from stepcache.tasks.json_answer._extract import Found, damage, extract

__all__ = ["repaired"]

_MAX_CHARS = 40_000
_LAYOUT = re.compile(r"[\s\"'“”„‘’`\\{}\[\]:,]+")
_EMPTY = re.compile(r"\"\"|''|\[\s{0,20}\]|\{\s{0,20}\}")
_BRACKET = re.compile(r"[\[\]{}]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BARE_KEY = re.compile(r"[{,\n]\s{0,40}([A-Za-z_]\w{0,80})\s{0,10}:")
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"))
_QUOTE_SIGNS = frozenset("\"'“”‘’`")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)([A-Za-z]*+)", re.DOTALL)
# Signs that LaTeX puts behind a backslash and JSON does not.
_LATEX_SIGNS = frozenset("()[]{},;:!|%&#_$ ")
# Closed or running to the end: else every quotation mark of an open string looks for its partner.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_PIECE = re.compile(
    r"(?P<string>\"[^\"\n]*+\"|'[^'\n]*+'|“[^”\n]*+”|‘[^’\n]*+’)|(?P<gap>[\s{}\[\]:,]++)"
    r"|(?P<bare>[\w.+-]++)|(?P<odd>[\s\S])"
)
_MAX_ODD = 20
_MAX_RELAID_CHARS = 10_000
"""What a parser that guesses reads in about 100 ms."""
_DOUBTFUL_ESCAPE = re.compile(r"(?:[^\\]|^)(?:\\\\)*+\\[nrt][a-z]")


def repaired(text: str) -> str | None:
    """The text with its damaged JSON made strict, or None where it is in doubt what that says."""
    if len(text) > _MAX_CHARS:
        return None
    found = extract(text)
    if isinstance(found, Found):
        return _redoubled(text) if found.damage else None
    if found.code != "broken-json":
        return None
    region = _region(text)
    if region is None:
        return None
    doubled = _redoubled(text)
    if doubled is not None:
        return doubled
    start, stop = region
    new = _relaid(text[start:stop])
    if new is None:
        return None
    new = text[:start] + new + text[stop:]
    return new if _is_sound(new) else None


def _region(text: str) -> tuple[int, int] | None:
    """From the first bracket to the last, when that is one value: closed at its end, not before."""
    brackets = list(_BRACKET.finditer(text))
    if not brackets or brackets[0].group() not in "[{":
        return None
    depth = 0
    for number, match in enumerate(brackets):
        depth += 1 if match.group() in "[{" else -1
        if depth < 0 or (depth == 0 and number < len(brackets) - 1):
            return None
    if depth:
        return None
    return brackets[0].start(), brackets[-1].end()


def _redoubled(text: str) -> str | None:
    """Single backslashes of LaTeX doubled and bare line breaks in strings escaped, when that alone
    makes the text strict JSON.

    In such a text a line break written right before a small letter may as well be a command no
    list knows; then nothing is repaired.
    """

    unclear = False

    def double(match: re.Match[str]) -> str:
        nonlocal unclear
        sign, letters = match.groups()
        known = sign in '"\\/bfnrt' or len(sign) == 5
        if known and damage(match.group()) is None:
            return match.group()
        # "\\u12" is a cut-off escape; "\\upsilon" is a command.
        cut = sign == "u" and (len(letters) < 2 or letters[0] in "abcdefABCDEF")
        unclear = unclear or cut or not (known or sign.isalpha() or sign in _LATEX_SIGNS)
        return "\\" + match.group()

    new = _ESCAPE.sub(double, text)
    if unclear or (new != text and _DOUBTFUL_ESCAPE.search(new)):
        return None
    new = _STRING.sub(lambda m: _escaped_controls(m.group()), new)
    return new if new != text and _is_sound(new) else None


def _is_sound(text: str) -> bool:
    found = extract(text)
    return isinstance(found, Found) and found.sound


def _escaped_controls(string: str) -> str:
    """A JSON string with bare line breaks and tabs written as JSON wants them."""
    return string.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _disorder(region: str) -> int:
    """How often something stands against a string without a comma, colon or space between, or a
    sign that is none of JSON's anywhere. Where that is often, a parser that guesses goes back and
    forth, in time that grows with the square of the text; and its guess would be refused."""
    odd, before = 0, "gap"
    for match in _PIECE.finditer(region):
        kind = match.lastgroup or "odd"
        odd += kind == "odd" or (kind != "gap" and before != "gap" and "string" in (kind, before))
        before = kind
        if odd > _MAX_ODD:
            break
    return odd


def _relaid(region: str) -> str | None:
    if "\\" in region or len(region) > _MAX_RELAID_CHARS or _disorder(region) > _MAX_ODD:
        return None
    import json_repair

    try:
        value = json_repair.loads(region, skip_json_loads=True)
        new = json.dumps(value, ensure_ascii=region.isascii(), indent=2, allow_nan=False)
    except Exception:  # noqa: BLE001 - a third-party parser on hostile text: no repair, no harm
        return None
    if not isinstance(value, dict if region[0] == "{" else list):
        return None
    if _spelt(region) != _spelt(json.dumps(value, ensure_ascii=False)) or _CONTROL.search(region):
        return None
    if not _all_marked(value, region):
        return None
    if len(_EMPTY.findall(region)) != _empties(value):
        return None
    return new if _is_sound(new) else None


def _spelt(text: str) -> str:
    """What a text says without its layout; Python's and JavaScript's words count as JSON's."""
    said = _LAYOUT.sub(" ", text.replace("\\n", " ").replace("\\t", " ")).split()
    words = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
    return "".join(words.get(word, word) for word in said)


def _all_marked(value: Any, region: str) -> bool:
    """Whether every string stands in the damaged text between its own quotes (keys may be bare),
    and the text has no quote beyond those: then none was guessed."""
    bare = set(_BARE_KEY.findall(region))
    count: Counter[str] = Counter()
    for string, is_key in _strings(value):
        pair = next((p for p in _QUOTES if _in_quotes(string, p, region)), None)
        if pair is None and not (is_key and string in bare):
            return False
        count.update(pair or ())
        count.update(sign for sign in string if sign in _QUOTE_SIGNS)
    return all(region.count(sign) == count[sign] for sign in _QUOTE_SIGNS)


def _in_quotes(string: str, pair: tuple[str, str], region: str) -> bool:
    opening, closing = pair
    if opening in string or closing in string:
        return False
    return opening + string + closing in region


def _strings(value: Any) -> Iterator[tuple[str, bool]]:
    """Every string of a value, with whether it is a key."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield from ((key, True) for key in item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str):
            yield item, False


def _empties(value: Any) -> int:
    count, stack = 0, [value]
    while stack:
        item = stack.pop()
        if item in ("", [], {}):
            count += 1
        elif isinstance(item, dict):
            count += "" in item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return count
