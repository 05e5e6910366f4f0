"""Every bug of the museum is there with its mistake, and is not there without; and each is described for a reader."""

from __future__ import annotations

import re

import pytest

from ci.reference.bugs import bug_page
from mews.harness.museum.bug import WORLD, Bug
from mews.harness.museum.museum import all_bugs, check_places, reproduce

BUGS = {bug.name: bug for bug in all_bugs()}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_bug_is_reproduced(bug: Bug):
    check_places([bug])
    (found,) = reproduce([bug], jobs=1, artefacts=None, begun=lambda _: None)
    if found.skipped:
        pytest.skip(found.skipped)
    assert found.wrong == ""


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_bug_is_named_after_its_first_link(bug: Bug):
    repository, _, number = re.fullmatch(
        r"https://github\.com/[^/]+/([^/]+)/(issues|pull)/(\d+)", bug.links[0]
    ).groups()  # type: ignore[union-attr]
    assert bug.name.lower() == f"{repository}-{number}".lower()
    assert len(set(bug.links)) == len(bug.links)


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_mechanism_has_two_sentences(bug: Bug):
    text = " ".join(bug.mechanism.split())
    assert text.endswith(".")
    assert len(re.findall(r"\.(?= [A-Z]|$)", text)) == 2


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_page_has_what_the_data_says(bug: Bug):
    page = bug_page(bug)
    for text in (bug.title, bug.component, bug.affected, bug.seen.otherwise, *bug.links):
        assert text in page
    if not bug.scenario:
        assert (bug.folder / WORLD).read_text(encoding="utf-8").strip() in page


def test_a_change_is_of_one_component_and_never_of_what_judges():
    for bug in BUGS.values():
        change = bug.switch(has_bug=bug.remedy is None).change
        if change is not None:
            assert change.file.startswith(("systems/", "kube/", "emulator/"))
            assert not re.search(r"(invariants|laws|journal)\.py$", change.file)


def test_some_are_open():
    assert sum(bug.is_open for bug in BUGS.values()) >= 5
