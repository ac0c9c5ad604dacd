"""Every local link leads somewhere: in the repository, and in the site built from it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = [
    p
    for p in (
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "benchmarks").rglob("*.md")),
    )
    if p.is_file()
]
_FENCE = re.compile(r"^(`{3,}).*?^\1$", flags=re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", flags=re.MULTILINE)


def _headings(path: Path) -> set[str]:
    """The anchors that a reader of the repository is given for a page's headings."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\s-]", "", h.lower()).strip() for h in _HEADING.findall(text))
    return {re.sub(r"\s", "-", heading) for heading in plain}


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_files(path: Path) -> None:
    """Files and headings linked to exist; those of generated pages are looked for in the site."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if parts.fragment and target.suffix == ".md" and "<!--" not in target.read_text():
            assert parts.fragment in _headings(target), link


class _Page(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and "href" in given and given.get("rel") != "canonical":
            self.loads.append(given["href"])


def _pages(site: Path) -> dict[Path, _Page]:
    return {p: _Page(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}


def test_links_inside_the_site(site: Path) -> None:
    """Every link's page and anchor are in the site."""
    pages = _pages(site)
    assert len(pages) > 15
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                anchors = {*pages[target].ids, "__codelineno"}
                assert unquote(parts.fragment) in anchors, f"{path.name}: {link}"


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """No font, script, style or picture comes from another host."""
    for path, page in _pages(site).items():
        for link in page.loads:
            assert not urlsplit(link).netloc, f"{path.name}: {link}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style
