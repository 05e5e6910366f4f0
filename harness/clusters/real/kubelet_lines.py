"""Journal lines of a real kubelet, derived from what can be seen of it: its checkpoint, the pods' statuses, what
processes have in their environment, and what DevMgr logs of its side of the device-plugin interface, or a driver of
resource claims of its.

The lines mean what the journal's table says, with two differences that watching from outside makes: they come a moment
after the fact, and ``pod-ended`` is written as soon as the kubelet gives a pod's devices back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from mews.harness.journal import Journal
from mews.harness.ports.cluster import DEVICE_ENV
from mews.kube.api.objects import Object, is_deleting, is_terminal, key_of, name_of, uid_of
from mews.kube.api.resource_claims import PREPARED, UNPREPARED
from mews.kube.emulated.kubelet.users import DeviceUsers

Slot = tuple[str, str, str]

CLAIM_EVENTS = (PREPARED, UNPREPARED)
"""What drivers of ours record of the kubelet's calls for resource claims."""

REJECTIONS = ("UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "NodeName", "AdmissionFailed")


def words_of(env: Mapping[str, str]) -> list[str]:
    """Return them by which a container names the GPUs that it sees."""
    return [word for word in env.get(DEVICE_ENV, "").split(",") if word]


class KubeletLines:
    """The lines of one host's kubelet. ``users`` is told which GPUs containers see, as ``DEVICE_ENV`` has them."""

    def __init__(self, journal: Journal, host: str, users: DeviceUsers | None = None) -> None:
        self._journal = journal
        self._users = users
        self._using: dict[str, set[str]] = {}
        self._actor = f"kubelet/{host}"
        self._pods: dict[str, Object] = {}
        self._held: dict[Slot, tuple[str, ...]] = {}
        self._envs: dict[tuple[str, str], dict[str, str]] = {}
        self._announced: dict[str, dict[str, str]] = {}
        self._listed: dict[str, tuple[list[str], list[str]]] = {}
        self._resource = ""
        self._begun: set[tuple[str, str, str]] = set()
        self._starting: Counter[str] = Counter()
        self._ending: set[str] = set()
        self._closed: set[str] = set()
        self._entries: list[list[Any]] | None = None
        self._file: tuple[Sequence[Sequence[Any]], Mapping[str, Sequence[str]]] = ((), {})

    def _write(self, event: str, **fields: Any) -> None:
        self._journal.write("kubelet", self._actor, event, **fields)

    # What the agent tells

    def record(self, record: Mapping[str, Any]) -> None:
        """A record of DevMgr's, of a driver's, or of the proxy before the container runtime."""
        fields = record.get("fields") or {}
        if record.get("event") == "hook-failed":
            uid, container, error = (str(fields.get(key, "")) for key in ("uid", "container", "error"))
            if uid in self._pods:
                self._write("hook-failed", pod=str(fields["pod"]), uid=uid, container=container, message=error)
            return
        if record.get("event") in CLAIM_EVENTS:
            self._write(str(record["event"]), **fields)
            return
        if record.get("event") == "registered":
            self._resource = str(fields.get("resource", ""))
            self._listed.pop(self._resource, None)
            self._write("registered", resource=self._resource)
        elif record.get("event") == "announced":
            self._announced = {"": dict(fields.get("devices") or {})}

    def checkpoint(self, entries: Sequence[Sequence[Any]], registered: Mapping[str, Sequence[str]]) -> None:
        """The kubelet has written its file. Entries of pods that were never seen are left over from before."""
        self._file = (entries, registered)
        now: dict[Slot, tuple[str, ...]] = {}
        for uid, container, resource, ids, env in entries:
            if uid in self._pods:
                now[uid, container, resource] = tuple(ids)
                self._envs.setdefault((uid, container), {}).update(env)
        for uid in dict.fromkeys(uid for uid, *_ in self._held.keys() - now.keys()):
            self._end(uid)
        fresh = [slot for slot, ids in now.items() if self._held.get(slot) != ids]
        self._held = now
        for uid, container, resource in fresh:
            self._closed.discard(uid)
            pod = key_of(self._pods[uid])
            devices = list(now[uid, container, resource])
            self._write("allocated", pod=pod, uid=uid, container=container, resource=resource, devices=devices)
        self._devices(registered)
        written = sorted([*slot, list(ids)] for slot, ids in now.items())
        if written != self._entries:
            self._entries = written
            self._write("checkpoint", entries=written)

    def _devices(self, registered: Mapping[str, Sequence[str]]) -> None:
        for resource, ids in sorted(registered.items()):
            healthy = sorted(ids)
            announced = self._announced.get("", {}) if resource == self._resource else {}
            unhealthy = sorted(device for device, health in announced.items() if device not in healthy)
            if self._listed.get(resource) != (healthy, unhealthy):
                self._listed[resource] = (healthy, unhealthy)
                self._write("devices", resource=resource, healthy=healthy, unhealthy=unhealthy)

    def holders(self) -> set[str]:
        """``namespace/name`` of the pods that hold devices by the kubelet's file, and are to go on."""
        live = {uid for uid, *_ in self._held} - self._closed
        return {key_of(self._pods[uid]) for uid in live if not is_deleting(self._pods[uid])}

    # What the pods tell

    def pod(self, pod: Object) -> None:
        """A pod of this node, as it is now."""
        uid = uid_of(pod)
        new = uid not in self._pods
        self._pods[uid] = pod
        if new and any(entry[0] == uid for entry in self._file[0]):
            self.checkpoint(*self._file)
        status = pod.get("status") or {}
        if not is_terminal(pod):
            return
        reason = str(status.get("reason") or "")
        if reason and (reason in REJECTIONS or reason.startswith("OutOf")) and uid not in self._closed:
            self._closed.add(uid)
            fields = {"reason": reason, "message": str(status.get("message") or "")}
            self._write("rejected", pod=key_of(pod), uid=uid, **fields)
        self._end_seen(uid)

    def gone(self, pod: Object) -> None:
        """A pod of this node is no more."""
        self._end_seen(uid_of(pod))

    def started(self, pod: Object, container: str, container_id: str) -> bool:
        """Return whether that container is news; it is from now on known, and ``running`` is to be told of it: its pod
        does not end before."""
        begun = (uid_of(pod), container, container_id)
        if begun in self._begun:
            return False
        self._begun.add(begun)
        self._starting[uid_of(pod)] += 1
        return True

    def knows(self, pod: Object) -> bool:
        """Return whether all of a pod's containers that run by now are known."""
        return all(
            (uid_of(pod), str(each["name"]), str(each.get("containerID"))) in self._begun
            for each in (pod.get("status") or {}).get("containerStatuses") or ()
            if "running" in (each.get("state") or {})
        )

    def given(self, uid: str, container: str) -> Mapping[str, str]:
        """Return what device plugins gave that container to have in its environment; {} while none is known."""
        return self._envs.get((uid, container), {})

    def running(
        self,
        pod: Object,
        container: str,
        env: Mapping[str, str],
        *,
        hooked: Sequence[str] = (),
        gpus: Sequence[str] = (),
    ) -> None:
        """A container has started with that environment, of which only what plugins gave counts, and the names
        ``hooked`` that an agent of the node may have given. It sees the GPUs of those UUIDs."""
        uid = uid_of(pod)
        known = {*self.given(uid, container), *hooked}
        seen = {name: env[name] for name in sorted(known) if name in env}
        self._write("container-started", pod=key_of(pod), uid=uid, container=container, env=seen)
        if uid not in self._closed:
            self._use(pod, container, gpus or words_of(seen))
        self._starting[uid] -= 1
        if uid in self._ending:
            self._end_seen(uid)

    def _use(self, pod: Object, container: str, uuids: Sequence[str]) -> None:
        if self._users is None or not uuids:
            return
        uid = uid_of(pod)
        key = f"pod/{uid}/{container}"
        # Its number on its node is nobody's business here: one that no process of a Linux machine can have.
        pid = 0x400000 + crc32(key.encode()) % 0x3FFFFF
        self._users.begin(key, uuids, pid=pid, name=f"{name_of(pod)}/{container}")
        self._using.setdefault(uid, set()).add(key)

    def _end_seen(self, uid: str) -> None:
        """The API says so. Looking into a container that has started takes a moment, in which its pod may be gone."""
        if self._starting[uid] > 0:
            self._ending.add(uid)
        else:
            self._end(uid)

    def _end(self, uid: str) -> None:
        self._ending.discard(uid)
        if self._users is not None:
            for key in sorted(self._using.pop(uid, ())):
                self._users.end(key)
        if uid in self._closed or uid not in self._pods:
            return
        self._closed.add(uid)
        self._write("pod-ended", pod=key_of(self._pods[uid]), uid=uid)
