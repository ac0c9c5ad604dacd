"""``stepcache stats|list|inspect|explain|top|forget``: over real SQLite stores."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from stepcache import Control, Message, ModelCall, Request, StepCacheEngine
from stepcache.cli._app import app
from stepcache.stores import SQLiteStore
from stepcache.testing import ScriptedBackend

RUNNER = CliRunner()
MATH = "Solve 2x + 3 = 13 for x."
CITY = "Describe Paris as a JSON object with keys name, country."
SECRET = "What does the Zanzibar contract say about pearls?"
ANSWERS = {
    MATH: "2x + 3 = 13\n\n2x = 10\n\nx = 5",
    CITY: '{"name": "Paris", "country": "France"}',
    SECRET: "It forbids the oyster trade.",
}
STORED_WORDS = ("Zanzibar", "pearls", "oyster", "France", "2x = 10")


def answer(call: ModelCall) -> str:
    """What a good model says."""
    return ANSWERS.get(call.messages[-1].text, "An answer.")


def ask(text: str, **fields: Any) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),), **fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with an answer of each family, tags and namespaces, and a report."""
    path = tmp_path / "answers.db"
    engine = StepCacheEngine(store=path, backend=ScriptedBackend(answer))
    engine.resolve(ask(MATH), control=Control(tags=("maths",)))
    engine.resolve(ask(CITY))
    engine.resolve(ask(SECRET), control=Control(namespace="ann", tags=("law",)))
    engine.resolve(ask("Name a sea.", model="other"), control=Control(ttl=3600))
    bad = engine.resolve(ask("Name a moor."))
    assert engine.report_bad(str(bad.entry_id))
    engine.close()
    return path


@pytest.fixture(autouse=True)
def _no_store_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPCACHE_STORE", raising=False)


def run(*arguments: str, path: Path | None = None, stdin: str | None = None) -> Any:
    """Run a command; a path names the store."""
    named = ("--store", str(path)) if path is not None else ()
    return RUNNER.invoke(app, [*arguments, *named], input=stdin)


def told(*arguments: str, path: Path | None = None) -> Any:
    """What a command says as JSON, and nothing beside it."""
    result = run(*arguments, "--json", path=path)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def entries(path: Path) -> dict[str, str]:
    """Id by prompt, of what a store holds."""
    store = SQLiteStore(path)
    try:
        return {entry.prompt: entry.id for entry in store.entries() if entry.prompt}
    finally:
        store.close()


# --- what is there -----------------------------------------------------------------------------


def test_stats_count_what_is_there(path: Path) -> None:
    """Entries by namespace, family, tag; the report apart; bytes as the file has them."""
    figures = told("stats", path=path)
    assert (figures["entries"], figures["scopes"], figures["reports"]) == (4, 3, 1)
    assert sorted(figures["namespaces"].values()) == [1, 3]
    assert "ann" not in figures["namespaces"]
    assert figures["tasks"] == {"text": 2, "json": 1, "linear-equation": 1}
    assert figures["tags"] == {"law": 1, "maths": 1}
    assert figures["expiring"] == 1
    assert figures["cost"]["calls"] == 4
    assert figures["bytes"] >= path.stat().st_size
    text = run("stats", path=path).stdout
    assert "4 in 3 scopes" in text
    assert "text 2, json 1, linear-equation 1" in text
    assert "avoids 4 model calls and" in text


def test_every_command_that_ends_tells_programs() -> None:
    """All have ``--json`` but the one that serves until it is stopped."""
    from typer.main import get_command

    def without(command: Any, name: str) -> list[str]:
        inner = getattr(command, "commands", {})
        if inner:
            return [one for key in inner for one in without(inner[key], f"{name} {key}")]
        options = {option for parameter in command.params for option in parameter.opts}
        return [] if "--json" in options else [name]

    assert without(get_command(app), "stepcache") == ["stepcache serve"]


