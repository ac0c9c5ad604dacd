"""A deterministic endpoint that speaks the OpenAI protocol over loopback HTTP."""

from __future__ import annotations

import inspect
import json
import re
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import BaseModel

with warnings.catch_warnings():
    # Of the oldest supported host, as it is imported over a newer pydantic.
    warnings.filterwarnings("ignore", "The 'validate_default' attribute", UserWarning)
    from llama_index.core import Document, MockEmbedding, PromptTemplate, Settings, SummaryIndex
    from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent
    from llama_index.core.chat_engine import SimpleChatEngine
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import ChatMemoryBuffer
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai_like import OpenAILike

SECRET = "sk-never-to-be-kept"
_EQUATION = re.compile(r"(-?\d*)([a-z]) ?([+-]) ?(\d+) ?= ?(-?\d+)")
_SCHEMA = re.compile(r"schema to follow:\n(.+)\n")
_ONLY = re.compile(r"only the keys: ([^.]+)\.")
_KEYS = re.compile(r"keys:? ([^.\n]+)")


@dataclass
class Endpoint:
    """A small model: right about linear equations, dutiful about JSON, talkative otherwise."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    """Any other value than 200 is answered with an error."""
    finish: str | None = "stop"
    """The finish reason to claim; None ends a stream without one."""
    wrong: int = 0
    """How many of the next answers to equations are to be wrong."""
    delivered: int = 0
    """Tokens told of so far, prompt and completion."""

    @property
    def calls(self) -> int:
        return len(self.asked)

    def answer(self, body: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Content and tool calls for a request."""
        if "prompt" in body:
            return self._say(body["prompt"]), []
        messages = body["messages"]
        said = [m for m in messages if m["role"] == "user"]
        text = _text(said[-1]) if said else ""
        tools = body.get("tools") or []
        if tools and messages[-1]["role"] != "tool" and body.get("tool_choice") != "none":
            function = tools[0]["function"]
            arguments = json.dumps(_sample(function.get("parameters") or {}, text))
            call = {"name": function["name"], "arguments": arguments}
            return "", [{"id": f"call_{self.calls}", "type": "function", "function": call}]
        form = body.get("response_format") or {}
        if form.get("type") == "json_schema":
            return json.dumps(_sample(form["json_schema"]["schema"], text)), []
        return self._say(text), []

    def _say(self, text: str) -> str:
        written = _SCHEMA.search(text)
        if written and "holding only" not in text:
            plain = written[1].replace("{{", "{").replace("}}", "}")
            return json.dumps(_sample(json.loads(plain), text))
        keys = _ONLY.search(text) or _KEYS.search(text)
        if keys and "JSON" in text:
            names = re.findall(r"[a-z_]+", keys[1].replace(" and ", ", "))
            return json.dumps({name: f"{name} of it" for name in names})
        equation = _EQUATION.search(text)
        if equation is None:
            return f"You said {len(text)} characters. They began with {text[:12]!r}. That is all."
        a, v, sign, b, c = equation.groups()
        factor = {"": 1, "-": -1}.get(a) or int(a)
        rest = int(c) - int(sign + b)
        self.wrong, off = max(0, self.wrong - 1), int(self.wrong > 0)
        move = "Subtract" if sign == "+" else "Add"
        return (
            f"{move} {b} {'from' if sign == '+' else 'to'} both sides: {a}{v} = {rest}\n\n"
            f"Divide both sides by {factor}: {v} = {Fraction(rest, factor) + off}"
        )


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)


