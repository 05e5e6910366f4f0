"""``inspect gpushare [-d] [NODE]``: who has which memory, as the public kubectl plugin prints it.

The table is made of what the API has, so that it needs neither the extender nor a port of it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mews.kube.api.objects import Object, is_terminal, key_of, name_of, namespace_of, node_name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import KubeApi
from mews.kube.system.command import Command, CommandContext
from mews.systems.gpushare import names
from mews.systems.gpushare.policy import GpuUse, SharedGpu, gpu_of
from mews.systems.gpushare.records import assumption, node_gpus, requested

USAGE = "[-d] [--name NAME | --kubeconfig FILE] [NODE]"
FINE = 200
"""A GPU of more units than this is counted in MiB (the public plugin guesses likewise)."""


class PodShare(Struct, frozen=True):
    """What one pod has: of the GPU of that index, -1 while nothing was decided (or the GPU is gone)."""

    name: str
    namespace: str
    index: int
    memory: int


class NodeShares(Struct, frozen=True):
    """One node with shared GPUs."""

    name: str
    address: str
    gpus: tuple[SharedGpu, ...]
    pods: tuple[PodShare, ...]

    def used(self, index: int) -> int:
        """Return what pods have of that GPU; -1: what pods ask that have none yet."""
        return sum(pod.memory for pod in self.pods if pod.index == index)


def shares(nodes: Iterable[Object], pods: Iterable[Object]) -> list[NodeShares]:
    """Return all nodes that share GPUs, by name."""
    live = [pod for pod in pods if not is_terminal(pod)]
    found = []
    for node in sorted(nodes, key=name_of):
        gpus = node_gpus(node, names.MEMORY_RESOURCE, names.COUNT_RESOURCE)
        if gpus:
            mine = [pod for pod in live if node_name_of(pod) == name_of(node)]
            rows = tuple(row for pod in sorted(mine, key=key_of) if (row := _share(pod, gpus)) is not None)
            found.append(NodeShares(name_of(node), _address(node), gpus, rows))
    return found


def _share(pod: Object, gpus: Sequence[SharedGpu]) -> PodShare | None:
    decision, asked = assumption(pod), requested(pod, names.MEMORY_RESOURCE)
    if decision is None:
        return PodShare(name_of(pod), namespace_of(pod), -1, asked) if asked else None
    gpu = gpu_of(GpuUse("", decision.index, decision.uuid, decision.memory), gpus)
    return PodShare(name_of(pod), namespace_of(pod), -1 if gpu is None else gpu.index, decision.memory)


def _address(node: Object) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each.get("type") == "InternalIP"), "unknown")


def unit_of(nodes: Sequence[NodeShares]) -> str:
    """GiB or MiB, guessed by the largest GPU as the public plugin does."""
    return "MiB" if any(gpu.memory > FINE for node in nodes for gpu in node.gpus) else "GiB"


def summary_text(nodes: Sequence[NodeShares]) -> str:
    """Return one row a node."""
    unit, most = unit_of(nodes), max((len(node.gpus) for node in nodes), default=0)
    pending = any(node.used(-1) for node in nodes)
    head = ["NAME", "IPADDRESS", *(f"GPU{index}(Allocated/Total)" for index in range(most))]
    head += [*(("PENDING(Allocated)",) if pending else ()), f"GPU Memory({unit})"]
    rows = [head]
    for node in nodes:
        cells = [f"{node.used(gpu.index)}/{gpu.memory}" for gpu in node.gpus]
        cells += ["0/0"] * (most - len(cells))
        waiting = [str(node.used(-1)) if node.used(-1) else ""] if pending else []
        rows.append([node.name, node.address, *cells, *waiting, _of(*_sums([node]))])
    return f"{_table(rows)}{_footer(nodes)}"


def details_text(nodes: Sequence[NodeShares]) -> str:
    """Return one row a pod, node by node."""
    parts = []
    for node in nodes:
        count, pending = len(node.gpus), bool(node.used(-1))
        columns = [gpu.index for gpu in node.gpus] + ([-1] if pending else [])
        head = ["NAME", "NAMESPACE", *(f"GPU{gpu.index}(Allocated)" for gpu in node.gpus)]
        rows = [[*head, *(("Pending(Allocated)",) if pending else ())]]
        for pod in node.pods:
            rows.append([pod.name, pod.namespace, *(str(pod.memory if pod.index == i else 0) for i in columns)])
        allocated, total = _sums([node])
        share = f"{allocated} ({_percent(allocated, total)}%)"
        body = f"NAME:       {node.name}\nIPADDRESS:  {node.address}\n\n{_table(rows)}"
        parts.append(f"{body}Allocated :  {share}\nTotal :      {total}\n{'-' * (40 + 12 * count)}\n")
    return "\n".join(parts) + "\n" + _footer(nodes)


def _sums(nodes: Iterable[NodeShares]) -> tuple[int, int]:
    both = [(sum(pod.memory for pod in node.pods), sum(gpu.memory for gpu in node.gpus)) for node in nodes]
    return sum(used for used, _ in both), sum(total for _, total in both)


def _of(allocated: int, total: int) -> str:
    return f"{allocated}/{total}"


def _percent(allocated: int, total: int) -> int:
    return 100 * allocated // total if total else 0


def _footer(nodes: Sequence[NodeShares]) -> str:
    allocated, total = _sums(nodes)
    line = "-" * 64
    body = f"Allocated/Total GPU Memory In Cluster:\n{allocated}/{total} ({_percent(allocated, total)}%)"
    return f"{line}\n{body}\n"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


class InspectRequest(Struct, frozen=True):
    """What was typed."""

    details: bool = False
    node: str = ""
    instance: str = ""
    kubeconfig: str = ""


def parse(arguments: Sequence[str]) -> InspectRequest:
    """Return the words after the command.

    Raises ValueError, in one line.
    """
    details, nodes, given = False, [], {"--name": "", "--kubeconfig": ""}
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if word in ("-d", "--details"):
            details = True
        elif flag in given:
            given[flag] = value if equals else next(words, "")
            if not given[flag]:
                raise ValueError(f"{flag}: needs a value")
        elif word.startswith("-"):
            raise ValueError(f"{word}: must be one of -d, --name, --kubeconfig")
        else:
            nodes.append(word)
    if len(nodes) > 1:
        raise ValueError(f"{' '.join(nodes)}: must be one node at most")
    return InspectRequest(details, "".join(nodes), given["--name"], given["--kubeconfig"])


async def inspected(kube: KubeApi, request: InspectRequest) -> str:
    """Return the text. Raises LookupError, in one line, for a node that is not there or shares nothing; ApiError,
    UnavailableError."""
    nodes = await kube.list(NODES)
    found = shares(nodes.items, (await kube.list(PODS)).items)
    if request.node:
        if request.node not in {name_of(node) for node in nodes.items}:
            raise LookupError(f'nodes "{request.node}" not found')
        found = [node for node in found if node.name == request.node]
        if not found:
            raise LookupError(f"The node {request.node} is not for GPU share")
    return details_text(found) if request.details else summary_text(found)


def _run(request: InspectRequest, kubeconfig: str | None, write: Callable[[str], object]) -> int:
    from mews.kube.api.errors import ApiError, UnavailableError
    from mews.kube.process import kubeconfig_kube

    async def ask() -> str:
        kube = kubeconfig_kube(kubeconfig)
        try:
            return await inspected(kube, request)
        finally:
            await kube.close()

    try:
        write(asyncio.run(ask()))
    except LookupError as missing:
        sys.stderr.write(f"{missing.args[0]}\n")
        return 1
    except (ApiError, UnavailableError) as failed:
        raise LookupError(f"the cluster does not answer: {failed}") from failed
    return 0


def _command(arguments: Sequence[str], context: CommandContext) -> int:
    request = parse(arguments)
    file = request.kubeconfig or (str(context.kubeconfig(request.instance)) if request.instance else None)
    return _run(request, file, context.write)


COMMAND = Command(
    "inspect gpushare",
    "Show which pods have which memory of shared GPUs.",
    _command,
    USAGE,
    options={
        "-d": "show each pod, too",
        "--name NAME": "use the session of this name",
        "--kubeconfig FILE": "use this cluster's kubeconfig",
    },
    examples=("mews inspect gpushare --name main -d",),
)


def main() -> int:
    """``kubectl inspect-gpushare``: the executable ``kubectl-inspect_gpushare``, whose underscore kubectl reads as a
    hyphen."""
    try:
        request = parse(sys.argv[1:])
        if request.instance:
            raise ValueError("--name: is for `mews inspect gpushare`; kubectl has --kubeconfig")
        return _run(request, request.kubeconfig or None, sys.stdout.write)
    except ValueError as error:
        sys.stderr.write(f"kubectl inspect-gpushare: {error}\n")
        return 2
    except LookupError as error:
        sys.stderr.write(f"kubectl inspect-gpushare: {error.args[0]}\n")
        return 3
