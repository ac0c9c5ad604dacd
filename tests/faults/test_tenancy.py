"""Tenants of one engine and one store: nothing of one is there for another."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcache import (
    Control,
    Message,
    NamespaceRequired,
    Policy,
    Reply,
    Request,
    StepCacheEngine,
    UsageError,
)
from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore, SQLiteStore
from stepcache.testing import CountingEmbedder, ScriptedBackend

STRICT = Policy(require_namespace=True)
SOLVE = "Solve for x: 2x + 3 = 13."
ANSWER = "Subtract 3 from both sides: 2x = 10.\nDivide by 2: x = 5."


def ask(text, namespace=""):
    return Request(messages=(Message(role="user", text=text),), model="m", namespace=namespace)


@pytest.fixture(params=["memory", "sqlite"])
def engine(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "c.db")
    engine = StepCacheEngine(store=store, policy=STRICT)
    yield engine
    engine.close()


# --- no request without a namespace ------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_a_request_without_a_namespace_is_refused_by_every_call(engine, blank):
    """The model is not asked, nothing is looked up or kept, and the message says what to do."""
    backend = ScriptedBackend([])
    request = ask(SOLVE, blank)

    def astream():
        async def pieces():
            return [piece async for piece in engine.astream(request, backend=backend)]

        return asyncio.run(pieces())

    calls = [
        lambda: engine.resolve(request, backend=backend),
        lambda: engine.lookup(request),
        lambda: engine.admit(request, Reply(text=ANSWER)),
        lambda: list(engine.stream(request, backend=backend)),
        lambda: engine.resolve_many([request, request], backend=backend),
        lambda: asyncio.run(engine.aresolve(request, backend=backend)),
        lambda: asyncio.run(engine.alookup(request)),
        lambda: asyncio.run(engine.aadmit(request, Reply(text=ANSWER))),
        astream,
    ]
    for call in calls:
        with pytest.raises(NamespaceRequired, match=r"require_namespace.*pass namespace="):
            call()
    assert backend.calls == []
    assert engine.store.count() == 0


def test_a_namespace_from_the_engine_the_request_or_the_call_will_do(engine, tmp_path):
    """Whichever names one; a call that bypasses the cache needs none."""
    engine.resolve(ask("Q", "ours"), backend=ScriptedBackend(["A"]))
    engine.resolve(ask("Q"), backend=ScriptedBackend(["A"]), control=Control(namespace="theirs"))
    own = StepCacheEngine(policy=STRICT, namespace="mine")
    own.resolve(ask("Q"), backend=ScriptedBackend(["A"]))
    bypass = Control(bypass=True)
    assert engine.resolve(ask("Q"), backend=ScriptedBackend(["A"]), control=bypass).text == "A"


def test_the_faces_refuse_too():
    """LangChain's cache, model and middleware, and LlamaIndex's model, say what is missing."""
    pytest.importorskip("langchain_core")
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from langchain_stepcache import StepCache, StepCacheChatModel

    inner = GenericFakeChatModel(messages=iter([AIMessage("A")] * 9))
    cached = GenericFakeChatModel(
        messages=iter([AIMessage("A")] * 9), cache=StepCache(policy=STRICT)
    )
    with pytest.raises(NamespaceRequired):
        cached.invoke("Q")
    with pytest.raises(NamespaceRequired):
        asyncio.run(cached.ainvoke("Q"))
    with pytest.raises(NamespaceRequired):
        StepCacheChatModel(llm=inner, policy=STRICT).invoke("Q")
    assert StepCacheChatModel(llm=inner, policy=STRICT, namespace="t").invoke("Q").content == "A"


def test_llamaindex_refuses_too():
    """Its model names the missing namespace."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms.mock import MockLLM

    from llamaindex_stepcache import StepCacheLLM

    with pytest.raises(NamespaceRequired):
        StepCacheLLM(llm=MockLLM(), policy=STRICT).complete("Q")
    assert StepCacheLLM(llm=MockLLM(), policy=STRICT, namespace="t").complete("Q").text


# --- nothing of another is there ---------------------------------------------------------------


TENANTS = st.text("ab\x00/:é ", min_size=1, max_size=4).filter(str.strip)


@settings(max_examples=60, deadline=None)
@given(TENANTS, TENANTS, st.sampled_from([SOLVE, "Name a river.", "{}"]))
def test_no_tenant_sees_another_s_answers(ours, theirs, text):
    """No hit, no candidate, no shared flight, whatever the namespaces are called."""
    engine = StepCacheEngine(policy=STRICT)
    engine.admit(ask(text, ours), Reply(text=ANSWER))
    outcome = engine.lookup(ask(text, theirs))
    assert outcome.served == (ours == theirs and engine.count(ours) == 1)
    if ours != theirs:
        assert outcome.candidates == ()
        assert outcome.trace == StepCacheEngine(policy=STRICT).lookup(ask(text, theirs)).trace
        assert engine.count(theirs) == 0


def test_a_trace_is_the_same_whether_or_not_another_asked(engine):
    """Present for somebody else and absent everywhere tell the same story, id and counts included."""
    absent = engine.lookup(ask(SOLVE, "theirs"))
    engine.admit(ask(SOLVE, "ours"), Reply(text=ANSWER))
    engine.admit(ask("Solve for x: 2x + 4 = 14.", "ours"), Reply(text=ANSWER))
    assert engine.lookup(ask(SOLVE, "theirs")) == absent


