"""Faults that users of answer caches reported in public, each asked of this engine.

The inputs are our own. A number is that of the list of reports kept beside the external data; a
letter with a number is that of the survey of complaints (false hits, what must not be stored,
conversations and tenants, language). Those about a host's interface are asked through that host.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepcache import (
    ConfigurationError,
    Contract,
    Control,
    Message,
    Outcome,
    Policy,
    Reply,
    Request,
    StepCacheEngine,
)
from stepcache._types import Constraints, Step, Verdict
from stepcache.embedders import LexicalEmbedder
from stepcache.stores import MemoryStore
from stepcache.testing import FaultyEmbedder, FaultyStore, ScriptedBackend

LAX = Policy(min_similarity=0.0, candidates=16)
"""A threshold that lets everything through: only proof is left to refuse."""


class Lettered(ScriptedBackend):
    """A model that letters its answers, so that an old one is recognised, and solves nothing."""

    def __init__(self) -> None:
        super().__init__(lambda call: f"This is answer {chr(96 + len(self.calls))}.")


def turns(*texts: str, system: str | None = None) -> tuple[Message, ...]:
    """A conversation: user and assistant take turns, the user speaks last."""
    roles = ("user", "assistant") * len(texts)
    messages = tuple(Message(role=role, text=text) for role, text in zip(roles, texts))
    return messages if system is None else (Message(role="system", text=system), *messages)


def ask(*texts: str, system: str | None = None, **fields: Any) -> Request:
    return Request(messages=turns(*texts, system=system), **fields)


def play(*requests: Request, policy: Policy = LAX, **engine: Any) -> list[Outcome]:
    """All requests, in order, asked of one engine over a model that letters its answers."""
    asked = StepCacheEngine(backend=Lettered(), policy=policy, **engine)
    return [asked.resolve(request) for request in requests]


def assert_all_asked(*requests: Request, policy: Policy = LAX) -> None:
    """No request is answered from another one's entry, whatever their order."""
    for order in (requests, requests[::-1]):
        outcomes = play(*order, policy=policy)
        assert len({o.text for o in outcomes}) == len(requests)
        assert not {o.route for o in outcomes} & {"exact", "reuse", "adapt", "patch"}


# --- false hits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("How do I turn dark mode on?", "How do I turn dark mode off?"), id="44-A1"),
        pytest.param(("How do I enable two-step login?", "How do I disable two-step login?"), id="A1"),
        pytest.param(("Name plants that are safe for cats", "Name plants that are not safe for cats"), id="8-A1"),
        pytest.param(("Good afternoon", "What is 6+7?", "Does it snow?"), id="23-A2"),
        pytest.param(("What is 2+2?", "Tell me a riddle", "What is 22+2?"), id="A2"),
        pytest.param(("What is a lamp?", "What is the use of a bank?", "What is the use of a lamp?"), id="2-A3"),
        pytest.param(("What is tea", "How do I make an iced tea"), id="A4"),
        pytest.param(("茶是什么", "怎样泡冰茶"), id="A4-J1"),
        pytest.param(("What is 3+5?", "What is 3+6?"), id="A5"),
        pytest.param(("What is 16 × 24?", "What is 16 × 29?"), id="47-A5"),
        pytest.param(("good night", "farewell"), id="4-A10"),
        pytest.param(("soup recipe", "visa deadline"), id="50"),
        pytest.param(("太平洋有多深", "大西洋有多深"), id="J1"),
        pytest.param(("कितने सेब ३", "कितने सेब ४"), id="J1-digits"),
    ],
)  # fmt: skip
def test_requests_that_only_look_alike_do_not_meet(texts: tuple[str, ...]) -> None:
    """2, 4, 8, 23, 44, 47, 50; A1-A5, A10, J1: no threshold stands between them, proof does."""
    assert_all_asked(*(ask(text) for text in texts))


def test_the_same_in_other_words_may_still_meet() -> None:
    """44: refusing opposites costs no hit between two wordings of one question."""
    first, second = play(ask("How do I turn dark mode on?"), ask("how can I turn dark mode on"))
    assert (second.route, second.text) == ("reuse", first.text)


