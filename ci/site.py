"""What mkdocs asks while it builds the site (``hooks`` of mkdocs.yml).

It adds the pages that do not lie in docs/: the references, made from the code; README, CONTRIBUTING and the like, where
they are; and one for each folder of examples that a page links to. Links are those of the checkout, and are turned to
where their targets are in the site.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ci.reference import PAGES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

WORKER = Path(__file__).with_name("iframe-worker.js")
"""What lets search work in pages that are opened from a folder."""

BESIDE = {
    "overview.md": ROOT / "README.md",
    "scenario-files.md": ROOT / "scenarios" / "README.md",
    "CHANGELOG.md": ROOT / "CHANGELOG.md",
    "CONTRIBUTING.md": ROOT / "CONTRIBUTING.md",
    "SECURITY.md": ROOT / "SECURITY.md",
}
"""Place in the site -> the file, of those that do not lie in docs/."""

EXAMPLES = ("bring-your-own", "example-package")
"""Folders of docs/ that have a page with all their files."""

_PLACES = {file: place for place, file in BESIDE.items()}
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages in the place of the stars of ``nav``, and leave out tutorials that this checkout does not have."""
    there = [str(path.relative_to(DOCS)) for path in sorted(DOCS.rglob("*.md"))]
    there += [*PAGES, *BESIDE, *(f"{name}/index.md" for name in EXAMPLES)]
    named = set(_named(config.nav))
    config.nav = _filled(config.nav or [], there, named)
    return config


def _named(entry: Any) -> Iterator[str]:
    """Yield all pages that the navigation names."""
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from _named(inner)


def _filled(entries: Sequence[Any], there: Sequence[str], named: set[str]) -> list[Any]:
    found: list[Any] = []
    for entry in entries:
        title, inside = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        if title == "*":
            folder = "" if inside == "./" else inside
            found += [
                page
                for page in there
                if page not in named and page.startswith(folder) and "/" not in page.removeprefix(folder)
            ]
        elif isinstance(inside, list):
            found.append({title: _filled(inside, there, named)})
        elif inside in there:
            found.append(entry)
        elif not inside.startswith("tutorials/"):
            raise ValueError(f"mkdocs.yml: nav: {inside}: there is no such page")
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and those from beside docs/."""
    for place, make in PAGES.items():
        files.append(File.generated(config, place, content=make()))
    for place, file in BESIDE.items():
        files.append(File.generated(config, place, content=file.read_text(encoding="utf-8")))
    files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(WORKER)))
    for name in EXAMPLES:
        files.append(File.generated(config, f"{name}/index.md", content=_listing(name)))
    return files


def _listing(name: str) -> str:
    """Return a folder of examples as a page."""
    parts = [f"# {name}"]
    for path in sorted((DOCS / name).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            language = {".py": "python", ".yaml": "yaml", ".toml": "toml"}.get(path.suffix, "text")
            text = path.read_text(encoding="utf-8").rstrip()
            parts.append(f"## {path.relative_to(DOCS / name)}\n\n````{language}\n{text}\n````")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the checkout to places of the site; fenced blocks stay as they are."""
    place = page.file.src_uri
    folder = BESIDE[place].parent if place in BESIDE else (DOCS / place).parent
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith("```") else _LINK.sub(lambda found: _turned(found, folder, place), part)
        for part in parts
    )


def _turned(found: re.Match[str], folder: Path, place: str) -> str:
    target = Path(os.path.normpath(folder / found[1]))
    if target in _PLACES:
        there = _PLACES[target]
    elif target.is_relative_to(DOCS):
        there = str(target.relative_to(DOCS)) + ("/index.md" if target.is_dir() else "")
    else:
        return found[0]
    return os.path.relpath(there, Path(place).parent) + (found[2] or "")
