"""The official client, LangChain's and LlamaIndex's, through the proxy."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from .conftest import Proxied, http

Make = Callable[..., Proxied]
RIVER = [{"role": "user", "content": "Name a 'river'."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


class City(BaseModel):
    """A city."""

    name: str
    country: str


def routes(proxied: Proxied) -> dict[str, int]:
    """The proxy's own count."""
    return dict(http.get(f"{proxied.root}/stepcache/stats").json()["routes"])


def test_an_answer_and_its_repeat(proxied: Make) -> None:
    """A miss is the upstream's answer; a repeat says the same under a new id, and costs nothing."""
    proxy = proxied()
    client = proxy.client().chat.completions.with_raw_response
    first = client.create(model="scripted", messages=RIVER)
    second = client.create(model="scripted", messages=RIVER)
    assert proxy.endpoint.calls == 1
    assert first.headers["x-stepcache-route"] == "miss"
    assert second.headers["x-stepcache-route"] == "exact"
    assert first.headers["x-stepcache-entry"] == second.headers["x-stepcache-entry"]
    one, other = first.parse(), second.parse()
    assert one.choices[0].message == other.choices[0].message
    assert one.choices[0].finish_reason == other.choices[0].finish_reason == "stop"
    assert one.id != other.id
    assert one.usage.total_tokens == int(second.headers["x-stepcache-tokens-avoided"]) > 0
    assert other.usage.total_tokens == 0
    assert other.model == "scripted"


@pytest.mark.parametrize("counted", [False, True])
def test_a_stream_and_its_repeat(proxied: Make, counted: bool) -> None:
    """Streamed and whole requests are the same request; counts come where they are asked for."""
    proxy = proxied()
    options = {"stream_options": {"include_usage": True}} if counted else {}
    texts = []
    for _ in range(2):
        stream = proxy.client().chat.completions.create(
            model="scripted", messages=RIVER, stream=True, **options
        )
        chunks = list(stream)
        texts.append("".join(c.choices[0].delta.content or "" for c in chunks if c.choices))
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
        assert [c.usage is not None for c in chunks if not c.choices] == [True] * counted
        assert len({c.id for c in chunks}) == 1
    whole = proxy.client().chat.completions.create(model="scripted", messages=RIVER)
    assert texts[0] == texts[1] == whole.choices[0].message.content
    assert proxy.endpoint.calls == 1
    assert routes(proxy) == {"exact": 2, "miss": 1}


async def test_the_asynchronous_client(proxied: Make) -> None:
    """As the synchronous one."""
    proxy = proxied()
    async with openai.AsyncOpenAI(base_url=proxy.url, api_key="k", max_retries=0) as client:
        whole = await client.chat.completions.create(model="scripted", messages=RIVER)
        stream = await client.chat.completions.create(model="scripted", messages=RIVER, stream=True)
        text = "".join([c.choices[0].delta.content or "" async for c in stream])
    assert text == whole.choices[0].message.content
    assert proxy.endpoint.calls == 1


def test_a_changed_request_costs_a_part_or_nothing(proxied: Make) -> None:
    """Equations are derived anew; of a JSON object the missing key alone is asked for."""
    proxy = proxied()
    client = proxy.client()

    def ask(text: str, **more: Any) -> Any:
        message = {"role": "user", "content": text}
        return client.chat.completions.with_raw_response.create(
            model="scripted", messages=[message], **more
        )

    ask("Solve 2x + 3 = 13 for x.")
    adapted = ask("Solve 4x + 3 = 23 for x.")
    assert adapted.headers["x-stepcache-route"] == "adapt"
    assert adapted.parse().choices[0].message.content.endswith("4x = 20\n\nx = 5")
    assert proxy.endpoint.calls == 1
    form = {"response_format": {"type": "json_object"}}
    keys = "Describe the city of Rome as a JSON object with keys name, country"
    ask(f"{keys}.", **form)
    patched = ask(f"{keys}, river.", **form)
    assert patched.headers["x-stepcache-route"] == "patch"
    assert json.loads(patched.parse().choices[0].message.content)["river"] == "Tiber"
    part = proxy.endpoint.requests[-1]
    assert "response_format" not in part
    assert part["model"] == "scripted"
    assert "stream" not in part
    assert proxy.endpoint.calls == 3


def test_a_patch_is_streamed(proxied: Make) -> None:
    """The stream of a patched answer joins to it, says its route at the end, and is kept."""
    proxy = proxied()
    text = "Describe the city of Rome as a JSON object with keys name, country"
    for keys in ("", ", river", ", river"):
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": ""}]}
        body["messages"][0]["content"] = f"{text}{keys}."  # type: ignore[index]
        answer = http.post(f"{proxy.url}/chat/completions", json=body).text
        events = [line[6:] for line in answer.splitlines() if line.startswith("data: ")]
        assert events.pop() == "[DONE]"
        pieces = [json.loads(event)["choices"][0]["delta"].get("content") for event in events]
        assert set(json.loads("".join(filter(None, pieces)))) >= {"name", "country"}
        said = answer.rstrip().splitlines()[-1]
        assert said.startswith(": stepcache route=")
    assert "river" in "".join(filter(None, pieces))
    assert routes(proxy) == {"miss": 1, "patch": 1, "exact": 1}
    assert proxy.endpoint.calls == 2


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_are_served_whole_under_new_ids(proxied: Make, stream: bool) -> None:
    """A repeat gets the same call with another id, streamed or not; without the tool it is not
    served."""
    proxy = proxied()
    client = proxy.client().chat.completions
    asked: dict[str, Any] = {
        "model": "scripted",
        "messages": [{"role": "user", "content": "Weather in 'Oslo'?"}],
    }
    calls = []
    for _ in range(2):
        if stream:
            with client.stream(**asked, tools=[TOOL]) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.create(**asked, tools=[TOOL]).choices[0].message
        assert message.tool_calls is not None
        calls.append(message.tool_calls[0])
    assert proxy.endpoint.calls == 1
    assert calls[0].function.name == calls[1].function.name == "weather"
    assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Oslo"}] * 2
    assert calls[0].id != calls[1].id
    assert client.create(**asked).choices[0].message.tool_calls is None
    assert proxy.endpoint.calls == 2