def test_structure_is_reused_where_one_digit_changes() -> None:
    """A5, 36: the old number is never served; the steps are re-derived with the new one."""
    engine = StepCacheEngine(backend=ScriptedBackend(["2x + 4 = 10\n\n2x = 6\n\nx = 3"]))
    engine.resolve(ask("Solve 2x + 4 = 10 for x."))
    second = engine.resolve(ask("Solve 2x + 4 = 12 for x."))
    assert (second.route, second.spent.calls) == ("adapt", 0)
    assert second.text.endswith("x = 4")


@pytest.mark.parametrize("falsy", [0, 0.0])
def test_a_falsy_option_is_no_missing_option(falsy: float) -> None:
    """A6: zero is a value; and what is out of range is refused where it is given."""
    assert Policy(min_similarity=falsy).min_similarity == 0
    assert Policy(candidates=0).candidates == 0
    for wrong in (
        {"min_similarity": 1.5},
        {"min_similarity": -0.1},
        {"ttl": 0},
        {"candidates": -1},
    ):
        with pytest.raises(ConfigurationError):
            Policy(**wrong)


def test_a_long_shared_beginning_hides_no_difference() -> None:
    """A7, A9: behind thousands of equal characters one other word still refuses."""
    context = "The archive keeps maps, letters and seals of the old harbour. " * 70
    assert_all_asked(ask(f"{context}\nHow many maps?"), ask(f"{context}\nHow many seals?"))
    keys = "as JSON with keys name, age"
    assert_all_asked(ask(f"{context} Describe Ann {keys}."), ask(f"{context} Describe Bob {keys}."))


@pytest.mark.parametrize("empty", ["", "  ", "\n\t"])
def test_an_empty_turn_matches_nothing_but_itself(empty: str) -> None:
    """41, A8: requests without text meet byte for byte only, with all their context."""
    first = replace(ask("Look it up", "Calling.", empty), namespace="a")
    other = replace(ask("Look that up", "Calling.", empty), namespace="a")
    one, again, two = play(first, first, other)
    assert (one.text, again.route) == (again.text, "exact")
    assert two.text != one.text


def test_a_wrong_answer_can_be_taken_back() -> None:
    """5, A11: once reported, the entry is gone, however the request is worded."""
    engine = StepCacheEngine(backend=Lettered())
    first = engine.resolve(ask("Who runs the mill?"))
    assert first.entry_id is not None
    assert engine.report_bad(first.entry_id)
    assert engine.resolve(ask("Who runs the mill?")).text != first.text
    assert engine.resolve(ask("Hi, who runs the mill?")).text != first.text


def test_a_wrong_solution_is_never_kept() -> None:
    """5: a false statement about an equation is found before it can be stored."""
    backend = ScriptedBackend(["2x + 6 = 14\n\nx = 5"] * 2)
    engine = StepCacheEngine(backend=backend)
    outcome = engine.resolve(ask("Solve 2x + 6 = 14 for x."))
    assert outcome.route == "fallback"
    assert "4" in engine.lookup(ask("Solve 2x + 6 = 14 for x.")).text
    assert "5" not in engine.lookup(ask("Solve 2x + 6 = 14 for x.")).text


@pytest.mark.parametrize("broken", ["raises", "says it does not know"])
def test_a_verifier_that_cannot_tell_serves_nothing(broken: str) -> None:
    """A12, A13: hits are verified, and an outage of the verifier is a miss."""

    def verifier(step: Step, constraints: Constraints) -> Verdict | None:
        if broken == "raises":
            raise TimeoutError("no answer in time")
        return Verdict.unknown("offline", "the service is away")

    backend, store = ScriptedBackend(["2x + 4 = 10\n\nx = 3"] * 4), MemoryStore()
    StepCacheEngine(store=store, backend=backend).resolve(ask("Solve 2x + 4 = 10 for x."))
    engine = StepCacheEngine(store=store, backend=backend, verifiers=[verifier])
    second = engine.resolve(ask("Solve 10 = 4 + 2x for x."))
    assert second.route not in ("reuse", "adapt", "patch")
    assert second.spent.calls >= 1


def test_the_same_prompt_behaves_the_same_every_time() -> None:
    """7, 46: the first of five equal requests is asked, the others hit; an unrelated one misses."""
    outcomes = play(*[ask("Where is the old lighthouse?")] * 5, ask("Who bakes rye bread?"))
    assert [o.route for o in outcomes[:5]] == ["miss", *["exact"] * 4]
    assert outcomes[5].text != outcomes[0].text


