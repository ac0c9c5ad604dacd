"""Law 5: what may be kept, and how much of it. Pure.

Complete, non-empty, not an error, a refusal or a placeholder; not longer than the policy allows;
without what must not be stored. Whether the answer is *right* is the task's final check, not ours.
A good answer that is not kept costs one call; a bad one that is kept is served again and again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stepcache._counts import count
from stepcache._types import RESERVED_TAG, Entry, Policy, Reply, Request

__all__ = ["complete", "redacted", "why_not_admitted"]

_COMPLETE = frozenset({"stop", "end_turn", "stop_sequence", "eos", "eos_token", "completed"})
_TOOL_CALLS = frozenset({"tool_calls", "tool_use", "function_call"})
_MOST_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
_PLACEHOLDERS = frozenset(
    (
        *("...", "…", "null", "none", "n/a", "na", "tbd", "todo", "undefined", "-", "{}", "[]"),
        *("error", "nan", "nil", "[object object]", "placeholder", "lorem ipsum", "loading"),
        *("no response", "no answer", "no output", "please wait", "your answer here"),
        *("insert answer here", "not implemented", "unknown error", "an error", "timed out"),
        *("request timed out", "gateway timeout", "bad gateway", "too many requests"),
        *("unauthorized", "forbidden", "access denied", "connection error", "connection refused"),
    )
)
_TEMPLATE = re.compile(
    r"\A(?:<[a-z _-]{2,60}>|\[[a-z _-]{2,60}\]|\{\{[^{}]{0,60}\}\}|<\|[^|]{0,40}\|>)\Z"
)
_DECORATION = frozenset(" \t\n.…-–—_*#?!~=")
# Openings of short answers that decline to answer, in the languages models mostly do it in.
_REFUSALS = (
    *("sorry, but i can", "sorry, i can't", "sorry, i cannot", "sorry, but i'm not able"),
    *("i'm sorry, but i can", "i'm sorry, i can", "i am sorry, but i can", "i am sorry, i can"),
    *("i'm sorry, but i'm unable", "i'm sorry, but i'm not able", "i'm sorry, but i am unable"),
    *("i'm sorry, but as an ai", "i'm sorry, but i won't", "i'm sorry, but that request"),
    *("i apologize, but i can", "i apologize, but i'm unable", "i apologize, but i am unable"),
    *("i apologise, but i can", "my apologies, but i can", "apologies, but i can"),
    *("i can't assist", "i cannot assist", "i can't help with", "i cannot help with"),
    *("i can't provide", "i cannot provide", "i can't fulfill", "i cannot fulfill"),
    *("i can't comply", "i cannot comply", "i can't answer", "i cannot answer"),
    *("i can't create", "i cannot create", "i can't generate", "i cannot generate"),
    *("i can't engage", "i cannot engage", "i can't do that", "i cannot do that"),
    *("i can't discuss", "i cannot discuss", "i won't be able to", "i will not be able to"),
    *("i'm unable to", "i am unable to", "i'm not able to", "i am not able to"),
    *("i must decline", "i have to decline", "i must respectfully", "i respectfully decline"),
    *("i'm not comfortable", "i am not comfortable", "unfortunately, i can't"),
    *("unfortunately, i cannot", "unfortunately, i'm unable", "unfortunately, i am unable"),
    *("as an ai language model", "as a language model", "as an ai, i can", "i'm just an ai"),
    *("as an ai assistant, i can", "this request violates", "your request violates"),
    *("i'm having trouble", "i am having trouble", "oops"),
    *("je suis désolé, mais je ne peux", "je suis désolée, mais je ne peux"),
    *("désolé, mais je ne peux", "désolé, je ne peux", "je ne peux pas répondre"),
    *("je ne peux pas vous aider", "lo siento, pero no puedo", "lo siento, no puedo"),
    *("no puedo ayudar", "es tut mir leid, aber ich kann", "tut mir leid, aber ich kann"),
    *("mi dispiace, ma non posso", "desculpe, mas não posso", "sinto muito, mas não posso"),
    *("het spijt me, maar ik kan", "przepraszam, ale nie mogę", "извините, но я не могу"),
    *("к сожалению, я не могу", "вибачте, але я не можу", "üzgünüm, ancak"),
    *("对不起，我无法", "抱歉，我无法", "很抱歉，我无法", "对不起，我不能", "抱歉，我不能"),
    *("很抱歉，我不能", "申し訳ありませんが", "申し訳ございませんが", "죄송하지만"),
)
# Those that no answer begins with, however long it goes on.
_CERTAIN = (
    *("i can't assist with", "i cannot assist with", "i can't help with that"),
    *("i cannot help with that", "i'm sorry, but i can't", "i'm sorry, but i cannot"),
    *("sorry, but i can't", "sorry, but i cannot", "as an ai language model, i can"),
)
_ERRORS = (
    *("internal server error", "error code:", "error: ", "error - ", "[error]", "error occurred"),
    *("an error occurred", "an unexpected error", "an internal error", "something went wrong"),
    *("rate limit exceeded", "rate limit reached", "rate_limit", "quota exceeded"),
    *("you exceeded your current quota", "service unavailable", "service temporarily unavailable"),
    *("upstream connect error", "upstream request timeout", "traceback (most recent call last)"),
    *("exception: ", "agent stopped due to", "could not parse llm output"),
    *("invalid or incomplete response", "invalid api key", "incorrect api key"),
    *("authentication failed", "authentication error", "the model is overloaded"),
    *("the model is currently overloaded", "the server is overloaded", "context length exceeded"),
    *("the response was filtered", "response was blocked", "tool error", "error executing tool"),
    *("error calling tool", "tool execution failed"),
)
_STATUS = re.compile(
    r"\A(?:http )?(?:error )?[45]\d\d[ :-]{1,3}(?:bad request|unauthorized|forbidden|not found|"
    r"request timeout|too many requests|internal server error|bad gateway|service unavailable|"
    r"gateway time-?out)"
)
_ERROR_PAGE = re.compile(
    r"<title>[^<]{0,80}(?:error|bad gateway|unavailable|forbidden|denied|not found|time-?out|"
    r"\b[45]\d\d\b)"
)
_ERROR_KEYS = frozenset(
    (
        *("error", "errors", "message", "code", "status", "statuscode", "status_code", "type"),
        *("detail", "details", "request_id", "requestid", "param", "success", "ok", "timestamp"),
        *("title", "instance", "reason", "traceid", "trace_id", "path"),
    )
)
_SHORT = 600
_TOOL_ROLES = frozenset(("tool", "function", "tool_result"))


def complete(finish_reason: str | None) -> bool:
    """Whether a finish reason says that the answer came to its own end. A provider that gives no
    reason at all is believed: its call returned without an error."""
    return finish_reason is None or finish_reason.casefold() in _COMPLETE | _TOOL_CALLS


def why_not_admitted(reply: Reply, policy: Policy, request: Request | None = None) -> str | None:
    """Why a reply may not be kept, as a sentence fragment; None when it may.

    Args:
        request: What it answers, as far as that speaks against keeping it.
    """
    if not complete(reply.finish_reason):
        return f"finish reason {reply.finish_reason!r} is not a complete answer"
    if reply.refusal:
        return "the model refused"
    if request is not None:
        if _after_tool_error(request):
            return "it answers a tool's error"
        if reply.finish_reason is None and _fills_its_limit(reply, request):
            return "it is as long as it was allowed to be, and nothing says that it ended"
    if reply.reusable:
        return _why_not_text(reply, policy)
    return None


def redacted(entry: Entry, policy: Policy) -> Entry | str:
    """What of an entry is stored, or why nothing is.

    Keys stay those of the original request. An entry whose prompt lost something is for byte-equal
    requests only: nobody can compare, verify or patch what is not there. An answer that would lose
    something is not the answer.
    """
    size = len(entry.prompt) + len(entry.text) + len(entry.message or "")
    if size > policy.max_entry_chars:
        return f"{count(size, 'character')}, and max_entry_chars={policy.max_entry_chars}"
    if policy.redact is None:
        return entry
    try:
        return _redacted(entry, policy.redact)
    except _RedactionError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - somebody else's function; its text may be the secret
        return f"redact raised {type(error).__name__}"


class _RedactionError(Exception):
    """The function of the user does not do what it is for."""


def _redacted(entry: Entry, redact: Callable[[str], str]) -> Entry | str:
    def changed(text: str) -> bool:
        new: object = redact(text)
        if not isinstance(new, str):
            raise _RedactionError(f"redact returned a {type(new).__name__}: return the text")
        return new != text

    if changed(entry.text) or any(changed(text) for text in _texts(_parsed(entry.message))):
        return "redact would change the answer"
    tags = tuple(t if t.startswith(RESERVED_TAG) else redact(t) for t in entry.tags)
    entry = entry if tags == entry.tags else replace(entry, tags=tags)
    demands = entry.constraints.values if entry.constraints is not None else {}
    if changed(entry.prompt) or any(changed(text) for text in _texts(demands)):
        return replace(entry, prompt=redact(entry.prompt), constraints=None, canonical_key=None)
    return entry


def _parsed(message: str | None) -> Any:
    """A host's record as data, where it is JSON: escapes would hide what is to be found."""
    try:
        return json.loads(message) if message else None
    except (ValueError, RecursionError):
        return message


