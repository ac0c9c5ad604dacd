"""The page in a real browser: it draws, filters, opens a request, and runs nothing foreign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepcache.report import Report, Row, read_source, write_page

Open = Callable[..., Any]


@pytest.fixture
def look(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report's page; afterwards nothing may have gone wrong or gone out."""
    noise: list[str] = []
    asked: list[str] = []
    contexts = []

    def opened(report: Report, fragment: str = "", **options: Any) -> Any:
        path = tmp_path / "page.html"
        write_page(report, path)
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: noise.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: noise.append(str(error)))
        tab.on("dialog", lambda dialog: (noise.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri() + fragment)
        return tab

    yield opened
    hacked = [tab.evaluate("window.hacked") for each in contexts for tab in each.pages]
    for context in contexts:
        context.close()
    assert noise == []
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
    assert set(hacked) <= {None}


def rows_shown(tab: Any) -> list[str]:
    """The requests in the table."""
    return [text.strip() for text in tab.locator("#rows .open").all_inner_texts()]


def numbers_shown(tab: Any) -> list[str]:
    return list(tab.locator("#rows td.c-n").all_inner_texts())


def test_a_trace_log_is_drawn(look: Open, log: Path) -> None:
    """Tiles, the four panels, the table and the legend; no error in the console."""
    report = read_source(str(log))
    tab = look(report)
    assert tab.title() == "StepCache report: trace.jsonl"
    assert tab.locator("#panels h2").all_inner_texts() == [
        "Savings over time",
        "Routes",
        "Reasons for misses",
        "Slowest verifications",
    ]
    assert tab.locator("#panels svg polyline").count() == 2
    tiles = tab.locator("#tiles").inner_text()
    assert "Answered without the model" in tiles
    assert "25.0 %" in tiles  # exact and adapt, of eight
    assert len(rows_shown(tab)) == 8
    reasons = tab.locator("#panels section").nth(2).inner_text()
    assert "different name" in reasons
    assert "nothing near" in reasons
    assert tab.locator("#legend dt").count() > 8


def test_the_table_filters_by_route_and_task(look: Open, told: Path) -> None:
    """The selects narrow the rows, and everything comes back."""
    tab = look(read_source(str(told)))
    tab.select_option("#route", "miss")
    assert numbers_shown(tab) == ["1", "4", "7"]
    tab.select_option("#task", "json")
    assert numbers_shown(tab) == ["4"]
    assert tab.locator("#shown").inner_text() == "1 of 8"
    tab.click("#clear")
    assert len(rows_shown(tab)) == 8


def test_the_table_is_searched_by_text(look: Open, record: Path) -> None:
    """Requests, answers and reasons are searched, every word, in any case."""
    tab = look(read_source(str(record)))
    tab.keyboard.press("/")
    tab.keyboard.type("tiber ROME")
    tab.locator("#rows .open >> nth=1").wait_for(state="detached")
    assert "river" in rows_shown(tab)[0]
    tab.fill("#search", "no such word")
    tab.wait_for_selector("text=Nothing matches.")


def test_panels_filter_the_table(look: Open, told: Path) -> None:
    """A bar shows what it counted."""
    tab = look(read_source(str(told)))
    tab.click("#panels button:has-text('patch')")
    assert numbers_shown(tab) == ["5"]
    tab.click("#panels button:has-text('different name')")
    assert numbers_shown(tab) == ["6"]
    assert "reason: different name" in tab.locator("#active").inner_text()


def test_columns_sort_both_ways(look: Open, told: Path) -> None:
    """And say so to those who cannot see the arrow."""
    tab = look(read_source(str(told)))
    tab.click("th.c-spent button")
    assert tab.locator("th.c-spent").get_attribute("aria-sort") == "descending"
    spent = [int(text) for text in tab.locator("#rows td.c-spent").all_inner_texts()]
    assert spent == sorted(spent, reverse=True)
    tab.click("th.c-spent button")
    assert tab.locator("th.c-spent").get_attribute("aria-sort") == "ascending"


def test_a_request_opens_step_by_step(look: Open, record: Path) -> None:
    """Steps stand in their colours, with what changed against the earlier answer."""
    tab = look(read_source(str(record)))
    tab.click("#rows tr:has-text('adapt') .open")
    detail = tab.locator("#detail")
    assert detail.is_visible()
    steps = detail.locator(".sc-step")
    assert steps.count() == 3
    assert "sc-adapted" in steps.first.get_attribute("class")
    assert "sc-reused" in steps.last.get_attribute("class")
    assert steps.first.locator("del").all_inner_texts() == ["2x", "13"]
    assert steps.first.locator("ins").all_inner_texts() == ["4x", "23"]
    assert steps.last.locator("ins, del").count() == 0
    border = "getComputedStyle(document.querySelectorAll('#detail .sc-step')[{}]).borderLeftColor"
    assert tab.evaluate(border.format(0)) != tab.evaluate(border.format(2))
    tab.uncheck("#compare")
    assert detail.locator("ins, del").count() == detail.locator("pre.box ins, pre.box del").count()


def test_verdicts_and_differences_are_told(look: Open, log: Path) -> None:
    """With texts and without; without, lengths stand in their place."""
    report = read_source(str(log))
    tab = look(report, "#request-3")
    told = tab.locator("#detail").inner_text()
    assert "✓ verified" in told
    assert "constant" in told
    assert "a verifier accounts for it" in told
    assert ("x = 5" in told) is report.texts
    assert ("characters, text left out" in told) is not report.texts


def test_an_entry_of_a_store_opens_beside_the_nearest_earlier_one(look: Open, store: Path) -> None:
    """A store does not say what an answer was made from, and the page says that."""
    tab = look(read_source(str(store), texts=True), "#request-2")
    told = tab.locator("#detail").inner_text()
    assert "the source does not tell which one was used" in told
    assert tab.locator("#detail .sc-step ins").all_inner_texts() == ["4x", "23", "4x", "20"]


def test_a_candidate_that_was_not_used_is_named_as_such(look: Open, told: Path) -> None:
    """Its request is shown with what differs; the model's own answer is compared with nothing."""
    tab = look(read_source(str(told)), "#request-6")
    text = tab.locator("#detail").inner_text()
    assert "The first candidate, which was not used" in text
    assert "nobody can vouch for it" in text
    assert tab.locator("#compare").count() == 0
    assert tab.locator("#detail .sc-step ins, #detail .sc-step del").count() == 0


def test_the_keyboard_is_enough(look: Open, told: Path) -> None:
    """Open, walk and close without a mouse; the focus comes back to where it was."""
    tab = look(read_source(str(told)))
    tab.locator("#rows .open").nth(1).focus()
    tab.keyboard.press("Enter")
    assert "Request 2" in tab.locator("#detail-title").inner_text()
    assert tab.url.endswith("#request-2")
    tab.keyboard.press("ArrowRight")
    assert "Request 3" in tab.locator("#detail-title").inner_text()
    tab.keyboard.press("ArrowLeft")
    tab.locator("#detail-next").focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "detail-next"
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("Escape")
    tab.locator("#detail").wait_for(state="hidden")
    assert tab.evaluate("document.activeElement.dataset.n") == "2"
    assert "#" not in tab.url


def test_everything_focusable_has_a_name(look: Open, told: Path) -> None:
    """Buttons, fields and charts say what they are."""
    tab = look(read_source(str(told)))
    nameless = tab.evaluate(
        """() => [...document.querySelectorAll('button, input, select, svg')].filter(node =>
            !(node.textContent.trim() || node.getAttribute('aria-label') ||
              (node.labels && node.labels[0] && node.labels[0].textContent.trim())))
            .map(node => node.outerHTML)"""
    )
    assert nameless == []


def test_hostile_texts_are_shown_and_do_nothing(
    look: Open, record: Path, store: Path, hostile: str
) -> None:
    """In every place where a text can stand: none becomes an element, none runs."""
    whole = read_source(str(store), texts=True)
    bad = {"reason": hostile, "group": hostile, "task": hostile, "model": hostile, "lane": ""}
    rows = tuple(
        replace(row, **bad, fault=hostile, entry=hostile, trace=(hostile,), route=route)
        for row, route in zip(whole.rows, ("miss", "adapt", "patch", hostile, "skip", "miss"))
    )
    report = replace(
        whole,
        kind="trace log",
        rows=rows,
        source=hostile,
        remarks=(hostile,),
        facts=((hostile,) * 2,),
    )
    tab = look(report)
    for number in range(1, 7):
        tab.evaluate(f"location.hash = '#request-{number}'")
        tab.reload()
        assert tab.locator("#detail").is_visible()
    assert hostile in tab.locator("#detail").inner_text().replace("\u00a0", " ")
    assert tab.locator("img, iframe, object, embed").count() == 0
    assert tab.locator("script").count() == 2  # the data and the page's own


def test_even_a_script_that_got_in_could_not_run(browser: Any, told: Path, tmp_path: Path) -> None:
    """The page's own policy refuses every script and every address that is not in the file."""
    write_page(read_source(str(told)), tmp_path / "page.html")
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    refused = tab.evaluate(
        """() => new Promise((done) => {
            const seen = [];
            document.addEventListener('securitypolicyviolation', (event) => {
                seen.push(event.effectiveDirective);
                if (seen.length === 2) done(seen.sort());
            });
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 5';
            document.body.append(script);
            const image = document.createElement('img');
            image.src = 'http://127.0.0.1:9/x.png';
            document.body.append(image);
        })"""
    )
    assert refused == ["img-src", "script-src-elem"]
    assert tab.evaluate("window.hacked") is None
    tab.close()


def test_ten_thousand_requests_are_paged(look: Open, told: Path) -> None:
    """All are searched and counted, and a page of them is drawn."""
    rows = read_source(str(told)).rows
    many = tuple(
        replace(rows[n % 8], number=n + 1, time=1.7e9 + 60 * n, prompt=f"Request {n + 1} of many")
        for n in range(10_000)
    )
    tab = look(Report(kind="trace log", source="many", rows=many))
    assert tab.locator("#page").inner_text() == "Page 1 of 400"
    assert len(rows_shown(tab)) == 25
    tab.click("#last")
    assert numbers_shown(tab)[-1] == "10,000"
    tab.fill("#search", "request 9999")
    tab.locator("#rows .open >> nth=1").wait_for(state="detached")
    tab.click("#rows .open")
    assert "Request 9,999" in tab.locator("#detail-title").inner_text()


def test_an_empty_source_makes_a_page(look: Open) -> None:
    """Nothing recorded yet is no error."""
    for kind in ("store", "trace log", "benchmark"):
        tab = look(Report(kind=kind, source="new", rows=()))  # type: ignore[arg-type]
        assert "The source holds nothing yet." in tab.locator("#rows").inner_text()


def test_modes_of_a_benchmark_are_shown_apart(look: Open, record: Path) -> None:
    """The cache's own first; the choice changes the tiles and the table."""
    tab = look(read_source(str(record)))
    assert len(rows_shown(tab)) == 6
    assert "Tokens saved" in tab.locator("#tiles").inner_text()
    tab.locator("#rows tr", has_text="adapt").first.click()
    assert "17 tokens (9 prompt, 8 generated)" in tab.locator("#detail").inner_text()
    tab.keyboard.press("Escape")
    tab.select_option("#lane", "bare")
    assert set(tab.locator("#rows .sc-tag").all_inner_texts()) == {"miss"}


def _contrast(one: str, other: str) -> float:
    """Contrast of two ``rgb(...)`` colours as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(p) / 255 for p in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_can_be_read(look: Open, record: Path, scheme: str) -> None:
    """The system's choice is taken, a button changes it, and text stands out from its ground."""
    tab = look(read_source(str(record)), "#request-10", color_scheme=scheme)
    style = "(s, p) => getComputedStyle(document.querySelector(s))[p]"

    def colour(selector: str, name: str) -> str:
        return str(tab.evaluate(f"([s, p]) => ({style})(s, p)", [selector, name]))

    grounds = []
    for _ in range(2):
        ground = colour("dialog", "backgroundColor")
        grounds.append(ground)
        for selector in ("dialog", ".note", ".facts dt", ".trace"):
            assert _contrast(colour(selector, "color"), ground) >= 4.5, selector
        for tag in ("reused", "patched", "adapted"):
            selector = f".sc-{tag} .sc-tag"
            if tab.locator(selector).count():
                assert (
                    _contrast(colour(selector, "color"), colour(selector, "backgroundColor")) >= 4.5
                )
        tab.evaluate("document.getElementById('theme').click()")
    assert (_contrast(grounds[0], "rgb(0, 0, 0)") > 10) is (scheme == "light")
    assert grounds[0] != grounds[1]


def test_it_prints_the_request_that_is_open(look: Open, record: Path) -> None:
    """On paper stands the request and not the page behind it; without one, the overview."""
    tab = look(read_source(str(record)), "#request-10")
    tab.emulate_media(media="print")
    assert tab.locator("#detail .sc-step").first.is_visible()
    assert not tab.locator("#tiles").is_visible()
    assert not tab.locator("#detail-close").is_visible()
    tab.evaluate("document.getElementById('detail').close()")
    assert tab.locator("#tiles").is_visible()
    assert not tab.locator("#search").is_visible()
    assert tab.pdf().startswith(b"%PDF")


def test_a_narrow_screen_scrolls_the_table_and_nothing_else(look: Open, record: Path) -> None:
    """The page itself is as wide as the screen."""
    tab = look(read_source(str(record)))
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_is_private_and_replaces_an_older_one(tmp_path: Path, record: Path) -> None:
    """Written anew with the owner's rights only, whatever stood there."""
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o644)
    size = write_page(read_source(str(record)), path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size == size > 10_000


def test_nothing_is_fetched_even_in_words(record: Path, tmp_path: Path) -> None:
    """The file names no address at all but the name of the SVG language."""
    path = tmp_path / "page.html"
    rows = (Row(number=1, route="miss", prompt="a"),)
    write_page(Report(kind="trace log", source="x", rows=rows), path)
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
