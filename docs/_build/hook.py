"""What the site holds beside ``docs/``: the project's own papers, results, and the commands.

Pages link to files outside ``docs/`` as they lie in the repository (``../CHANGELOG.md``), so that
the links work where the sources are read; here they lead to a copy inside the site. Two markers are
filled in: ``<!-- commands -->`` and ``<!-- results -->``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

sys.path.insert(0, str(Path(__file__).parent))
from cli_page import commands_as_markdown

ROOT = Path(__file__).parents[2]
RESULTS = "benchmarks/results"
_PAPERS = ("CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")
_LINK = re.compile(r"(!?\[[^\]]*\]\()((?:\.\./)+)([^)#\s]+)")
_HEADING = re.compile(r"^(#+) ", flags=re.MULTILINE)
_PICTURE = re.compile(r"(!\[[^\]]*\]\()(?![a-z]+:)([^)\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Take the papers, the notebooks, and what results consist of into the site."""
    found = [ROOT / name for name in _PAPERS]
    found += [p for p in (ROOT / RESULTS).rglob("*") if p.suffix in (".md", ".png", ".svg")]
    found += (ROOT / "notebooks").glob("*.ipynb")
    for path in found:
        if path.is_file():
            name = path.relative_to(ROOT).as_posix()
            files.append(
                File.generated(
                    config,
                    _inside(name),
                    abs_src_path=str(path),
                    inclusion=InclusionLevel.NOT_IN_NAV,
                )
            )
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Fill the markers, and turn links to files outside into links to their copies."""
    uri = page.file.src_uri
    markdown = markdown.replace("<!-- commands -->", _filled(uri, commands_as_markdown))
    markdown = markdown.replace("<!-- results -->", _filled(uri, _results))
    up = "../" * uri.count("/")

    def replaced(match: re.Match[str]) -> str:
        if len(match[2]) != len(up) + len("../"):
            return match[0]
        return f"{match[1]}{up}{_inside(match[3])}"

    return _LINK.sub(replaced, markdown)


def _filled(uri: str, fill: Any) -> str:
    try:
        return str(fill())
    except Exception as error:
        raise PluginError(f"{uri}: {type(error).__name__}: {error}") from error


def _results() -> str:
    """Every committed table, one below the other, its headings two levels down."""
    parts = []
    for path in sorted((ROOT / RESULTS).rglob("*.md")):
        folder = path.parent.relative_to(ROOT).as_posix()
        text = _PICTURE.sub(rf"\1../{folder}/\2", path.read_text(encoding="utf-8"))
        parts.append(_HEADING.sub(r"##\1 ", text))
    return "\n\n".join(parts)


def _inside(name: str) -> str:
    """Where a file of the repository lies in the site."""
    return f"project/{name.removesuffix('README.md')}{'index.md' * name.endswith('README.md')}"