def test_a_file_that_is_not_there_is_named_without_a_number(path: Path) -> None:
    """An operating system's error is told as people say it."""
    result = run("import", str(path), "nowhere.jsonl")
    assert result.exit_code == 1
    assert result.stderr == "Error: nowhere.jsonl: No such file or directory\n"


def test_what_looks_like_an_id_and_is_none_is_said_to_be_a_prompt(path: Path) -> None:
    """A mistyped id is not answered as if it were a question."""
    told = run("inspect", "0123456789ab", path=path).stdout
    assert told.startswith("No entry's id begins with 0123456789ab")
    assert "No entry's id" not in run("inspect", "Name a lake.", path=path).stdout


def test_list_filters_and_pages(path: Path) -> None:
    """Each filter alone and together; the newest first; pages that hold everything once."""
    known = {entry_id: prompt for prompt, entry_id in entries(path).items()}

    def listed(*options: str) -> list[str]:
        return [known[e["entry_id"]] for e in told("list", *options, path=path)["entries"]]

    assert listed() == ["Name a sea.", SECRET, CITY, MATH]
    assert listed("--tag", "law") == [SECRET]
    assert listed("--namespace", "ann") == [SECRET]
    assert listed("--namespace", "") == ["Name a sea.", CITY, MATH]
    assert listed("--task", "json") == [CITY]
    assert listed("--task", "text", "--namespace", "") == ["Name a sea."]
    assert listed("--older-than", "1h") == []
    assert listed("--older-than", "0") == listed()
    assert listed("--model", "nobody") == []
    pages = [listed("--limit", "3", "--page", str(page)) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [3, 1, 0]
    assert [*pages[0], *pages[1]] == listed()
    shown = run("list", "--limit", "3", path=path).stdout
    assert "4 entries match; page 1 of 2." in shown
    assert SECRET in run("list", "--show-text", path=path).stdout


def test_top_reads_once(path: Path) -> None:
    """The figures and the newest entries, for people and for scripts."""
    once = told("top", "--once", path=path)
    assert once["entries"] == 4
    assert [len(e["entry_id"]) for e in once["newest"]] == [24] * 4
    shown = run("top", "--once", path=path).stdout
    assert once["newest"][0]["entry_id"][:12] in shown
    refused = run("top", path=path)
    assert refused.exit_code == 2
    assert "--once" in refused.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_top_is_live_in_a_terminal(path: Path) -> None:
    """It shows an entry that comes while it watches, and Ctrl-C ends it."""
    ours, theirs = pty.openpty()
    # Whoever runs the tests in the background may have had Ctrl-C ignored for all below.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from stepcache.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "top", "--store", str(path)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "50"}
    watching = subprocess.Popen(
        [*command, "--interval", "0.2"], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        _read_until(ours, "4 in 3 scopes")
        engine = StepCacheEngine(store=path, backend=ScriptedBackend(answer))
        engine.resolve(ask("Name a bay."))
        engine.close()
        _read_until(ours, "5 in 3 scopes")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130
    finally:
        watching.kill()
        watching.wait()
        os.close(ours)


def _read_until(terminal: int, text: str) -> None:
    seen, deadline = "", time.monotonic() + 60
    while text not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen):
        assert time.monotonic() < deadline, seen[-2000:]
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65_536).decode("utf-8", "replace")


# --- why ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "route", "words"),
    [
        (MATH, "exact", "this very request is stored"),
        ("Please find x if 13 = 3 + 2x.", "reuse", "same demands are stored in other words"),
        ("Solve 2x + 3 = 15 for x.", "adapt", "re-derived for the new demands"),
        (CITY.replace("country", "country, area"), "patch", "key-added nothing -> 'area'"),
        (CITY.replace("Paris", "Rome"), "skip", "differs in what no verifier accounts for"),
        ("Name a sea near Rome.", "miss", "Nearest in wording is entry"),
    ],
)
def test_inspect_tells_why(path: Path, prompt: str, route: str, words: str) -> None:
    """Each route in plain words and as data; nothing in the store has changed after it."""
    before = (entries(path), told("stats", path=path))
    found = told("inspect", prompt, path=path)["scopes"]
    assert found[0]["now"]["route"] == route
    shown = run("inspect", prompt, path=path)
    assert shown.exit_code == 0, shown.output
    assert words in shown.stdout
    after = (entries(path), told("stats", path=path))
    assert after == before


