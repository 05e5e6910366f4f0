"""Charts and manifests of others that the tests install on emulated nodes, each with its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ci.reference.markdown import code, paragraphs, table
from ci.reference.nvml import CLASSES as TRIED

CHARTS = Path(__file__).resolve().parents[2] / "tests/upstream/charts.yaml"
CLASSES = {**TRIED, "open": "not tried yet"}
"""How a chart does, as the file puts it -> in the words of the page."""
WAYS = {
    "kustomize": "kubectl apply --server-side -k",
    "apply": "kubectl apply -f",
    "helm": "helm install",
    "made": "kubectl apply --server-side -f, made by",
}
"""Key of a row -> how it is installed."""


def charts() -> list[dict[str, Any]]:
    """Return the rows of the tests."""
    rows: list[dict[str, Any]] = yaml.safe_load(CHARTS.read_text(encoding="utf-8"))
    return rows


def state_of(row: dict[str, Any]) -> str:
    """Return how a chart does, in the words of the page."""
    words = CLASSES[row["class"]]
    return f"{words}: {row['needs']}" if row.get("needs") else words


def installed_by(row: dict[str, Any]) -> str:
    """Return the command, as a page shows it."""
    found = [f"{how} {row[key]}" for key, how in WAYS.items() if key in row]
    settings = [f"--set {name}={value}" for name, value in (row.get("values") or {}).items()]
    return code(" ".join([*found, *settings])) if found else "not installed"


def _images(row: dict[str, Any]) -> str:
    return " ".join(code(image) for image in row.get("images") or ())


def page() -> str:
    """Return the page."""
    rows = charts()
    return paragraphs(
        "# Unmodified charts",
        "These charts and manifests install on emulated nodes as they are published, without Docker. `--images` maps "
        "each of their images to a program of this machine. `make test-upstream` builds the programs, installs each "
        "chart from its Go module, and lets it do its work once.",
        table(
            ("chart", "version", "installed by", "result", "what it shows"),
            [(row["name"], row["version"], installed_by(row), state_of(row), row["proves"]) for row in rows],
        ),
        "## Their images",
        table(("chart", "images"), [(row["name"], _images(row)) for row in rows if row.get("images")]),
    )
