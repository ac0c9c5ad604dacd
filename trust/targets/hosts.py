"""What LangChain and LlamaIndex hand over, and what is read back for them from a store."""

from __future__ import annotations

import ast
import json
from random import Random
from typing import Any

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)
from langchain_core.outputs import ChatGeneration
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.llms.mock import MockLLM

from langchain_stepcache._answers import (
    message_from,
    record_of,
    reply_from,
    restored_generations,
    uncallable,
)
from langchain_stepcache._llm_string import parse_llm_string, parse_prompt
from langchain_stepcache._requests import contract_of, from_neutral, neutral_messages
from llamaindex_stepcache._responses import chat_response, completion_response, to_reply
from llamaindex_stepcache._translate import HostCall, to_request
from stepcache import Outcome
from stepcache._identity import identify
from trust._fuzz import Target
from trust._mutate import mutated
from trust.targets._json_texts import PIECES, retyped, value

__all__ = ["LANGCHAIN_MESSAGES", "LLAMAINDEX", "LLM_STRINGS", "RECORDS_BACK"]

_LONGEST = 6_000

# --- llm_string and prompt ---------------------------------------------------------------------

_MODEL = (
    '{"id": ["langchain", "chat_models", "openai", "ChatOpenAI"], "kwargs": {"model_name": "m", '
    '"temperature": 0.5}, "lc": 1, "name": "ChatOpenAI", "type": "constructor"}'
)
_ARGUMENTS = (
    "[('model', 'm'), ('stop', None), ('temperature', 0.5)]",
    "[('response_format', <class '__main__.City'>), ('stop', ['\\n'])]",
    "[('stop', None), ('tools', [{'type': 'function', 'function': {'name': 'f'}}])]",
    "[('_type', 'fake'), ('stop', None)]",
    "[('x', <object object at 0x7f00>)]",
)
_PROMPT = json.dumps(
    [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "HumanMessage"],
            "kwargs": {"content": "Describe Rome.", "type": "human", "name": None},
        },
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "AIMessage"],
            "kwargs": {
                "content": [{"type": "text", "text": "x"}],
                "type": "ai",
                "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1"}],
            },
        },
    ]
)


def _strings(dice: Random) -> tuple[str, str]:
    arguments = dice.choice(_ARGUMENTS)
    llm = f"{_MODEL}---{arguments}" if dice.random() < 0.5 else arguments
    if dice.random() < 0.3:
        prompt = mutated(_PROMPT, dice, PIECES, _MODEL, _LONGEST)
        return llm, prompt
    return mutated(llm, dice, PIECES, dice.choice(_ARGUMENTS), _LONGEST), _PROMPT


def _keys(pair: tuple[str, str]) -> str | None:
    text, prompt = pair
    messages = parse_prompt(prompt)
    if messages is not None and prompt != _PROMPT and messages == parse_prompt(_PROMPT):
        ours = [item["kwargs"]["content"] for item in json.loads(_PROMPT)]
        theirs = [item["kwargs"].get("content") for item in json.loads(prompt)]
        if ours != theirs:
            return "two prompts with other contents are one"
    key = parse_llm_string(text)
    if not key.exact:
        return None
    # What was read must say no less than the text: its literal, by Python's own reader.
    rest = text
    if text.startswith("{"):
        _, end = json.JSONDecoder().raw_decode(text)
        rest = text[end:].removeprefix("---")
    literal = ast.literal_eval(rest)
    if {str(name): item for name, item in literal} != dict(key.arguments):
        return "the arguments are not those of the text"
    return None


LLM_STRINGS = Target(
    name="langchain-strings",
    what="LangChain's llm_string and serialised prompt; compared with Python's own reader",
    inputs=40_000,
    make=_strings,
    check=_keys,
    read=lambda data: (data.decode("utf-8", "replace")[:_LONGEST], _PROMPT),
)

# --- records of answers ------------------------------------------------------------------------

