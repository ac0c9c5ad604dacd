"""The JSON task: verdicts, key-level adapting and patching, mending."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._types import Block, Constraints, Contract, Message, Request, Status, Step, join
from stepcache.protocols import Task
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.json_answer._extract import Found, extract
from stepcache.tasks.json_answer._members import drop, insert, members

TASK = JsonAnswerTask()


def ask(text: str, schema: dict[str, object] | None = None) -> Request:
    return Request(messages=(Message(role="user", text=text),), contract=Contract(schema=schema))


def demand(keys: str = "name, age", schema: dict[str, object] | None = None) -> Constraints:
    text = "Who is Ann?" if schema else f"Describe Ann as a JSON object with keys {keys}"
    result = TASK.parse(ask(text, schema))
    assert isinstance(result, Constraints)
    return result


def verdicts(text: str, constraints: Constraints) -> list[tuple[str, str]]:
    found = [TASK.verify(step, constraints) for step in TASK.segment(text)]
    return [(v.status.value, v.code) for v in found]


def checked(text: str, constraints: Constraints) -> str:
    verdict = TASK.check(TASK.segment(text), constraints)
    return "pass" if verdict.status is Status.PASS else verdict.code


def adapted(text: str, old: Constraints, new: Constraints) -> str | None:
    steps = TASK.adapt(TASK.segment(text), old, new)
    return None if steps is None else join(steps)


def patched(text: str, constraints: Constraints, reply: str) -> str | None:
    steps = TASK.segment(text)
    found = [TASK.verify(step, constraints) for step in steps]
    block = TASK.block(found)
    assert block is not None
    return TASK.splice(reply, steps, block, found, constraints)


def test_it_is_a_task() -> None:
    """The class answers to the protocol."""
    assert isinstance(TASK, Task)


@given(st.text(max_size=300))
def test_segments_are_lossless(text: str) -> None:
    """Steps of any text join to it."""
    assert join(TASK.segment(text)) == text
    fenced = f'{text}\n```json\n{{"a": 1}}\n```\n{text}'
    assert join(TASK.segment(fenced)) == fenced


def test_json_and_prose_are_apart() -> None:
    """The value with its fence is one step; an introduction and a farewell are others."""
    steps = TASK.segment('Here you go:\n\n```json\n{"a": 1}\n```\n\nHope this helps!')
    assert [s.kind for s in steps] == ["prose", "json", "prose"]
    assert steps[1].text == '```json\n{"a": 1}\n```\n\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "Ann", "age": 30}', [("pass", "json")]),
        ('{"name": "Ann"}', [("fail", "missing-keys")]),
        ('{"name": "Ann", "age": 30, "email": "a@b"}', [("fail", "extra-keys")]),
        ('["Ann"]', [("fail", "wrong-shape")]),
        ('{"name": "\\frac{1}", "age": 30}', [("fail", "damaged-json")]),
        ('Here it is:\n\n{"name": "Ann", "age": 30}', [("pass", "no-claim"), ("pass", "json")]),
        (
            'The 2 keys are:\n\n{"name": "Ann", "age": 30}',
            [("unknown", "prose-claim"), ("pass", "json")],
        ),
        (
            '{"name": "Ann", "age": 30}\n\nThe age is a guess.',
            [("pass", "json"), ("unknown", "prose-claim")],
        ),
        ("Ann is thirty.", [("pass", "no-claim")]),
    ],
)
def test_verdicts(text: str, expected: list[tuple[str, str]]) -> None:
    """JSON is judged by its keys, prose by whether it states anything."""
    assert verdicts(text, demand()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "Ann", "age": 30}', "pass"),
        ('Sure!\n```json\n{"name": "Ann", "age": 30}\n```', "pass"),
        ('{"name": "Ann", "age": 30} {"name": "Ann", "age": 30}', "ambiguous-json"),
        ("Ann is thirty.", "no-json"),
        ('{"name": "Ann", "age": 30', "broken-json"),
        ('"name, age"', "wrong-shape"),
    ],
)
def test_check_wants_exactly_one_value(text: str, expected: str) -> None:
    """The whole answer passes with one value only, wherever it stands."""
    assert checked(text, demand()) == expected


SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "mood": {"enum": ["calm", "merry"]},
    },
    "required": ["name", "age"],
}


@pytest.mark.parametrize(
    ("text", "code", "asked"),
    [
        ('{"name": "Ann", "age": 30}', "json", None),
        ('{"name": "Ann", "age": 30.0}', "json", None),
        ('{"name": "Ann", "age": "thirty"}', "schema-violation", ("age",)),
        ('{"name": "Ann", "age": -1, "mood": "sad"}', "schema-violation", ("age", "mood")),
        ('{"name": "Ann"}', "missing-keys", ("age",)),
        ('{"name": "Ann", "age": 1, "pet": "cat"}', "extra-keys", ()),
        ('["Ann"]', "schema-violation", None),
    ],
)
def test_schema_verdicts_name_the_keys(text: str, code: str, asked: tuple[str, ...] | None) -> None:
    """A violation is located at the top-level keys that have to be asked for anew."""
    verdict = TASK.verify(TASK.segment(text)[0], demand(schema=SCHEMA))
    assert verdict.code == code
    assert (verdict.fix.ask if verdict.fix else None) == asked


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.invalid/other.json"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"type": 7},
        {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}},
        {"type": "object", "properties": {"a": {"pattern": "^(a|a)*$"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "patternProperties": {"^(x+x+)+y$": {}}, "additionalProperties": False},
    ],
)
def test_hostile_schemas_are_unknown(schema: dict[str, object]) -> None:
    """A schema that cannot be trusted gives unknown, at once and without the network."""
    key = "x" * 40 if "patternProperties" in schema else "a"
    text = json.dumps({key: "a" * 40 + "!"})
    verdict = TASK.check(TASK.segment(text), demand(schema=schema))
    assert verdict.status is Status.UNKNOWN, verdict


def test_removed_key_is_dropped_and_nothing_else_touched() -> None:
    """A key no longer demanded goes without a call; order, layout and fence stay."""
    text = 'Here:\n\n```json\n{\n  "age" : 30,\n  "name": "Ann",\n\n  "email": "a@b.c"\n}\n```\n'
    old, new = demand("name, age, email"), demand("age, name")
    assert (
        adapted(text, old, new) == 'Here:\n\n```json\n{\n  "age" : 30,\n  "name": "Ann"\n}\n```\n'
    )
    assert adapted(text, old, demand("name, email")) == (
        'Here:\n\n```json\n{\n  "name": "Ann",\n\n  "email": "a@b.c"\n}\n```\n'
    )


def test_prose_that_may_be_stale_is_not_kept() -> None:
    """Prose that names keys cannot stand under other keys; under a schema only the JSON is wanted."""
    text = 'The age is 30.\n\n{"name": "Ann", "age": 30}'
    assert adapted(text, demand("name, age"), demand("name")) is None
    short = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert adapted(text, demand(schema=SCHEMA), demand(schema=short)) == '{"name": "Ann"}'


def test_plain_rename_needs_no_model() -> None:
    """The same words in another case style are renamed in place."""
    text = '{"firstName": "Ann", "age": 30}'
    new = adapted(text, demand("firstName, age"), demand("first_name, age"))
    assert new == '{"first_name": "Ann", "age": 30}'


@pytest.mark.parametrize("keys", ["title, age", "age, fullName", "surname, age", "names, age"])
def test_other_names_are_not_renamed(keys: str) -> None:
    """A different word, or a different place, is a different key: its value is asked for."""
    text = '{"name": "Ann", "age": 30}'
    old, new = demand("name, age"), demand(keys)
    result = adapted(text, old, new)
    assert result is None or checked(result, new) == "missing-keys"


def test_lossless_coercion() -> None:
    """A number written as text becomes the number the new schema wants, and back."""
    texty = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    whole = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    old, new = demand(schema=texty), demand(schema=whole)
    assert all(d.owner == "json" for d in TASK.differences(old, new))
    assert adapted('{"n": "42"}', old, new) == '{"n": 42}'
    assert adapted('{"n": 42}', new, old) == '{"n": "42"}'
    for lossy in ('{"n": "042"}', '{"n": "4.5"}', '{"n": "about 42"}'):
        result = adapted(lossy, old, new)
        assert result is None or checked(result, new) == "schema-violation"


def test_words_of_a_schema_are_not_verifiable() -> None:
    """A changed description or a widened choice is nobody's: the model may answer otherwise."""

    def one(**sub: object) -> Constraints:
        return demand(schema={"type": "object", "properties": {"a": sub}, "required": ["a"]})

    def owners(old: Constraints, new: Constraints) -> list[str | None]:
        return [d.owner for d in TASK.differences(old, new)]

    assert owners(one(description="in km"), one(description="in miles")) == [None]
    assert owners(one(enum=["x"]), one(enum=["x", "y"])) == [None]
    assert owners(one(enum=["x", "y"]), one(enum=["x"])) == ["json"]
    assert owners(one(maxLength=9), one(maxLength=90)) == [None]
    assert owners(one(maxLength=90), one(maxLength=9)) == ["json"]
    assert owners(one(type="string"), one(type="integer")) == ["json"]
    assert owners(one(format="date"), one(format="time")) == [None]


