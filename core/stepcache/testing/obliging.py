"""A script for :class:`~stepcache.testing.endpoint.ScriptedEndpoint` that does what it is asked.

    with ScriptedEndpoint(obliging) as endpoint:
        model = ChatOpenAI(base_url=endpoint.url, api_key="none", model="scripted")

Enough of a model for conformance suites and agents: it calls the tool it is forced to call, or an
offered one once, fills every JSON Schema it is given, takes numbers and quoted strings for
arguments from the prompt, and otherwise repeats what it was asked. The same request always gets the
same answer, but for the ids of tool calls.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["filled", "obliging"]

_DEPTH = 8
_QUOTED = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"")
_NUMBER = re.compile(r"-?\d{1,15}")
_ids = itertools.count(1)


def obliging(request: Mapping[str, Any]) -> str | dict[str, Any]:
    """The answer to one chat-completions request: a text, or a message with tool calls."""
    messages = request["messages"]
    last = messages[-1]
    asked = next((_text(m) for m in reversed(messages) if m.get("role") == "user"), _text(last))
    function = _called(request, after_tool=last.get("role") == "tool")
    if function is not None:
        arguments = filled(function.get("parameters") or {}, asked)
        call = {"name": function["name"], "arguments": json.dumps(arguments, ensure_ascii=False)}
        return {
            "tool_calls": [{"id": f"call-{next(_ids)}", "type": "function", "function": call}],
        }
    response_format = request.get("response_format") or {}
    if response_format.get("type") == "json_schema":
        schema = response_format["json_schema"]["schema"]
        return json.dumps(filled(schema, asked), ensure_ascii=False)
    if response_format.get("type") == "json_object":
        return json.dumps(dict.fromkeys(_quoted(asked) or ["answer"], "sample"))
    if last.get("role") == "tool":
        return f"The tool says: {_text(last)[:200]}"
    return f"You asked: {asked[:200]}"


def filled(schema: Mapping[str, Any], text: str) -> Any:
    """A value that satisfies a JSON Schema of the usual kind, with what ``text`` names in it."""
    return _filled(schema, text, schema, 0)


def _called(request: Mapping[str, Any], *, after_tool: bool) -> Mapping[str, Any] | None:
    """The function to call, None where a text is wanted."""
    functions = [tool["function"] for tool in request.get("tools") or () if "function" in tool]
    choice = request.get("tool_choice")
    if not functions or choice == "none":
        return None
    if isinstance(choice, Mapping):
        name = (choice.get("function") or {}).get("name")
        return next((f for f in functions if f["name"] == name), None)
    if choice in (None, "auto") and after_tool:
        return None
    # After a tool's result a forced model goes on to the last tool, where agents put their answer.
    chosen: Mapping[str, Any] = functions[-1 if after_tool else 0]
    return chosen


def _filled(schema: Any, text: str, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return None
    if "$ref" in schema:
        return _filled(_referred(schema["$ref"], root), text, root, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return _filled(schema[name][0], text, root, depth + 1)
    if schema.get("enum"):
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties") or {}
        return {key: _filled(part, text, root, depth + 1) for key, part in properties.items()}
    if kind == "array":
        return [_filled(schema.get("items") or {"type": "string"}, text, root, depth + 1)]
    return _scalar(kind, text)


def _scalar(kind: Any, text: str) -> Any:
    if kind in ("integer", "number"):
        number = _NUMBER.search(text)
        return int(number[0]) if number else 1
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    quoted = _quoted(text)
    return quoted[0] if quoted else "sample"


def _referred(path: Any, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in str(path).lstrip("#/").split("/"):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _quoted(text: str) -> list[str]:
    return [one or other for one, other in _QUOTED.findall(text)]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