def test_inspect_shows_differences_side_by_side(path: Path) -> None:
    """The stored side only when asked for; the caller's own always."""
    prompt = CITY.replace("Paris", "Rome")
    row = r"name\s+{}\s+Rome\s+nothing"
    assert re.search(row.format(r"\(hidden\)"), run("inspect", prompt, path=path).stdout)
    shown = run("inspect", prompt, "--show-text", path=path).stdout
    assert re.search(row.format("Paris"), shown)
    (candidate,) = told("inspect", prompt, path=path)["scopes"][0]["now"]["candidates"]
    assert candidate["differences"] == [
        {
            "kind": "name",
            "path": "residue",
            "stored": "(hidden)",
            "asked": "Rome",
            "accounted_for_by": None,
        }
    ]


def test_inspect_an_entry(path: Path) -> None:
    """By its id or the beginning of it: what it is, and what its request met before it."""
    entry_id = entries(path)[SECRET]
    for name in (entry_id, entry_id[:8]):
        found = told("inspect", name, path=path)
        assert (found["entry_id"], found["task"], found["tags"]) == (entry_id, "text", ["law"])
        assert found["before"]["route"] == "miss"
        assert "prompt" not in found
    shown = run("inspect", entry_id, "--show-text", path=path).stdout
    assert SECRET in shown
    assert ANSWERS[SECRET] in shown


def test_inspect_in_one_namespace_and_from_standard_input(path: Path) -> None:
    """A namespace narrows the scopes; ``-`` reads the prompt."""
    assert told("inspect", SECRET, "--namespace", "", path=path)["scopes"][0]["now"]["asks"]
    (one,) = told("inspect", SECRET, "--namespace", "ann", path=path)["scopes"]
    assert one["now"]["route"] == "exact"
    piped = run("inspect", "-", "--json", path=path, stdin=MATH)
    assert json.loads(piped.stdout)["scopes"][0]["now"]["route"] == "exact"


