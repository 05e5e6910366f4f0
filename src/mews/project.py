"""Where the project lives. The owner sets the two addresses here, and nowhere else.

The metadata of the distribution (``hatch_build.py``), ``mews --help``, the hints of errors, the recipe and the links of
the README in a package index are made of them. Until then they are placeholders: no name below ``.example`` exists
(RFC 2606).
"""

from __future__ import annotations

DISTRIBUTION = "falcon-mews"
"""The name in package indexes; ``mews`` there is another project."""

DOCUMENTATION = "https://docs.falcon-mews.example"
"""The site that `make docs` builds."""
REPOSITORY = "https://code.falcon-mews.example/falcon-mews"
"""The repository, as its forge shows it: /blob, /raw and /issues lie below it, as on GitHub and GitLab."""

ISSUES = f"{REPOSITORY}/issues"


def urls() -> dict[str, str]:
    """Project-URL -> address, by the labels that package indexes know."""
    return {
        "Documentation": DOCUMENTATION,
        "Source": REPOSITORY,
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
        "Issues": ISSUES,
    }


def file_url(path: str, version: str, *, raw: bool = False) -> str:
    """Return a file of the repository as of a release; ``raw``: its bytes, as pictures are shown."""
    return f"{REPOSITORY}/{'raw' if raw else 'blob'}/v{version}/{path}"