_RECORDS: tuple[str, ...] = (
    json.dumps(
        {
            "v": 1,
            "kind": "chat",
            "content": None,
            "blocks": False,
            "name": None,
            "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "call_1", "type": "tool_call"}],
            "invalid_tool_calls": [],
            "additional_kwargs": {"refusal": "no"},
            "response_metadata": {"model_name": "m"},
            "generation_info": {"finish_reason": "stop"},
        }
    ),
    json.dumps({"v": 1, "kind": "generations", "items": [{"text": "x", "generation_info": None}]}),
    json.dumps(
        {
            "v": 1,
            "role": "assistant",
            "blocks": [
                {"block_type": "text", "text": "x = 5"},
                {
                    "block_type": "tool_call",
                    "tool_call_id": "1",
                    "tool_name": "f",
                    "tool_kwargs": {},
                },
            ],
            "additional_kwargs": {"tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        }
    ),
)


def _record(dice: Random) -> tuple[str, str]:
    text = dice.choice(("x = 5", "", '{"a": 1}'))
    record = dice.choice(_RECORDS)
    if dice.random() < 0.5:
        return text, mutated(record, dice, PIECES, dice.choice(_RECORDS), _LONGEST)
    return text, retyped(record, dice)


def _restored(pair: tuple[str, str]) -> str | None:
    text, record = pair
    outcome = Outcome(text=text, route="exact", reason="stored", message=record)
    read = record_of(outcome)
    if not uncallable(read, [{"type": "function", "function": {"name": "f"}}]):
        several = restored_generations(read, outcome)
        if several is None:
            message, _ = message_from(outcome, record=read)
            if text and message.text != text:
                return f"LangChain is served {message.text!r}"
    for tool in (None, "f"):
        response = chat_response(outcome, tool=tool)
        if text and tool is None and response.message.content != text:
            return f"LlamaIndex is served {response.message.content!r}"
    completion_response(outcome)
    return None


RECORDS_BACK = Target(
    name="host-records",
    what="the hosts' own records of answers, damaged or forged; the text stays the proven one",
    inputs=30_000,
    make=_record,
    check=_restored,
)

# --- messages ----------------------------------------------------------------------------------


def _content(dice: Random) -> Any:
    return dice.choice(
        (
            "Describe Rome.",
            "",
            [{"type": "text", "text": "x"}],
            ["a", {"type": "image_url", "image_url": {"url": "data:,x"}}],
            [{"type": "text"}],
            [{"type": "text", "text": 3}],
            [{"type": dice.choice(("thinking", "refusal", "x", ""))}],
            [value(dice, 0) if dice.random() < 0.1 else {"type": "text", "text": "é\ud800"}],
        )
    )


def _messages(dice: Random) -> tuple[Any, Any]:
    built: list[Any] = []
    for _ in range(dice.randint(1, 4)):
        try:
            built.append(_message(dice))
        except (ValueError, TypeError):
            continue  # the host itself does not take it
    arguments = {
        name: value(dice, 2)
        for name in ("tools", "tool_choice", "response_format", "n", "seed")
        if dice.random() < 0.4
    }
    return built, arguments


def _message(dice: Random) -> Any:
    match dice.randrange(4):
        case 0:
            return HumanMessage(_content(dice), name=dice.choice((None, "Ann")))
        case 1:
            return SystemMessage(_content(dice))
        case 2:
            return ToolMessage(_content(dice), tool_call_id=dice.choice(("c1", "", "é")))
        case _:
            return AIMessage(
                _content(dice),
                tool_calls=[{"name": "f", "args": {"a": value(dice, 1)}, "id": "c1"}],
                additional_kwargs={dice.choice(("refusal", "parsed", "x")): value(dice, 1)},
                response_metadata={
                    dice.choice(("finish_reason", "model_name", "token_usage")): value(dice, 1)
                },
            )


def _translated(pair: tuple[Any, Any]) -> str | None:
    messages, arguments = pair
    neutral = neutral_messages(messages)
    again = from_neutral(neutral, messages)
    if any(a is not b for a, b in zip(again, messages)):
        return "a message that nobody changed is another one"
    contract_of(arguments)
    for message in messages:
        if isinstance(message, AIMessage):
            reply = reply_from(ChatGeneration(message=message))
            if reply.reusable and reply.text not in str(
                message_to_dict(message)["data"]["content"]
            ):
                return "the reply holds another text"
            if message.tool_calls and reply.reusable:
                return "an answer with tool calls may be reused in part"
    return None


LANGCHAIN_MESSAGES = Target(
    name="langchain-messages",
    what="LangChain's messages and call arguments as requests, its answers as replies",
    inputs=15_000,
    make=_messages,
    check=_translated,
)

# --- LlamaIndex --------------------------------------------------------------------------------

_LLM = MockLLM()


def _chat(dice: Random) -> tuple[Any, Any]:
    messages = [
        ChatMessage(
            role=dice.choice(list(MessageRole)),
            content=dice.choice(("Describe Rome.", "", "é\ud800", None)),
            additional_kwargs={dice.choice(("tool_calls", "name", "usage")): value(dice, 2)},
        )
        for _ in range(dice.randint(1, 3))
    ]
    names = ("tools", "tool_choice", "response_format", "format", "functions", "n", "x")
    kwargs = {name: value(dice, 3) for name in names if dice.random() < 0.3}
    return messages, kwargs


def _asked(pair: tuple[Any, Any]) -> str | None:
    messages, kwargs = pair
    for structured in (False, True):
        call = HostCall(kind="chat", messages=messages, kwargs=kwargs, structured=structured)
        request = to_request(call, _LLM, "")
        try:
            identify(request)
        except ValueError:
            continue  # the engine then asks the model and keeps nothing
        changed = {**kwargs, "seed": 77}
        other = HostCall(kind="chat", messages=messages, kwargs=changed, structured=structured)
        if identify(to_request(other, _LLM, "")).scope == identify(request).scope:
            return "another seed is the same scope"
    for message in messages:
        to_reply(ChatResponse(message=message, raw=kwargs))
        to_reply(ChatResponse(message=message, raw=kwargs), tool="f")
    return None


LLAMAINDEX = Target(
    name="llamaindex-messages",
    what="LlamaIndex's messages and call arguments as requests, its answers as replies",
    inputs=5_000,
    make=_chat,
    check=_asked,
)
