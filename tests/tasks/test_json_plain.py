"""Requests for JSON that are read whole: plain sentences, one topic, one list of keys."""

from __future__ import annotations

import pytest

from stepcache._difference import content
from stepcache._types import Constraints, Declined, Message, Request
from stepcache.explain import explain
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.json_answer._plain import LONGEST, read_plain

TASK = JsonAnswerTask()
TOPIC = "the port of Narvik"
KEYS = ["name", "depth", "owner"]
BASE = f"Describe {TOPIC} as a JSON object with the keys name, depth, owner."
ANSWER = '{"name": "Narvik", "depth": 27, "owner": "the municipality"}'

SAME = [
    "{thing} as JSON, keys {keys}.",
    "{thing}: give me a JSON object with the keys {keys}.",
    "need a json on {thing}, fields = {keys}",
    "json object w/ keys {keys} for {thing}",
    "Topic: {thing}\nFields: {keys}\nOutput: JSON object",
    "The keys are {and}. The thing is {thing}. The answer should be a JSON object.",
    "What would {thing} look like as a JSON object with the keys {quoted}?",
    "How would you describe {thing} in JSON, if the keys were {and}?",
    "Using {quoted} as the keys, produce a JSON object for {thing}.",
    "I'd love a JSON object on {thing}. Could it have {and} as its keys, please?",
    "I would like you to describe {thing} for me. Please put it in a JSON object whose keys are {and}.",
    "Generate a JSON representation of {thing} featuring the fields {keys}.",
    "I require a JSON document on {thing}; it must contain the keys {and}.",
    "Please output a JSON object. The subject is {thing} and the keys are {and}.",
    "What I need is a JSON object about {thing}. Please use {and} as the keys.",
    "Consider {thing}. Write a JSON object whose keys are {and} to describe it.",
    "Provide the following about {thing} in JSON: {keys}.",
    "Please provide information about {thing} in JSON format with the keys {keys}.",
    "I want to know about {thing}. Respond with a JSON object that has the keys {and}.",
    "Using JSON, describe {thing}. The keys to use are {and}.",
    "Hey, I need some info on {thing}. Can you send it as a JSON object with the keys {and}? Thanks!",
    "Please write up {thing} as a JSON object and make sure it has the keys {and}.",
    "Our system stores data as JSON. Give me the entry for {thing} with the keys {and}.",
    "Good morning! I hope you can help me with a JSON object about {thing}. It needs the keys {and}.",
    "For my database, I need {thing} as a JSON object. Use the keys {quoted}, please.",
    "Tell me about {thing}, but answer as a JSON object with the keys {and}.",
    "Please describe {thing}, and format your answer as a JSON object with the keys {and}.",
    "Make a JSON object of {thing} with {and} as the keys.",
    "Return JSON (keys: {keys}) describing {thing}.",
]
OTHER = [
    "Describe {thing} for a six-year-old as a JSON object with the keys {keys}.",
    "{thing} -> JSON: {keys} (values in CAPITALS)",
    "Describe {thing} as it was in 1900, as a JSON object with the keys {and}.",
    "Write a JSON array of three objects for {thing}, each with the keys {quoted}.",
    "Describe anything you like except {thing} as a JSON object with the keys {keys}.",
    "Create a JSON object with the keys {quoted} for the exact opposite of {thing}.",
    "Topic: {thing}\nFields: {keys}\nOutput: XML",
    "JSON object for {thing}, keys {and}, each value at most two words.",
    "Describe {thing} as a JSON object with the keys {and}, but leave out the first of them.",
    'Return a JSON object about {thing} with the keys {quoted} nested under "data".',
    "Give me a JSON object for {thing} with the keys {quoted} and leave all values null.",
    "Write a JSON schema for records like {thing} with the keys {quoted}.",
    "Is a JSON object with the keys {keys} a good way to describe {thing}?",
    "entity={thing}; keys={keys}; format=json; lang=es",
    "Swap keys and values: a JSON object for {thing} where {and} are the values.",
    "Write a JSON object for {thing} with keys other than {and}; I have those already.",
    "Before you write the JSON object for {thing} with the keys {and}, ask me three questions.",
    "Write a prompt that would make a model describe {thing} as a JSON object with the keys {keys}.",
    "Describe {thing} today as a JSON object with the keys {keys}.",
    "Describe {thing} as a JSON object with the keys {keys}. Do not answer with JSON.",
    "Describe {thing} as a JSON object with the keys {keys}, and then once more in German.",
    "Describe the mayor of {thing} as a JSON object with the keys {keys}.",
    "Describe {thing}, Nordland as a JSON object with the keys {keys}.",
]


