"""One HTML file with its scripts, styles and data in it: nothing is loaded, and nothing that a user wrote is markup.

The scripts are files of their own (``picture/``), written by hand and put into the page as they are. The page's policy
names each of them by its hash, so that no other script runs, whatever the data may say.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape, unescape
from importlib.resources import files
from typing import Any

from msgspec import Struct

from mews.harness.terminal import escaped, escaped_json

SCRIPTS = (
    *(
        "units.js",
        "lane.js",
        "claims.js",
        "model.js",
        "causes.js",
        "paint.js",
        "controls.js",
        "timeline.js",
        "details.js",
    ),
    *("plots.js", "theme.js"),
)
"""What every page has, in their order."""

STYLES = ("picture.css",)


class DataBlock(Struct, frozen=True):
    """Data within a page: JSON, or with ``packed`` gzip in base64."""

    id: str
    text: str
    packed: bool = False

    @property
    def markup(self) -> str:
        """The element. Its text cannot end it: ``<`` is written as JSON's escape."""
        mark = " data-packed" if self.packed else ""
        return f'<script type="application/json" id="{escape(self.id)}"{mark}>{self.text}</script>'


_POLICY = '<meta http-equiv="Content-Security-Policy" content="'


def data_block(name: str, value: Any) -> DataBlock:
    """Return any JSON value."""
    return DataBlock(name, inline_json(value))


def packed_block(name: str, value: Any) -> DataBlock:
    """Return any JSON value, a tenth of its size; the same bytes for the same value."""
    packed = gzip.compress(_json(value).encode(), mtime=0)
    return DataBlock(name, base64.b64encode(packed).decode("ascii"), packed=True)


def inline_json(value: Any) -> str:
    """JSON that may stand in a script element: no ``<``, ``>`` or ``&`` in it, and no line end of JavaScript's."""
    escapes: dict[str, str | int | None] = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
    return _json(value).translate(str.maketrans(escapes))


def _json(value: Any) -> str:
    """JSON without control characters or line ends of JavaScript's: readers see them as escapes."""
    return escaped_json(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def picture_file(name: str) -> str:
    """Return the text of a file of ``picture/``."""
    return (files("mews.harness.report") / "picture" / name).read_text(encoding="utf-8")


def html_file(
    title: str,
    *,
    start: str,
    scripts: Iterable[str] = (),
    styles: Iterable[str] = (),
    blocks: Sequence[DataBlock] = (),
    fallback: str = "",
    connect: str = "'none'",
) -> str:
    """Return the file. ``start`` is the statement that begins it, ``scripts`` and ``styles`` are files beside the
    common ones, ``fallback`` the HTML for readers without scripts, ``connect`` whom the page may ask (a source of its
    policy)."""
    script = "\n".join([*map(picture_file, (*SCRIPTS, *scripts)), start])
    style = "\n".join(map(picture_file, (*STYLES, *styles)))
    policy = content_policy({"script-src": script, "style-src": style}, connect)
    head = page_head(title, policy, style)
    # In the head: the scripts build the body anew.
    data = "\n".join(block.markup for block in blocks)
    body = f"<noscript>{fallback}</noscript>\n<script>{script}</script>"
    return f'<!doctype html>\n<html lang="en"><head>{head}\n{data}</head>\n<body>{body}</body></html>\n'


def page_head(title: str, policy: str, style: str) -> str:
    """Return what is in the head of every page: its policy comes before all that the policy is about."""
    return (
        '<meta charset="utf-8">'
        f'{_POLICY}{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{escape(escaped(title))}</title><style>{style}</style>'
    )


def policy_of(page: str) -> str:
    """Return the policy that a page of ``html_file`` has in its document, for the server that gives it out."""
    return unescape(page.partition(_POLICY)[2].partition('"')[0])


def content_policy(inlined: Mapping[str, str], connect: str) -> str:
    """Return the page's Content-Security-Policy: its own scripts and styles by their hashes, and nothing else."""
    hashes = [f"{name} '{_hash(text)}'" for name, text in inlined.items()]
    rest = ("img-src data:", f"connect-src {connect}", "base-uri 'none'", "form-action 'none'")
    return "; ".join(["default-src 'none'", *hashes, *rest])


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
