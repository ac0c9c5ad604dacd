"""The generator: the same seed gives the same requests, in the numbers that are promised."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from stepcache.bench._items import EquationDemand, ObjectDemand, item_from
from stepcache.bench._wordings import LEVELS, WordingsError, load_wordings
from stepcache.bench._workload import QUICK, SEEDS, fingerprint, workload

PAPER = {
    ("math", "paraphrase low"): 30,
    ("math", "paraphrase medium"): 30,
    ("math", "paraphrase high"): 30,
    ("math", "constants"): 30,
    ("json", "paraphrase low"): 30,
    ("json", "paraphrase medium"): 30,
    ("json", "paraphrase high"): 30,
    ("json", "keys added"): 12,
}
MUST_NOT = {
    "sign changed",
    "relation changed",
    "language changed",
    "format changed",
    "topic changed",
    "source changed",
    "value demand changed",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_paper_split_has_222_requests(seed: int) -> None:
    """Every perturbation of the paper split has its number, and every request is another one."""
    items = [item for item in workload(seed) if item.split == "paper"]
    assert Counter((item.family, item.group) for item in items) == PAPER
    assert len({item.prompt for item in items}) == len(items) == 222


@pytest.mark.parametrize("seed", SEEDS)
def test_the_extended_split_has_at_least_300_more(seed: int) -> None:
    """The extended split names every group, and marks those that no earlier answer satisfies."""
    items = [item for item in workload(seed) if item.split == "extended"]
    assert len(items) >= 300
    groups = {item.group for item in items}
    assert {item.group for item in items if item.must_not} == MUST_NOT
    assert groups - MUST_NOT == {
        *("form: sides swapped", "form: LaTeX", "form: decimals", "form: Unicode"),
        *("variable renamed", "key removed", "key renamed", "type changed", "enum changed"),
    }


@pytest.mark.parametrize("seed", [1, *SEEDS])
def test_ids_and_prompts_are_unique(seed: int) -> None:
    """No request of a seed stands in it twice, in whatever split."""
    items = workload(seed)
    assert len({item.id for item in items}) == len({item.prompt for item in items}) == len(items)


def test_the_same_seed_gives_the_same_requests() -> None:
    """Two generators agree on everything; another seed gives other requests."""
    assert workload(42) == workload(42)
    assert fingerprint(workload(42)) == fingerprint(workload(42))
    assert fingerprint(workload(42)) != fingerprint(workload(43))


def test_a_split_by_itself_asks_the_same_requests() -> None:
    """Leaving a split out changes nothing in the other one."""
    both = [item for item in workload(42) if item.split == "extended"]
    alone = [item for item in workload(42, ("extended",)) if item.split == "extended"]
    assert alone == both


def test_bases_come_before_what_is_made_of_them() -> None:
    """Every request's base prompt was asked in the warm-up before it."""
    seen: set[str] = set()
    for item in workload(44):
        if item.split == "warm-up":
            seen.add(item.base)
        else:
            assert item.base in seen


def test_quick_is_24_requests_of_every_group() -> None:
    """The quick workload is a part of the whole one that touches every perturbation."""
    quick = workload(42, quick=True)
    asked = [item for item in quick if item.split != "warm-up"]
    assert len(asked) == QUICK
    whole = workload(42)
    assert set(map(repr, quick)) <= set(map(repr, whole))
    groups = {(item.family, item.group) for item in whole if item.split != "warm-up"}
    assert {(item.family, item.group) for item in asked} == groups
    assert {item.base for item in asked} <= {i.base for i in quick if i.split == "warm-up"}


def test_constants_never_repeat_an_equation() -> None:
    """Two requests with other constants never have the same equation up to a factor."""
    items = [item for item in workload(42) if item.group in ("constants", "sign changed")]
    assert len({(item.demand.left, item.demand.right) for item in items}) == len(items)


def test_items_survive_their_json_form() -> None:
    """What is written to a record is read back equal."""
    for item in workload(43):
        again = item_from(json.loads(json.dumps(item.as_dict())))
        assert again == item
        assert isinstance(again.demand, EquationDemand | ObjectDemand)


def test_an_unknown_split_is_refused() -> None:
    """A misspelt split is named, not left out."""
    with pytest.raises(ValueError, match="extended"):
        workload(42, ("papre",))


def test_the_shipped_wordings_are_enough() -> None:
    """At least twelve wordings at every level of both families, none twice."""
    words = load_wordings()
    for voice in (words.math, words.json):
        for level in LEVELS:
            wordings = voice.levels[level].wordings
            assert len(set(wordings)) == len(wordings) >= 12


def _file(folder: Path, **changes: object) -> Path:
    math = {
        level: [f"{level} {n}: {{equation}}, {{variable}}?" for n in range(12)] for level in LEVELS
    }
    objects = {level: [f"{level} {n}: {{thing}} {{keys}}" for n in range(12)] for level in LEVELS}
    path = folder / "own.json"
    path.write_text(json.dumps({"math": {**math, **changes}, "json": objects}), encoding="utf-8")
    return path


def test_a_file_of_ones_own_swaps_the_wordings(tmp_path: Path) -> None:
    """Paraphrases come from the file that was named; the rest of the workload stays."""
    words = load_wordings(_file(tmp_path))
    own, shipped = workload(42, ("paper",), words), workload(42, ("paper",))
    assert words.digest != load_wordings().digest
    paraphrased = [item for item in own if item.group == "paraphrase low"]
    assert all(item.prompt.startswith("low ") for item in paraphrased)
    rest = [item for item in own if not item.group.startswith("paraphrase")]
    assert {i.prompt for i in rest} <= {i.prompt for i in shipped}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"low": ["{equation}"] * 12}, "at least 12"),
        ({"low": [f"{n} {{variable}}" for n in range(12)]}, "lacks a slot"),
        ({"low": [f"{n} {{equation}} {{thing}}" for n in range(12)]}, "these slots only"),
        ({"low": [f"{n} {{equation.real}}" for n in range(12)]}, "these slots only"),
        ({"low": [f"{n} {{equation!r}}" for n in range(12)]}, "these slots only"),
        ({"low": [f"{n} {{equation" for n in range(12)]}, "equation"),
        ({"low": list(range(12))}, "characters"),
        ({"low": None}, "list of texts"),
    ],
)
def test_a_file_that_cannot_work_says_why(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    """Too few wordings, missing slots and slots that reach into objects are refused."""
    with pytest.raises(WordingsError, match=why):
        load_wordings(_file(tmp_path, **changes))


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    """No file, or no JSON in it, is one sentence and not a traceback of another library."""
    with pytest.raises(WordingsError, match="cannot be read"):
        load_wordings(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(WordingsError, match="not JSON"):
        load_wordings(broken)
