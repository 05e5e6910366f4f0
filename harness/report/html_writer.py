"""One HTML file without a script and without anything to load."""

from __future__ import annotations

from collections.abc import Iterable

from mews.harness.report.page import STYLES, content_policy, page_head, picture_file
from mews.harness.terminal import escaped


def html_document(title: str, body: str, *, styles: Iterable[str] = ()) -> str:
    """Return the file with that title (plain text) and body (HTML), whose policy runs no script and loads nothing.

    ``styles`` are files of ``picture/`` after those that every page has.
    """
    style = "\n".join(map(picture_file, (*STYLES, *styles)))
    head = page_head(title, content_policy({"style-src": style}, "'none'"), style)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{escaped(body)}</body></html>\n'
