"""docs/api-differences.md, written from ``KNOWN``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tests.differential.known import KNOWN

PAGE = Path(__file__).parents[2] / "docs" / "api-differences.md"
_HEAD = """\
# Where the embedded API differs

After reading this page you know how the embedded API server differs from Kubernetes 1.34, and how to repeat the
comparison. `python -m tests.differential` sends about 2,300 requests and kubectl commands to both servers.
`KUBEBUILDER_ASSETS` must name a folder with `etcd`, `kube-apiserver` and `kubectl`; `--record` writes down the real
replies, with which tests compare ours elsewhere. Status, headers, bodies, output and
exit codes are compared; uids, versions, times and addresses are ignored. `python -m tests.differential crds lists`
compares only some areas: {areas}.

Known differences:

"""
_DRAWN = """\
## Generated requests

`make validation SEED=771900` sent 5,250 generated requests to both servers. 5,236 verdicts (99.7 %) are equal in
status, causes, messages and warnings. Of 63 kinds 52 have no difference; Service has the most (98.1 % are equal).
Remaining differences are:

- another `metadata.uid` in an update of Endpoints, Services and APIServices;
- empty structs and lists where upstream distinguishes empty from absent;
- a claim's name in a pod's status, a negative generation, and a negative number in a Deployment's status.

"""
_OF_DEFINITIONS = """\
## Custom resource definitions

`python -m tests.differential.generated definitions --seeds 0-199` compares generated definitions and their objects. At
least 1,398 of 1,400 answers are equal, and so are the answers about 73 published definitions. Remaining differences
are:

- Of a CEL expression that cannot be parsed, only the first error is sure to be the same.
- A CEL call on values of unknown type can cost more steps. Lists and maps cannot be keys of a map.
- Upstream accepts a default of a wrong type if an unknown `format` is set. The embedded API refuses such a default.
"""


def page(areas: dict[str, str]) -> str:
    """The whole page."""
    lines = [_HEAD.format(areas=", ".join(f"`{area}`" for area in areas))]
    for area, entries in groupby(KNOWN.items(), key=lambda entry: entry[0].partition(": ")[0]):
        lines.append(f"## {area}\n\n")
        lines += [f"- {name.partition(': ')[2]}: {reason}.\n" for name, reason in entries]
        lines.append("\n")
    return "".join(lines) + _DRAWN + _OF_DEFINITIONS
