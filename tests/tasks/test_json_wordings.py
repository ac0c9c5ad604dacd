"""More ways to ask for JSON: closing sentences, keys to extract, other languages, schemas."""

from __future__ import annotations

import pytest

from stepcache._difference import content, residue_differences
from stepcache._types import Constraints, Declined, Message, Request, Status, Step
from stepcache.tasks.json_answer import JsonAnswerTask

TASK = JsonAnswerTask()


def parsed(text: str) -> Constraints:
    result = TASK.parse(Request(messages=(Message(role="user", text=text),)))
    assert isinstance(result, Constraints), result
    return result


def rest(text: str) -> tuple[str, ...]:
    return content(text, parsed(text).spans, TASK.neutral)


def differences(old: str, new: str) -> list[str]:
    found = TASK.differences(parsed(old), parsed(new))
    return [f"{d.kind}{'' if d.owner else '!'}" for d in found] + [
        f"{d.kind}!" for d in residue_differences(rest(old), rest(new))
    ]


BASE = "Describe the city of Oslo as a JSON object with the keys name, river and mayor."
CLOSINGS = [
    "Answer with the JSON object only.",
    "Return only the JSON object.",
    "Reply with the JSON object only.",
    "Return nothing but the JSON object.",
    "Only the JSON object.",
    "Answer in JSON only.",
    "Output only JSON.",
    "Respond with JSON only.",
    "No other text, only the JSON object.",
    "No other text.",
    "No explanations.",
    "Nothing else.",
    "Please return only the JSON, no other text.",
    "Return just the JSON object, nothing else!",
    "JSON only, no prose.",
]


@pytest.mark.parametrize("closing", CLOSINGS)
def test_closing_sentences_say_only_that_nothing_else_is_wanted(closing):
    """Whatever the closing sentence, the demand is the same, but for prose around the object."""
    assert rest(f"{BASE} {closing}") == rest(BASE) == ("the", "city", "of", "Oslo")
    assert parsed(f"{BASE} {closing}").whole
    assert differences(BASE, f"{BASE} {closing}") == ["prose"]
    assert differences(f"{BASE} {CLOSINGS[0]}", f"{BASE} {closing}") == []


@pytest.mark.parametrize(
    "closing",
    [
        "Answer with the JSON object only if you are sure.",
        "Return only the JSON array.",
        "Return only the names.",
        "No other city.",
        "Answer with XML only.",
        "Return only the JSON object in French.",
        "No more than 20 words.",
        "Only the JSON object with nulls.",
    ],
)
def test_other_closing_sentences_count(closing):
    """A closing sentence that says anything more is a difference."""
    assert any(d.endswith("!") for d in differences(BASE, f"{BASE} {closing}"))


def test_prose_goes_where_only_the_json_is_wanted():
    """Prose that was fine before is dropped without a model when nothing else is demanded."""
    answer = 'Here it is:\n\n{"name": "Oslo", "river": "Akerselva", "mayor": "A"}\n'
    old, new = parsed(BASE), parsed(f"{BASE} Return only the JSON object.")
    steps = TASK.segment(answer)
    assert all(TASK.verify(step, old).status is Status.PASS for step in steps)
    verdicts = [TASK.verify(step, new) for step in steps]
    assert verdicts[0].code == "prose-unwanted"
    adapted = TASK.adapt(steps, old, new)
    assert adapted is not None
    assert "".join(s.text for s in adapted) == answer.split("\n\n")[1]


