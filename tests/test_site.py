"""The documentation site is built without a warning and without a network; its drawing is that of the imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from ci.architecture import BOXES, FILE, arrows, arrows_in, box_of, drawing, imports
from tests.browser.driver import browser

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(made)]
    environment = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "http_proxy": "http://127.0.0.1:1",
        "https_proxy": "http://127.0.0.1:1",
    }
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert "WARNING" not in done.stderr, done.stderr[-6000:]
    return made


def test_pages_load_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"", text)
        loaded += re.findall(r"<link\b(?![^>]*rel=\"canonical\")[^>]*\bhref=\"([^\"]+)\"", text)
        assert [each for each in loaded if re.match(r"(https?:)?//", each)] == [], page.name


@pytest.mark.wall
def test_search_finds_a_page_where_the_site_is_opened_from_a_folder(site):
    """In a real browser, from an inner page: the result links to a file that exists."""
    with browser() as chrome:
        chrome.open((site / "reference" / "commands.html").as_uri(), "document.querySelector('input.md-search__input')")
        chrome.js("document.querySelector('label[for=__search]').click()")
        box = chrome.driver.find_element("css selector", "input.md-search__input")
        box.send_keys("NVIDIA_VISIBLE_DEVICES")
        chrome.until("document.querySelector('a.md-search-result__link')")
        links = chrome.js("return [...document.querySelectorAll('a.md-search-result__link')].map((a) => a.href)")
        assert all(Path(unquote(urlsplit(link).path)).is_relative_to(site) for link in links)
        assert [link for link in links if not Path(unquote(urlsplit(link).path)).is_file()] == []
        assert chrome.complaints() == []


def test_every_page_can_be_reached_from_the_navigation(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    linked = set(re.findall(r'href="([^"#:]+\.html)"', home))
    there = {str(page.relative_to(site)) for page in site.rglob("*.html")} - {"404.html", "index.html"}
    assert there - linked == set()


def test_the_drawing_has_the_arrows_of_the_code_and_no_others():
    real, drawn = arrows(imports()), arrows_in(FILE.read_text(encoding="utf-8"))
    assert sorted(real - drawn) == [], "draw it anew: python -m ci.architecture docs/architecture.svg"
    assert sorted(drawn - real) == [], "draw it anew: python -m ci.architecture docs/architecture.svg"
    assert drawing(drawn) == FILE.read_text(encoding="utf-8")


def test_all_arrows_of_the_drawing_point_down_or_aside():
    drawn = arrows_in(FILE.read_text(encoding="utf-8"))
    assert len(drawn) > 50
    assert [arrow for arrow in drawn if BOXES[arrow[0]].y > BOXES[arrow[1]].y] == []
    assert [arrow for arrow in drawn if arrow[::-1] in drawn] == []


def test_an_arrow_that_the_drawing_lacks_is_seen():
    drawn = arrows_in(FILE.read_text(encoding="utf-8"))
    assert arrows({"mews.emulator.rack": ["mews.kube.clock"]}) - drawn == {("faces", "objects")}
    with pytest.raises(LookupError, match="no box"):
        box_of("mews.newroom.part")