# --- what belongs to a request -----------------------------------------------------------------


def test_earlier_turns_belong_to_the_request() -> None:
    """1, I1: the same follow-up in two conversations has two answers."""
    assert_all_asked(
        ask("Who leads the north mill?", "Ada does.", "How old is she?"),
        ask("Who leads the south mill?", "Eva does.", "How old is she?"),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"model": "m1", "params": {"max_tokens": 50}}, {"model": "m2", "params": {"max_tokens": 500}}, id="10"),
        pytest.param({"params": {"temperature": 0}}, {"params": {"temperature": 1}}, id="19"),
        pytest.param({"params": {"temperature": 0}}, {"params": {}}, id="19-absent"),
        pytest.param({"params": {"top_p": 0.1}}, {"params": {"top_p": 0.9}}, id="20"),
        pytest.param({"params": {"effort": "low"}}, {"params": {"effort": "high"}}, id="22"),
        pytest.param({"contract": Contract(tools=({"name": "a"},))}, {"contract": Contract(tools=({"name": "a"}, {"name": "b"}))}, id="31"),
        pytest.param({"params": {"seed": 1}}, {"params": {"seed": 2}}, id="32-seed"),
        pytest.param({"params": {"stop": ["."]}}, {"params": {}}, id="32-stop"),
        pytest.param({"params": {"frequency_penalty": 1}}, {"params": {}}, id="32-penalty"),
        pytest.param({"system": "Answer in Finnish."}, {"system": "Answer in Greek."}, id="26-J4"),
        pytest.param({"system": "Answer as the admin."}, {"system": "Answer as a guest."}, id="43-I2"),
        pytest.param({"system": "Context: the bridge is open."}, {"system": "Context: the bridge is shut."}, id="34"),
        pytest.param({"system": "Context:"}, {"system": "Context: the bridge is open."}, id="35"),
        pytest.param({"system": "Context 1: the bridge is open."}, {"system": "Context 2: the bridge is open."}, id="38"),
        pytest.param({"namespace": "ann"}, {"namespace": "bob"}, id="I3"),
    ],
)  # fmt: skip
def test_whatever_changes_an_answer_belongs_to_the_request(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    """10, 19, 20, 22, 26, 31, 32, 34, 35, 38, 43; I2, I3, J4: model, parameters, tools, system text,
    context and tenant part requests of one text."""
    assert_all_asked(
        ask("Is my balance above 100?", **one), ask("Is my balance above 100?", **other)
    )


def test_a_fact_that_is_gone_is_not_served() -> None:
    """37: with one source less in the context the old list does not come back."""
    assert_all_asked(
        ask("Sources: mill, dam, quay. List them as JSON with keys sources."),
        ask("Sources: mill, dam. List them as JSON with keys sources."),
    )


def test_a_changed_tool_result_is_seen() -> None:
    """29, A8: two turns of an agent that differ by one number in a tool's result do not meet."""

    def turn(balance: int) -> Request:
        tool = Message(role="tool", text=f"balance {balance}", extra={"id": "1"})
        return Request(messages=(*turns("May I spend 100?"), tool))

    assert_all_asked(turn(120), turn(95))


def test_tenants_are_parted_before_anything_is_searched() -> None:
    """I3, I4: the wall is no prefix of the text; the most similar entry beyond it is not found."""
    text = "Solve 2x + 4 = 10 for x."
    _, other = play(ask(text, namespace="ann"), ask("Solve 10 = 4 + 2x for x.", namespace="bob"))
    assert other.route not in ("exact", "reuse", "adapt", "patch")
    assert "candidates: 0 near enough of 0 found" in other.trace.render()


def test_a_namespace_is_no_wall_inside_itself() -> None:
    """I5: callers of one namespace and one set of parameters share what is proven."""
    _, other = play(
        ask("Solve 2x + 4 = 10 for x.", namespace="ann", params={"temperature": 0}),
        ask("Solve 10 = 4 + 2x for x.", namespace="ann", params={"temperature": 0.0}),
    )
    assert other.route == "reuse"


def test_forgetting_by_an_unknown_tag_forgets_nothing() -> None:
    """I6: a tag that no entry has is told by the count."""
    engine = StepCacheEngine(backend=Lettered())
    engine.resolve(ask("Who runs the mill?"), control=Control(tags=("mill",)))
    assert engine.forget(tag="mlil") == 0
    assert engine.count() == 1
    assert engine.forget(tag="mill") == 1


def test_a_fallback_models_answer_names_the_model() -> None:
    """32: the entry tells which model answered, not which one was asked."""
    engine = StepCacheEngine(backend=ScriptedBackend([Reply(text="By the dam.", model="m2")]))
    request = ask("Where is the mill?", model="m1")
    assert engine.resolve(request).model == "m2"
    again = engine.resolve(request)
    assert (again.route, again.model) == ("exact", "m2")


@pytest.mark.parametrize(
    "params", [{"n": 5, "temperature": 0.9}, {"temperature": 0.9, "logprobs": True}]
)
def test_several_samples_are_not_made_equal(params: dict[str, Any]) -> None:
    """16: five samples of one prompt are never served from the entry of another wording."""
    _, other = play(
        ask("Solve 2x = 6 for x.", params=params), ask("Solve 6 = 2x for x.", params=params)
    )
    assert other.route not in ("exact", "reuse", "adapt", "patch")


def test_sampling_again_is_one_word_away() -> None:
    """16, 17, H3: a call may ask for a new answer or for none to be kept."""
    engine = StepCacheEngine(backend=Lettered())
    request = ask("Tell a tale of a mill", params={"temperature": 0.8})
    first = engine.resolve(request)
    assert engine.resolve(request, control=Control(bypass=True)).text != first.text
    assert engine.resolve(request).text == first.text
    fresh = engine.resolve(request, control=Control(refresh=True))
    assert fresh.text != first.text
    assert engine.resolve(request).text == fresh.text


# --- what may be kept --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(text="The mill was built in", finish_reason="length"), id="H1"),
        pytest.param(Reply(text="The mill was", finish_reason="content_filter"), id="H1-filter"),
        pytest.param(Reply(text="Error: service unavailable"), id="H2-error"),
        pytest.param(Reply(text="I'm sorry, but I can't help with that."), id="H2-refusal"),
        pytest.param(Reply(text="No.", refusal=True), id="H2-flag"),
        pytest.param(Reply(text=" \n"), id="H2-empty"),
        pytest.param(Reply(text="..."), id="H2-placeholder"),
    ],
)
def test_bad_answers_are_not_kept(reply: Reply) -> None:
    """H1, H2: what is cut off, an error, a refusal or nothing at all is returned once, never kept."""
    engine = StepCacheEngine(backend=ScriptedBackend([reply, "It was built in 1750."]))
    assert engine.resolve(ask("When was the mill built?")).text == reply.text
    assert engine.count() == 0
    assert engine.resolve(ask("When was the mill built?")).text == "It was built in 1750."


