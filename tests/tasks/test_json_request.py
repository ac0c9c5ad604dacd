"""Reading a JSON demand out of a prompt: what is the same request, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._difference import content, residue_differences
from stepcache._types import Constraints, Contract, Declined, Message, Request
from stepcache.tasks.json_answer import JsonAnswerTask

TASK = JsonAnswerTask()


def ask(text: str, **contract: object) -> Request:
    return Request(messages=(Message(role="user", text=text),), contract=Contract(**contract))


def parsed(text: str, **contract: object) -> Constraints:
    result = TASK.parse(ask(text, **contract))
    assert isinstance(result, Constraints), result
    return result


def rest(text: str, **contract: object) -> tuple[str, ...]:
    return content(text, parsed(text, **contract).spans, TASK.neutral)


def unexplained(old: str, new: str) -> list[str]:
    a, b = parsed(old), parsed(new)
    found = (*residue_differences(rest(old), rest(new)), *TASK.differences(a, b))
    return [str(d) for d in found if not d.explained]


BASE = "Describe the city of Paris as a JSON object with keys name, country, population"

SAME = [
    "Describe the city of Paris as a JSON object with keys name, country, population.",
    "Describe the city of Paris as a JSON object with the keys name, country and population.",
    "describe the city of Paris as a JSON object with keys: name, country, population",
    "Please describe the city of Paris as JSON with keys name, country, population.",
    "Describe the city of Paris in JSON format with the keys name, country, and population.",
    "Describe the city of Paris in JSON with the following keys: name, country, population.",
    "Return a JSON object describing the city of Paris with keys name, country, population.",
    "Return a JSON object with keys name, country, population describing the city of Paris.",
    "Give me a JSON object about the city of Paris with the fields name, country and population.",
    "Could you please describe the city of Paris as a JSON object with keys name, country, population?",
    "Describe the city of Paris. Respond with JSON containing the keys name, country and population.",
    "Describe the city of Paris. Return only valid JSON with exactly these keys: name, country, population.",
    'Describe the city of Paris as a JSON object with keys "name", "country" and "population".',
    "Describe the city of Paris as a JSON object with the fields `name`, `country`, `population`.",
    "Describe the city of Paris as a JSON object with three keys: name, country, population.",
    "Describe the city of Paris as a JSON object (keys: name, country, population).",
    "Create a JSON object that describes the city of Paris and has the keys name, country, population.",
    "Generate JSON describing the city of Paris with exactly the keys name, country and population.",
    "Produce a valid JSON object about the city of Paris having the keys name, country, population.",
    'Describe the city of Paris as JSON: {"name": ..., "country": ..., "population": ...}',
    'Describe the city of Paris in the following JSON format:\n```json\n{"name": "...", "country": "...", "population": "..."}\n```',
    "Using the keys name, country, population, describe the city of Paris as a JSON object.",
    "With the keys name, country and population, describe the city of Paris in JSON format.",
    "Tell me about the city of Paris as a JSON object with keys name, country, population.",
    "Give me a description of the city of Paris as a JSON object with keys name, country, population.",
    "Output a JSON object with the properties name, country, population about the city of Paris.",
    "Write a JSON object describing the city of Paris with fields name, country & population.",
    "Describe the city of Paris as a JSON object with the keys:\n- name\n- country\n- population\n",
    "Describe the city of Paris as a JSON object containing: name, country, population.",
    "Describe the city of Paris as JSON with name, country and population.",
    "Describe the city of Paris as a JSON object with keys name, country, population. Return only JSON.",
    "I want a JSON object about the city of Paris with the keys name, country and population.",
    "  Describe   the city of Paris\nas a JSON object, with keys name, country, population ",
    "JSON object describing the city of Paris with keys name, country, population",
    "Reply with a single JSON object describing the city of Paris with keys name, country, population and nothing else.",
    "Describe the city of Paris as a JSON object with keys ['name', 'country', 'population'].",
]

OTHER = [
    "Describe the city of Lyon as a JSON object with keys name, country, population",
    "Describe the city of paris as a JSON object with keys name, country, population",
    "Describe a city of Paris as a JSON object with keys name, country, population",
    "Describe the town of Paris as a JSON object with keys name, country, population",
    "Describe the city of Paris, Texas as a JSON object with keys name, country, population",
    "Describe the city of Paris in 1900 as a JSON object with keys name, country, population",
    "Describe the city of Paris as a JSON object with keys name, country, population in millions",
    "Describe the city of Paris as a JSON object with keys name, country, population in French",
    "Describe the city of Paris in German as a JSON object with keys name, country, population",
    "Describe the city of Paris as a JSON object with keys name, country, population. Use uppercase values.",
    "Describe the city of Paris as a JSON object with uppercase keys name, country, population",
    "Describe the city of Paris as a JSON object with keys name, country, population. Do not round numbers.",
    "Describe the city of Paris as a minified JSON object with keys name, country, population",
    "Describe the city of Paris as a JSON array of objects with keys name, country, population",
    "Describe the three cities of Paris as a JSON object with keys name, country, population",
    "Describe the city of Paris to a child as a JSON object with keys name, country, population",
    "Describe the city from Paris as a JSON object with keys name, country, population",
    "Describe the city by Paris as a JSON object with keys name, country, population",
    "Never describe the city of Paris as a JSON object with keys name, country, population",
    "Describe the mayor of the city of Paris as a JSON object with keys name, country, population",
    "Describe the city of Paris for tourists as a JSON object with keys name, country, population",
    "Describe the city of Paris as a JSON object with keys name, country, population (integer)",
    'Describe the city of Paris as JSON: {"name": ..., "country": "ISO code", "population": ...}',
    "Describe the city of Paris as a JSON object with keys name, country, population from: Paris is big",
    "Describe the city of Paris as a JSON object with keys name, country, population, sorted by name",
    "Describe the cities of Paris and Lyon as a JSON object with keys name, country, population",
    "Summarise the city of Paris as a JSON object with keys name, country, population",
    "Translate the city of Paris as a JSON object with keys name, country, population",
    "Describe the city of Paris as a JSON object with keys name, country, population as of 2020",
    "Describe the city of Paris as a JSON object with keys name, country, population in that order",
    "Describe the city of Paris as a JSON object with keys name, country, population without accents",
    "Describe the city 'of Paris' as a JSON object with keys name, country, population",
    "Describe the old city of Paris as a JSON object with keys name, country, population",
    "Describe The city of Paris as a JSON object with keys name, country, population",
    "Compare the city of Paris as a JSON object with keys name, country, population",
    "Describe the city of Paris as a JSON object with keys name, country, population, with nulls",
]


@pytest.mark.parametrize("text", SAME)
def test_rewordings_demand_the_same(text: str) -> None:
    """A re-worded prompt has equal keys, shape and topic, so that one answer serves both."""
    assert parsed(text).values["keys"] == ["name", "country", "population"]
    assert parsed(text).whole
    assert unexplained(BASE, text) == unexplained(text, BASE) == []
    assert rest(text) == rest(BASE) == ("the", "city", "of", "Paris")


@pytest.mark.parametrize("text", OTHER)
def test_near_misses_differ(text: str) -> None:
    """A prompt that asks for something else shows it, in both orders, as an unexplained change."""
    result = TASK.parse(ask(text))
    if isinstance(result, Declined):
        return
    assert unexplained(BASE, text)
    assert unexplained(text, BASE)


@pytest.mark.parametrize(
    "text",
    [
        "What is JSON?",
        "Explain JSON to a beginner.",
        "Write a Python function that returns JSON with keys a and b.",
        "Write a script which prints JSON.",
        "How do I return JSON from a web handler?",
        "How are dates written in JSON?",
        "Why is a trailing comma not allowed in JSON?",
        "Convert this JSON to YAML: {}",
        "Return this JSON as XML.",
        "Give me the JSON as a CSV",
        "Do not answer in JSON.",
        "Describe Paris, but not as JSON.",
        "Describe Paris in prose instead of as JSON.",
        "Generate a JSON schema for a user with fields name and age.",
        "Give me a JSON parser in Rust.",
        "My server should return JSON but sends text. What now?",
        "In Flask, return JSON from a route",
        "Give me a JSON example",
        "Describe the city of Paris.",
        "List three fields of study.",
        "",
        'In the following JSON, what is the name? {"name": "Ann"}',
    ],
)
def test_what_is_not_a_demand_is_declined(text: str) -> None:
    """Talk about JSON, code that makes JSON and refusals of JSON are left to the model."""
    assert isinstance(TASK.parse(ask(text)), Declined)


def test_other_source_is_an_unexplained_difference() -> None:
    """The text to extract from belongs to nobody: one name changed, and nothing is reused."""
    old = "Extract name and age as JSON from: Ann is 30"
    new = "Extract name and age as JSON from: Bob is 25"
    assert parsed(old).values["source"] == "Ann is 30"
    assert unexplained(old, new) == ["source-changed 'Ann is 30' -> 'Bob is 25'"]


@pytest.mark.parametrize(
    "other", ["Ann is  30", "Ann is 30.", "ann is 30", "Ann is 3O", "Ann was 30"]
)
def test_source_is_verbatim(other: str) -> None:
    """Even white space, case and a full stop count inside the text given as data."""
    head = "Return a JSON object with keys name and age. Text: "
    assert unexplained(head + "Ann is 30", head + other)


def test_keys_are_not_read_out_of_data() -> None:
    """What the given text says of keys is data; what follows a quoted text is instruction again."""
    inside = parsed("Return the mood as JSON for this text: use keys a, b and c")
    assert inside.values["keys"] == []
    assert inside.values["source"] == "use keys a, b and c"
    after = parsed('Return JSON for this text: "use keys a, b" with the keys mood, tone')
    assert after.values["keys"] == ["mood", "tone"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Give Ann's data as JSON with keys name, age and email", ["name", "age", "email"]),
        ("Answer in JSON. Keys: a, b", ["a", "b"]),
        ("Respond with JSON with fields `first name`, `b`.", ["first name", "b"]),
        ("Return JSON containing: name, country, population", ["name", "country", "population"]),
        ('Return JSON with keys "in" and "from" about trains', ["in", "from"]),
        ("Output JSON with the key total for the sum", ["total"]),
        ("Return JSON only. Keys required: id, price. A red bicycle", ["id", "price"]),
        ("Respond with a JSON object. The object must contain the keys `a` and `b`.", ["a", "b"]),
        ('Write a haiku and return it as JSON with a single key "haiku".', ["haiku"]),
        ('Reply as a JSON object like {"a": 1, "b": {"c": 2}} for Paris', ["a", "b"]),
        (
            "Respond in JSON with keys user_id, firstName, zip-code.",
            ["user_id", "firstName", "zip-code"],
        ),
        ('Make a dataset in json for tests, with fields: "left", "right".', ["left", "right"]),
        ("Give it as JSON with keys:\n1. name: full name\n2. age: in years\n", ["name", "age"]),
    ],
)
def test_keys_are_read(text: str, keys: list[str]) -> None:
    """Every way to name keys gives them in their order."""
    assert parsed(text).values["keys"] == keys


@pytest.mark.parametrize(
    "tail",
    [
        "first name and shoe size",
        "name and, if known, size",
        "name, age, or size",
        "name, age as well as size",
        "name, age, the size",
        "name, age, optionally size",
        "name, age, briefly describe her size",
        "name, age, size and name",
    ],
)
def test_unreadable_key_list_is_not_guessed(tail: str) -> None:
    """A list that cannot be read to its end names no keys, and the task does not judge wholes."""
    text = f"Describe Ann as JSON with keys {tail}"
    assert parsed(text).values["keys"] == []
    assert parsed(text).whole is False
    assert "name" in rest(text)


@pytest.mark.parametrize(
    "more",
    ["Also include an email field.", "Add her age.", "Use nested objects.", "Keys in snake_case."],
)
def test_more_said_of_keys_is_not_understood(more: str) -> None:
    """Where more is said of keys than was read, the task does not judge whole answers."""
    assert parsed(f"Describe Ann as JSON with keys a, b. {more}").whole is False


@pytest.mark.parametrize(
    "said", ["3 keys", "1234 keys", "three keys", "thirtythree keys", "x3 keys"]
)
def test_a_count_that_disagrees_leaves_the_list_unread(said: str) -> None:
    """A number before a list that is not its length, digits and words glued to others included."""
    found = parsed(f"Return JSON, {said}: a, b.")
    assert found.values["keys"] == []
    assert found.whole is False


def test_schema_names_the_keys() -> None:
    """A schema in the contract is a demand even where the text does not say JSON."""
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}
    constraints = parsed("What is the weather in Rome?", schema=schema)
    assert constraints.values["keys"] == ["b"]
    assert constraints.whole is True
    assert rest("What is the weather in Rome?", schema=schema)


def test_schema_in_the_prompt_is_the_schema() -> None:
    """A JSON Schema written in the text is validated like one handed over beside it."""
    text = 'Who is Ann? Reply with JSON matching this schema: {"type": "object", "properties": {"n": {"type": "%s"}}, "required": ["n"]}'
    old, new = parsed(text % "string"), parsed(text % "integer")
    assert old.values["keys"] == ["n"]
    assert old.values["schema"]["properties"] == {"n": {"type": "string"}}
    assert [d.kind for d in TASK.differences(old, new)] == ["schema-changed"]


def test_notes_on_keys_belong_to_nobody() -> None:
    """What is said of a key in words is compared key by key, so swapped notes are seen."""
    old = "Describe Ann as JSON with keys name (string), age (integer)"
    new = "Describe Ann as JSON with keys name (integer), age (string)"
    assert len(unexplained(old, new)) == 2


def test_key_changes_are_owned() -> None:
    """Added, removed and plainly renamed keys are differences the task verifies."""
    kinds = {}
    for other in ("name, age, email", "name", "name, Age", "name, ages", "age, name"):
        old = parsed("Describe Ann as JSON with keys name, age")
        new = parsed(f"Describe Ann as JSON with keys {other}")
        found = TASK.differences(old, new)
        assert all(d.owner == "json" for d in found)
        kinds[other] = [d.kind for d in found]
    assert kinds == {
        "name, age, email": ["key-added"],
        "name": ["key-removed"],
        "name, Age": ["key-renamed"],
        "name, ages": ["key-removed", "key-added"],
        "age, name": [],
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Text: he said it as JSON, loud. Return JSON with keys a, b.",
            "Text: he said it in JSON, loud. Return JSON with keys a, b.",
        ),
        ("Return JSON about 5 cities with keys a, b", "Return JSON of 5 cities with keys a, b"),
        (
            'Ann as JSON like {"a": "...", /* in km */ "b": "..."}',
            'Ann as JSON like {"a": "...", /* in miles */ "b": "..."}',
        ),
        ('Ann as JSON like {"a": "...", "b": "km"}', 'Ann as JSON like {"a": "...", "b": "miles"}'),
        ("Describe The Who as JSON with keys a, b", "Describe Who as JSON with keys a, b"),
        (
            "Convert Word to PDF facts as JSON with keys a, b",
            "Convert PDF to Word facts as JSON with keys a, b",
        ),
        ('Say "a  b" as JSON with keys a, b', 'Say "a b" as JSON with keys a, b'),
        ("Ann as JSON including the keys a, b", "Ann as JSON with the keys a, b and c, no more"),
        ("Ann as JSON with keys a, b in this order", "Ann as JSON with keys b, a in this order"),
        (
            "Ann as JSON with keys:\n- a: tall\n- b: wide",
            "Ann as JSON with keys:\n- a: wide\n- b: tall",
        ),
        ("Ann as a JSON object with keys a, b", "Ann as a JSON array of objects with keys a, b"),
        ("Ann as JSON", "Ann as JSON with keys a, b"),
        ("Beschreibe Rom als JSON", "Beschreibe Wien als JSON"),
    ],
)
def test_subtle_changes_are_unexplained(old: str, new: str) -> None:
    """Each pair asks for two different answers, however alike the prompts look."""
    assert unexplained(old, new)
    assert unexplained(new, old)


@given(st.text(max_size=300))
def test_parse_never_raises(text: str) -> None:
    """Any text at all is read or declined."""
    TASK.parse(ask(text))
    TASK.parse(ask("Return JSON with keys " + text))


@given(st.text(max_size=200))
def test_spans_are_in_order_and_inside(text: str) -> None:
    """Spans never overlap and never leave the text."""
    prompt = f"{text} as a JSON object with keys a, b {text}"
    result = TASK.parse(ask(prompt))
    if isinstance(result, Constraints):
        at = 0
        for span in result.spans:
            assert at <= span.start <= span.stop <= len(prompt)
            at = span.stop


def test_what_a_colon_behind_the_keys_leads_to_is_data() -> None:
    """It may be the last key's own text, in which no word is neutral."""
    task = JsonAnswerTask()
    one, other = (
        task.parse(
            Request(
                messages=(Message(role="user", text=f"Return JSON with keys n, text: {given}"),)
            )
        )
        for given in ("please give the answer", "the answer")
    )
    assert one.values["source"] == "please give the answer"
    assert not all(d.explained for d in task.differences(one, other))


@pytest.mark.parametrize("key", [r"ag\ue", r"\x", "a\\ud8", "tab\there"])
def test_a_template_with_an_unreadable_key_is_no_key_list(key: str) -> None:
    """A template need not be JSON, but a key that cannot be read is not guessed at."""
    text = f'Return only valid JSON: {{"name": "...", "{key}": 0}}. The text is "Ann, 30".'
    result = TASK.parse(ask(text))
    assert isinstance(result, Declined) or key not in result.values["keys"]


@pytest.mark.parametrize(
    "keys",
    [
        "name, river, mayor, ...",
        "name, river, mayor etc.",
        "name, river, mayor and so on.",
        "\n- name\n- river\n  - length\n- mayor\n",
    ],
)
def test_lists_of_keys_that_go_on_are_not_read(keys: str) -> None:
    """More keys may be wanted than are named, or keys within keys."""
    assert not parsed(f"Describe the city of Paris as a JSON object with the keys: {keys}").whole