# A topic, and what another request says that must not be taken for it, or for more of the same.
APART = [
    ("the whale", "Describe the body of the whale as a JSON object with the keys {keys}."),
    ("the whale", "Give me the record for the whale as JSON with keys {keys}"),
    ("the whale", "Could you stop describing the whale as JSON with keys {keys}?"),
    ("the whale", "Make up a JSON object about the whale with the keys {keys}."),
    ("the whale", "Describe the whale as JSON with keys {keys}. Make it up."),
    ("the whale", "Answer using the whale, in JSON with the keys {keys}."),
    ("the whale", "Describe the whale as JSON with keys {keys}, and describe it again."),
    ("the whale", "Describe the whale as JSON with keys {keys}. And the following."),
    ("the whale", "Describe the whale as JSON with keys {keys}. Then give me facts."),
    ("the whale", "Describe the whale as JSON with keys {keys}. What is JSON?"),
    ("the whale", "What is JSON? Describe the whale as JSON with the keys {keys}."),
    ("the whale", "Write about the whale, and then describe it as JSON with keys {keys}."),
    ("the whale", "Describe the whale using the document as JSON with keys {keys}."),
    ("the whale", "Using the following JSON, describe the whale with the keys {keys}."),
    ("the whale", "Put it in that JSON object. Describe the whale. Keys: {keys}"),
    ("the whale", "What will the whale look like as a JSON object with the keys {keys}?"),
    ("the whale", "Describe the whale as JSON. Which keys are required: {keys}?"),
    ("the whale", "Describe the whale as JSON. Will it have the keys {keys}?"),
    ("the whale", "Describe the whale as JSON.\nKeys:\nname\ndepth\nowner"),
    ("the whale", "Describe the whale as JSON. Keys: {keys}\ntask\nquestion"),
    ("French", "Reply in French, using JSON with the keys {keys}."),
    ("a pirate", "Answer as a pirate, in JSON with the keys {keys}."),
    ("the letter", "Answer the letter as JSON with the keys {keys}."),
    ("theory", "I need set theory as JSON, keys {keys}"),
    ("beer", "Craft beer as JSON, keys {keys}"),
    ("Dolly", "Hello, Dolly as JSON, keys {keys}"),
    ("Vietnam", "Good Morning, Vietnam as JSON, keys {keys}"),
    ("Time", "About Time as JSON, keys {keys}"),
    ("Speed", "Need for Speed as JSON, keys {keys}"),
    ("Love", "I Need Love as JSON, keys {keys}"),
    ("Boat", "Show Boat as JSON, keys {keys}"),
    ("T", "Model T as JSON, keys {keys}"),
    ("history", "Show US history as JSON with the keys {keys}"),
    ("exports", "Describe exports to US as JSON with the keys {keys}."),
    ("the number 5", "I need the number 5! as JSON, keys {keys}"),
    ("5", "I need -5 as JSON, keys {keys}"),
    ("NET", "Describe .NET as a JSON object with the keys {keys}."),
    ("the lung", "Describe the lung (right) as JSON with the keys {keys}."),
    ("Miami", "I need Miami, OK as JSON, keys {keys}"),
    ("a picture book", "Describe a picture book without text as JSON with keys {keys}."),
    ("the role of iron", "Describe the role of iron in the body as JSON with keys {keys}."),
    ("the album", "Describe the album Please as a JSON object with the keys {keys}."),
    ("the song", "I need the song Thank You as JSON, keys {keys}"),
    ("the film", "Topic: the film Next\nKeys: {keys}\nFormat: JSON"),
    ("Louis", "Describe St. Louis as a JSON object with the keys {keys}."),
    ("Paris", "Describe Paris, Texas as a JSON object with the keys {keys}."),
    ("Dune", "Describe Dune: Part Two as a JSON object with the keys {keys}."),
    ("Who", "Describe The Who as a JSON object with the keys {keys}."),
]


def asked(text: str) -> str:
    return text.format_map(
        {
            "thing": TOPIC,
            "keys": "name, depth, owner",
            "and": "name, depth and owner",
            "quoted": '"name", "depth", "owner"',
        }
    )


def parsed(text: str) -> Constraints | Declined:
    return TASK.parse(Request(messages=(Message(role="user", text=text),)))


@pytest.mark.parametrize("wording", SAME)
def test_whatever_the_phrases_topic_and_keys_are_read(wording):
    """The topic is all that is left, the keys are read, and the cached answer serves."""
    text = asked(wording)
    found = parsed(text)
    assert isinstance(found, Constraints)
    assert content(text, found.spans, TASK.neutral) == tuple(TOPIC.split())
    assert found.values["keys"] == KEYS
    assert found.whole
    assert explain(None, BASE, ANSWER, text).inspection.served


@pytest.mark.parametrize("wording", OTHER)
def test_one_word_more_and_the_model_is_asked(wording):
    """What demands more, or something else, is not served."""
    assert not explain(None, BASE, ANSWER, asked(wording)).inspection.served


@pytest.mark.parametrize(("topic", "text"), APART)
def test_no_other_demand_is_taken_for_one_about_the_topic(topic, text):
    """A piece of another topic, a second output, a question, a persona: never the stored answer."""
    base = f"Describe {topic} as a JSON object with the keys name, depth, owner."
    assert not explain(None, base, ANSWER, asked(text)).inspection.served


@pytest.mark.parametrize("wording", SAME)
@pytest.mark.parametrize("word", ["never", "German", "briefly", "seven", "Sweden", "unlike"])
def test_a_stray_word_anywhere_is_a_difference(wording, word):
    """Wherever it is put, it is no phrase: the request is not read whole, or has another topic."""
    words = asked(wording).split(" ")
    for at in range(len(words) + 1):
        text = " ".join([*words[:at], word, *words[at:]])
        plain = read_plain(text)
        if plain is not None:
            read = text[slice(*plain.topic)], list(plain.keys.keys)
            assert read != (TOPIC, KEYS), text


def test_nothing_long_is_read_whole():
    """A long request brings data or context along."""
    assert read_plain(BASE) is not None
    assert read_plain(BASE + " " * LONGEST) is None
