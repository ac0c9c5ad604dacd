"""Structured output: the caller's own class from a miss, a hit and a patch, in every form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypedDict

import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ConfigDict, Field

from langchain_stepcache import StepCache, StepCacheChatModel
from stepcache import Policy
from stepcache.testing.endpoint import ScriptedEndpoint

# Of ChatOpenAI's own, bare or wrapped: it dumps the SDK's parsed chunks as it streams them.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")

Make = Callable[..., ChatOpenAI]
ROME = {"name": "Rome", "country": "Italy", "river": "Tiber", "population": 2_800_000}
ASK = "Describe Rome."


def knows(request: Mapping[str, Any]) -> Any:
    """A model that knows one city and answers in the form it is given."""
    text = str(request["messages"][-1]["content"])
    if request.get("tools"):
        function = request["tools"][0]["function"]
        arguments = json.dumps({k: ROME[k] for k in function["parameters"]["properties"]})
        call = {"name": function["name"], "arguments": arguments}
        return {"tool_calls": [{"id": "call-1", "type": "function", "function": call}]}
    if "holding only the keys" in text:
        asked = text.rpartition("only the keys")[2]
        return json.dumps({k: v for k, v in ROME.items() if f'"{k}"' in asked})
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        properties = wanted["json_schema"]["schema"]["properties"]
        return json.dumps({k: ROME[k] for k in properties})
    return json.dumps({k: v for k, v in ROME.items() if k in text})


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """The model behind real HTTP."""
    with ScriptedEndpoint(knows) as running:
        yield running


def pydantic_form(*keys: str) -> Any:
    """A class ``City`` with these fields."""
    fields = {k: (type(ROME[k]), ...) for k in keys}
    from pydantic import create_model

    return create_model("City", **fields)  # type: ignore[call-overload]


def typed_dict_form(*keys: str) -> Any:
    """A ``TypedDict`` with these keys."""
    fields = {k: Annotated[type(ROME[k]), ..., ""] for k in keys}
    made = TypedDict("City", fields)  # type: ignore[operator]
    made.__doc__ = "A city."
    return made


def json_form(*keys: str) -> Any:
    """A JSON Schema with these properties."""
    kinds = {str: "string", int: "integer"}
    return {
        "title": "City",
        "description": "A city.",
        "type": "object",
        "properties": {k: {"type": kinds[type(ROME[k])]} for k in keys},
        "required": list(keys),
    }


FORMS = [pydantic_form, typed_dict_form, json_form]


def plain(answer: Any) -> dict[str, Any]:
    """A structured answer as a dictionary."""
    return answer.model_dump() if isinstance(answer, BaseModel) else dict(answer)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("include_raw", [False, True])
def test_every_form_comes_back_from_a_hit(
    chat: Make, endpoint: ScriptedEndpoint, form: Any, method: str, include_raw: bool
) -> None:
    """The same type and value, the second and third time without the model."""
    schema = form("name", "country")
    chain = StepCacheChatModel(llm=chat()).with_structured_output(
        schema, method=method, include_raw=include_raw
    )
    answers = [chain.invoke(ASK) for _ in range(3)]
    if include_raw:
        assert [a["parsing_error"] for a in answers] == [None] * 3
        routes = [a["raw"].response_metadata["stepcache"]["route"] for a in answers]
        assert routes == ["miss", "exact", "exact"]
        answers = [a["parsed"] for a in answers]
    assert [plain(a) for a in answers] == [{"name": "Rome", "country": "Italy"}] * 3
    assert len({type(a) for a in answers}) == 1
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        assert type(answers[2]) is schema
    assert endpoint.calls == 1


@pytest.mark.parametrize("form", FORMS)
def test_one_more_required_field_patches_that_field_only(
    chat: Make, endpoint: ScriptedEndpoint, form: Any
) -> None:
    """The question names the field, the answer is the new schema's, nothing known is asked again."""
    model = StepCacheChatModel(llm=chat())
    model.with_structured_output(form("name", "country")).invoke(ASK)
    schema = form("name", "country", "river")
    answer = model.with_structured_output(schema, include_raw=True).invoke(ASK)
    told = answer["raw"].response_metadata["stepcache"]
    assert (told["route"], endpoint.calls) == ("patch", 2)
    asked = str(endpoint.requests[-1]["messages"][-1]["content"]).rpartition("only the keys")[2]
    assert '"river"' in asked
    assert '"name"' not in asked
    assert plain(answer["parsed"]) == {"name": "Rome", "country": "Italy", "river": "Tiber"}
    assert json.loads(answer["raw"].content) == plain(answer["parsed"])
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        assert type(answer["parsed"]) is schema
    model.with_structured_output(schema).invoke(ASK)
    assert endpoint.calls == 2


@pytest.mark.parametrize("form", FORMS)
def test_one_field_less_needs_no_model(chat: Make, endpoint: ScriptedEndpoint, form: Any) -> None:
    """The field goes, the rest stays as it was."""
    model = StepCacheChatModel(llm=chat())
    model.with_structured_output(form("name", "country")).invoke(ASK)
    answer = model.with_structured_output(form("name")).invoke(ASK)
    assert plain(answer) == {"name": "Rome"}
    assert endpoint.calls == 1