SCHEMA = {
    "type": "object",
    "properties": {"line": {"type": "string"}},
    "required": ["line"],
    "additionalProperties": False,
}


def test_a_structured_answer_comes_back_from_a_file(tmp_path: Path) -> None:
    """11, 25, 40: with a schema the second call, in another process's place, hits; without one it
    misses."""
    path = str(tmp_path / "cache.sqlite")
    with_schema = ask("A line about the sea.", contract=Contract(schema=SCHEMA))
    one = StepCacheEngine(store=path, backend=ScriptedBackend(['{"line": "Salt."}']))
    first = one.resolve(with_schema)
    one.close()
    other = StepCacheEngine(store=path, backend=ScriptedBackend(["The sea is salt."]))
    again = other.resolve(with_schema)
    assert (again.route, json.loads(again.text)) == ("exact", {"line": "Salt."})
    assert again.text == first.text
    assert other.resolve(ask("A line about the sea.")).route in ("miss", "skip")
    other.close()


def test_each_schema_is_checked_on_its_own() -> None:
    """52: an answer that one schema accepted is not served under another that refuses it."""
    wants_number = {**SCHEMA, "properties": {"line": {"type": "integer"}}}
    backend = ScriptedBackend(['{"line": "Salt."}', '{"line": 7}', '{"line": 7}'])
    engine = StepCacheEngine(backend=backend, policy=LAX)
    engine.resolve(ask("A line about the sea.", contract=Contract(schema=SCHEMA)))
    second = engine.resolve(ask("A line about the sea.", contract=Contract(schema=wants_number)))
    assert json.loads(second.text) == {"line": 7}
    assert second.spent.calls >= 1


