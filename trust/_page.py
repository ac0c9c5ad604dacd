"""The figures as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["write_page"]

_HEAD = """# Reliability

What was tried to make StepCache serve a wrong answer, fall over, get stuck or tell one tenant of
another, and what came of it. Every figure on this page is written by one command, which ends
non-zero on any violation; every input follows from the seed.

```console
make trust                              # all of it: about an hour on two free cores
make trust TRUST_ARGS="--quick"         # a slice of everything, in minutes; keeps nothing
make trust TRUST_ARGS="faults forgery"  # some parts; the others keep their figures here
```

"""


def write_page(path: Path, known: Mapping[str, Any]) -> None:
    """Write the page for what is known so far."""
    parts = [_HEAD, *_summary(known)]
    for name, section in _SECTIONS.items():
        if name in known:
            parts.extend(section(known[name]))
    path.write_text("".join(parts).rstrip() + "\n")


def _summary(known: Mapping[str, Any]) -> Iterator[str]:
    yield "| tried | how often | violations |\n| --- | ---: | ---: |\n"
    for name, (what, count) in _TRIED.items():
        if name in known:
            figures = known[name]
            if count in figures:
                yield f"| {what} | {figures[count]:,} | {figures['faults']} |\n"
    yield "\n"
    for name, figures in known.items():
        if figures.get("not_run"):
            yield f"Not run in {name}: {figures['not_run']}.\n\n"
        if figures.get("share", 1) < 1:
            yield f"Of {name}, {figures['share']:.0%} of a full run is shown here.\n\n"


_TRIED: dict[str, tuple[str, str]] = {
    "fuzz": ("inputs to parsers and translators, by grammar and mutation", "inputs"),
    "coverage": ("the same, found by coverage", "inputs"),
    "limits": ("inputs as long as the policy lets in", "inputs"),
    "faults": ("faults of ports, at every exchange of recorded flows", "trials"),
    "forgery": ("stored records forged, corrupted, moved or put back", "trials"),
    "tenants": ("requests for what another tenant's entries say", "tries"),
    "collisions": ("prompts made to lie next to stored ones", "asked"),
    "attacks": ("attacks by name", "tests"),
    "processes": ("forks, signals, ends, loops, pools and clocks", "tests"),
}


def _fuzz(figures: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "## Hostile input\n\nEach target runs the product on inputs made from a grammar and changed "
        "by one to five mutations. A crash is any exception, a hang is more than 100 ms of CPU time "
        "(the least of three runs), and wrong is a result that a reader of its own denies: Python's "
        "own parsers, sympy, another JSON Schema validator and a reader of its specification, the "
        "benchmark's judge.\n\n"
        "| target | what | inputs | crashes | hangs | wrong | slowest |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for each in figures["targets"]:
        yield (
            f"| {each['name']} | {each['what']} | {each['inputs']:,} | {each['crashes']} | "
            f"{each['hangs']} | {each['wrong']} | {each['slowest'] * 1000:.0f} ms |\n"
        )
    yield "\n"


def _coverage(figures: Mapping[str, Any]) -> Iterator[str]:
    if not figures.get("targets"):
        return
    yield (
        "### Guided by coverage\n\nThe targets that read bytes, under atheris (libFuzzer), each for "
        "a fixed time.\n\n| target | inputs | places reached | faults |\n"
        "| --- | ---: | ---: | ---: |\n"
    )
    for each in figures["targets"]:
        yield f"| {each['name']} | {each['inputs']:,} | {each['edges']:,} | {each['faults']} |\n"
    yield "\n"


def _limits(figures: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"### At the limits\n\n{figures['inputs']:,} inputs of up to {figures['chars']:,} "
        "characters, each one shape repeated, to every parser: none took more than "
        f"{figures['slowest']:.2f} s of CPU time, twice the text took at most "
        f"{figures['worst_growth']:.1f} times as long, and the most memory one call held was "
        f"{figures['peak_bytes'] / 2**20:.0f} MiB.\n\n"
    )


def _faults(figures: Mapping[str, Any]) -> Iterator[str]:
    from trust.faults import DRIVERS, FAULTS, SCENES

    yield (
        "## Broken machinery\n\n"
        f"{len(SCENES)} scenes, one for each way a request can go, under {len(DRIVERS)} drivers "
        f"(synchronous, asynchronous, streamed, look-up, admission, batch). Each exchange with a "
        f"port is noted, and then made to fail in each of {len(FAULTS) + 1} ways: it raises (also "
        "what ends programs), returns rubbish, another's entry, hollow values or bad vectors, "
        "answers late, hangs beyond its budget, or is cancelled. The outcome has to be the right "
        "answer, the bare model's own, or the model's own error; and afterwards the same request "
        "has to be answered rightly.\n\n"
        "| store | recorded flows | exchanges | trials | violations |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
    )
    for each in figures["stores"]:
        yield (
            f"| {each['store']} | {each['flows']:,} | {each['exchanges']:,} | {each['trials']:,} | "
            f"{each['violations']} |\n"
        )
    yield "\n"


def _forgery(figures: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "## Forged records\n\nSomebody who can write the store but has not its key changes a row: a "
        "bit at each byte in turn, bytes, another row's record, whole rows under other keys, "
        "expired records put back, each column. Then the entry is asked for by key, by canonical "
        "key, by its vector and by its id.\n\n"
        "| store | trials | byte offsets of a record changed | refused | true entry served | "
        "forgery served | errors |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for each in figures["stores"]:
        yield (
            f"| {each['store']} | {each['trials']:,} | {each['regions']:,} of {each['longest']:,} | "
            f"{each['lost']:,} | {each['unharmed']:,} | {each['served']} | {each['errors']} |\n"
        )
    yield (
        "\nWhat is left to such a writer: to remove rows, and to put back a genuine record of the "
        "same request until it expires.\n\n"
    )


def _tenants(figures: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"## Tenants\n\n{figures['tries']:,} requests by {figures['tenants']} tenants with names "
        "made to be confused, under an embedder to which all texts are one; half of the tenants "
        f"have entries, and {figures['own']:,} requests were served their own. "
        f"{figures['crossed']} were served, told of, counted or let touch another's.\n\n"
    )


def _collisions(figures: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "## Key collision\n\nNeighbours of stored prompts: a character, digit, sign, negation, "
        "name, key, year, language or format apart. What is served has to be right for the "
        "neighbour, by sympy and a validator of its own; where only another answer can be right, "
        "nothing may be served. No similarity is too low to be looked at.\n\n"
        "| embedder | neighbours | mean cosine | served | wrong |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
    )
    for each in figures["embedders"]:
        yield (
            f"| {each['embedder']} | {each['asked']:,} | {each['nearest']:.3f} | {each['served']:,} "
            f"| {each['wrong']} |\n"
        )
    yield "\n"


def _named(title: str) -> Any:
    def section(figures: Mapping[str, Any]) -> Iterator[str]:
        yield f"## {title}\n\n"
        for name in figures.get("names", ()):
            yield f"- {name.removeprefix('test_').replace('_', ' ')}\n"
        yield "\n"

    return section


_SECTIONS: dict[str, Any] = {
    "fuzz": _fuzz,
    "coverage": _coverage,
    "limits": _limits,
    "faults": _faults,
    "forgery": _forgery,
    "tenants": _tenants,
    "collisions": _collisions,
    "attacks": _named("Attacks by name"),
    "processes": _named("What befalls a process"),
}