SAME = [
    "Hello! Please give a description of the city of Oslo as a JSON object. The required keys are "
    "name, river and mayor.",
    "Would you kindly describe the city of Oslo? Use a JSON object with the keys name, river, mayor.",
    "I would like you to describe the city of Oslo for me. Please put it in a JSON object whose "
    "keys are name, river and mayor.",
    "Represent the city of Oslo as a JSON object, with name, river and mayor as its keys.",
    "Please prepare a JSON object for the city of Oslo. It must have the keys name, river, mayor.",
    "For the city of Oslo, fill in a JSON object that has the following keys: name, river, mayor.",
    "Tell me about the city of Oslo in the form of a JSON object. The keys should be name, river "
    "and mayor.",
    "Here is what I need: a JSON object that describes the city of Oslo, with the keys name, river "
    "and mayor.",
    "Respond with a JSON object. It should describe the city of Oslo and contain the keys name, "
    "river and mayor.",
    "Produce a JSON description of the city of Oslo with the fields name, river and mayor.",
]


@pytest.mark.parametrize("text", SAME)
def test_longer_wordings_demand_the_same(text):
    """Greetings, politeness and other frames leave the topic and nothing else."""
    assert rest(text) == rest(BASE)
    assert parsed(text).values["keys"] == ["name", "river", "mayor"]
    assert all(not d.endswith("!") for d in differences(BASE, text))


@pytest.mark.parametrize(
    "text",
    [
        "Describe the city of Oslo for tourists as a JSON object with the keys name, river, mayor.",
        "For tourists, describe the city of Oslo as a JSON object with the keys name, river, mayor.",
        "Summarize the city of Oslo as a JSON object with the keys name, river, mayor.",
        "Describe the city of Oslo for me and you as a JSON object with keys name, river, mayor.",
        "Is the city of Oslo big? Use a JSON object with the keys name, river, mayor.",
        "Hi as a JSON object with the keys name, river, mayor.",
    ],
)
def test_frames_that_say_more_count(text):
    """An audience, another verb or a question is no frame."""
    assert any(d.endswith("!") for d in differences(BASE, text))


@pytest.mark.parametrize(
    "text",
    [
        "Our service expects JSON. Describe the city of Oslo as an object with the keys name, "
        "river and mayor. Reply with nothing but the JSON object.",
        "Describe the city of Oslo as an object with the keys name, river and mayor. Only JSON.",
        "Describe the city of Oslo as one object with the keys name, river and mayor.\n"
        "No other text, only the JSON object.",
        "Describe the city of Oslo with the keys name, river and mayor. Only the JSON object.",
    ],
)
def test_a_closing_sentence_may_be_what_demands_json(text):
    """JSON that is only named in a sentence of its own is demanded all the same."""
    assert rest(text) == rest(BASE)
    assert parsed(text).values["keys"] == ["name", "river", "mayor"]
    assert parsed(text).values["bare"]


@pytest.mark.parametrize(
    "text",
    [
        "Explain which services accept only JSON.",
        "My program reads JSON. Why is it slow?",
        "Describe an object with the keys name and age. Do not answer with JSON only.",
    ],
)
def test_talk_of_json_is_still_no_demand(text):
    """A sentence that speaks of JSON demands nothing."""
    assert isinstance(TASK.parse(Request(messages=(Message(role="user", text=text),))), Declined)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Extract name and age as JSON from: Ann, 30", ["name", "age"]),
        ("Please extract the name, age and city in JSON format from the text below: Ann", 3),
        ('Extract "first name" and "age" as JSON from: Ann', ["first name", "age"]),
        ("Return name and age as JSON from this text: Ann", ["name", "age"]),
        ("Return name and age as JSON", []),
        ("List apples and oranges as JSON", []),
        ("Extract Paris and Rome as JSON from: Paris", []),
        ("Extract the names of all people as JSON from: Ann", []),
        ("Extract name and, if given, age as JSON from: Ann", []),
        ("Extract the name as JSON from: Ann", []),
    ],
)
def test_what_is_extracted_are_the_keys(text, keys):
    """Names right between "extract" and "as JSON" are keys where that is plain, else content."""
    found = parsed(text).values["keys"]
    assert found == (["name", "age", "city"] if keys == 3 else keys)
    assert not (found and parsed(text).whole)  # the model may name them otherwise
    assert found or "Extract" in rest(text) or "and" in rest(text)