def test_optional_key_made_required_is_asked_for() -> None:
    """A schema that now requires a key it named before explains the change; the verifier finds it
    missing."""
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    old = demand(schema={"type": "object", "properties": properties})
    new = demand(schema={"type": "object", "properties": properties, "required": ["b"]})
    assert all(d.owner == "json" for d in TASK.differences(old, new))
    assert verdicts('{"a": "x"}', new) == [("fail", "missing-keys")]
    assert patched('{"a": "x"}', new, '{"b": "y"}') == '{"a": "x", "b": "y"}'


def test_added_key_is_asked_for_alone() -> None:
    """The call quotes the request and the known keys, and asks for the new key under its schema."""
    new = demand(schema=SCHEMA)
    request = ask("Who is Ann?", SCHEMA)
    steps = TASK.segment('{"name": "Ann"}')
    found = [TASK.verify(step, new) for step in steps]
    block = TASK.block(found)
    assert block == Block(start=0, stop=1)
    assert found[0].fix is not None
    assert found[0].fix.share == 0.5
    call = TASK.patch(request, steps, block, found, new)
    assert call is not None
    assert call.purpose == "patch"
    assert call.schema == {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}},
        "required": ["age"],
        "additionalProperties": False,
    }
    text = call.messages[-1].text
    assert text.startswith("Who is Ann?")
    assert '<known>\n{"name": "Ann"}\n</known>' in text
    assert 'only the keys: "age"' in text


