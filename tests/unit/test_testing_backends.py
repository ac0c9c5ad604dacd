"""The fakes do what tests rely on."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import stepcache.testing
from stepcache._errors import ConfigurationError
from stepcache._types import Message, ModelCall, Reply, Usage
from stepcache.embedders import LexicalEmbedder
from stepcache.protocols import Backend, Delta, Embedder, Store, StreamingBackend
from stepcache.stores import MemoryStore
from stepcache.testing import (
    AsyncScriptedBackend,
    CountingEmbedder,
    FaultyEmbedder,
    FaultyStore,
    Interrupted,
    ScriptedBackend,
)
from stepcache.testing.stores import make_entry

CALL = ModelCall(
    purpose="patch", messages=(Message(role="user", text="go  on, please"),), prefix="so far"
)


def test_they_fit_the_protocols() -> None:
    """Each fake stands where the real part would."""
    for backend in (ScriptedBackend(), AsyncScriptedBackend()):
        assert isinstance(backend, Backend)
        assert isinstance(backend, StreamingBackend)
    for embedder in (CountingEmbedder(LexicalEmbedder()), FaultyEmbedder(LexicalEmbedder())):
        assert isinstance(embedder, Embedder)
    assert isinstance(FaultyStore(MemoryStore()), Store)


def test_replies_come_in_order_with_counted_tokens() -> None:
    """Texts become replies, replies stay what they are, exceptions are raised."""
    own = Reply(text="b", usage=Usage(calls=1, prompt_tokens=1, completion_tokens=9))
    backend = ScriptedBackend(["one two", own, ValueError("down")])
    assert backend.generate(CALL) == Reply(
        text="one two", usage=Usage(calls=1, prompt_tokens=5, completion_tokens=2)
    )
    assert backend.generate(CALL) is own
    with pytest.raises(ValueError, match="down"):
        backend.generate(CALL)
    assert backend.calls == [CALL] * 3
    assert backend.purposes == ["patch"] * 3


def test_a_script_that_ran_out_says_so() -> None:
    """One call too many is an assertion, not a silent repetition."""
    with pytest.raises(AssertionError, match=r"0 replies.*patch"):
        ScriptedBackend().generate(CALL)


def test_a_function_may_answer() -> None:
    """A function sees the call it answers."""
    backend = ScriptedBackend(lambda call: f"for {call.purpose}")
    assert backend.generate(CALL).text == "for patch"


def test_a_single_text_is_refused() -> None:
    """A text is a sequence of letters, which is never the script meant."""
    with pytest.raises(ConfigurationError, match="list"):
        ScriptedBackend("text")


def test_a_stream_joins_to_its_reply() -> None:
    """Pieces join to the text exactly, and the whole reply comes last."""
    *pieces, last = ScriptedBackend([" a  b\n c"]).stream(CALL)
    assert all(isinstance(piece, Delta) for piece in pieces)
    assert "".join(piece.text for piece in pieces) == " a  b\n c"
    assert len(pieces) == 4
    assert isinstance(last, Reply)


def test_an_interrupted_stream_has_no_reply() -> None:
    """Text comes, then the error, or just the end."""
    assert list(ScriptedBackend([Interrupted("a b")]).stream(CALL)) == [Delta("a "), Delta("b")]
    stream = ScriptedBackend([Interrupted("a", OSError("cut"))]).stream(CALL)
    assert next(stream) == Delta("a")
    with pytest.raises(OSError, match="cut"):
        next(stream)


def test_an_interrupted_reply_has_no_finish_reason() -> None:
    """Asked for at once, it raises its error or is incomplete."""
    assert ScriptedBackend([Interrupted("a b")]).generate(CALL).finish_reason is None
    with pytest.raises(OSError, match="cut"):
        ScriptedBackend([Interrupted("a", OSError("cut"))]).generate(CALL)


async def test_the_asynchronous_backend_answers_alike() -> None:
    """Same script, same replies and pieces; coroutine functions may answer too."""

    async def answer(call: ModelCall) -> str:
        return "one two"

    wanted = ScriptedBackend(["one two"]).generate(CALL)
    scripts: list[Any] = [["one two"], lambda call: "one two", answer]
    for script in scripts:
        assert await AsyncScriptedBackend(script).generate(CALL) == wanted
        pieces = [piece async for piece in AsyncScriptedBackend(script).stream(CALL)]
        assert pieces == [Delta("one "), Delta("two"), wanted]


def test_the_counting_embedder_counts() -> None:
    """Vectors pass through, texts are noted."""
    inner = LexicalEmbedder()
    counting = CountingEmbedder(inner)
    assert np.array_equal(counting.embed(["a", "b"]), inner.embed(["a", "b"]))
    assert (counting.calls, counting.texts) == (1, ["a", "b"])
    assert (counting.fingerprint, counting.dimension) == (inner.fingerprint, inner.dimension)


def test_the_faulty_embedder_fails_until_it_is_mended() -> None:
    """It raises while told to, then answers."""
    faulty = FaultyEmbedder(LexicalEmbedder(), error=OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        faulty.embed(["a"])
    faulty.fail_on.clear()
    assert np.shape(faulty.embed(["a"])) == (1, faulty.dimension)


def test_the_faulty_store_fails_where_told() -> None:
    """Chosen methods raise, the others work on the inner store."""
    entry = make_entry("a")
    faulty = FaultyStore(MemoryStore(), {"get"})
    faulty.put(entry, None, "f")
    assert faulty.count() == 1
    with pytest.raises(RuntimeError, match="get is broken"):
        faulty.get(entry.scope, entry.exact_key)
    faulty.fail_on.clear()
    assert faulty.get(entry.scope, entry.exact_key) is not None
    faulty.fail_on.update(FaultyStore(MemoryStore()).fail_on)
    for broken in (faulty.count, faulty.clear, faulty.close):
        with pytest.raises(RuntimeError):
            broken()
    with pytest.raises(RuntimeError):
        faulty.remove(entry.id)
    with pytest.raises(RuntimeError):
        faulty.search("s", np.zeros(2, np.float32), "f", limit=1)


def test_a_method_that_does_not_exist_cannot_fail() -> None:
    """A misspelt name is an error rather than a test that cannot fail."""
    with pytest.raises(ConfigurationError, match="gett"):
        FaultyStore(MemoryStore(), {"gett"})


def test_every_exported_name_resolves() -> None:
    """The lazy exports are all there; others raise AttributeError."""
    for name in stepcache.testing.__all__:
        assert getattr(stepcache.testing, name).__name__ == name
    assert set(stepcache.testing.__all__) <= set(dir(stepcache.testing))
    with pytest.raises(AttributeError):
        _ = stepcache.testing.nothing


def test_the_suites_need_no_test_runner_to_be_imported() -> None:
    """Importing the suites and fakes loads neither pytest nor a model."""
    program = (
        "import sys; from stepcache.testing import TaskContract, EmbedderContract, ScriptedBackend; "
        "print(sorted({'pytest', 'torch', 'faiss'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
