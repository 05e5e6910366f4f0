"""The page of a running session, as its server gives it out: one file, which then asks that server for the rest.

It holds no secret and is the same for every session: the token comes in the fragment of the page's address, and the
page sends it with each request (``/v1/session``, ``journal``, ``events``, ``hardware``, ``steps``, ``explain/pod/…``).
"""

from __future__ import annotations

from functools import cache

from mews.harness.report.page import html_file, policy_of

PAGE = "page.html"


@cache
def live_page() -> str:
    """Return the file."""
    return html_file(
        "mews",
        start="window.mewsLive = new LivePage();",
        scripts=("api.js", "topology.js", "live.js"),
        styles=("live.css",),
        fallback="<main><h1>mews</h1><p>This page needs scripts; `mews status` shows a session, too.</p></main>",
        connect="'self'",
    )


def live_file(name: str) -> tuple[str, str, str] | None:
    """Return what the server answers for the file of that name: text, media type and Content-Security-Policy; None
    where there is no such file."""
    return (live_page(), "text/html", policy_of(live_page())) if name == PAGE else None
