"""Any text: cut into steps, compared word by word, written as identity."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

from stepcache._difference import content, masked, residue_differences
from stepcache._identity import canonical_json
from stepcache._stitch import segment
from stepcache._types import Constraints, Message, Request, Span
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.text import TextTask
from trust._fuzz import Target
from trust._mutate import mutated
from trust.targets._json_texts import WORDS as JSON_WORDS
from trust.targets._json_texts import value
from trust.targets._spans import bad_spans

__all__ = ["DIFFERENCES", "IDENTITY", "JSON_PROMPTS", "OPEN_TEXT", "SEGMENTATION"]

_LONGEST = 4_000

# --- segmentation ------------------------------------------------------------------------------

_ANSWERS = (
    "# Title\n\nA line.\n\n1. first\n2. second\n   - inner\n\n```python\nprint(1)\n```\n\nEnd.",
    "Step 1: do.\n\nStep 2: undo.\n\n$$\nx = 1\n$$\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "**Bold**\ntext\n====\n\n> quote\n\n\\[ x \\]\n\n\\begin{align}\na &= b\n\\end{align}\n",
    "a) one\nb) two\n\nI. x\nII. y\n\n• dot\n\nno end",
)
_MARKS: tuple[str, ...] = (
    *(
        "# ",
        "## ",
        "- ",
        "* ",
        "1. ",
        "2) ",
        "a) ",
        "I. ",
        "```",
        "~~~",
        "$$",
        "\\[",
        "\\]",
        "| ",
        "|-",
    ),
    *(
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "   ",
        "\t",
        "> ",
        "**",
        "---",
        "===",
        "Step 3:",
        "\\begin{x}",
        "\\end{x}",
    ),
    *("\u2028", "\x0b", "\x0c", "\x1c", "\x85", "word", "1.", "99999999999999999999. ", "•", "`"),
)


def _answer(dice: Random) -> str:
    return mutated(dice.choice(_ANSWERS), dice, _MARKS, dice.choice(_ANSWERS), _LONGEST)


def _cut(text: str) -> str | None:
    steps = segment(text)
    if "".join(step.text for step in steps) != text:
        return "the steps do not join to the text"
    if [step.index for step in steps] != list(range(len(steps))):
        return "the steps are not numbered in order"
    if any(not step.text for step in steps):
        return "an empty step"
    return None


def _bytes(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")[:_LONGEST]


SEGMENTATION = Target(
    name="segmentation",
    what="answers cut into steps; joined, they are the answer again",
    inputs=160_000,
    make=_answer,
    check=_cut,
    read=_bytes,
)

# --- differences -------------------------------------------------------------------------------

_REQUESTS = (
    "Describe the city of Paris as a JSON object with keys name, country, population.",
    "Solve 2x + 3 = 13 for x, and do not round.",
    'Translate "good morning" into French by 3.5 km on 2024-05-06 at 10:30.',
    "What is the capital of France?",
    "Could you please tell me how many people live in Rome?",
)
_TURNS: tuple[str, ...] = (
    *("not", "never", "n't", "no", "please", "Rome", "Paris", "3", "3.5", "-3", "2024-05-07", "kg"),
    *(
        '"bonjour"',
        "in French",
        "as YAML",
        "?",
        "!",
        ".",
        "twice",
        "without",
        "Ann",
        "don't",
        "can't",
    ),
    *("keys a, b", "thank you", "Hi,", "the", "a", "of", "isn't", "½", "%", "€", "(c)", "e.g."),
)


def _two(dice: Random) -> tuple[str, str]:
    text = dice.choice(_REQUESTS)
    return text, mutated(text, dice, _TURNS, dice.choice(_REQUESTS), _LONGEST)


def _compared(pair: tuple[str, str]) -> str | None:
    old, new = (content(text, (), frozenset()) for text in pair)
    differences = residue_differences(old, new)
    if bool(differences) != (old != new):
        return f"{len(differences)} differences between {old!r} and {new!r}"
    if any(difference.explained for difference in differences):
        return "a difference of the residue has an owner"
    # White space is all that may be dropped without a word.
    if not differences and _solid(pair[0]) != _solid(pair[1]):
        return "two texts with different signs have no difference"
    middle = len(pair[1]) // 2
    masked(pair[1], (Span(start=middle // 2, stop=middle, name="x"),))
    return None


def _solid(text: str) -> str:
    import unicodedata

    return "".join(unicodedata.normalize("NFC", text).split())


DIFFERENCES = Target(
    name="differences",
    what="two requests' words compared; equal only where nothing but white space differs",
    inputs=80_000,
    make=_two,
    check=_compared,
)

# --- identity ----------------------------------------------------------------------------------


def _values(dice: Random) -> tuple[Any, Any]:
    first = value(dice)
    match dice.randrange(4):
        case 0:
            return first, value(dice)
        case 1:
            return first, json.loads(json.dumps(first))
        case 2:
            return first, dice.choice(([first], {"a": first}, str(first), json.dumps(first)))
        case _:
            odd = dice.choice(
                (math.nan, math.inf, object(), {1, 2}, b"x", {1: 2}, 1j, "\ud800", 2**80)
            )
            return first, dice.choice((odd, [odd], {"a": odd}, {"": [first, odd]}))


def _identified(pair: tuple[Any, Any]) -> str | None:
    texts: list[str | None] = []
    for each in pair:
        try:
            texts.append(canonical_json(each))
        except ValueError:
            texts.append(None)
    if None in texts:
        return None
    same = _like(pair[0], pair[1])
    if (texts[0] == texts[1]) != same:
        return f"one text for two values, or two for one: {texts}"
    return None


def _like(a: Any, b: Any) -> bool:
    """Equality as JSON has it: true is not 1, but 1.0 is."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_like(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_like, a, b))
    if isinstance(a, float) and isinstance(b, int) and abs(b) >= 2**53:
        return False  # beyond what a float holds exactly, they stay apart
    if isinstance(b, float) and isinstance(a, int) and abs(a) >= 2**53:
        return False
    return (type(a) in (int, float) and type(b) in (int, float) and a == b) or (
        type(a) is type(b) and a == b
    )


