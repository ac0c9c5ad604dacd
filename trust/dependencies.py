"""What each extra pulls in, as a page; and whether any of it is known to be vulnerable.

python -m trust.dependencies              write docs/dependencies.md for what is installed here
python -m trust.dependencies --audit      ask the OSV database about the core's dependencies
python -m trust.dependencies --audit all  the same about an extra's
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stepcache._counts import count

__all__ = ["Audit", "audit", "bill", "write_bill"]

_ROOT = Path(__file__).resolve().parent.parent
_PAGE = _ROOT / "docs" / "dependencies.md"
_OWN = "stepcache"
_FOR_DEVELOPERS = ("bench", "docs", "notebooks", "test", "trust")
_SECONDS = 120


def _project() -> dict[str, Any]:
    with (_ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


def direct(extra: str = "") -> list[Requirement]:
    """What the project itself asks for; the core's for no extra. Extras within extras opened."""
    project = _project()
    named = project["optional-dependencies"][extra] if extra else project["dependencies"]
    found: list[Requirement] = []
    for each in map(Requirement, named):
        if canonicalize_name(each.name) == _OWN:
            for inner in sorted(each.extras):
                found.extend(direct(inner))
        else:
            found.append(each)
    return found


def bill(extra: str = "") -> dict[str, Distribution | None]:
    """Everything an extra brings, by name, as installed here; None for what is not.

    Markers are those of this machine.
    """
    found: dict[str, Distribution | None] = {}
    waiting = [(each, "") for each in direct(extra)]
    while waiting:
        requirement, parent_extra = waiting.pop()
        if requirement.marker and not _holds(requirement, parent_extra):
            continue
        name = canonicalize_name(requirement.name)
        known = name in found
        try:
            found[name] = installed = distribution(name)
        except PackageNotFoundError:
            found[name] = None
            continue
        for extra_name in ("", *sorted(requirement.extras)):
            if known and not extra_name:
                continue
            for line in installed.requires or ():
                needed = Requirement(line)
                if not needed.marker or _holds(needed, extra_name):
                    waiting.append((needed, extra_name))
    return dict(sorted(found.items()))


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


# --- the page ----------------------------------------------------------------------------------


def write_bill(path: Path = _PAGE) -> None:
    """Write the page."""
    path.write_text("".join(_lines()))


def _lines() -> Iterator[str]:
    core = bill()
    yield (
        "# Dependencies\n\n"
        "What `pip install stepcache` brings, and what each extra adds to it. Written by "
        "`python -m trust.dependencies` from the metadata of an installation on "
        f"{sys.platform}, Python {sys.version_info.major}.{sys.version_info.minor}; versions are "
        "those found there. `make audit` asks the OSV database whether any of it is known to be "
        "vulnerable.\n\n"
    )
    yield f"## The core\n\n{_table(core)}\n"
    for extra in _project()["optional-dependencies"]:
        more = {name: each for name, each in bill(extra).items() if name not in core}
        who = " (for developers)" if extra in _FOR_DEVELOPERS else ""
        yield f"## `[{extra}]`{who}\n\n"
        names = ", ".join(f"`{each}`" for each in sorted({r.name for r in direct(extra)}))
        yield f"Asked for: {names or 'nothing of its own'}.\n\n"
        if extra in _FOR_DEVELOPERS:
            yield f"{count(len(more), 'package')} beside the core.\n\n"
        elif more:
            yield f"{_table(more)}\n"


def _table(packages: dict[str, Distribution | None]) -> str:
    rows = ["| package | version | licence |\n| --- | --- | --- |\n"]
    for name, each in packages.items():
        if each is None:
            rows.append(f"| {name} | not installed | |\n")
        else:
            rows.append(f"| {name} | {each.version} | {_licence(each)} |\n")
    return "".join(rows)


def _licence(package: Distribution) -> str:
    told = _field(package, "License-Expression")
    if not told:
        classes = [
            line.rpartition(" :: ")[2]
            for line in package.metadata.get_all("Classifier") or ()
            if line.startswith("License ::")
        ]
        told = ", ".join(classes) or _field(package, "License").partition("\n")[0]
    told = told.strip() or "not said"
    return told if len(told) <= 60 else f"{told[:57]}..."


def _field(package: Distribution, name: str) -> str:
    return str((package.metadata.get_all(name) or [""])[0])


# --- the audit ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a look into the database came to."""

    asked: int
    """Packages asked about."""
    reached: bool
    """False: nothing is known."""
    told: str
    """In a line or more."""
    vulnerable: tuple[str, ...] = ()
    """Package, version and identifier of each finding."""


def audit(extra: str = "") -> Audit:
    """Ask about all that an extra brings, in the versions installed here."""
    packages = {name: each.version for name, each in bill(extra).items() if each is not None}
    if find_spec("pip_audit") is None:
        return Audit(asked=0, reached=False, told="not audited: pip-audit is not installed")
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text("".join(f"{name}=={version}\n" for name, version in packages.items()))
        line = [sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv"]
        line += ["--requirement", str(listed), "--no-deps", "--disable-pip", "--format", "json"]
        line += ["--progress-spinner", "off", "--timeout", "10"]
        try:
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            found = json.loads(done.stdout)["dependencies"]
        except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
            return Audit(
                asked=len(packages),
                reached=False,
                told="not audited: the vulnerability database could not be reached",
            )
    bad = tuple(
        f"{each['name']} {each['version']}: {one['id']}"
        for each in found
        for one in each.get("vulns", ())
    )
    told = "\n".join(bad) or f"{count(len(packages), 'package')}, no known vulnerability"
    return Audit(asked=len(packages), reached=True, told=told, vulnerable=bad)


def main() -> int:
    """The command; returns its exit code: 1 for a known vulnerability only."""
    parser = argparse.ArgumentParser(prog="python -m trust.dependencies", description=__doc__)
    parser.add_argument("--audit", nargs="?", const="", metavar="EXTRA")
    asked = parser.parse_args()
    if asked.audit is None:
        write_bill()
        return 0
    result = audit(asked.audit)
    print(result.told)
    return 1 if result.vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
