"""Draws ``docs/architecture.svg`` from the imports: ``python -m ci.architecture docs/architecture.svg``.

The boxes and where they stand are chosen here; the arrows are those that the code has. An arrow that follows from
others is drawn thin, so that the drawing can be read and still has every one. A test holds the file to the code.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from mews.harness.package import copy_to

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "architecture.svg"

Arrow = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Box:
    """Modules that are drawn as one: ``parts`` are names below ``mews``, each with all that is below it; the longest
    name that fits a module decides. ``x`` and ``y`` are the middle, in pixels."""

    title: str
    words: str
    parts: tuple[str, ...]
    room: str
    x: int
    y: int


WIDTH, HEIGHT = 1240, 860
_BOX_WIDTH, _BOX_HEIGHT = 196, 48

BOXES: Mapping[str, Box] = {
    box.title: box
    for box in (
        Box(
            "command line",
            "cli, commands",
            ("harness.cli", "harness.__main__", "harness.commands"),
            "harness",
            270,
            66,
        ),
        Box(
            "tests",
            "testing, pytest_plugin, testkit",
            ("testing", "harness.pytest_plugin", "harness.testkit"),
            "harness",
            620,
            66,
        ),
        Box(
            "engines",
            "engine, up, experiments, …",
            tuple(
                f"harness.{name}"
                for name in (
                    *("engine", "up", "demo", "doctor", "differential", "experiments"),
                    *("fuzz", "new", "recording", "simulation", "sweeps"),
                )
            ),
            "harness",
            445,
            150,
        ),
        Box(
            "conformance",
            "clauses, recordings served",
            ("harness.conformance", "harness.replay"),
            "harness",
            970,
            150,
        ),
        Box("clusters", "backends, manifests", ("harness.clusters", "harness.manifests"), "harness", 270, 234),
        Box("live and reports", "live, report", ("harness.live", "harness.report"), "harness", 620, 234),
        Box("scenarios", "steps, checks, metrics", ("harness.scenario",), "harness", 445, 318),
        Box("invariants", "judge, fault windows", ("harness.invariants",), "harness", 800, 360),
        Box("run context", "journal, ports, feeds, clock", ("harness",), "harness", 445, 402),
        Box("systems", "KubeComp, KOD2, GPU Share, …", ("systems",), "systems", 150, 508),
        Box(
            "API server",
            "core, kinds, packs",
            tuple(f"kube.emulated.{name}" for name in ("apiserver", "core", "kinds", "packs", "ports", "types")),
            "kube",
            420,
            508,
        ),
        Box("controllers", "deployments, jobs, …", ("kube.emulated.controllers",), "kube", 640, 508),
        Box("kubelet", "containers, devices", ("kube.emulated.kubelet", "kube.emulated"), "kube", 860, 508),
        Box("scheduling", "framework and plugins", ("kube.scheduling", "kube.cel"), "kube", 640, 612),
        Box(
            "device plugin, hooks",
            "gRPC",
            ("kube.deviceplugin", "kube.dra", "kube.runtimehook", "kube.emulated.streaming"),
            "kube",
            420,
            612,
        ),
        Box(
            "system",
            "what a system declares",
            (
                *("kube.system", "kube.serving", "kube.nvml_library", "kube.divided_gpus"),
                *("kube.dra.claim_lines", "kube.dra.gpu_driver", "kube.dra.gpus"),
            ),
            "kube",
            200,
            612,
        ),
        Box("components", "process, metrics, leases", ("kube",), "kube", 310, 700),
        Box("clients", "of the API, of a chassis", ("kube.client", "kube.chassis"), "kube", 530, 700),
        Box(
            "objects", "of the API; releases; the clock", ("kube.api", "kube.clock", "kube.releases"), "kube", 750, 700
        ),
        Box(
            "faces",
            "dialects over HTTP, hosts as files",
            ("emulator", "emulator.dialects", "emulator.hostd"),
            "emulator",
            1110,
            540,
        ),
        Box(
            "hardware",
            "chassis, host, NVML, telemetry",
            (
                "emulator.chassis",
                "emulator.hardware",
                "emulator.host",
                "emulator.inventory",
                "emulator.nvml",
                "emulator.telemetry",
                "emulator.clock",
            ),
            "emulator",
            1110,
            650,
        ),
        Box(
            "shared by rooms",
            "dialects, registry, callers, …",
            (
                "",
                "callers",
                "certificates",
                "descriptors",
                "dialects",
                "environment",
                "listening",
                "names",
                "old_names",
                "own_files",
                "project",
                "registry",
                "yaml_text",
            ),
            "mews",
            620,
            808,
        ),
    )
}

ROOMS: Mapping[str, tuple[int, int, int, int, str]] = {
    "harness": (20, 24, 1200, 418, "harness/ starts, drives and judges"),
    "systems": (30, 462, 240, 92, "systems/ the software under test"),
    "kube": (290, 462, 690, 92, "kube/emulated/ a Kubernetes in itself"),
    "shared": (30, 568, 950, 172, "kube/ what every component shares"),
    "emulator": (1000, 462, 220, 278, "emulator/ fake hardware"),
    "mews": (440, 762, 360, 84, "src/mews/"),
}
"""Frames: left, top, width, height, title."""


def imports() -> dict[str, list[str]]:
    """Module of ``mews`` -> modules of ``mews`` that it imports when it runs (imports for types alone do not count)."""
    read = (
        "import grimp, json; graph = grimp.build_graph('mews', exclude_type_checking_imports=True, cache_dir=None);"
        "print(json.dumps({name: sorted(graph.find_modules_directly_imported_by(name)) for name in graph.modules}))"
    )
    with tempfile.TemporaryDirectory() as folder:
        copy_to(Path(folder) / "mews")
        environment = {**os.environ, "PYTHONPATH": folder}
        command = [sys.executable, "-c", read]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def box_of(module: str) -> str:
    """Return the title of the box that a module is drawn in.

    Raises LookupError for one that is in none: a new top module needs a place.
    """
    inside = module.removeprefix("mews").removeprefix(".")
    fits = [
        (len(part), box.title)
        for box in BOXES.values()
        for part in box.parts
        if inside == part or (part and inside.startswith(f"{part}."))
    ]
    if not fits:
        raise LookupError(f"{module}: no box of ci/architecture.py has it")
    return max(fits)[1]


def arrows(imported: Mapping[str, Iterable[str]]) -> set[Arrow]:
    """Box -> box, where a module of the first imports one of the second."""
    pairs = ((box_of(module), box_of(other)) for module, others in imported.items() for other in others)
    return {(one, other) for one, other in pairs if one != other}


def implied(drawn: set[Arrow]) -> set[Arrow]:
    """Return those that a way over other arrows says already."""

    def reachable(start: str, without: Arrow) -> set[str]:
        seen: set[str] = set()
        open_ = [start]
        while open_:
            here = open_.pop()
            for one, other in drawn:
                if one == here and (one, other) != without and other not in seen:
                    seen.add(other)
                    open_.append(other)
        return seen

    return {arrow for arrow in drawn if arrow[1] in reachable(arrow[0], arrow)}


def arrows_in(svg: str) -> set[Arrow]:
    """Return the arrows that a drawing has."""
    return set(re.findall(r'<path class="\w+" data-from="([^"]+)" data-to="([^"]+)"', svg))


def drawing(drawn: set[Arrow]) -> str:
    """Return the SVG."""
    thin = implied(drawn)
    ordered = sorted(drawn, key=lambda arrow: (arrow not in thin, arrow))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Packages of '
        'Mews and which imports which">',
        "<style>",
        "text{font-family:sans-serif;fill:#1c2733}.title{font-size:15px;font-weight:bold}.words{font-size:11px;fill:#4a5866}",
        ".room{font-size:12px;fill:#4a5866}.frame{fill:#f3f6f9;stroke:#c3ced9}.box{fill:#fff;stroke:#5b7083}",
        "path{fill:none}.strong{stroke:#2f5d8a;stroke-width:1.8}.thin{stroke:#9db2c6;stroke-width:.7}",
        "</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#2f5d8a"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for x, y, width, height, title in ROOMS.values():
        lines.append(f'<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        lines.append(f'<text class="room" x="{x + 8}" y="{y + 15}">{escape(title)}</text>')
    lines += [_path(arrow, "thin" if arrow in thin else "strong") for arrow in ordered]
    for box in BOXES.values():
        left, top = box.x - _BOX_WIDTH // 2, box.y - _BOX_HEIGHT // 2
        lines.append(f'<rect class="box" x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="5"/>')
        for name, y, text in (("title", box.y - 4, box.title), ("words", box.y + 14, box.words)):
            lines.append(f'<text class="{name}" x="{box.x}" y="{y}" text-anchor="middle">{escape(text)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _path(arrow: Arrow, name: str) -> str:
    """Return it from the nearer edge of one box to that of the other, a little bent where both stand in one row."""
    one, other = BOXES[arrow[0]], BOXES[arrow[1]]
    if one.y == other.y:
        side = 1 if other.x > one.x else -1
        start, end = one.x + side * _BOX_WIDTH // 2, other.x - side * _BOX_WIDTH // 2
        bend = f"M{start} {one.y}Q{(start + end) // 2} {one.y - (0 if abs(end - start) < 60 else 70)} {end} {other.y}"
    else:
        side = 1 if other.y > one.y else -1
        lean = max(-70, min(70, (other.x - one.x) // 4))
        start, end = one.y + side * _BOX_HEIGHT // 2, other.y - side * _BOX_HEIGHT // 2
        bend = f"M{one.x + lean} {start}L{other.x - lean} {end}"
    title = f"<title>{arrow[0]} imports {arrow[1]}</title>"
    head = ' marker-end="url(#head)"' if name == "strong" else ""
    return f'<path class="{name}" data-from="{arrow[0]}" data-to="{arrow[1]}" d="{bend}"{head}>{title}</path>'


def main() -> None:
    """Write the file that is named."""
    Path(sys.argv[1]).write_text(drawing(arrows(imports())), encoding="utf-8")


if __name__ == "__main__":
    main()
