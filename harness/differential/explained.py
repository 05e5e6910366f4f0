"""Differences between our clusters that are known, and why they are. Data; the first row that fits speaks."""

from __future__ import annotations

import re

from msgspec import Struct

from mews.harness.backends import backends_that


class Explanation(Struct, frozen=True):
    """Differences in stories whose thing, stream and item match these patterns (whole texts) are explained by
    ``why``. ``clusters``: of those pairs' other side; empty: all. How a story ends is explained by rows with
    ``even_last`` only, or with ``if_silent`` where one of the two tells nothing there at all. With ``if_moved`` only
    what both tell as often, in another order, is explained."""

    thing: str
    stream: str
    item: str
    why: str
    clusters: tuple[str, ...] = ()
    even_last: bool = False
    if_silent: bool = False
    if_moved: bool = False

    def fits(
        self, cluster: str, place: tuple[str, str], item: str, *, last: bool, silent: bool = False, moved: bool = False
    ) -> bool:
        """Return whether it explains that item."""
        if (self.clusters and cluster not in self.clusters) or (self.if_moved and not moved):
            return False
        if last and not self.even_last and not (silent and self.if_silent):
            return False
        pairs = zip((self.thing, self.stream, self.item), (*place, item), strict=True)
        return all(re.fullmatch(pattern, text) for pattern, text in pairs)


_PROCESSES = ("control-plane",)
_REAL = backends_that(lambda backend: not backend.emulates_nodes)

