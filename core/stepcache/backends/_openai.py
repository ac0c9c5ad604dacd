"""Any endpoint that speaks the OpenAI chat-completions protocol, as a backend.

llama.cpp, vLLM, Ollama, LM Studio and the hosted services all do. Requests are sent once: no
retries, for a bare call would not have any either. Errors of the endpoint are ``httpx`` errors and
pass through the engine as they are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from stepcache._errors import ConfigurationError
from stepcache._forking import fork_safe_lock
from stepcache._types import JsonObject, ModelCall, Reply
from stepcache.backends._wire import (
    SseReader,
    StreamState,
    WireError,
    parse_completion,
    payload_for,
    sse_data,
)
from stepcache.protocols import Delta

if TYPE_CHECKING:
    import httpx

__all__ = ["AsyncOpenAICompatibleBackend", "OpenAICompatibleBackend"]

_OURS = ("messages", "model", "stream", "stream_options")
_BODY_SHOWN = 500


class _Endpoint:
    """What both clients know: where to send what."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        params: JsonObject | None = None,
        prefill: bool | JsonObject = False,
        constrain: bool = True,
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._base_url = _checked_url(base_url)
        if not model:
            raise ConfigurationError("model is empty: name the model as the endpoint knows it")
        if not timeout > 0:
            raise ConfigurationError(f"timeout is {timeout!r}: use seconds above 0")
        self._model = model
        self._params = MappingProxyType(_checked_params(params or {}))
        self._prefill: JsonObject | None = prefill if isinstance(prefill, Mapping) else None
        if prefill is True:
            self._prefill = {}
        self._constrain = constrain
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"

    @property
    def identity(self) -> str:
        """Endpoint and model as one text, for ``Request.model``. Holds no credentials."""
        return f"{self._base_url} {self._model}"

    @property
    def params(self) -> JsonObject:
        """The sampling parameters sent with every call, for ``Request.params``."""
        return self._params

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r}, {self._model!r})"

    @property
    def _url(self) -> str:
        return f"{self._base_url}/chat/completions"

    def _body(self, call: ModelCall, *, stream: bool) -> bytes:
        body = payload_for(
            call,
            model=self._model,
            params=self._params,
            prefill=self._prefill,
            constrain=self._constrain,
            stream=stream,
        )
        # ASCII: a lone surrogate is the endpoint's to refuse, not an encoding error here.
        return json.dumps(body, allow_nan=False).encode("ascii")

    def _prefix(self, call: ModelCall) -> str | None:
        return call.prefix if self._prefill is not None else None

    def _client_options(self) -> dict[str, Any]:
        return {"headers": self._headers, "timeout": self._timeout}