def test_reply_is_merged_where_the_demand_wants_it() -> None:
    """The new key takes its place in the demanded order, in the object's own layout."""
    text = '```json\n{\n    "name": "Ann",\n    "email": "a@b.c"\n}\n```'
    result = patched(text, demand("name, age, email"), 'Sure: {"age": 30}')
    assert result == '```json\n{\n    "name": "Ann",\n    "age": 30,\n    "email": "a@b.c"\n}\n```'
    first = patched(text, demand("age, name, email"), '{"age": {"years": 30}, "name": "Bob"}')
    assert first is not None
    assert json.loads(first[8:-4]) == {"age": {"years": 30}, "name": "Ann", "email": "a@b.c"}


def test_splice_drops_what_is_no_longer_demanded() -> None:
    """One key out and one in is one call for one key."""
    result = patched('{"name": "Ann", "pet": "cat"}', demand("name, age"), '{"age": 30}')
    assert result == '{"name": "Ann", "age": 30}'


@pytest.mark.parametrize(
    "reply", ["", "no", '{"name": "Bob"}', '{"age": }', '{"age": 1} {"age": 2}', "[30]"]
)
def test_unusable_replies_are_refused(reply: str) -> None:
    """A reply without the asked key gives no answer."""
    assert patched('{"name": "Ann"}', demand("name, age"), reply) is None


