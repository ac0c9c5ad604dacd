"""A local model behind an OpenAI-compatible HTTP server on loopback (llama.cpp by xllamacpp).

The server runs in a process of its own: decoding never waits for this interpreter's lock, so
latencies are the model's, and stopping it cannot hang. It ends by itself when its parent does,
however that ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

__all__ = ["LocalModelServer", "LocalServerError"]

_STOP_SECONDS = 5.0


class LocalServerError(RuntimeError):
    """The local server did not come up; the message carries what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    path: str
    name: str
    ctx: int
    threads: int
    parallel: int
    seed: int
    prompt_cache: bool


class LocalModelServer:
    """Serves one GGUF file while the context is open.

    Args:
        path: The model file.
        name: The model's name in requests and replies.
        ctx: Tokens of context for each request.
        threads: Threads to decode with; half of the cores by default, for decoding threads wait
            for each other, and one whose core is taken by another program stalls all of them.
        parallel: Requests decoded at the same time.
        seed: Default sampling seed.
        prompt_cache: Whether the server may keep the work done for one prompt for the next. Off,
            so that two measured runs do not help each other.
        start_seconds: How long it may take to be ready.

    The address is in :attr:`base_url` once the context is open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        name: str = "local",
        ctx: int = 4096,
        threads: int | None = None,
        parallel: int = 1,
        seed: int = 0,
        prompt_cache: bool = False,
        start_seconds: float = 120.0,
    ) -> None:
        self.name = name
        self._settings = _Settings(
            path=os.fspath(path),
            name=name,
            ctx=ctx,
            threads=threads or max(1, (os.cpu_count() or 1) // 2),
            parallel=parallel,
            seed=seed,
            prompt_cache=prompt_cache,
        )
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None
        self._base_url: str | None = None

    @property
    def base_url(self) -> str:
        """Address for OpenAI clients, e.g. ``http://127.0.0.1:40123/v1``."""
        if self._base_url is None:
            raise LocalServerError("the server is not running: use it as a context manager")
        return self._base_url

    def __enter__(self) -> LocalModelServer:
        path = self._settings.path
        if not Path(path).is_file():
            raise LocalServerError(f"there is no model file at {path}")
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        command = [sys.executable, "-m", "stepcache.demo._server"]
        command.append(json.dumps(asdict(self._settings)))
        self._process = subprocess.Popen(  # noqa: S603 - our interpreter and our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        try:
            self._base_url = f"{self._await_ready(self._process)}/v1"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        process, self._process, self._base_url = self._process, None, None
        if process is not None:
            _stop(process)
        if self._log is not None:
            self._log.close()
            self._log = None

    def _await_ready(self, process: subprocess.Popen[str]) -> str:
        limit = time.monotonic() + self._start_seconds
        lines: list[str] = []
        assert process.stdout is not None
        reader = threading.Thread(target=_read_ready, args=(process.stdout, lines), daemon=True)
        reader.start()
        reader.join(self._start_seconds)
        if lines:
            url = str(json.loads(lines[0])["url"])
            while time.monotonic() < limit and process.poll() is None:
                if _healthy(url):
                    return url
                time.sleep(0.05)
        if process.poll() is None and time.monotonic() >= limit:
            raise LocalServerError(
                f"the local server was not ready after {self._start_seconds:.0f} s{self._said()}"
            )
        process.wait(_STOP_SECONDS)
        raise LocalServerError(
            f"the local server ended with status {process.returncode}{self._said()}"
        )

    def _said(self) -> str:
        assert self._log is not None
        self._log.seek(0)
        said = self._log.read()[-1000:].strip()
        return f"; it said: {said}" if said else ""


def _read_ready(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        if line.startswith('{"url"'):
            lines.append(line)
            return


def _healthy(url: str) -> bool:
    import httpx

    try:
        # Straight to loopback, whatever proxy the environment names.
        return httpx.get(f"{url}/health", timeout=5.0, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _stop(process: subprocess.Popen[str]) -> None:
    """End the server: it goes when its standard input closes; if not, by force."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _serve(settings: _Settings) -> None:
    """The server process: serve until standard input closes."""
    # By name: the extension module has no types for a checker to follow.
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.model_alias = {settings.name}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cors_origins = "http://127.0.0.1"
    params.verbosity = 1
    params.ui = False
    params.n_parallel = settings.parallel
    params.n_ctx = settings.ctx * settings.parallel
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    params.n_threads_http = 4
    params.sampling.seed = settings.seed
    params.prefill_assistant = True
    params.cache_prompt = settings.prompt_cache
    if not settings.prompt_cache:
        params.cache_ram_mib = 0
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(f"llama.cpp cannot serve {settings.path}: {error}")
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.read()
    # Not an orderly return: tearing the native server down can wait for ever on its own loop.
    os._exit(0)


if __name__ == "__main__":
    _serve(_Settings(**json.loads(sys.argv[1])))
