"""Writes the lines that a chassis and kubelets would, so that a test says what happens and not how it is told."""

from mews.harness.invariants import Bounds
from mews.harness.invariants.invariant import JudgedSystems
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.journal import Journal
from mews.kube.system.system import Pooled

POOLED = Pooled("falcon.com/gpu", "GPU", "kubecomp-scheduler", "NVIDIA_VISIBLE_DEVICES")
HOSTS = {"1": "host-1", "2": "host-2", "3": "host-3"}


class Stream:
    """Chassis A with ``devices`` {device: port}, judged as it goes. ``numbers()`` names the broken invariants."""

    def __init__(self, devices, systems=None, **bounds):
        self.t = 0.0
        self.journal = Journal(lambda: self.t)
        theirs = {name: bounds[name] for name in bounds if name not in Bounds.names()}
        self.judge = InvariantJudge(Bounds.of(bounds, theirs), systems or JudgedSystems(pooled=(POOLED,)))
        self.journal.listen(self.judge.on_line)
        self.ports = dict(devices)
        self.checkpoint = {}
        self.operation = 0
        rows = {device: self.row(device) for device in devices}
        self.journal.write("chassis", "chassis/A", "table", pool="pool-0", ports=HOSTS, devices=rows)

    def row(self, device, uuid=None):
        port = self.ports[device]
        return {"uuid": uuid or f"GPU-{device}", "gpuid": f"0-{device}", "port": port, "host": HOSTS.get(port)}

    def chassis(self, event, device, port, *, uuid=None, old_port="told", **fields):
        old = self.ports[device] if old_port == "told" else old_port
        if event not in ("attach-begun", "detach-begun"):
            self.ports[device] = port
        place = {"port": port, "host": HOSTS.get(port), "old_port": old, "old_host": HOSTS.get(old)}
        names = {"device": device, "uuid": uuid or f"GPU-{device}", "gpuid": f"0-{device}"}
        if event.endswith("-begun"):
            self.operation += 1
        if event.endswith("-begun") or event == "operation-finished":
            fields.setdefault("operation", self.operation)
        return self.journal.write("chassis", "chassis/A", event, **names, **place, **fields)

    def attach(self, device, port):
        self.chassis("attach-begun", device, port)
        self.chassis("attached", device, port)
        self.chassis("operation-finished", device, port, kind="attach", answer="true", truth=True, reason="")

    def detach(self, device):
        self.chassis("detach-begun", device, None)
        line = self.chassis("detached", device, None)
        self.chassis("operation-finished", device, None, kind="detach", answer="true", truth=True, reason="")
        return line

    def kubelet(self, host, event, **fields):
        return self.journal.write("kubelet", f"kubelet/{host}", event, **fields)

    def allocate(self, host, pod, devices, container="main"):
        ids = [f"0-{device}" for device in devices]
        self.checkpoint.setdefault(host, []).append([pod, container, "falcon.com/gpu", ids])
        who = {"pod": f"default/{pod}", "uid": pod, "container": container}
        return self.kubelet(host, "allocated", **who, resource="falcon.com/gpu", devices=ids)

    def save(self, host):
        return self.kubelet(host, "checkpoint", entries=list(self.checkpoint.get(host, [])))

    def run(self, host, pod, devices, container="main", env=None):
        """A pod is given devices and starts."""
        self.allocate(host, pod, devices, container)
        self.save(host)
        names = ",".join(f"0-{device}" for device in devices)
        uuids = ",".join(f"GPU-{device}" for device in devices)
        env = {"DISAG_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": uuids} if env is None else env
        who = {"pod": f"default/{pod}", "uid": pod, "container": container}
        return self.kubelet(host, "container-started", **who, env=env)

    def end(self, host, pod):
        return self.kubelet(host, "pod-ended", pod=f"default/{pod}", uid=pod)

    def numbers(self):
        return [violation.invariant for violation in self.judge.violations]

    def first(self):
        """The line that the only violation says broke it."""
        [violation] = self.judge.violations
        return violation.first