def test_another_question_is_another_answer(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """The same schema never carries an answer over to another subject."""
    model = StepCacheChatModel(llm=chat()).with_structured_output(pydantic_form("name"))
    model.invoke("Describe Rome.")
    model.invoke("Describe Oslo.")
    assert endpoint.calls == 2


def test_aliases_survive(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """What the parser is given is the model's text, under the names the text uses."""

    class Aliased(BaseModel):
        model_config = ConfigDict(populate_by_name=False)
        label: str = Field(alias="name")

    endpoint.answer = lambda request: '{"name": "Rome"}'
    chain = StepCacheChatModel(llm=chat()).with_structured_output(Aliased)
    answers = [chain.invoke(ASK) for _ in range(2)]
    assert [a.label for a in answers] == ["Rome", "Rome"]
    assert endpoint.calls == 1


@pytest.mark.parametrize("form", FORMS)
def test_json_mode_is_held_to_the_schema_behind_it(
    chat: Make, endpoint: ScriptedEndpoint, form: Any
) -> None:
    """The endpoint is not told the schema, the cache is: a hit fits it, another schema does not."""
    model = StepCacheChatModel(llm=chat())
    ask = "Describe Rome as JSON with the keys name and country."
    narrow = model.with_structured_output(form("name", "country"), method="json_mode")
    answers = [narrow.invoke(ask) for _ in range(2)]
    assert [plain(a) for a in answers] == [{"name": "Rome", "country": "Italy"}] * 2
    assert endpoint.calls == 1
    wide = model.with_structured_output(form("name", "country", "river"), method="json_mode")
    assert plain(wide.invoke(ask))["river"] == "Tiber"
    assert endpoint.calls == 2
    assert all(r["response_format"] == {"type": "json_object"} for r in endpoint.requests[:1])


def test_bare_json_objects_are_exact_only(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """Where nobody says what the answer has to hold, only the same request gets it again."""
    model = StepCacheChatModel(llm=chat()).bind(response_format={"type": "json_object"})
    ask = "Describe Rome as JSON with the keys name and country."
    routes = [model.invoke(ask).response_metadata["stepcache"]["route"] for _ in range(2)]
    assert routes == ["miss", "exact"]
    model.invoke("Please describe Rome as JSON with the keys name and country.")
    assert endpoint.calls == 2


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_structured_streams(chat: Make, endpoint: ScriptedEndpoint, method: str) -> None:
    """A streamed answer is the same answer, and one stream fills the cache for the next."""
    schema = pydantic_form("name", "country")
    chain = StepCacheChatModel(llm=chat()).with_structured_output(schema, method=method)
    ask = "Describe Rome as JSON with the keys name and country."
    last = [list(chain.stream(ask))[-1] for _ in range(2)]
    assert [plain(a) for a in last] == [{"name": "Rome", "country": "Italy"}] * 2
    assert type(last[1]) is schema
    assert endpoint.calls == 1


def test_what_a_stream_stored_is_parsed_too(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """And the other way round: one entry, whichever way it was made."""
    schema = pydantic_form("name")
    chain = StepCacheChatModel(llm=chat()).with_structured_output(schema)
    list(chain.stream(ASK))
    assert chain.invoke(ASK) == schema(name="Rome")
    assert endpoint.calls == 1


async def test_structured_output_asynchronously(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """``ainvoke``: miss, hit and patch."""
    import httpx

    async with httpx.AsyncClient() as client:
        model = StepCacheChatModel(llm=chat(http_async_client=client))
        narrow, wide = pydantic_form("name"), pydantic_form("name", "river")
        answers = [await model.with_structured_output(narrow).ainvoke(ASK) for _ in range(2)]
        assert answers == [narrow(name="Rome")] * 2
        assert await model.with_structured_output(wide).ainvoke(ASK) == wide(
            name="Rome", river="Tiber"
        )
    assert endpoint.calls == 2


def test_a_bad_answer_reaches_the_parser_as_the_model_gave_it(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """Nothing that fails the schema is kept, nor made up."""
    endpoint.answer = lambda request: '{"label": 7}'
    schema = json_form("name")
    model = StepCacheChatModel(llm=chat(), policy=Policy(max_repairs=0))
    assert model.with_structured_output(schema).invoke(ASK) == {"label": 7}
    assert model.engine.count() == 0


def test_the_cache_face_gives_back_the_callers_class(
    chat: Make, endpoint: ScriptedEndpoint
) -> None:
    """``StepCache`` sees a class by its name only, and serves equal requests."""
    schema = pydantic_form("name")
    chain = chat(cache=StepCache()).with_structured_output(schema)
    answers = [chain.invoke(ASK) for _ in range(2)]
    assert answers == [schema(name="Rome")] * 2
    assert endpoint.calls == 1


def test_the_cache_face_patches_schemas_it_can_read(chat: Make, endpoint: ScriptedEndpoint) -> None:
    """A JSON Schema stands in LangChain's key, so a bound model can be asked for one field."""
    cache = StepCache()
    model = chat(cache=cache)
    cache.register(model)
    model.with_structured_output(json_form("name")).invoke(ASK)
    answer = model.with_structured_output(json_form("name", "river")).invoke(ASK)
    assert answer == {"name": "Rome", "river": "Tiber"}
    assert "only the keys" in str(endpoint.requests[-1]["messages"][-1]["content"])