IDENTITY = Target(
    name="identity",
    what="values written as canonical JSON: one text for equal ones, two for others",
    inputs=160_000,
    make=_values,
    check=_identified,
)

# --- prompts that demand JSON ------------------------------------------------------------------

_DEMANDS = (
    "Describe the city of Paris as a JSON object with keys name, country, population.",
    "Extract name and age as JSON from: Ann is 30 years old.",
    'Return only valid JSON: {"name": "...", "age": 0}. The text is "Bob, 25".',
    "Give me three rivers in JSON format. Each must have the fields:\n- name\n- length (in km)\n",
    "Respond with a JSON array of objects with keys `a`, `b` and `c`.\n```\ndata\n```",
    "Answer als JSON mit den Schlüsseln name, alter.",
)
_KEYWORDS: tuple[str, ...] = (
    *(
        "JSON",
        "json object",
        "as JSON",
        "with keys",
        "keys:",
        "name",
        "age",
        "fields",
        "exactly",
        "only",
    ),
    *(
        "from:",
        "Text:",
        "- key\n",
        "`a`",
        '"a"',
        "(in km)",
        "array of",
        "following",
        "at least",
        "not",
    ),
    *(
        "schema",
        "and",
        ",",
        ", and ",
        "or",
        "optional",
        "lowercase",
        "in French",
        "YAML",
        ":",
        "\n",
    ),
    *JSON_WORDS,
)
_JSON = JsonAnswerTask()


def _demand(dice: Random) -> str:
    return mutated(dice.choice(_DEMANDS), dice, _KEYWORDS, dice.choice(_DEMANDS), _LONGEST)


def _read(text: str) -> str | None:
    request = Request(messages=(Message(role="user", text=text),))
    parsed = _JSON.parse(request)
    if not isinstance(parsed, Constraints):
        return None
    wrong = bad_spans(text, parsed.spans)
    if wrong is not None:
        return wrong
    json.dumps(dict(parsed.values), allow_nan=False)
    source = parsed.values["source"]
    if source is not None and source not in text:
        return f"the source {source!r} is not in the text"
    for key in parsed.values["keys"]:
        if parsed.values["schema"] is None and key not in text and "\\" not in text:
            return f"the key {key!r} is not in the text"
    if _JSON.differences(parsed, parsed):
        return "a request differs from itself"
    return None


JSON_PROMPTS = Target(
    name="json-prompts",
    what="prompts read as demands for JSON: keys, notes, shape, source",
    inputs=30_000,
    make=_demand,
    check=_read,
    read=_bytes,
)

# --- open text ---------------------------------------------------------------------------------

_TEXT = TextTask()


def _question(dice: Random) -> tuple[str, str]:
    text = dice.choice(_REQUESTS[2:])
    return text, mutated(text, dice, _TURNS, dice.choice(_REQUESTS), 1_000)


def _canonical(pair: tuple[str, str]) -> str | None:
    found: list[Constraints] = []
    for text in pair:
        parsed = _TEXT.parse(Request(messages=(Message(role="user", text=text),)))
        if not isinstance(parsed, Constraints):
            return None
        wrong = bad_spans(text, parsed.spans)
        if wrong is not None:
            return wrong
        found.append(parsed)
    if _TEXT.differences(*found) or any(
        content(pair[0], found[0].spans, _TEXT.neutral)[n:]
        != content(pair[1], found[1].spans, _TEXT.neutral)[n:]
        for n in (0,)
    ):
        return None
    for kind in ("digits", "negations"):
        if _of(kind, pair[0]) != _of(kind, pair[1]):
            return f"taken for the same, though the {kind} differ"
    return None


def _of(kind: str, text: str) -> Any:
    if kind == "digits":
        return [char for char in text if char.isdecimal()]
    words = text.casefold().replace("\u2019", "'").split()
    return sum(word.strip('.,!?;:"') in ("not", "no", "never", "without") for word in words)


OPEN_TEXT = Target(
    name="open-text",
    what="questions in other words; never the same with other digits or negations",
    inputs=40_000,
    make=_question,
    check=_canonical,
)
