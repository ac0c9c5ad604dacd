"""The real local server, the real backends and the real chain on it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from stepcache._types import Message, ModelCall, Reply
from stepcache.backends import AsyncOpenAICompatibleBackend, OpenAICompatibleBackend
from stepcache.demo._main import Options, run
from stepcache.demo._run import Endpoint, open_chains, play
from stepcache.demo._script import SCRIPT
from stepcache.demo._server import LocalModelServer, LocalServerError
from stepcache.demo._weights import MODELS, fetch, models_folder

SCHEMA = {
    "type": "object",
    "properties": {"wheels": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["wheels"],
    "additionalProperties": False,
}


def backend(server: LocalModelServer, **params: object) -> OpenAICompatibleBackend:
    """The synchronous backend on that server, decoding greedily."""
    params = {"temperature": 0, "max_tokens": 48, **params}
    return OpenAICompatibleBackend(server.base_url, server.name, params=params, prefill=True)


def ask(text: str, **rest: object) -> ModelCall:
    return ModelCall(
        **{"purpose": "answer", "messages": (Message(role="user", text=text),), **rest}
    )


@pytest.mark.model
def test_it_answers_a_plain_http_client(small_model_server: LocalModelServer) -> None:
    """One request by hand: text, a finish reason, usage, the model's name; twice alike, and nothing cached."""
    body = {
        "model": "smollm2",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_tokens": 24,
    }
    url = f"{small_model_server.base_url}/chat/completions"
    texts = []
    for _ in range(2):
        answer = httpx.post(url, json=body, timeout=120, trust_env=False).raise_for_status().json()
        texts.append(answer["choices"][0]["message"]["content"])
        assert answer["choices"][0]["finish_reason"] in ("stop", "length")
        assert answer["model"] == "smollm2"
        # With its prompt cache off, the second run of a comparison is not helped by the first.
        assert answer["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0) == 0
    assert texts[0].strip()
    assert texts[0] == texts[1]


@pytest.mark.model
def test_it_goes_on_from_a_prefix(small_model_server: LocalModelServer) -> None:
    """An assistant prefix is continued, and never part of the reply, whole or streamed."""
    prefix = "The colours of the rainbow are red, orange, yellow,"
    call = ask("Name the colours of the rainbow.", purpose="patch", prefix=prefix)
    with backend(small_model_server) as model:
        whole = model.generate(call)
        *pieces, streamed = model.stream(call)
    assert "green" in whole.text[:20]
    assert not whole.text.startswith("The colours")
    assert isinstance(streamed, Reply)
    assert streamed == whole
    assert "".join(piece.text for piece in pieces) == whole.text


@pytest.mark.model
def test_it_keeps_to_a_schema(small_model_server: LocalModelServer) -> None:
    """Decoding held to a schema gives JSON that satisfies it, also from a very small model."""
    call = ask("How many wheels has a bicycle? Reply in prose.", purpose="patch", schema=SCHEMA)
    with backend(small_model_server) as model:
        reply = model.generate(call)
    assert reply.finish_reason == "stop"
    assert list(json.loads(reply.text)) == ["wheels"]


@pytest.mark.model
def test_both_backends_say_the_same(small_model_server: LocalModelServer) -> None:
    """Synchronous and asynchronous, whole and streamed: one reply."""
    call = ask("Say hello in one word.")
    server = small_model_server

    async def asynchronously() -> list[object]:
        params = {"temperature": 0, "max_tokens": 48}
        async with AsyncOpenAICompatibleBackend(
            server.base_url, server.name, params=params
        ) as model:
            whole = await model.generate(call)
            return [whole, [item async for item in model.stream(call)][-1]]

    with backend(server) as model:
        replies = [model.generate(call), list(model.stream(call))[-1]]
    replies += asyncio.run(asynchronously())
    assert all(reply == replies[0] for reply in replies)
    assert replies[0].usage.prompt_tokens > 0


@pytest.mark.model
def test_a_prompt_that_is_too_long_is_the_endpoints_own_error(
    small_model_server: LocalModelServer,
) -> None:
    """What the server says of a prompt beyond its context reaches the user with its status."""
    with (
        backend(small_model_server) as model,
        pytest.raises(httpx.HTTPStatusError, match=r"400.*context size"),
    ):
        model.generate(ask("word " * 4000))


@pytest.mark.model
def test_the_chain_is_cached_by_steps(small_model_server: LocalModelServer) -> None:
    """The chain over a real model: the same equation, worded and written otherwise, is asked once.

    The model is far too small to be right, so this also shows that what it gets wrong is not
    served: every equation is answered correctly all the same.
    """
    endpoint = Endpoint(
        base_url=small_model_server.base_url,
        model="smollm2",
        max_tokens=120,
        prefill=True,
        loopback=True,
    )
    equations = [item for item in SCRIPT if item.family == "equation"][:4]
    with open_chains(endpoint) as chains:
        exchanges = play(*chains, equations)
    assert [exchange.cached.error for exchange in exchanges] == [None] * 4
    assert all(exchange.cached.correct for exchange in exchanges)
    told = [exchange.cached.stepcache for exchange in exchanges]
    assert all(entry and entry["trace"] and entry["reason"] for entry in told)
    first, again = told[0], told[1]
    assert first is not None
    assert again is not None
    assert first["spent"]["calls"] >= 1
    assert again["route"] == "exact"
    assert all(exchange.cached.tokens == 0 for exchange in exchanges[1:])


@pytest.mark.model
def test_the_server_goes_when_its_parent_does(small_model_server: LocalModelServer) -> None:
    """A parent that is killed leaves no server behind."""
    code = (
        "import os, sys\n"
        "from stepcache.demo._server import LocalModelServer\n"
        "with LocalModelServer(sys.argv[1], ctx=256) as server:\n"
        "    print(server.base_url, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.fspath(fetch(MODELS["smollm2"]))],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    url = done.stdout.strip()
    assert url.startswith("http://127.0.0.1:")
    transport = httpx.HTTPTransport(retries=0)
    with httpx.Client(transport=transport, timeout=5) as client:
        for _ in range(50):
            try:
                client.get(f"{url}/models")
            except httpx.TransportError:
                return
    pytest.fail("the server still answers")


def test_a_file_that_is_no_model_is_said(tmp_path: Path) -> None:
    """A server that cannot load its model ends with what it said, soon."""
    path = tmp_path / "text.gguf"
    path.write_text("not a model")
    with pytest.raises(LocalServerError, match="cannot serve"), LocalModelServer(path):
        pass
    with pytest.raises(LocalServerError, match="no model file"), LocalModelServer(tmp_path / "no"):
        pass


@pytest.mark.model
def test_start_up_is_bounded(small_model_server: LocalModelServer) -> None:
    """A server that is not ready in time is stopped and said to be late."""
    server = LocalModelServer(fetch(MODELS["smollm2"]), start_seconds=0.01)
    with pytest.raises(LocalServerError, match="not ready after"), server:
        pass
    with pytest.raises(LocalServerError, match="not running"):
        _ = server.base_url


def _qwen_wanted() -> bool:
    weights = MODELS["qwen2.5-coder-0.5b"]
    cached = (models_folder() / weights.file).is_file()
    return os.environ.get("STEPCACHE_TEST_QWEN") == "1" or (
        cached and os.environ.get("STEPCACHE_TEST_QWEN") != "0"
    )


@pytest.mark.model
@pytest.mark.skipif(not _qwen_wanted(), reason="STEPCACHE_TEST_QWEN=1 fetches the 490 MB model")
def test_the_demonstration_shows_what_it_should(tmp_path: Path) -> None:
    """The default model on the start of the script: correct, faster, fewer tokens, on record."""
    from rich.console import Console

    record = tmp_path / "record.json"
    with (tmp_path / "out.txt").open("w", encoding="utf-8") as out:
        console = Console(file=out, width=160)
        assert run(Options(json_file=record), console, SCRIPT[:4])
    told = json.loads(record.read_text(encoding="utf-8"))
    assert [entry["cached"]["stepcache"]["route"] for entry in told["requests"][2:]] == [
        "exact",
        "reuse",
    ]
    assert told["summary"]["passed"]
    assert told["summary"]["cached"]["tokens"] < told["summary"]["bare"]["tokens"]
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()) > 10