def test_a_newcomer_learns_why_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first call through LangChain misses; the command says so in plain words."""
    pytest.importorskip("langchain_openai")
    from langchain_core.globals import set_llm_cache
    from langchain_openai import ChatOpenAI

    from langchain_stepcache import StepCache
    from stepcache.testing.endpoint import ScriptedEndpoint

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPCACHE_STORE", "sqlite:///answers.db")
    cache = StepCache(store="sqlite:///answers.db")
    with ScriptedEndpoint(lambda request: "The Elbe.") as endpoint:
        llm = ChatOpenAI(base_url=endpoint.url, model="local", api_key="none", temperature=0)
        set_llm_cache(cache)
        try:
            llm.invoke("Name 3 rivers.")
            first = run("inspect", "Name 3 rivers.").stdout
            llm.invoke("Name 4 rivers.")
            second = run("inspect", "Name 4 rivers.").stdout
        finally:
            set_llm_cache(None)
            cache.engine.close()
    assert "Before that:\nMiss: nothing stored answers it." in first
    assert "holds no other entry" in first
    assert "Before that:\nMiss" in second
    assert re.search(r"number\s+\(hidden\)\s+4\s+nothing", second)
    assert "was of another scope" in second


@pytest.mark.parametrize(
    ("a", "b", "options", "route"),
    [
        (MATH, "Solve 2x + 3 = 15 for x.", [], "adapt"),
        (MATH, "Solve 2x + 3 > 13 for x.", [], "miss"),
        (CITY, CITY.replace("country", "country, area"), [], "patch"),
        (CITY, CITY.replace("country", "name"), ["--answer", ANSWERS[CITY]], "skip"),
        ("What's a fjord?", "what is a fjord", [], "reuse"),
        ("What's a fjord?", "What's a fjord?", [], "exact"),
    ],
)
def test_explain_names_the_route(a: str, b: str, options: list[str], route: str) -> None:
    """Two prompts, no store and no model."""
    found = told("explain", a, b, *options)
    assert (found["route"], found["first"]["stand_in"]) == (route, not options)
    shown = run("explain", a, b, *options)
    assert shown.exit_code == 0
    assert found["headline"] in shown.stdout
    for line in found["why"]:
        assert line.splitlines()[0] in shown.stdout


def test_explain_says_when_the_answer_is_not_kept() -> None:
    """An answer that fails its check is served to nobody."""
    shown = run("explain", CITY, CITY, "--answer", "I like Paris.").stdout
    assert shown.startswith("The answer to A is not kept: ")
    assert told("explain", CITY, CITY, "--answer", "I like Paris.")["first"]["entry_id"] is None


def test_an_engine_of_ones_own_decides(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its policy, over the store that is named; an object that has one will do."""
    source = (
        "from stepcache import Policy, StepCacheEngine\n"
        "class Cache:\n    engine = StepCacheEngine(policy=Policy(adapt=False))\n"
    )
    (tmp_path / "my_engine.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    other = "Solve 2x + 3 = 15 for x."
    mine = ("--engine", "my_engine:Cache")
    assert told("inspect", other, path=path)["scopes"][0]["now"]["route"] == "adapt"
    assert told("inspect", other, *mine, path=path)["scopes"][0]["now"]["route"] != "adapt"
    assert told("explain", MATH, other, *mine)["route"] != "adapt"
    refused = run("explain", MATH, other, "--engine", "my_engine:Policy")
    assert refused.exit_code == 2


# --- forgetting --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--tag", "law"], [SECRET]),
        (["--namespace", "ann"], [SECRET]),
        (["--task", "json"], [CITY]),
        (["--task", "text", "--namespace", ""], ["Name a sea."]),
        (["--older-than", "1h"], []),
        (["--older-than", "0s"], [MATH, CITY, SECRET, "Name a sea."]),
        (["--model", "nobody"], []),
    ],
)
def test_forget_what_is_named(path: Path, options: list[str], gone: list[str]) -> None:
    """First told, then removed; all else stays, the report too."""
    before = entries(path)
    dry = told("forget", *options, "--dry-run", path=path)
    assert dry == {"matching": len(gone), "removed": 0, "dry_run": True}
    assert entries(path) == before
    done = told("forget", *options, "--yes", path=path)
    assert done == {"matching": len(gone), "removed": len(gone), "dry_run": False}
    assert entries(path).keys() == before.keys() - set(gone)
    assert told("stats", path=path)["reports"] == 1


def test_forget_asks_first(path: Path) -> None:
    """No is no, silence is no, yes is yes; an entry goes by the beginning of its id."""
    name = entries(path)[MATH][:10]
    for reply in ("n\n", ""):
        result = run("forget", name, path=path, stdin=reply)
        assert result.exit_code == 1
        assert MATH in entries(path)
    result = run("forget", name, path=path, stdin="y\n")
    assert result.exit_code == 0
    assert MATH not in entries(path)
    assert run("forget", name, "--yes", path=path).exit_code == 1


# --- privacy, errors, completion ---------------------------------------------------------------


def test_no_stored_word_is_shown_unless_asked_for(path: Path) -> None:
    """Whatever the command and the form: prompts and answers stay in the store."""
    known = entries(path)
    calls = [
        ["stats"],
        ["list"],
        ["top", "--once"],
        ["inspect", known[SECRET]],
        ["inspect", known[CITY]],
        ["inspect", "What does the contract say about tin?"],
        ["inspect", "Solve 3x + 3 = 15 for x."],
        ["inspect", "Describe Rome as a JSON object with keys name, country."],
        ["inspect", "Describe Paris as a JSON object with keys name, area."],
        ["forget", "--tag", "law", "--dry-run"],
        ["doctor"],
    ]
    for call in calls:
        for form in ([], ["--json"]):
            result = run(*call, *form, path=path)
            assert result.exit_code == 0, result.output
            for word in STORED_WORDS:
                assert word not in result.output, call


