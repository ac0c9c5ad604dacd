"""``stepcache serve``: StepCache in front of any OpenAI-compatible server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from stepcache.protocols import Embedder, Listener, Store

__all__ = ["HELP", "serve_command"]

# One line a paragraph: the help printer keeps line ends.
HELP = (
    "Put an OpenAI-compatible proxy in front of vLLM, llama.cpp, Ollama or a hosted API.\n\n"
    "POST /v1/chat/completions is answered from verified steps where that can be proven, and by "
    "the upstream where not; everything else is handed on byte for byte. Clients keep their own "
    "keys: these go to the upstream, are never stored, and keep their entries apart.\n\n"
    "A request may say X-StepCache: bypass, refresh or only-if-cached, and X-StepCache-Namespace, "
    "X-StepCache-TTL and X-StepCache-Tags. Responses say X-StepCache-Route, -Reason, -Entry, "
    "-Tokens-Spent and -Tokens-Avoided. /stepcache/health and /stepcache/stats tell how it goes."
)

_EMBEDDERS = "lexical, onnx, or sentence-transformers[:MODEL]"
_MIB = 1 << 20


def serve_command(
    upstream: Annotated[
        str,
        typer.Option(metavar="URL", help="The API to ask, e.g. http://127.0.0.1:8000/v1."),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8400,
    store: Annotated[
        str,
        typer.Option(
            metavar="STORE", help="memory, a file's path, sqlite:///path or postgresql://..."
        ),
    ] = "memory",
    namespace: Annotated[str, typer.Option(help="The wall around this proxy's entries.")] = "",
    embedder: Annotated[
        str, typer.Option(metavar="NAME", help=f"What finds similar requests: {_EMBEDDERS}.")
    ] = "lexical",
    ttl: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long an answer may be served.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="Stored requests looked at for a new one.")
    ] = None,
    min_similarity: Annotated[
        float | None, typer.Option(help="Stored requests further away are not looked at.")
    ] = None,
    max_wait: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long to wait for an equal request in flight."),
    ] = None,
    patch: Annotated[
        bool, typer.Option("--patch/--no-patch", help="Ask for the missing part of an answer.")
    ] = True,
    adapt: Annotated[
        bool, typer.Option("--adapt/--no-adapt", help="Re-derive steps without the model.")
    ] = True,
    fallback: Annotated[
        bool,
        typer.Option("--fallback/--no-fallback", help="Replace an answer that is proven wrong."),
    ] = True,
    stream_unverified: Annotated[
        bool, typer.Option("--stream-unverified", help="Stream every miss as the model says it.")
    ] = False,
    prefill: Annotated[
        bool, typer.Option("--prefill", help="The upstream continues an assistant message.")
    ] = False,
    constrain: Annotated[
        bool, typer.Option("--constrain", help="The upstream takes response_format with a schema.")
    ] = False,
    count_streams: Annotated[
        bool,
        typer.Option(
            "--count-streams",
            help="Ask the upstream for the token counts of streams whose client does not want "
            "them, so that savings on these are known too.",
        ),
    ] = False,
    share_keys: Annotated[
        bool,
        typer.Option(
            "--share-keys",
            help="Clients with different keys share entries. Whoever reaches the proxy is then "
            "served them, with any key or none.",
        ),
    ] = False,
    ignore_header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A request header that changes no answer."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Without a byte from the upstream for so long, give it up. "
            "Left out: wait as long as the client does.",
        ),
    ] = None,
    max_body: Annotated[
        float, typer.Option(metavar="MIB", help="Longer requests are handed on unread.")
    ] = 4.0,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Tell Prometheus at /stepcache/metrics how it goes."),
    ] = False,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="What running answers get when asked to end."),
    ] = 30.0,
) -> None:
    """Serve until a signal comes."""
    from stepcache import Policy, StepCacheEngine, StepCacheError

    try:
        from stepcache.proxy import ProxyServer, ProxySettings, create_app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("stepcache"):
            raise
        _end(f'the proxy needs {error.name}: run pip install "stepcache[serve]"', 1)
    given = {"candidates": candidates, "min_similarity": min_similarity, "max_wait": max_wait}
    try:
        policy = Policy(
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
            ttl=ttl,
            patch=patch,
            adapt=adapt,
            fallback=fallback,
            stream_unverified=stream_unverified,
        )
        listeners: list[Listener] = []
        routes: list[BaseRoute] = []
        if metrics:
            from stepcache.proxy._metrics import metrics_route
            from stepcache.telemetry import PrometheusListener

            listeners.append(PrometheusListener())
            routes.append(metrics_route())
        engine = StepCacheEngine(
            store=_store(store),
            embedder=_embedder(embedder),
            namespace=namespace,
            policy=policy,
            listeners=listeners,
        )
        settings = ProxySettings(
            share_keys=share_keys,
            ignored_headers=tuple(ignore_header or ()),
            prefill=prefill,
            constrain=constrain,
            count_streams=count_streams,
            timeout=timeout,
            max_body=round(max_body * _MIB),
        )
        server = ProxyServer(
            create_app(upstream, engine=engine, settings=settings, routes=routes),
            host=host,
            port=port,
            grace=grace,
        )
    except (StepCacheError, OSError) as error:
        _end(str(error), 2)
    typer.echo(f"StepCache answers at {server.url}, in front of {upstream}", err=True)
    server.run()


def _store(name: str) -> Store | str | None:
    if name == "memory":
        return None
    if name.partition("://")[0].lower() in ("postgresql", "postgres"):
        from stepcache.stores import AsyncPostgresStore

        return AsyncPostgresStore(name)
    return name


def _embedder(name: str) -> Embedder | None:
    from stepcache import ConfigurationError

    kind, _, model = name.partition(":")
    if name == "lexical":
        return None
    if name == "onnx":
        from stepcache.embedders import OnnxEmbedder

        return OnnxEmbedder()
    if kind == "sentence-transformers":
        from stepcache.embedders import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(model) if model else SentenceTransformerEmbedder()
    raise ConfigurationError(f"embedder is {name!r}: use {_EMBEDDERS}")


def _end(message: str, status: int) -> NoReturn:
    typer.echo(f"Error: {message}. Try stepcache serve --help.", err=True)
    raise typer.Exit(status)
