"""One timeline over chassis, kubelet, API and scheduler.

A line is ``{"t", "layer", "actor", "event", …}``: ``t`` in seconds from the start, ``layer`` one of ``LAYERS``.
API lines come from watches and hardware lines from the chassis' event feed, in all four ways to run
(``mews.harness.recorder``). Logs of components are collected separately (``Records``) and are no part of the journal.
Every line is news: repetitions (heartbeats, leases, repeated events) are not written, so a journal that does not grow
means that nothing happens.

Some lines are steps of a system's published workflow. In a run's written journal, these lines name their steps in an
additional field, ``paper`` (``SystemMeasuring.steps``). While the run goes on, they do not have this field.

Everybody may rely on the lines below. In them, *device* stands for these fields:

- ``device`` (the ID in the chassis), ``uuid`` and ``gpuid`` (``<chassis index>-<device>``)
- ``port`` and ``host``: where the device is after the event, None while it is free
- ``old_port`` and ``old_host``: where the device was before

*function* stands for ``device``, ``uuid``, ``gpuid``, ``kind``, ``bdf``, ``minor`` and ``healthy`` (whether all layers
of the device are up and it answers)::

    layer      actor           event             fields
    chassis    chassis/A       table             pool, ports {port: host}, devices {device: {uuid, gpuid, port, host}};
                                                 at the start and after a reset
                               attach-begun      *device*: port is the target, old_port where it is; operation (number)
                               attached          *device*
                               detach-begun      *device*: port is None
                               detached          *device*
                               operation-finished  *device*, operation, kind (attach, detach), answer as the client
                                                 receives it, truth, reason ("" or why it was refused)
                               edited            *device*, cause; another editor, or a fault, changed the table
                               inserted, removed *device*; put into or pulled out of its slot
                               link-down, link-up  *device*; the port stays, the host cannot see the device
                               device-changed    *device*, old_uuid
                               down, up          the management CPU's answers stop, and come again
                               host-power        host, on, boot: a cabled server was switched, by Redfish
    host       host/host-1     table             devices {gpuid: *function*}; at the start
                               link-up, function-added, driver-bound, nvml-visible   *function*: it came up
                               nvml-hidden, driver-unbound, function-removed, link-down   *function*: it went
                               xid               *function*, xid, instance [IDs] of a MIG device; also in the kernel log
                               lost              *function*; fallen off the bus
                               ecc               *function*, corrected, uncorrected
                               nvml-recovered    *function*; NVML had answered "unknown error"
                               stuck             *function*, arrow: a fault keeps that layer from coming up
                               draining, persistence   *function*, on
                               powered-off, powered-on   the whole machine was switched
                               waiting           *function*, what: a write that blocks while the GPU is in use
                               rescanned         below: the bridge below which was looked, None for everywhere
                               virtual-functions  *function*, count: an adapter has so many from now on
                               gpu-set      *function*, name, values: a setter of NVML
                               gpu-shut-down  *function*: nobody uses it; its settings are gone
                               mig-mode       *function*, on
                               mig-instances  *function*, act: what was created or destroyed, instances: those there are
    kubelet    kubelet/host-1  registered        resource
                               devices           resource, healthy [id], unhealthy [id]: a list of the plugin
                               allocated         pod (namespace/name), uid, container, resource, devices [id]
                               container-started pod, uid, container, env {name: value}: what device plugins gave,
                                                 or a runtime hook, as the process sees it
                               container-updated  pod, uid, container: its resources were changed in place
                               hook-failed       pod, uid, container, message: nobody answered for a container
                               rejected          pod, uid, reason, message
                               pod-ended         pod, uid: it holds nothing any more
                               checkpoint        entries [[uid, container, resource, [id]]]: the file, once changed
                               claim-prepared    claim (namespace/name), uid, driver, devices [pool/device], alone
                                                 [those that no other claim may have]
                               claim-unprepared  claim, uid, driver
                               device-health     driver, device (pool/device), health: a driver reports another one
    api        pod/default/a   created           uid, scheduler, node, phase, requests {resource: number}, annotated
                                                 [name]: of the annotations that it came with, if any
                               bound             uid, node
                               phase             uid, phase, reason
                               condition         uid, type, status, reason
                               annotations       uid, annotations {name: value, None when removed}
                               deleting          uid, grace_s (of its containers, emulated), finalizers [name]
                               finalizers        uid, finalizers [name]: those that are left while it is deleted
                               deleted           uid
               node/host-1     created           allocatable {resource: quantity}
                               allocatable       resource, old, new
                               condition         type, status, reason
                               taints            taints [key:effect]
                               unschedulable     unschedulable (bool)
                               deleted
               <kind>/…        what a system writes of the kinds that it installs: its ``journal.py``
               <component>     event             type, reason, object (pod/default/a), message; the first of its kind
    component  <component>     started, killed, crashed (cause; output of a program: its last lines)
                               failed            cause, place: an error of its own program, after which it goes on
    fault      chassis/A,      added             fault (its ID), kind, spec {parameters and conditions as given},
                                                 count (how often it may fire; None: no limit)
               host/host-1     fired             fault, kind, excuses {invariant: seconds from now on}, …
               <component>     cleared           fault, kind; of a component also, as it fires, verb and
                                                 resource; and hinders_s: for how long from now on
                                                 laws of time do not decide (None: until cleared)
    step       <scenario>      begun, passed, failed   step (number), do (kind of step), …; step 0, do ``start``, is
                                                 the cluster that did not come up
    invariant  <number>        violated          what, first (number of the line that broke it), after (number of the
                                                 line that had to come before it, where there is one)
                               known             the same, of a law that a published system breaks by design
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from mews.kube.system.journal import Line

__all__ = ["LAYERS", "LINES_KEPT", "Journal", "Line"]

LINES_KEPT = 5_000
"""Of each journal of a cluster that stays up."""

LAYERS = ("chassis", "host", "kubelet", "api", "scheduler", "component", "fault", "step", "invariant")


class Journal:
    """The timeline of a run, append-only; listeners hear each line as it is written and must not wait."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._lines: list[Line] = []
        self._first = 0
        self._most: int | None = None
        self._listeners: list[Callable[[Line], None]] = []
        self._undelivered: deque[Line] = deque()
        self._delivering = False

    def write(self, layer: str, actor: str, event: str, /, **fields: Any) -> Line:
        """Append one line, stamped with the elapsed seconds.

        Raises ValueError for a layer that is not in ``LAYERS``.
        """
        if layer not in LAYERS:
            raise ValueError(f"layer {layer!r}: must be one of {', '.join(LAYERS)}")
        line = Line(len(self), self._elapsed(), layer, actor, event, fields)
        self._lines.append(line)
        if self._most is not None and len(self._lines) > 2 * self._most:
            self._first += len(self._lines) - self._most
            del self._lines[: -self._most]
        self._undelivered.append(line)
        self._notify()
        return line

    def keep_latest(self, most: int) -> None:
        """Remember so many lines at least, and at most twice as many: for a cluster that stays up for days."""
        self._most = most

    def _notify(self) -> None:
        # A listener may write: everybody still hears the lines one after the other, in their order.
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                line = self._undelivered.popleft()
                for listener in list(self._listeners):
                    listener(line)
        finally:
            self._delivering = False

    def listen(self, listener: Callable[[Line], None]) -> Callable[[], None]:
        """Hear every later line; call the result to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def elapsed_s(self) -> float:
        """Seconds from the start, as a line written now would bear."""
        return self._elapsed()

    def lines(self, since: int = 0) -> list[Line]:
        """Return all lines from that number on, as far as they are remembered."""
        return self._lines[max(since - self._first, 0) :]

    def find(self, layer: str, event: str | None = None, *, since: int = 0, **fields: Any) -> Iterator[Line]:
        """Yield lines of that layer, event and with those fields, oldest first, from that number on."""
        for line in self.lines(since):
            if line.layer != layer or event not in (None, line.event):
                continue
            if all(line.fields.get(name) == value for name, value in fields.items()):
                yield line

    def __len__(self) -> int:
        return self._first + len(self._lines)

    def as_jsonl(self) -> str:
        """Return all lines, one JSON object each."""
        return "".join(line.as_json() + "\n" for line in self._lines)