def _texts(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)


# --- answers that are none ---------------------------------------------------------------------


def _after_tool_error(request: Request) -> bool:
    """Whether the last words before the answer are a tool's error: it may work the next time."""
    for message in reversed(request.messages):
        if message.role not in _TOOL_ROLES:
            return False
        extra = message.extra
        if extra.get("status") == "error" or extra.get("is_error") is True:
            return True
    return False


def _fills_its_limit(reply: Reply, request: Request) -> bool:
    tokens = reply.usage.completion_tokens
    limits = (request.params.get(name) for name in _MOST_TOKENS)
    return tokens > 0 and any(type(limit) is int and tokens >= limit > 0 for limit in limits)


def _why_not_text(reply: Reply, policy: Policy) -> str | None:
    text = reply.text
    stripped = text.strip()
    if not stripped:
        return "the answer is empty"
    if len(text) > policy.max_answer_chars:
        return f"{count(len(text), 'character')}, and max_answer_chars={policy.max_answer_chars}"
    folded = stripped[:_SHORT].replace("’", "'").casefold()
    if folded.strip(" .!?*_`\"'") in _PLACEHOLDERS or folded in _PLACEHOLDERS:
        return "the answer is a placeholder"
    if _DECORATION.issuperset(stripped):
        return "the answer is a placeholder"
    if folded.startswith(_CERTAIN):
        return "the answer is a refusal"
    if len(stripped) < _SHORT:
        if folded.startswith(_REFUSALS):
            return "the answer is a refusal"
        if folded.startswith(_ERRORS) or _STATUS.match(folded) or _is_error_object(stripped):
            return "the answer is an error text"
        if folded.startswith(("<!doctype html", "<html")) and _ERROR_PAGE.search(folded):
            return "the answer is an error page"
        if _TEMPLATE.match(folded):
            return "the answer is a placeholder"
    if reply.finish_reason is None and text.count("```") % 2:
        return "it breaks off inside a block of code"
    return None


def _is_error_object(text: str) -> bool:
    """Whether a text is nothing but a JSON report of an error."""
    if not text.startswith("{") or not text.endswith("}"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    keys = {key.casefold() for key in value}
    return bool(keys & {"error", "errors", "detail"}) and keys <= _ERROR_KEYS
