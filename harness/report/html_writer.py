"""One HTML file without anything to load."""

from __future__ import annotations

from html import escape

from mews.harness.report.page import content_policy
from mews.harness.terminal import escaped

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1080px; color: #222; padding: 0 1em }
.passed { color: #17803d } .failed, .error { color: #b91c1c } .quirk, .waived, .skipped { color: #a16207 }
pre { background: #f6f6f6; padding: .7em; overflow-x: auto }
table { border-collapse: collapse } td, th { text-align: left }
"""
"""What all reports look like; each adds its own."""


def html_document(title: str, body: str, *, style: str = "") -> str:
    """The file with that title (plain text) and body (HTML), whose policy runs no script and loads nothing."""
    styles = f"{STYLE}{style}"
    policy = content_policy({"style-src": styles}, "'none'")
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        f"<title>{escape(escaped(title))}</title><style>{styles}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{escaped(body)}</body></html>\n'
