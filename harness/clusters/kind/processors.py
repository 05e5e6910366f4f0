"""As many processors on a kind node as its host has: what the kubelet reads of its machine is laid over the real files.

A node is a container and sees the processors of the machine below it, two or two hundred. The kubelet counts them in
``/sys/devices/system`` when it starts (cAdvisor's topology); requests are weighed by that count, and no process runs
any faster. Blocking.
"""

from __future__ import annotations

from collections.abc import Mapping

from mews.harness.clusters.kind.tools import call

_SCRIPT = r"""
set -e
there=/sys/devices/system made=/run/mews-processors last=$(($1 - 1))
for part in node cpu; do
  while mountpoint -q $there/$part; do umount $there/$part; done
done
rm -rf $made
mkdir -p $made/cpu $made/node/node0
cp -r $there/cpu/cpu0/cache $made/cpu/.cache 2>/dev/null || true
cp $there/node/node0/meminfo $there/node/node0/distance $made/node/node0/ 2>/dev/null || true
cp -r $there/node/node0/hugepages $made/node/node0/ 2>/dev/null || true
for number in $(seq 0 $last); do
  mkdir -p $made/cpu/cpu$number/topology
  echo $number > $made/cpu/cpu$number/topology/core_id
  echo 0 > $made/cpu/cpu$number/topology/physical_package_id
  ln -s ../.cache $made/cpu/cpu$number/cache
  ln -s ../../cpu/cpu$number $made/node/node0/cpu$number
done
for file in cpu/online cpu/present cpu/possible node/node0/cpulist; do echo 0-$last > $made/$file; done
for file in online possible has_cpu has_memory has_normal_memory; do echo 0 > $made/node/$file; done
for part in cpu node; do mount --bind $made/$part $there/$part; done
systemctl restart kubelet
"""

_KUBECTL = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf")
_NOTICED_S = 120


def give_processors(control_plane: str, containers: Mapping[str, str], cpus: Mapping[str, int]) -> None:
    """Give each of these nodes that many, and wait until the API shows them. ``containers``: node -> its container.

    Raises RequirementError.
    """
    for node, count in cpus.items():
        call(["docker", "exec", containers[node], "bash", "-c", _SCRIPT, "bash", str(count)])
    for node, count in cpus.items():
        seen = ("wait", f"--for=jsonpath={{.status.capacity.cpu}}={count}", f"--timeout={_NOTICED_S}s", f"node/{node}")
        call(["docker", "exec", control_plane, *_KUBECTL, *seen], timeout_s=_NOTICED_S + 30.0)


def processors_of(control_plane: str) -> dict[str, int]:
    """Return how many each node's kubelet counts.

    Raises RequirementError.
    """
    row = r"jsonpath={range .items[*]}{.metadata.name} {.status.capacity.cpu}{'\n'}{end}"
    output = call(["docker", "exec", control_plane, *_KUBECTL, "get", "nodes", "--output", row])
    pairs = (line.split() for line in output.splitlines() if line.count(" ") == 1)
    return {node: int(count) for node, count in pairs if count.isdecimal()}


def ask_nothing_of_nodes(control_plane: str) -> None:
    """Let kind's network pods, where the node image has them, ask for nothing: a host's processors are all for the
    scenario's pods.

    Raises RequirementError.
    """
    system = ("docker", "exec", control_plane, *_KUBECTL, "--namespace", "kube-system")
    if call([*system, "get", "daemonset", "kindnet", "--ignore-not-found", "--output", "name"]).strip():
        call([*system, "set", "resources", "daemonset", "kindnet", "--requests", "cpu=0"])