def test_an_agent_run_twice_makes_no_second_call(proxied: Make) -> None:
    """Ids of calls are chance: the second run's turns are the same requests."""
    proxy = proxied()
    client = proxy.client().chat.completions
    ends = []
    for _ in range(2):
        messages: list[Any] = [{"role": "user", "content": "Weather in 'Oslo'?"}]
        first = client.create(model="m", messages=messages, tools=[TOOL]).choices[0].message
        assert first.tool_calls is not None
        messages.append(first.model_dump(exclude_none=True))
        messages.append(
            {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "Snow."}
        )
        ends.append(client.create(model="m", messages=messages, tools=[TOOL]).choices[0].message)
    assert ends[0].content == ends[1].content == "The tool says: Snow."
    assert proxy.endpoint.calls == 2
    # The upstream was shown the client's own ids.
    shown = proxy.endpoint.requests[1]["messages"]
    assert shown[1]["tool_calls"][0]["id"] == shown[2]["tool_call_id"]
    assert isinstance(shown[2]["tool_call_id"], str)


def test_structured_output(proxied: Make) -> None:
    """``parse`` gets the caller's own class from a miss and from a hit."""
    proxy = proxied()
    for _ in range(2):
        answer = proxy.client().chat.completions.parse(
            model="scripted", messages=RIVER, response_format=City
        )
        assert isinstance(answer.choices[0].message.parsed, City)
    assert proxy.endpoint.calls == 1


def test_several_answers_are_served_as_they_came(proxied: Make) -> None:
    """``n`` answers are one answer, to the same request; another ``n`` is another request."""
    proxy = proxied()
    client = proxy.client().chat.completions
    for _ in range(2):
        answer = client.create(model="scripted", messages=RIVER, n=3)
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        assert len({choice.message.content for choice in answer.choices}) == 1
    assert proxy.endpoint.calls == 1
    client.create(model="scripted", messages=RIVER, n=2)
    assert proxy.endpoint.calls == 2
    stream = client.create(model="scripted", messages=RIVER, n=3, stream=True)
    texts = ["", "", ""]
    for chunk in stream:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [answer.choices[0].message.content] * 3
    assert proxy.endpoint.calls == 2


def test_what_no_answer_may_be_shared_for(proxied: Make) -> None:
    """Log probabilities belong to one generation; stops and temperatures are identity."""
    proxy = proxied()
    client = proxy.client().chat.completions
    for _ in range(2):
        client.create(model="scripted", messages=RIVER, logprobs=True)
    assert proxy.endpoint.calls == 2
    assert routes(proxy) == {"bypass": 2}
    for more in ({"stop": ["."]}, {"temperature": 0.5}, {"seed": 1}, {"user": "ann"}, {}):
        for _ in range(2):
            client.create(model="scripted", messages=RIVER, **more)  # type: ignore[call-overload]
    assert proxy.endpoint.calls == 7


def test_counting_streams_shows_the_client_nothing(proxied: Make) -> None:
    """Savings on streams are known, and the stream looks as if nobody had asked."""
    bodies = []
    for counting in (False, True):
        proxy = proxied(count_streams=counting)
        body = {"model": "m", "stream": True, "messages": RIVER}
        answer = http.post(f"{proxy.url}/chat/completions", json=body).text
        bodies.append(answer.partition(": stepcache")[0])
        again = http.post(f"{proxy.url}/chat/completions", json=body)
        avoided = int(again.headers["x-stepcache-tokens-avoided"])
        assert (avoided > 0) is counting
    assert bodies[0] == bodies[1]


def test_langchain(proxied: Make) -> None:
    """``ChatOpenAI``: whole, streamed, structured."""
    proxy = proxied()
    model = ChatOpenAI(base_url=proxy.url, api_key="k", model="scripted", stream_usage=True)  # type: ignore[arg-type]
    whole = model.invoke("Name a river.")
    assert whole.text == "".join(chunk.text for chunk in model.stream("Name a river."))
    assert whole.usage_metadata is not None
    assert proxy.endpoint.calls == 1
    structured = model.with_structured_output(City)
    assert structured.invoke("Describe 'Oslo'.") == structured.invoke("Describe 'Oslo'.")
    assert proxy.endpoint.calls == 2


def test_llama_index(proxied: Make) -> None:
    """``OpenAILike``: whole and streamed."""
    proxy = proxied()
    llm = OpenAILike(model="scripted", api_base=proxy.url, api_key="k", is_chat_model=True)
    message = ChatMessage(role="user", content="Name a river.")
    whole = llm.chat([message]).message.content
    assert whole == list(llm.stream_chat([message]))[-1].message.content
    assert whole == llm.complete("Name a river.").text
    assert proxy.endpoint.calls == 1