def test_what_its_own_schema_refuses_is_not_kept() -> None:
    """53: a null where a list is required is found before it is stored, not on the hit."""
    schema = {"type": "object", "properties": {"flags": {"type": "array"}}, "required": ["flags"]}
    engine = StepCacheEngine(backend=ScriptedBackend(['{"flags": null}'] * 2))
    engine.resolve(ask("Which flags fly?", contract=Contract(schema=schema)))
    assert engine.count() == 0


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param('{"step": "\\frac{3}{4} x = 9"}', id="55"),
        pytest.param('{"step": "a \\times b"}', id="55-times"),
        pytest.param('{"step": "\\sigma = 2"}', id="56"),
        pytest.param('```json\n{{"step": Search, "q": "a"}}\n```', id="14"),
    ],
)
def test_damaged_json_is_never_stored_as_it_is(damaged: str) -> None:
    """14, 55, 56: lost backslashes and doubled braces are mended or asked for again; no control
    character takes the place of a formula."""
    backend = ScriptedBackend([damaged, '{"step": "three quarters"}'])
    engine = StepCacheEngine(backend=backend)
    request = ask("Give the next step as JSON with keys step.")
    value = json.loads(engine.resolve(request).text)
    assert not any(sign in value["step"] for sign in "\f\t\b\r\n")
    stored = engine.lookup(request)
    assert stored.served
    assert json.loads(stored.text) == value


def test_two_fenced_blocks_do_not_crash() -> None:
    """58: an example and an answer are two values; which one is meant is not guessed."""
    two = '```json\n{"verdict": "example"}\n```\n\n```json\n{"verdict": "ok"}\n```'
    engine = StepCacheEngine(backend=ScriptedBackend([two, '{"verdict": "ok"}']))
    outcome = engine.resolve(ask("Judge it as JSON with keys verdict."))
    assert json.loads(outcome.text) == {"verdict": "ok"}


def test_a_complete_fenced_object_is_accepted() -> None:
    """59: a fence around one whole object is no fault, and no second call is made."""
    backend = ScriptedBackend(['```json\n{"verdict": "ok"}\n```'])
    engine = StepCacheEngine(backend=backend)
    outcome = engine.resolve(ask("Judge it as JSON with keys verdict."))
    assert (outcome.spent.calls, engine.count()) == (1, 1)


# --- the machinery -----------------------------------------------------------------------------


def test_streams_are_stored_and_replayed() -> None:
    """28: the second of two equal streamed requests is a hit, with the same text."""
    engine = StepCacheEngine(backend=Lettered())
    first = list(engine.stream(ask("Who runs the mill?")))
    second = list(engine.stream(ask("Who runs the mill?")))
    assert isinstance(second[-1], Outcome)
    assert isinstance(first[-1], Outcome)
    assert (second[-1].route, second[-1].text) == ("exact", first[-1].text)


def test_sync_and_async_decide_alike() -> None:
    """49, 50: one threshold on one scale; both interfaces refuse and serve the same."""

    async def asked() -> list[str]:
        engine = StepCacheEngine(backend=Lettered(), policy=LAX)
        return [(await engine.aresolve(request)).route for request in requests]

    requests = [
        ask("Solve 2x = 6 for x."),
        ask("Solve 6 = 2x for x."),
        ask("Solve 2x = 8 for x."),
        ask("rye bread recipe"),
        ask("tax form deadline"),
    ]
    assert asyncio.run(asked()) == [o.route for o in play(*requests)]


@pytest.mark.parametrize("port", ["store", "embedder"])
def test_broken_machinery_is_a_miss(port: str) -> None:
    """A13: a store or an embedder that is down costs the hit, not the answer."""
    broken = {"store": FaultyStore(MemoryStore()), "embedder": FaultyEmbedder(LexicalEmbedder())}
    outcomes = play(ask("Solve 2x = 6 for x."), ask("Solve 2x = 8 for x."), **{port: broken[port]})
    assert [o.text.replace(" ", "")[-3:] for o in outcomes] == ["x=3", "x=4"]


def test_two_fresh_engines_over_one_store_agree(tmp_path: Path) -> None:
    """13, 40: an engine built anew for each call still hits, and never gives an empty answer."""
    path = str(tmp_path / "cache.sqlite")
    for route in ("miss", "exact", "exact"):
        engine = StepCacheEngine(store=path, backend=ScriptedBackend(["By the dam."]))
        outcome = engine.resolve(ask("Where is the mill?"))
        assert (outcome.route, outcome.text) == (route, "By the dam.")
        engine.close()