def test_stored_text_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """Escape sequences and lone surrogates are shown as what they are."""
    path = tmp_path / "c.db"
    engine = StepCacheEngine(
        store=path, backend=ScriptedBackend(lambda call: "\x1b]0;x\x07 \ud800")
    )
    engine.resolve(ask("\x1b[2Jwipe \u202eevil"))
    engine.close()
    (entry_id,) = entries(path).values()
    for call in (["list"], ["inspect", entry_id], ["top", "--once"]):
        result = run(*call, "--show-text", path=path)
        assert result.exit_code == 0, result.output
        assert not {"\x1b", "\x07", "\u202e"} & set(result.output)
        assert r"\x1b[2Jwipe" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stats"], "no store is named"),
        (["stats", "--store", "nowhere.db"], "there is no file nowhere.db"),
        (["stats", "--store", "sqlite:///no/where.db"], "a fourth slash makes it absolute"),
        (["stats", "--store", "memory:"], "another process's memory"),
        (["stats", "--store", "mysql://host/db"], "the scheme 'mysql' is unknown"),
        (["list", "--older-than", "soon", "--store", "{path}"], "--older-than is 'soon': use"),
        (["list", "--page", "0", "--store", "{path}"], "--page"),
        (["forget", "--store", "{path}"], "not nothing"),
        (["forget", "abcdef", "--tag", "law", "--store", "{path}"], "not both"),
        (["inspect", "--store", "{path}"], "ENTRY|PROMPT"),
        (["inspect", "x", "--engine", "nowhere:engine", "--store", "{path}"], "cannot be imported"),
        (["explain", "only one"], "PROMPT_B"),
        (["export", "nowhere.db", "-"], "there is no file"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_usage_ends_with_2(path: Path, arguments: list[str], words: str) -> None:
    """The value, the reason and the way out, on standard error and without a traceback."""
    result = run(*(a.format(path=path) for a in arguments))
    assert result.exit_code == 2, result.output
    assert words in re.sub(r"[│╭╮╰╯─]|\s+", " ", result.stderr).replace("  ", " ")
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not Path("nowhere.db").exists()


def test_a_beginning_that_fits_several_is_refused(path: Path) -> None:
    """Rather than one of them being taken."""
    store = SQLiteStore(path)
    first = next(entry for entry in store.entries() if entry.prompt)
    from dataclasses import replace

    twin = replace(first, id=first.id[:-1] + "~", exact_key="0" * 64, canonical_key=None)
    store.put(twin, None, "none")
    store.close()
    result = run("forget", first.id[:12], "--yes", path=path)
    assert result.exit_code == 2
    assert "begins 2 ids" in result.stderr


def test_the_environment_names_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """STEPCACHE_STORE stands in for --store, as a URL too."""
    monkeypatch.setenv("STEPCACHE_STORE", f"sqlite:///{path}")
    assert told("stats")["entries"] == 4
    assert told("compact")["entries"] == 5  # the report is kept too


def test_shells_complete_commands() -> None:
    """The beginning of a command is completed, with nothing installed in any shell."""
    environment = {
        **os.environ,
        "_STEPCACHE_COMPLETE": "complete_bash",
        "COMP_WORDS": "stepcache in",
        "COMP_CWORD": "1",
    }
    program = "import sys; sys.argv = ['stepcache']; from stepcache.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["inspect"]


def test_records_go_to_standard_output_too(tmp_path: Path) -> None:
    """Records of runs go to standard output alone where ``-`` is their file."""
    pairs = tmp_path / "pairs.jsonl"
    pair = {"id": "p", "a": "What's a fjord?", "b": "what is a fjord", "label": "same_answer"}
    pairs.write_text(json.dumps(pair) + "\n", encoding="utf-8")
    result = run("eval", str(pairs), "--json", "-")
    assert json.loads(result.stdout)["wrong"] == 0
    assert "wrong serves: 0" in result.stderr
    assert re.fullmatch(r"\d+\.\d+\.\d+", told("version")["stepcache"])
    result = run("bench", "hotpath", "--paths", "exact-20", "--entries", "50", "--json", "-")
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == [
        "exact hit, engine, memory, 20 tokens"
    ]


def test_moving_entries_is_told_as_data(path: Path, tmp_path: Path) -> None:
    """Export and import by path and by URL."""
    lines, copy = tmp_path / "lines.jsonl", tmp_path / "copy.db"
    assert told("export", str(path), str(lines)) == {"entries": 5}
    assert told("import", f"sqlite:///{copy}", str(lines)) == {"entries": 5, "skipped": 0}
    assert entries(copy) == entries(path)


# --- doctor ------------------------------------------------------------------------------------


def test_doctor_finds_a_sound_installation_sound(path: Path) -> None:
    """Every part is named, and the write test leaves nothing behind."""
    before = entries(path)
    found = told("doctor", path=path)
    assert found["healthy"]
    by_name = {finding["name"]: finding for finding in found["findings"]}
    for name in (
        "python",
        "stepcache",
        "[cli]",
        "index",
        "embedder",
        "store",
        "records",
        "write test",
    ):
        assert by_name[name]["state"] == "ok", by_name[name]
    assert not {"[test]", "[notebooks]", "[trust]"} & by_name.keys()
    assert entries(path) == before
    assert run("doctor", path=path).stdout.rstrip().endswith("Nothing is broken.")


def test_doctor_without_a_store_checks_the_rest() -> None:
    """No store is no fault."""
    found = told("doctor")
    assert [f["state"] for f in found["findings"] if f["name"] == "store"] == ["absent"]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A file that is no store."""
    path = tmp_path / "broken.db"
    path.write_text("Not a database, and longer than its header would be. " * 20)
    return path


def test_doctor_ends_with_1_where_something_is_broken(broken: Path, tmp_path: Path) -> None:
    """A file that is no store, one that is not there, an engine that cannot be imported."""
    for arguments in (
        ["--store", str(broken)],
        ["--store", str(tmp_path / "none.db")],
        ["--engine", "nowhere:engine"],
    ):
        result = run("doctor", *arguments, "--json")
        assert result.exit_code == 1, result.output
        found = json.loads(result.stdout)
        assert not found["healthy"]
        assert [f["state"] for f in found["findings"]].count("broken") == 1
    assert not (tmp_path / "none.db").exists()


def test_doctor_tells_how_to_get_what_is_missing() -> None:
    """In an environment without an extra's packages: absent, and the line that installs it."""
    program = (
        "from importlib import metadata\n"
        "real = metadata.version\n"
        "def version(name):\n"
        "    if name == 'psycopg':\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return '0.1' if name == 'tokenizers' else real(name)\n"
        "metadata.version = version\n"
        "import sys; sys.argv = ['stepcache', 'doctor', '--json']\n"
        "from stepcache.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stderr
    found = {f["name"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["[postgres]"]["state"] == "absent"
    assert found["[postgres]"]["fix"] == 'pip install "stepcache[postgres]"'
    assert found["[onnx]"]["state"] == "broken"
    assert "tokenizers 0.1" in found["[onnx]"]["detail"]


def test_records_sealed_with_another_key_are_told_of(path: Path) -> None:
    """A store that came without its key reads as empty, and every command that looks says why."""
    Path(f"{path}.key").unlink()
    shown = run("inspect", MATH, path=path)
    assert shown.exit_code == 0
    assert "5 records cannot be read here" in shown.stdout
    assert told("stats", path=path)["unreadable"] == 5
    found = run("doctor", "--json", path=path)
    assert found.exit_code == 1
    findings = {f["name"]: f for f in json.loads(found.stdout)["findings"]}
    assert findings["records"]["state"] == "broken"
    assert "another key" in findings["records"]["detail"]
