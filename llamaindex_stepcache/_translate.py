"""A LlamaIndex call in the engine's words. Pure, but for reading files that a message points to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.llms.llm import LLM
from pydantic import BaseModel

from llamaindex_stepcache._identity import model_identity, plain, prompt_functions, settings_of
from llamaindex_stepcache._written import lift_schema
from stepcache import Contract, Message, Request

JsonObject: TypeAlias = Mapping[str, Any]

__all__ = ["HostCall", "is_schema", "to_request"]

# Of one generation, not of what was said: an answer from the cache must not change the next key.
_VOLATILE = frozenset(
    (
        *("prompt_tokens", "completion_tokens", "total_tokens", "total_cost", "usage", "stepcache"),
        *("response_metadata", "logprobs", "raw", "images", "thinking_delta"),
    )
)
_LIFTED = ("n", "logprobs", "top_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """One call of the host, as it came."""

    kind: Literal["chat", "complete"]
    messages: Sequence[ChatMessage]
    """For ``complete`` the prompt as one user message."""
    kwargs: Mapping[str, Any]
    prompt: str = ""
    formatted: bool = False
    structured: bool = False
    """Whether the host asks for data, so that a call of its one tool is the answer itself."""

    @property
    def answer_tool(self) -> str | None:
        """Name of the tool whose arguments are the answer; None when the answer is a text."""
        tool = _answer_tool(self)
        return tool[0] if tool else None


def to_request(call: HostCall, llm: LLM, namespace: str) -> Request:
    """The call in the engine's words.

    Values without a JSON form are left in; the engine then finds no safe identity, asks the model
    and keeps nothing.
    """
    metadata = llm.metadata
    contract, rest = _contract(call.kwargs)
    messages = tuple(_messages(call.messages))
    tool = _answer_tool(call)
    if tool is not None:
        # Nothing is to be done by this tool: its parameters are a schema like any other.
        _, schema, other = tool
        # The host demands it in two ways, one for streams; either way only its call is an answer.
        contract = Contract(schema=schema, response_format={"tool": other})
    elif call.structured and not contract.tools and contract.response_format is None:
        lifted = lift_schema(messages)
        if lifted is not None:
            messages, schema = lifted
            contract = replace(contract, schema=schema, response_format={"schema": "in the prompt"})
    settings = settings_of(llm)
    params: dict[str, Any] = {
        "call": call.kind,
        "llm": settings,
        "kwargs": plain(rest, seal=True),
        **prompt_functions(llm, metadata, call.kind, call.formatted),
    }
    own = settings.get("additional_kwargs")
    sources = (rest, own if isinstance(own, Mapping) else {}, settings)
    for name in _LIFTED:
        # The engine reads these by name: an answer of several, or with probabilities, is special.
        value = next((s[name] for s in sources if s.get(name) is not None), None)
        if value is not None:
            params[name] = plain(value)
    return Request(
        messages=messages,
        model=model_identity(llm, metadata),
        params=params,
        contract=contract,
        namespace=namespace,
    )


def _contract(kwargs: Mapping[str, Any]) -> tuple[Contract, dict[str, Any]]:
    """What the answer must look like, and the other arguments."""
    rest = dict(kwargs)
    tools = rest.pop("tools", None)
    choice = rest.pop("tool_choice", None)
    demand = rest.pop("response_format", None)
    form, schema = plain(demand), None
    opaque = bool(rest.get("functions"))
    if isinstance(demand, type):
        opaque, form = True, _class_form(demand)
    elif isinstance(form, Mapping):
        named = form.get("json_schema")
        if isinstance(named, Mapping) and isinstance(named.get("schema"), Mapping):
            schema = named["schema"]
            form = {**form, "json_schema": {k: v for k, v in named.items() if k != "schema"}}
        else:
            opaque = form.get("type") == "json_schema"
    elif form is not None:
        opaque = True
    elif is_schema(rest.get("format")):
        # Ollama's way of saying it.
        schema, form = plain(rest.pop("format")), {"format": "schema"}
    if tools is not None and not isinstance(tools, (list, tuple)):
        # Whatever it is, the LLM is to have it whole and say what it thinks of it.
        rest["tools"], tools, opaque = tools, None, True
    contract = Contract(
        tools=tuple(plain(list(tools))) if tools else (),
        tool_choice=plain(choice),
        schema=schema,
        response_format=form,
        opaque=opaque,
    )
    return contract, rest


def is_schema(value: Any) -> bool:
    """Whether an argument holds a JSON Schema of an object."""
    return isinstance(value, Mapping) and isinstance(value.get("properties"), Mapping)


def _answer_tool(call: HostCall) -> tuple[str, JsonObject, Any] | None:
    """The one tool's name, the schema of its parameters, and the rest of its description."""
    tools = plain(call.kwargs.get("tools"))
    if not call.structured or not isinstance(tools, list) or len(tools) != 1:
        return None
    if any(call.kwargs.get(name) for name in ("response_format", "format", "functions")):
        return None
    if call.kwargs.get("tool_choice") == "none":
        return None
    tool = tools[0]
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    for key in ("parameters", "input_schema"):
        schema = function.get(key)
        if isinstance(schema, Mapping):
            rest = {name: value for name, value in function.items() if name != key}
            return function["name"], schema, rest
    return None


def _class_form(demand: type) -> Any:
    """A class is asked for: its name and schema are identity, but not ours to verify by."""
    if not issubclass(demand, BaseModel):
        return demand
    return {"class": f"{demand.__module__}.{demand.__qualname__}", "is": demand.model_json_schema()}


def _messages(messages: Sequence[ChatMessage]) -> Iterator[Message]:
    """Ids of tool calls are chance, so they are numbered in order of appearance: the second run of
    an agent is then the same request as the first."""
    numbers: dict[Any, int] = {}
    for message in messages:
        extra = _numbered(_extra(message), numbers)
        yield Message(role=str(message.role.value), text=message.content or "", extra=extra)


def _extra(message: ChatMessage) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    blocks = message.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], TextBlock):
        extra["blocks"] = [_block(block) for block in blocks]
    said = {k: v for k, v in message.additional_kwargs.items() if k not in _VOLATILE}
    if any(block.block_type == "tool_call" for block in blocks):
        # The blocks say it all; this older form differs between whole and streamed answers.
        said.pop("tool_calls", None)
    if said:
        extra["additional_kwargs"] = plain(said)
    return extra


def _numbered(value: Any, numbers: dict[Any, int], ids: tuple[str, ...] = ("tool_call_id",)) -> Any:
    if isinstance(value, dict):
        numbered: dict[str, Any] = {}
        for key, item in value.items():
            if key in ids and isinstance(item, str):
                numbered[key] = numbers.setdefault(item, len(numbers))
            elif key == "tool_calls":
                numbered[key] = _numbered(item, numbers, (*ids, "id"))
            else:
                numbered[key] = _numbered(item, numbers)
        return numbered
    return [_numbered(item, numbers, ids) for item in value] if isinstance(value, list) else value


def _block(block: Any) -> Any:
    form = plain(block)
    if not isinstance(form, dict):
        return form
    path, inside = getattr(block, "path", None), getattr(block, "content", None)
    if path is not None:
        # What is sent is the file's content, and that may change under the same path.
        form["path"] = _content_hash(path)
    if isinstance(inside, list):
        form["content"] = [_block(item) for item in inside]
    return form


def _content_hash(path: Any) -> Any:
    try:
        return "sha256:" + hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, TypeError, ValueError):
        return path if isinstance(path, Path) else Path(str(path))