def test_upkeep_stays_within_its_namespace(engine):
    """Counting, forgetting by id or tag, reporting and clearing see one tenant's entries."""
    ours = engine.admit(ask(SOLVE, "ours"), Reply(text=ANSWER), control=Control(tags=("t",)))
    theirs = engine.admit(ask(SOLVE, "theirs"), Reply(text=ANSWER), control=Control(tags=("t",)))
    assert ours != theirs
    for call in (
        engine.count,
        engine.clear,
        lambda: engine.forget(ours),
        lambda: engine.forget(tag="t"),
        lambda: engine.report_bad(ours),
    ):
        with pytest.raises(NamespaceRequired):
            call()
    assert engine.count("ours") == 1
    assert engine.count("nobody") == 0
    assert engine.forget(ours, namespace="theirs") == 0
    assert engine.report_bad(ours, namespace="theirs") is False
    assert engine.lookup(ask(SOLVE, "ours")).served
    assert engine.forget(tag="t", namespace="theirs") == 1
    assert engine.lookup(ask(SOLVE, "ours")).served
    assert engine.report_bad(ours, namespace="ours") is True
    assert engine.admit(ask(SOLVE, "ours"), Reply(text=ANSWER)) is None
    assert engine.admit(ask(SOLVE, "theirs"), Reply(text=ANSWER)) is not None
    assert engine.clear("ours") == 0  # a report is no entry, but goes
    assert engine.admit(ask(SOLVE, "ours"), Reply(text=ANSWER)) is not None
    assert engine.count("theirs") == 1


async def test_asynchronous_upkeep_stays_within_its_namespace(engine):
    """As the synchronous one."""
    ours = await engine.aadmit(ask(SOLVE, "ours"), Reply(text=ANSWER))
    with pytest.raises(NamespaceRequired):
        await engine.acount()
    assert await engine.acount("ours") == 1
    assert await engine.areport_bad(ours, namespace="theirs") is False
    assert await engine.aforget(ours, namespace="theirs") == 0
    assert await engine.aclear("ours") == 1


def test_an_engine_of_one_tenant_sees_its_own(tmp_path):
    """The engine's own namespace stands in where none is named."""
    store = SQLiteStore(tmp_path / "c.db")
    ours = StepCacheEngine(store=store, policy=STRICT, namespace="ours")
    theirs = StepCacheEngine(store=store, policy=STRICT, namespace="theirs")
    entry = ours.admit(ask(SOLVE), Reply(text=ANSWER))
    assert (ours.count(), theirs.count()) == (1, 0)
    assert theirs.forget(entry) == 0
    assert theirs.clear() == 0
    assert ours.clear() == 1
    store.close()


def test_without_the_policy_a_namespace_still_narrows(tmp_path):
    """An entry's id with a namespace, counts and clearing by namespace work for everybody."""
    engine = StepCacheEngine()
    entry = engine.admit(ask(SOLVE, "ours"), Reply(text=ANSWER))
    engine.admit(ask(SOLVE), Reply(text=ANSWER))
    assert (engine.count(), engine.count("ours"), engine.count("")) == (2, 1, 1)
    assert engine.forget(entry, namespace="theirs") == 0
    with pytest.raises(UsageError, match="not both"):
        engine.forget(entry, tag="x")
    assert engine.clear("") == 1
    assert engine.forget(entry, namespace="ours") == 1


# --- nothing is faster for what another has asked ----------------------------------------------


def test_nothing_remembered_for_one_tenant_serves_another():
    """What parsers and the embedder remember is walled too: the other's first look is a first look,
    counted and not timed; without the policy it is shared."""
    from stepcache.embedders import _lexical
    from stepcache.tasks.linear_equation import _scan

    keys = 'Give me a JSON object about the zyzzyva of Quux with the keys "name" and "size".'

    def misses(engine, namespace):
        memos = (_lexical._of_word, _lexical._of_pair, _scan._remembered)
        before = [each.cache_info().misses for each in memos]
        engine.lookup(ask(keys, namespace))
        engine.admit(ask(SOLVE, namespace), Reply(text=ANSWER))
        return [each.cache_info().misses - count for each, count in zip(memos, before)]

    def run(policy):
        for each in (_lexical._of_word, _lexical._of_pair, _scan._remembered):
            each.cache_clear()
        engine = StepCacheEngine(policy=policy)
        return misses(engine, "ours"), misses(engine, "theirs"), misses(engine, "theirs")

    ours, theirs, again = run(STRICT)
    assert theirs == ours
    assert all(count > 0 for count in ours)
    assert sum(again) < sum(theirs)
    ours, theirs, _ = run(Policy())
    assert sum(theirs) < sum(ours)


@pytest.mark.parametrize("policy", [STRICT, Policy()])
def test_a_vector_remembered_for_one_tenant_serves_no_other(policy):
    """Each has the same words embedded for itself, unless tenants need not be kept apart."""
    embedder = CountingEmbedder(LexicalEmbedder())
    engine = StepCacheEngine(policy=policy, embedder=embedder)
    for namespace in ("ours", "theirs", "ours", "theirs"):
        engine.lookup(ask(SOLVE, namespace))
    assert embedder.calls == (2 if policy is STRICT else 1)