def test_broken_or_empty_objects_are_asked_for_whole() -> None:
    """Where nothing can be kept there is nothing to patch."""
    for text in ('{"name": ', '{"pet": "cat"}'):
        new = demand()
        steps = TASK.segment(text)
        found = [TASK.verify(step, new) for step in steps]
        block = TASK.block(found) or Block(start=0, stop=1)
        assert TASK.patch(ask("Ann as JSON with keys name, age"), steps, block, found, new) is None


KEYS = st.text(min_size=1, max_size=6)
FLAT = st.dictionaries(
    KEYS,
    st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=3),
    min_size=1,
    max_size=6,
)


@given(FLAT, st.data(), st.sampled_from([None, 0, 2]), st.booleans())
def test_dropping_keeps_the_others_byte_identical(
    value: dict[str, object], data: st.DataObject, indent: int | None, ascii_only: bool
) -> None:
    """Dropping any keys leaves the text of every other member as it was."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    gone = data.draw(st.sets(st.sampled_from(sorted(value))))
    new = drop(text, gone)
    assert json.loads(new) == {k: v for k, v in value.items() if k not in gone}
    old_members = {m.key: text[m.start : m.stop] for m in members(text)}
    for member in members(new):
        assert new[member.start : member.stop] == old_members[member.key]


@given(FLAT, FLAT, st.data(), st.sampled_from([None, 0, 2]))
def test_inserting_keeps_the_others_byte_identical(
    value: dict[str, object], extra: dict[str, object], data: st.DataObject, indent: int | None
) -> None:
    """Merging new keys leaves the text and order of every member that stood there."""
    added = {k: json.dumps(v, indent=indent) for k, v in extra.items() if k not in value}
    order = data.draw(st.permutations([*value, *added]))
    text = json.dumps(value, indent=indent)
    new = insert(text, added, order)
    assert json.loads(new) == {**value, **{k: extra[k] for k in added}}
    old = [text[m.start : m.stop] for m in members(text)]
    kept = [new[m.start : m.stop] for m in members(new) if m.key in value]
    assert kept == old


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("{'name': 'Ann', 'age': 30}", {"name": "Ann", "age": 30}),
        ('{"name": "Ann", "age": 30,}', {"name": "Ann", "age": 30}),
        ('{name: "Ann", age: 30}', {"name": "Ann", "age": 30}),
        ("Here:\n{'name': 'Ann', 'age': None}", {"name": "Ann", "age": None}),
        ('{"name": "\\frac{1}{2}", "age": 30}', {"name": "\\frac{1}{2}", "age": 30}),
        (
            '{"name": "\\sigma \\times\\n\\nSo", "age": 30}',
            {"name": "\\sigma \\times\n\nSo", "age": 30},
        ),
    ],
)
def test_mending_is_checked_again(text: str, mended: dict[str, object]) -> None:
    """Quotes, commas and keys nobody asked for are put right without a model."""
    result = TASK.mend(text, demand())
    assert result is not None
    found = extract(result)
    assert isinstance(found, Found)
    assert found.value == mended
    assert result.startswith(text[: text.index("{")])


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ann"',
        '{"name": "Ann"}',
        '{"name": "\\sigma\\nought", "age": 30}',
        '{"name": "Ann", "age": 30, "age": 31,}',
        '{"name": "Ann" lives, "age": }',
        '{"name": "Ann", "age": 30, /* a guess */}',
        "{'name': 'Ann', 'age': 30} {'name': 'Bob'}",
        '{"name": "Ann", "age": }',
        "name is Ann, age is 30",
        '{"name": "Ann", "age": 30} {"name": "Bob", "age": 25}',
        "",
    ],
)
def test_mending_makes_nothing_up(text: str) -> None:
    """A missing key, a cut-off answer and lost backslashes are beyond repair."""
    assert TASK.mend(text, demand()) is None


@given(st.text(max_size=200), st.text(max_size=60))
def test_nothing_raises(text: str, reply: str) -> None:
    """Verifying, adapting, patching and mending answer for any text."""
    new = demand()
    steps = TASK.segment(text) or (Step(index=0, text=text),)
    found = [TASK.verify(step, new) for step in steps]
    TASK.check(steps, new)
    TASK.adapt(steps, demand("a, b"), new)
    block = TASK.block(found)
    if block is not None:
        TASK.patch(ask("x as JSON with keys name, age"), steps, block, found, new)
        TASK.splice(reply, steps, block, found, new)
    TASK.mend(text, new)
    TASK.mend('{"name": "' + text, new)


def test_keys_nobody_asked_for() -> None:
    """An own idea of the model's passes once, is dropped where only the keys are wanted, and is
    neither reused under other demands nor thrown away."""
    text = '{"name": "Ann", "age": 30, "pet": "cat"}'
    plain, strict = demand(), demand("name, age and nothing else")
    assert checked(text, plain) == "pass"
    assert checked(text, strict) == "extra-keys"
    assert TASK.mend(text, plain) is None
    assert TASK.mend(text, strict) == '{"name": "Ann", "age": 30}'
    assert verdicts(text, plain) == [("fail", "extra-keys")]
    shorter = adapted(text, demand("name, age"), demand("name"))
    assert shorter is None or verdicts(shorter, demand("name")) == [("fail", "extra-keys")]


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "Ann", "age": 30}, {"name": "Bob", "age": 25}]',
        '{"people": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 25}]}',
        '{"Ann": {"name": "Ann", "age": 30}, "Bob": {"name": "Bob", "age": 25}}',
    ],
)
def test_several_objects_answer_where_one_is_not_demanded(text: str) -> None:
    """Without the word "object" a collection of objects is an answer too, every one with the keys."""
    loose = TASK.parse(ask("Describe Ann and Bob as JSON with keys name, age"))
    assert isinstance(loose, Constraints)
    assert checked(text, loose) == "pass"
    assert checked(text.replace('"age": 25', '"years": 25'), loose) == "missing-keys"
    assert checked(text, demand()) != "pass"


def test_it_solves_nothing() -> None:
    """No value can be derived without the model."""
    assert TASK.solve(demand()) is None


POPULATION: dict[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "population": {"type": "integer", "minimum": 0}},
    "required": ["name", "population"],
}


@pytest.mark.parametrize("number", ["21000001e400", "1e999", "9" * 400])
def test_a_number_beyond_every_double_is_neither_passed_nor_patched_in(number: str) -> None:
    """JSON Schema has it an integer; whoever reads the answer has infinity."""
    text = f'{{"name": "Paris", "population": {number}}}'
    for constraints in (demand("name, population"), demand(schema=POPULATION)):
        assert checked(text, constraints) == "huge-number"
        assert ("pass", "json") not in verdicts(text, constraints)
        assert TASK.mend(text, constraints) is None
        assert adapted(text, demand("name, population, river"), constraints) is None
        lacking = '{"name": "Paris"}'
        assert patched(lacking, constraints, f'{{"population": {number}}}') is None
    deep = f'{{"name": "Paris", "age": {{"years": [1, -{number}]}}}}'
    assert checked(deep, demand()) == "huge-number"


@pytest.mark.parametrize(
    ("schema", "number", "code"),
    [
        ({"exclusiveMinimum": 0}, "1e-400", "schema-unusable"),
        ({"exclusiveMinimum": 0}, "1e-300", "pass"),
        ({"not": {"const": 1}}, "1.00000000000000000000000001", "schema-unusable"),
        ({"type": "integer"}, "1.00000000000000000000000001", "schema-violation"),
        ({"exclusiveMaximum": 2**53 + 1}, "9007199254740992", "schema-unusable"),
        ({"const": 2**53 + 1}, "9007199254740993", "pass"),
        ({"enum": [2**53 + 1]}, "9007199254740992", "schema-violation"),
        ({"type": "integer"}, "123456789012345678901234567890", "pass"),
        ({"type": "number", "minimum": 0}, "0.1000000000000000055511151231257827", "pass"),
    ],
)
def test_what_passes_holds_for_exact_readers_and_for_doubles(
    schema: dict[str, object], number: str, code: str
) -> None:
    """A verdict that depends on how exactly a number is read is none."""
    whole: dict[str, object] = {"properties": {"n": schema}}
    assert checked(f'{{"n": {number}}}', demand(schema=whole)) == code
