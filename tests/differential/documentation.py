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
_DRAWN = """\
## Drawn and published definitions

Besides the cases, `python -m tests.differential.generated definitions --seeds 0-199` draws definitions, most of them
in some way wrong, and objects of those that are right, and compares both servers' verdicts and words: 1,398 or more
of 1,400 answers are alike. `tests/kube/emulated/apiserver/published_modules.txt` pins Go modules (the training
operator, Kueue, Koordinator, Volcano, the GPU operator, cert-manager, the Gateway API) whose 73 definitions both
servers answer alike. What is known to remain:

- A rule in CEL that cannot be parsed is refused in shorter words than ANTLR's.
- The steps of a rule at run time are counted roughly; only a rule that comes near a million steps can tell.
- A default of another type than its schema is taken by upstream where an unknown `format` stands beside; here it is
  not.
- Where google-re2 is not installed, patterns are read by Python's `re`: look-arounds and back references are then
  taken.
"""


def page(areas: dict[str, str]) -> str:
    """The whole page."""
    lines = [_HEAD.format(areas="\n".join(f"- **{area}**: {about}" for area, about in areas.items()))]
    for area, entries in groupby(KNOWN.items(), key=lambda entry: entry[0].partition(": ")[0]):
        lines.append(f"## {area}\n\n")
        lines += [f"- {name.partition(': ')[2]}: {reason}.\n" for name, reason in entries]
        lines.append("\n")
    return "".join(lines) + _DRAWN
