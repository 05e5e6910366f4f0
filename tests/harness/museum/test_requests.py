"""The page of public requests names scenarios that are there, and each request by its address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mews.harness.catalogue.files import shipped

PAGE = (Path(__file__).parents[3] / "docs" / "fuzz.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| ") and "http" in line]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_row_has_its_request_and_its_scenarios(row: list[str]):
    links = re.findall(r"\[([\w-]+) (\d+)\]\(https://github\.com/[^/]+/([^/]+)/issues/(\d+)\)", row[1])
    assert links
    assert all((name, number) == (repository, issue) for name, number, repository, issue in links)
    names = re.findall(r"`([^`]+)`", row[2])
    assert names
    for name in names:
        assert shipped("scenario", name).is_file()


def test_there_are_rows():
    assert len(ROWS) >= 12