REASONS: tuple[Explanation, ...] = (
    Explanation(
        "node/.*",
        "events of (kubelet|node-controller)",
        "Normal (Starting|NodeHas.*|NodeAllocatableEnforced|NodeReady|RegisteredNode): .*",
        "the nodes of a real cluster were there before the scenario began",
        clusters=_REAL,
        if_silent=True,
    ),
    Explanation(
        "(node|kubelet)/.*",
        "(allocatable|plugin of) .*",
        "[0-9]+|0 healthy, 0 unhealthy",
        "a node goes on naming a resource that an earlier scenario of the same cluster had there",
        clusters=_REAL,
        if_silent=True,
    ),
    Explanation(
        "node/.*",
        "events of kubelet",
        "Normal Node(Not)?Schedulable: .*",
        "hosts that a scenario does not have are cordoned for its time, where several share a cluster",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "pod/.*",
        "events of kubelet|kubelet",
        "Normal Killing: Stopping container .*|started .*",
        "containers of one pod that start or are stopped side by side are told of in any order",
        clusters=_REAL,
        even_last=True,
        if_moved=True,
    ),
    Explanation(
        "node/.*",
        "events of kubelet",
        "Normal NodeReady: .*",
        "a node is ready for the first time at its birth, and those of a real cluster were there before",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "node/.*",
        "events of kubelet",
        "Warning FailedNodeAllocatableEnforcement: .* numerical result out of range",
        "a kind node counts the processors of its host, and cgroup v1 has only those of the machine to give",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "node/.*",
        "events of kubelet",
        "Warning CgroupV1: .*",
        "a kubelet warns of a machine with cgroup v1; emulated nodes have cgroup v2",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "node/.*",
        "condition Ready|taints",
        r"False \(KubeletNotReady\)|none|.*not-ready:.*",
        "the nodes of a real cluster were there before the scenario began",
        clusters=_REAL,
        if_silent=True,
    ),
    Explanation(
        "pod/.*",
        "events of kubelet",
        "Normal Pulled: Container image .*",
        "real nodes run our component image in the place of images that only emulated nodes have",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "replicaset/.*",
        "template",
        "[0-9a-f]{6,10}",
        "real nodes run our component image in the place of images that only emulated nodes have",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "service/default/kubernetes",
        "events of ipallocator-repair-controller",
        "Warning ClusterIPNotAllocated: .* is not allocated; repairing",
        "an API server that begins may look for its own service's address before it has noted it",
        clusters=_PROCESSES,
        even_last=True,
    ),
    Explanation(
        "pod/.*",
        "annotations",
        r"\+mews\.dev/[a-z]+-room",
        "whether a pod is asked about within a second of there being room, or reminded of, is a matter of moments",
        even_last=True,
    ),
    Explanation(
        "pod/.*",
        "events of default-scheduler",
        r"Warning FailedScheduling: Post \"https?://.*/bind\": .*(Client.Timeout|context deadline) exceeded.*",
        "kube-scheduler waits five seconds for an extender and asks again: a real machine may be busy for as long",
    ),
    Explanation(
        "node/.*",
        "taints",
        "none|.*not-ready:.*",
        "whether the node controller looks at the nodes while one is not Ready yet is a matter of moments",
    ),
    Explanation(
        "pod/.*",
        "states|events of default-scheduler",
        "bound to .* by default-scheduler|Normal Scheduled: .*",
        "kube-scheduler breaks ties between equally good nodes at random, ours from the seed",
        even_last=True,
    ),
    Explanation(
        "kubelet/.*",
        "plugin of .*",
        ".* healthy, .* unhealthy",
        "a manager that reads the chassis while several devices move may see, and announce, a state between",
    ),
    Explanation(
        "node/.*",
        "allocatable .*",
        "[0-9]+",
        "a kubelet's tick that falls between two lists of a plugin shows a state between",
    ),
    Explanation(
        "pod/.*",
        "events of kubelet",
        "Warning BackOff: Back-off restarting failed container .*",
        "whether a look at a container that cannot be started falls into its back-off is a matter of moments",
    ),
    Explanation(
        "pod/.*",
        "condition (Ready|ContainersReady|PodReadyToStartContainers)",
        r"False( \(ContainersNotReady\))?",
        "a kubelet sends its latest word: of a pod that starts at once the first word may never be sent",
    ),
    Explanation(
        "replicaset/.*",
        "events of replicaset-controller",
        "Normal SuccessfulCreate: Created pod: .*",
        "pods of one set are created side by side, and told of in any order",
        even_last=True,
        if_moved=True,
    ),
    Explanation(
        "pod/.*",
        "condition PodScheduled|events of default-scheduler",
        r"False \(SchedulerError\)|Warning FailedScheduling: failed bind with extender at URL .*",
        "a pod for which another has just taken the room is refused by the bind, or by the filter where it comes later",
    ),
    Explanation(
        "pod/.*",
        "states|condition (Ready|ContainersReady|Initialized)",
        r"Succeeded|Failed|False \(Pod(Completed|Failed)\)|True \(PodCompleted\)",
        "a process that is told to end before it listens is killed by the signal",
        clusters=_PROCESSES,
    ),
    Explanation(
        "pod/.*",
        "condition (Ready|ContainersReady|Initialized)",
        r"False \(Pod(Completed|Failed)\)|True \(PodCompleted\)",
        "a process that is told to end before it listens is killed by the signal",
        clusters=_PROCESSES,
        even_last=True,
    ),
    Explanation(
        "pod/.*",
        "states|condition (Ready|ContainersReady)",
        "Running|True",
        "a container that ends between two looks of its kubelet, a second apart, was never seen running",
        clusters=_REAL,
    ),
    Explanation(
        "pod/.*",
        "events of kubelet",
        'Warning FailedMount: MountVolume.SetUp failed for volume "kube-api-access-.*',
        "a token's volume may come late, or be asked for after its pod is deleted; emulated nodes mount none",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "pod/.*",
        "events of kubelet",
        "Warning Failed: Error: Pre[A-Za-z]+Hook: rpc error: code = Unavailable .*",
        "why nobody answers a runtime hook is said by who asks: in process, by gRPC, or the proxy before containerd",
        even_last=True,
    ),
    Explanation(
        "node/.*",
        "events of kubelet",
        "Warning (ContainerGCFailed|ImageGCFailed|FreeDiskSpaceFailed): .*",
        "a kubelet that starts may look for what can be cleared away before the proxy before its runtime serves",
        clusters=_REAL,
        even_last=True,
    ),
    Explanation(
        "pod/.*",
        "events of kubelet",
        "Warning Unhealthy: .* probe errored .* (no running task|container not running|task .* not found).*",
        "a probe's command may come just as its container ends: then it cannot be run, and a real kubelet tells",
        clusters=_REAL,
        even_last=True,
    ),
)