def _sample(schema: dict[str, Any], text: str) -> Any:
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return {k: _sample(v, text) for k, v in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [_sample(schema.get("items") or {}, text)]
    if kind in ("integer", "number"):
        found = re.search(r"\d+", text)
        return int(found[0]) if found else 1
    if kind == "boolean":
        return True
    found = re.search(r"'([^']+)'", text)
    return found[1] if found else "some words"


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint

    def log_message(self, *_: Any) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        endpoint = self.endpoint
        endpoint.asked.append(body)
        if endpoint.status != 200:
            self._whole({"error": {"message": "the model is out"}}, endpoint.status)
            return
        content, calls = endpoint.answer(body)
        finish = "tool_calls" if calls else endpoint.finish
        prompt = len(json.dumps(body.get("messages", body.get("prompt"))).split())
        done = len((content + json.dumps(calls)).split())
        usage = {"prompt_tokens": prompt, "completion_tokens": done, "total_tokens": prompt + done}
        endpoint.delivered += prompt + done
        base = {"id": f"c{endpoint.calls}", "created": 1, "model": body["model"]}
        if self.path.endswith("/chat/completions") and body.get("stream"):
            self._stream(base, content, calls, finish, usage, body)
        elif self.path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": content or None}
            if calls:
                message["tool_calls"] = calls
            choice = {"index": 0, "finish_reason": finish, "message": message}
            self._whole({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        else:
            choice = {"index": 0, "finish_reason": finish, "text": content, "logprobs": None}
            self._whole({**base, "object": "text_completion", "choices": [choice], "usage": usage})

    def _whole(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, base, content, calls, finish, usage, body) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        choices: list[list[dict[str, Any]]] = [_choice({"role": "assistant", "content": ""})]
        choices += [_choice({"tool_calls": [{"index": 0, **call}]}) for call in calls]
        choices += [
            _choice({"content": piece}) for piece in re.findall(r"\S*\s*", content) if piece
        ]
        if finish is not None:
            choices.append(_choice({}, finish))
        chunks: list[dict[str, Any]] = [{"choices": choice} for choice in choices]
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({"choices": [], "usage": usage})
        try:
            for chunk in chunks:
                event = {**base, "object": "chat.completion.chunk", **chunk}
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reader closed early, which some tests do
        self.close_connection = True


def _choice(delta: dict[str, Any], finish: str | None = None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": delta, "finish_reason": finish}]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A running endpoint that counts what it is asked."""
    endpoint = Endpoint()
    handler = type("Handler", (_Handler,), {"endpoint": endpoint})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield endpoint
    server.shutdown()
    server.server_close()


@pytest.fixture
def inner(endpoint: Endpoint) -> Callable[..., OpenAILike]:
    """Makes an ordinary LlamaIndex LLM at the endpoint."""

    def make(**changes: Any) -> OpenAILike:
        settings: dict[str, Any] = {
            "model": "small",
            "api_base": endpoint.url,
            "api_key": SECRET,
            "is_chat_model": True,
            "is_function_calling_model": True,
            "max_retries": 0,
            "temperature": 0.0,
            "timeout": 20.0,
        }
        return OpenAILike(**{**settings, **changes})

    return make


# --- every way of asking -------------------------------------------------------------------------


class Weather(BaseModel):
    """The weather somewhere."""

    place: str
    degrees: int


class _Larger(BaseModel):
    """The weather somewhere."""

    place: str
    degrees: int
    wind: str


# The same class a release later, as an application that grew a field has it.
_Larger.__name__ = _Larger.__qualname__ = "Weather"
LargerWeather = _Larger

PROMPT = PromptTemplate("The weather in 'Oslo' at {degrees} degrees.")
TEXTS = {
    "small": "Describe Paris as a JSON object with keys name, country.",
    "large": "Describe Paris as a JSON object with keys name, country, population.",
    "talk": "Say something about old ships.",
    "steps": "Solve 2x + 3 = 13 for x.",
}


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def _larger_get_weather(city: str, day: str) -> str:
    """The weather in a city."""
    return f"sunny in {city} on {day}"


_larger_get_weather.__name__ = "get_weather"


def _tool(what: str) -> FunctionTool:
    return FunctionTool.from_defaults(_larger_get_weather if what == "large" else get_weather)


def memory() -> ChatMemoryBuffer:
    """A conversation's memory that opens no database, as the host's default one does."""
    return ChatMemoryBuffer.from_defaults(token_limit=4000, tokenizer_fn=str.split)


@dataclass(frozen=True)
class Face:
    """One way an application asks an LLM."""

    name: str
    ask: Callable[..., Awaitable[list[Any]]]
    """Takes an LLM, what to ask and keyword arguments for the call; gives the answer's pieces.

    ``large`` asks for one thing more than ``small``, ``talk`` for text that nothing can verify,
    ``steps`` for text of two paragraphs; where tools are offered, these are one and the same."""

    def __str__(self) -> str:
        return self.name


async def _pieces(result: Any) -> list[Any]:
    """What a call returned, as a list, whatever it is that has to be waited for."""
    if inspect.isawaitable(result):
        result = await result
    if hasattr(result, "__aiter__"):
        return [piece async for piece in result]
    if inspect.isgenerator(result):
        return list(result)
    return [result]


def _chat_face(name: str) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        method = getattr(llm, name)
        return await _pieces(method([ChatMessage(role="user", content=TEXTS[what])], **kwargs))

    return Face(name, ask)


def _complete_face(name: str) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        return await _pieces(getattr(llm, name)(TEXTS[what], **kwargs))

    return Face(name, ask)


def _predict_face(name: str) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        template = PromptTemplate("{question}")
        return await _pieces(getattr(llm, name)(template, question=TEXTS[what], **kwargs))

    return Face(name, ask)


def _structured_face(name: str) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        kind = LargerWeather if what == "large" else Weather
        return await _pieces(getattr(llm, name)(kind, PROMPT, degrees=7, **kwargs))

    return Face(name, ask)


def _structured_llm_face(name: str) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        view = llm.as_structured_llm(LargerWeather if what == "large" else Weather)
        messages = [ChatMessage(role="user", content="The weather in 'Oslo' at 7 degrees.")]
        return await _pieces(getattr(view, name)(messages, **kwargs))

    return Face(f"as_structured_llm().{name}", ask)


def _tools_face(name: str) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        method = getattr(llm, name)
        return await _pieces(method([_tool(what)], user_msg="weather in 'Rome'", **kwargs))

    return Face(name, ask)


def _agent_face(name: str, make: Callable[[Any, Any], Any]) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        run = make([_tool(what)], llm.controlled(**kwargs)).run(
            "weather in 'Paris'", memory=memory()
        )
        events = [event async for event in run.stream_events()]
        said = [e.delta for e in events if isinstance(e, AgentStream) and e.delta]
        answer = str(await run)
        assert not said or "".join(said) == answer
        return said or [answer]

    return Face(name, ask)


def _index() -> SummaryIndex:
    return SummaryIndex.from_documents([Document(text="The sky is blue.")])


def _query_face(name: str, streaming: bool) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        llm = llm.controlled(**kwargs)
        response = _index().as_query_engine(llm=llm, streaming=streaming).query(TEXTS[what])
        return list(getattr(response, "response_gen", None) or [str(response)])

    return Face(name, ask)


def _engine_face(mode: str, streaming: bool) -> Face:
    async def ask(llm: Any, what: str, **kwargs: Any) -> list[Any]:
        llm = llm.controlled(**kwargs)
        if mode == "simple":
            engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory())
        else:
            engine = _index().as_chat_engine(chat_mode=mode, llm=llm, memory=memory())
        if streaming:
            return list(engine.stream_chat(TEXTS[what]).response_gen)
        return [str(engine.chat(TEXTS[what]))]

    return Face(f"{mode} engine.{'stream_chat' if streaming else 'chat'}", ask)


_FORMS = ("{}", "a{}", "stream_{}", "astream_{}")
FACES = {
    face.name: face
    for face in (
        *(_chat_face(form.format("chat")) for form in _FORMS),
        *(_complete_face(form.format("complete")) for form in _FORMS),
        *(_predict_face(name) for name in ("predict", "apredict", "stream", "astream")),
        *(_structured_face(form.format("structured_predict")) for form in _FORMS),
        *(_structured_llm_face(form.format("chat")) for form in _FORMS),
        *(_tools_face(form.format("chat_with_tools")) for form in _FORMS),
        *(_tools_face(name) for name in ("predict_and_call", "apredict_and_call")),
        _agent_face("FunctionAgent", lambda tools, llm: FunctionAgent(tools=tools, llm=llm)),
        _agent_face(
            "FunctionAgent(streaming=False)",
            lambda tools, llm: FunctionAgent(tools=tools, llm=llm, streaming=False),
        ),
        _agent_face(
            "AgentWorkflow",
            lambda tools, llm: AgentWorkflow.from_tools_or_functions(tools, llm=llm),
        ),
        _query_face("as_query_engine()", streaming=False),
        _query_face("as_query_engine(streaming=True)", streaming=True),
        *(
            _engine_face(mode, streaming)
            for mode in ("simple", "context", "condense_plus_context")
            for streaming in (False, True)
        ),
    )
}


# The host's own: agents look at every attribute of themselves, old ones of pydantic's included, and
# a structured view of an LLM writes its chunks by an old method.
OLD_WAYS = (
    "ignore:The `(__fields__|model_fields|model_computed_fields|__fields_set__)` attribute"
    ":pydantic.warnings.PydanticDeprecatedSince20",
    "ignore:Accessing the 'model_(fields|computed_fields)' attribute on the instance"
    ":pydantic.warnings.PydanticDeprecatedSince211",
    "ignore:The `json` method is deprecated:pydantic.warnings.PydanticDeprecatedSince20",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks in every way is not told of the host's old ways."""
    for item in items:
        if {"face", "faces"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.filterwarnings(*OLD_WAYS))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a ``face`` runs once for each."""
    if "face" in metafunc.fixturenames:
        metafunc.parametrize("face", FACES.values(), ids=str)


@pytest.fixture
def faces() -> dict[str, Face]:
    """Every way of asking, by its name."""
    return FACES


@pytest.fixture(autouse=True)
def _fresh_settings() -> Iterator[None]:
    """LlamaIndex keeps settings in a module; tests leave none behind."""
    Settings.embed_model = MockEmbedding(embed_dim=4)
    yield
    Settings._llm = Settings._embed_model = Settings._callback_manager = None
