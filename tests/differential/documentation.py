"""docs/api-differences.md, written from ``KNOWN``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.differential.known import KNOWN

PAGE = Path(__file__).parents[2] / "docs" / "api-differences.md"
_HEAD = """\
# Where the embedded API differs

`python -m tests.differential` puts one list of requests and kubectl commands to a real control plane (Kubernetes 1.34)
and to the embedded server, and compares status, headers, bodies, output and exit codes without what is volatile (uids,
versions, times, addresses). It needs `etcd`, `kube-apiserver` and `kubectl` in the folder that `KUBEBUILDER_ASSETS`
names. `python -m tests.differential crds lists` asks some areas only. The areas:

{areas}

These differences are left, and this is why:

"""


def page(areas: dict[str, str]) -> str:
    """The whole page."""
    lines = [_HEAD.format(areas="\n".join(f"- **{area}**: {about}" for area, about in areas.items()))]
    for area, entries in groupby(KNOWN.items(), key=lambda entry: entry[0].partition(": ")[0]):
        lines.append(f"## {area}\n\n")
        lines += [f"- {name.partition(': ')[2]}: {reason}.\n" for name, reason in entries]
        lines.append("\n")
    return "".join(lines).rstrip() + "\n"