def test_a_further_thing_to_extract_is_asked_for_alone():
    """One more key to extract from the same text is a patch; another text is a skip."""
    old = "Extract name and age as JSON from: Ann Lee, 30, Rome"
    new = "Extract name, age and city as JSON from: Ann Lee, 30, Rome"
    assert differences(old, new) == ["key-added"]
    verdict = TASK.verify(
        Step(index=0, text='{"name": "Ann", "age": 30}', kind="json"), parsed(new)
    )
    assert verdict.fix is not None
    assert verdict.fix.ask == ("city",)
    assert "source-changed!" in differences(old, new.replace("Rome", "Oslo"))


@pytest.mark.parametrize(
    "text",
    [
        "Beschreibe die Stadt Oslo als JSON mit den Schlüsseln name, river und mayor.",
        "Beschreibe Oslo als JSON-Objekt mit folgenden Feldern: name, river und mayor.",
        "Décris la ville d'Oslo en JSON avec les clés name, river et mayor.",
        "Describe la ciudad de Oslo en formato JSON con las claves name, river y mayor.",
        "Descrivi la città di Oslo in formato JSON con le chiavi name, river e mayor.",
        "Descreva a cidade de Oslo em JSON com as chaves name, river e mayor.",
        "Опиши город Осло в формате JSON с ключами name, river и mayor.",
        "用JSON格式描述奥斯陆，包含以下键：name、river和mayor。",
        "以JSON格式返回奥斯陆的信息，字段为name, river, mayor",
        "オスロをJSON形式で説明してください。次のキー：name、river、mayor。",
        "オスロをJSON形式で説明してください。キーはname、river、mayorです。",
    ],
)
def test_keys_are_read_in_other_languages(text):
    """The key list of another language is read; all other words stay content."""
    assert parsed(text).values["keys"] == ["name", "river", "mayor"]
    assert not parsed(text).whole
    more = (
        text.replace("name", "name, area") if "、" not in text else text.replace("name", "a、name")
    )
    assert differences(text, more) == ["key-added"]
    assert any(d.endswith("!") for d in differences(text, text.replace("Oslo", "Rom"))) == (
        "Oslo" in text
    )


@pytest.mark.parametrize(
    "text",
    [
        "Beschreibe Oslo als JSON mit den Schlüsseln name, river sowie mayor.",
        "Beschreibe Oslo als JSON mit den Schlüsseln name und, wenn bekannt, mayor.",
        "Décris Oslo en JSON avec les clés name, name.",
    ],
)
def test_lists_of_other_languages_are_not_guessed(text):
    """A list that is not read to its end names no keys."""
    assert parsed(text).values["keys"] == []


SCHEMA = (
    'Describe Mars as a JSON object that satisfies this JSON Schema: {"type": "object", '
    '"properties": {"kind": %s}, "required": ["kind"]}. Answer with the JSON object only.'
)


@pytest.mark.parametrize(
    ("old", "new", "owned"),
    [
        ('{"enum": ["a", "b"]}', '{"enum": ["A", "B"]}', True),
        ('{"enum": ["a", "b", "c"]}', '{"enum": ["a", "b"]}', True),
        ('{"enum": ["a", "b"]}', '{"enum": ["a", "b", "c"]}', False),
        ('{"type": "string"}', '{"type": "array", "items": {"type": "string"}}', True),
        ('{"type": "string"}', '{"type": ["string", "null"]}', False),
        ('{"type": "string"}', '{"type": "string", "description": "in French"}', False),
    ],
)
def test_schemas_in_a_prompt_differ_by_keyword(old, new, owned):
    """A change that keeps no value, or narrows, is verified; one that widens is not."""
    assert parsed(SCHEMA % old).whole
    expected = "schema-changed" if owned else "schema-changed!"
    assert differences(SCHEMA % old, SCHEMA % new) == [expected]
