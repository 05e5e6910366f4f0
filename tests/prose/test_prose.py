"""Helps, errors and edited pages read as a technical writer would write them: no phrase of ``phrases.yaml``, no
overlong sentence, and a help line that begins with a verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.prose.texts import ROOT, Text, errors, helps, pages, references, scripts, sentences, titles

FOLDER = Path(__file__).parent
MOST_WORDS = 25
README_WORDS = 880
WRITTEN_BY_CODE = ("api-differences.md", "attach-before-bind.md")
PAGES_WORDS = 32_640
"""Of all pages that people write, as ``wc -w`` counts them: code and tables included."""
VERBS = frozenset((FOLDER / "verbs.txt").read_text(encoding="utf-8").split())
PHRASES = [
    (re.compile(row["not"], re.IGNORECASE), row["write"])
    for row in yaml.safe_load((FOLDER / "phrases.yaml").read_text(encoding="utf-8"))
]


def complaints(texts: Iterable[Text]) -> list[str]:
    """What is wrong with them, a line each, with what to write instead."""
    found = []
    for place, text in texts:
        for phrase, write in PHRASES:
            if hit := phrase.search(text):
                found.append(f"{place}: {hit[0]!r}: write {write}: {text}")
        if len(text.split()) > MOST_WORDS:
            found.append(f"{place}: {len(text.split())} words; at most {MOST_WORDS}: {text}")
    return found


def test_helps_have_no_phrase_of_the_list() -> None:
    assert complaints(helps()) == []


def test_a_help_line_begins_with_a_verb() -> None:
    first = ((place, text, text.split()[0].lower()) for place, text in helps())
    assert [f"{place}: {text}" for place, text, word in first if word not in VERBS] == []


def test_errors_have_no_phrase_of_the_list() -> None:
    assert complaints(errors()) == []


def test_edited_pages_have_no_phrase_of_the_list() -> None:
    assert complaints(pages()) == []


def test_titles_of_scenarios_have_no_phrase_of_the_list() -> None:
    assert complaints(titles()) == []


def test_reference_pages_have_no_phrase_of_the_list() -> None:
    assert complaints(references()) == []


def test_the_report_and_the_live_page_have_no_phrase_of_the_list() -> None:
    assert complaints(scripts()) == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README_WORDS


def test_the_changelog_has_the_headings_of_keep_a_changelog_and_dates() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert [each for each in versions[1:] if not re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", each)] == []
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)", text, re.MULTILINE)) <= kinds


def test_the_pages_that_people_write_are_short_together() -> None:
    """All Markdown of docs/, and README, CONTRIBUTING, SECURITY and scenarios/README; the changelog does not count."""
    names = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "scenarios/README.md")
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name not in WRITTEN_BY_CODE]
    pages += [ROOT / name for name in names]
    words = {str(page.relative_to(ROOT)): len(page.read_text(encoding="utf-8").split()) for page in pages}
    longest = sorted(words.items(), key=lambda each: -each[1])[:5]
    assert len(pages) > 30
    assert sum(words.values()) <= PAGES_WORDS, f"{sum(words.values())} words; the longest pages: {longest}"


@pytest.mark.parametrize("row", PHRASES, ids=[phrase.pattern for phrase, _ in PHRASES])
def test_no_replacement_is_on_the_list_itself(row: tuple[re.Pattern[str], str]) -> None:
    assert not any(phrase.search(row[1]) for phrase, _ in PHRASES)


def test_texts_are_found_where_users_read_them() -> None:
    """A rename of a helper function must not empty the lists that the tests above read."""
    assert len(list(helps())) > 250
    assert len(list(errors())) > 1200
    assert len(list(titles())) > 200
    assert len(list(scripts())) > 60
    assert len(list(references())) > 2000
    assert any(text.startswith("--seeds …: must be") for _, text in errors())
    assert any(place == "mews run --seeds" for place, _ in helps())


def test_code_and_links_are_no_words() -> None:
    page = "# Head\n\nUse `mews run` [here](there.md).\n\n```\ntold\n```\n\n| a b | c |\n|---|---|\n- One. Two."
    assert list(sentences(page)) == ["Head", "Use CODE here.", "a b", "c", "One.", "Two."]
