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
## Generated cases about fields

`make validation SEED=771900` put 5,250 cases to both servers: 5,236 verdicts (99.7 %) are alike, in status, causes,
words and warnings. Of the 63 kinds 52 are without a difference, and none is below 98 %: Service 98.1; Endpoints,
LimitRange, DaemonSet, Deployment, ReplicaSet, APIService, ServiceCIDR, ResourceClaimTemplate and ResourceSlice 98.6;
Pod 99.8.
What differs are single cases: another `metadata.uid` in an update (of Endpoints, Services, APIServices), empty
structs and lists that upstream tells from absent ones, a name of a claim in a pod's status, a negative generation, a
negative number in a Deployment's status.

"""
_OF_DEFINITIONS = """\
## Drawn and published definitions

Besides the cases, `python -m tests.differential.generated definitions --seeds 0-199` draws definitions, most of them
in some way wrong, and objects of those that are right, and compares both servers' verdicts and words: 1,398 or more
of 1,400 answers are alike. `tests/kube/emulated/apiserver/published_modules.txt` pins Go modules (the training
operator, Kueue, Koordinator, Volcano, the GPU operator, cert-manager, the Gateway API) whose 73 definitions both
servers answer alike. What is known to remain:

- Of an expression in CEL that is wrong in several places not all of them are named: what is unexpected, superfluous or
  missing is, in ANTLR's words, and where no word can be left out or added the reading ends.
- The steps of a rule at run time are counted roughly; only a rule that comes near a million steps can tell.
- A default of another type than its schema is taken by upstream where an unknown `format` stands beside; here it is
  not.
"""


def page(areas: dict[str, str]) -> str:
    """The whole page."""
    lines = [_HEAD.format(areas="\n".join(f"- **{area}**: {about}" for area, about in areas.items()))]
    for area, entries in groupby(KNOWN.items(), key=lambda entry: entry[0].partition(": ")[0]):
        lines.append(f"## {area}\n\n")
        lines += [f"- {name.partition(': ')[2]}: {reason}.\n" for name, reason in entries]
        lines.append("\n")
    return "".join(lines) + _DRAWN + _OF_DEFINITIONS