def test_a_host_that_builds_its_cache_anew_still_hits(tmp_path: Path) -> None:
    """13: through LangChain's cache interface too, over one file."""
    langchain = pytest.importorskip("langchain_stepcache")
    from stepcache.evaluation import LangChainFace

    path, served = str(tmp_path / "cache.sqlite"), None
    for _ in range(2):
        cache = langchain.StepCache(store=path)
        face = LangChainFace(cache)
        served = face.ask(turns("Where is the mill?"))
        if served is None:
            face.admit(turns("Where is the mill?"), "By the dam.")
        cache.engine.close()
    assert served is not None
    assert served.text == "By the dam."


# --- language and writing ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            "Solve 2x + 4 = 10 for x.", "Solve ２ｘ ＋ ４ ＝ １０ for x.", id="full-width"
        ),
        pytest.param("Solve 2,5x = 5 for x.", "Solve 2.5x = 5 for x.", id="decimal-comma"),
        pytest.param("Solve 2x - 4 = 10 for x.", "Solve 2x \u2212 4 = 10 for x.", id="minus"),
        pytest.param("Solve 2*x + 4 = 10 for x.", "Solve 2\u00b7x + 4 = 10 for x.", id="dot"),
        pytest.param("Who owns the caf\u00e9?", "Who owns the cafe\u0301?", id="J2"),
    ],
)
def test_one_request_in_two_writings_is_one(one: str, other: str) -> None:
    """J1, J2: digits, signs and accents of other forms reach the same entry."""
    first, second = play(ask(one), ask(other))
    assert second.route == "reuse"
    assert second.text == first.text


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("Give it as JSON with keys Name", "Give it as JSON with keys name"), id="J3-keys"),
        pytest.param(("Run `Make` twice", "Run `make` twice"), id="J3-code"),
        pytest.param(("Expand (x²)", "Expand (x2)"), id="J2-forms"),
        pytest.param(("Where is the mill?", "Where is the mill? Answer in French."), id="J4"),
        pytest.param(("Where is the mill?", "Wo ist die Mühle?"), id="J4-asked"),
        pytest.param(("Give name as JSON with keys a", "Give name as YAML with keys a"), id="format"),
        pytest.param(("Give it as JSON with keys a, b", "Give it as JSON with keys a, b, c"), id="key"),
    ],
)  # fmt: skip
def test_case_form_language_and_format_are_kept(texts: tuple[str, ...]) -> None:
    """J2-J4 and the edits that four published guards let through: what tells is not folded away."""
    outcomes = play(*(ask(text) for text in texts))
    assert len({o.text for o in outcomes}) == len(texts)


def test_edits_of_an_equation_are_re_derived() -> None:
    """The maths edits that four published guards served wrongly: constant, unknown, sign, sides."""
    engine = StepCacheEngine(backend=ScriptedBackend(["2x + 3 = 11\n\n2x = 8\n\nx = 4"]))
    engine.resolve(ask("Solve 2x + 3 = 11 for x."))
    for text, end in [
        ("Solve 2y + 3 = 11 for y.", "y = 4"),
        ("Solve 2x - 3 = 11 for x.", "x = 7"),
        ("Solve 2x + 3 = 13 for x.", "x = 5"),
        ("Solve 11 = 2x + 3 for x.", "x = 4"),
    ]:
        outcome = engine.resolve(ask(text))
        assert outcome.text.endswith(end)
        assert outcome.spent.calls == 0


def test_an_inequality_is_no_equation() -> None:
    """The answer of an equation is not served where the sign between its sides is another."""
    backend = ScriptedBackend(["2x + 3 = 11\n\nx = 4", "x > 4"])
    engine = StepCacheEngine(backend=backend, policy=LAX)
    engine.resolve(ask("Solve 2x + 3 = 11 for x."))
    assert engine.resolve(ask("Solve 2x + 3 > 11 for x.")).text == "x > 4"


def test_numbers_in_words_and_digits_meet() -> None:
    """Three in digits and in words is one request, four is another."""
    first, second, third = play(
        ask("Name 3 fruits."), ask("Name three fruits."), ask("Name four fruits.")
    )
    assert second.text == first.text != third.text