class OpenAICompatibleBackend(_Endpoint):
    """A chat-completions endpoint, asked synchronously. Safe to share between threads.

    Args:
        base_url: Up to and including the version, e.g. ``http://127.0.0.1:8080/v1``.
        model: The model's name at that endpoint.
        api_key: Sent as a bearer token; None sends none.
        params: Sampling parameters for every call (``temperature``, ``max_tokens``, ``seed``, ...).
        prefill: Whether the endpoint goes on from a closing assistant message (llama.cpp does).
            A mapping means yes, and names fields to send along with one, e.g. for vLLM
            ``{"continue_final_message": True, "add_generation_prompt": False}``.
        constrain: Whether to send the JSON Schema of a missing part as ``response_format``.
        timeout: Seconds to wait to connect, and for each piece of an answer.
        headers: More HTTP headers.

    Raises:
        ConfigurationError: An argument cannot work; the message says which and the fix.
    """

    blocking = True
    """Asynchronous engine calls move this backend to a worker thread."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        params: JsonObject | None = None,
        prefill: bool | JsonObject = False,
        constrain: bool = True,
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        import httpx

        super().__init__(base_url, model, api_key, params, prefill, constrain, timeout, headers)
        self._client = httpx.Client(**self._client_options())

    def generate(self, call: ModelCall, /) -> Reply:
        """Ask once and wait for the whole answer.

        Raises:
            httpx.HTTPError: The endpoint cannot be reached, answers with an error status (the
                message carries it and the start of the body), or sends no chat completion.
        """
        with self._client.stream(
            "POST", self._url, content=self._body(call, stream=False)
        ) as answer:
            answer.read()
            return _whole(answer, self._prefix(call))

    def stream(self, call: ModelCall, /) -> Iterator[Delta | Reply]:
        """Ask once and yield the pieces as they come, then the whole reply.

        Raises:
            httpx.HTTPError: As :meth:`generate`; also when the stream ends early.
        """
        state = StreamState(self._prefix(call))
        with self._client.stream(
            "POST", self._url, content=self._body(call, stream=True)
        ) as answer:
            if not _is_stream(answer):
                answer.read()
                yield from _pieces(_whole(answer, self._prefix(call)))
                return
            for data in sse_data(answer.iter_lines()):
                text = _fed(state, data, answer)
                if text:
                    yield Delta(text)
                if state.done:
                    break
            yield from _closing(state, answer)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def __enter__(self) -> OpenAICompatibleBackend:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class AsyncOpenAICompatibleBackend(_Endpoint):
    """A chat-completions endpoint, asked asynchronously; for the engine's async calls only.

    Takes the arguments of :class:`OpenAICompatibleBackend`. Keeps one connection pool per event
    loop, so one object serves several loops.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        params: JsonObject | None = None,
        prefill: bool | JsonObject = False,
        constrain: bool = True,
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(base_url, model, api_key, params, prefill, constrain, timeout, headers)
        # Connections belong to the loop that opened them.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )
        self._lock = fork_safe_lock()

    async def generate(self, call: ModelCall, /) -> Reply:
        """Ask once and wait for the whole answer.

        Raises:
            httpx.HTTPError: As :meth:`OpenAICompatibleBackend.generate`.
        """
        body = self._body(call, stream=False)
        async with self._client().stream("POST", self._url, content=body) as answer:
            await answer.aread()
            return _whole(answer, self._prefix(call))

    async def stream(self, call: ModelCall, /) -> AsyncIterator[Delta | Reply]:
        """Ask once and yield the pieces as they come, then the whole reply.

        Raises:
            httpx.HTTPError: As :meth:`generate`; also when the stream ends early.
        """
        state, reader = StreamState(self._prefix(call)), SseReader()
        body = self._body(call, stream=True)
        async with self._client().stream("POST", self._url, content=body) as answer:
            if not _is_stream(answer):
                await answer.aread()
                for item in _pieces(_whole(answer, self._prefix(call))):
                    yield item
                return
            async for line in answer.aiter_lines():
                data = reader.feed(line)
                text = _fed(state, data, answer) if data is not None else ""
                if text:
                    yield Delta(text)
                if state.done:
                    break
            data = reader.feed("")
            text = _fed(state, data, answer) if data is not None and not state.done else ""
            if text:
                yield Delta(text)
            for item in _closing(state, answer):
                yield item

    async def close(self) -> None:
        """Let go of the running loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def __aenter__(self) -> AsyncOpenAICompatibleBackend:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _client(self) -> httpx.AsyncClient:
        import httpx

        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                client = self._clients[loop] = httpx.AsyncClient(**self._client_options())
            return client


def _checked_url(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"base_url is {base_url!r}: use an address such as http://127.0.0.1:8080/v1"
        )
    if parts.username or parts.password:
        raise ConfigurationError("base_url holds a user name or password: pass api_key or headers")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"base_url is {base_url!r}: leave out the query and the fragment")
    return base_url.rstrip("/")


def _checked_params(params: JsonObject) -> dict[str, Any]:
    taken = [name for name in _OURS if name in params]
    if taken:
        raise ConfigurationError(f"params names {', '.join(taken)}: the backend sets them itself")
    if params.get("n", 1) != 1:
        raise ConfigurationError(f"params asks for n={params['n']!r}: one answer is all it reads")
    return dict(params)


def _is_stream(answer: httpx.Response) -> bool:
    """Some endpoints ignore ``stream`` and answer whole; errors always come whole."""
    kind: str = answer.headers.get("content-type", "")
    return answer.is_success and "json" not in kind.partition(";")[0]


def _whole(answer: httpx.Response, prefix: str | None) -> Reply:
    import httpx

    if not answer.is_success:
        raise httpx.HTTPStatusError(
            f"{answer.request.url} answered {answer.status_code} {answer.reason_phrase}: "
            f"{answer.text[:_BODY_SHOWN]}",
            request=answer.request,
            response=answer,
        )
    try:
        return parse_completion(json.loads(answer.content), prefix=prefix)
    except (ValueError, RecursionError) as error:
        raise httpx.DecodingError(
            f"{answer.request.url} sent no chat completion ({error}): {answer.text[:_BODY_SHOWN]}",
            request=answer.request,
        ) from error


def _fed(state: StreamState, data: str, answer: httpx.Response) -> str:
    try:
        return state.feed(data)
    except WireError as error:
        raise _broken(error, answer) from error


def _closing(state: StreamState, answer: httpx.Response) -> Iterator[Delta | Reply]:
    rest = state.rest()
    if rest:
        yield Delta(rest)
    try:
        yield state.reply()
    except WireError as error:
        raise _broken(error, answer) from error


def _broken(error: WireError, answer: httpx.Response) -> Exception:
    import httpx

    return httpx.RemoteProtocolError(f"{answer.request.url}: {error}", request=answer.request)


def _pieces(reply: Reply) -> Iterator[Delta | Reply]:
    if reply.text:
        yield Delta(reply.text)
    yield reply
