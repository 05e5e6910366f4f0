"""Invariant 75: every line of hardware, kubelets and faults is one that the journal knows, with all its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_PLACE = ("device", "uuid", "gpuid", "port", "host", "old_port", "old_host")
_FUNCTION = ("device", "uuid", "gpuid", "kind", "bdf", "minor", "healthy")
_CONTAINER = ("pod", "uid", "container")

Fields = tuple[frozenset[str], frozenset[str]]
"""Those that such a line has, and those that it may have."""


def _fields(*must: str, may: Iterable[str] = ()) -> Fields:
    return frozenset(must), frozenset((*must, *may))


WORDS: Mapping[tuple[str, str], Fields] = {
    **{
        ("chassis", event): _fields(*_PLACE)
        for event in ("attached", "detached", "inserted", "removed", "link-down", "link-up")
    },
    **{("chassis", event): _fields(*_PLACE, "operation") for event in ("attach-begun", "detach-begun")},
    ("chassis", "table"): _fields("pool", "ports", "devices"),
    ("chassis", "operation-finished"): _fields(*_PLACE, "operation", "kind", "answer", "truth", "reason"),
    ("chassis", "edited"): _fields(*_PLACE, "cause"),
    ("chassis", "device-changed"): _fields(*_PLACE, "old_uuid"),
    ("chassis", "down"): _fields("until_s"),
    ("chassis", "up"): _fields(),
    ("chassis", "host-power"): _fields("host", "on", "boot"),
    **{
        ("host", event): _fields(*_FUNCTION)
        for event in (
            *("link-up", "function-added", "driver-bound", "nvml-visible", "lost", "nvml-failing", "nvml-recovered"),
            *("nvml-hidden", "driver-unbound", "function-removed", "link-down"),
        )
    },
    ("host", "table"): _fields("devices"),
    ("host", "xid"): _fields(*_FUNCTION, "xid", may=("text", "instance")),
    ("host", "ecc"): _fields(*_FUNCTION, "corrected", "uncorrected"),
    ("host", "stuck"): _fields(*_FUNCTION, "arrow"),
    ("host", "draining"): _fields(*_FUNCTION, "on"),
    ("host", "persistence"): _fields(*_FUNCTION, "on"),
    ("host", "waiting"): _fields(*_FUNCTION, "what"),
    ("host", "used"): _fields(*_FUNCTION, "holders"),
    ("host", "virtual-functions"): _fields(*_FUNCTION, "count"),
    ("host", "gpu-set"): _fields(*_FUNCTION, "name", "values"),
    ("host", "gpu-shut-down"): _fields(*_FUNCTION),
    ("host", "mig-mode"): _fields(*_FUNCTION, "on"),
    ("host", "mig-instances"): _fields(*_FUNCTION, "act", "instances"),
    ("host", "rescanned"): _fields("below"),
    ("host", "powered-off"): _fields(),
    ("host", "powered-on"): _fields(),
    ("kubelet", "registered"): _fields("resource"),
    ("kubelet", "devices"): _fields("resource", "healthy", "unhealthy"),
    ("kubelet", "allocated"): _fields(*_CONTAINER, "resource", "devices"),
    ("kubelet", "container-started"): _fields(*_CONTAINER, "env"),
    ("kubelet", "container-updated"): _fields(*_CONTAINER),
    ("kubelet", "hook-failed"): _fields(*_CONTAINER, "message"),
    ("kubelet", "rejected"): _fields("pod", "uid", "reason", "message"),
    ("kubelet", "pod-ended"): _fields("pod", "uid"),
    ("kubelet", "checkpoint"): _fields("entries"),
    ("kubelet", "claim-prepared"): _fields("claim", "uid", "driver", "devices", "alone"),
    ("kubelet", "claim-unprepared"): _fields("claim", "uid", "driver"),
    ("kubelet", "device-health"): _fields("driver", "device", "health"),
    ("fault", "added"): _fields("fault", "kind", "spec", "count", may=("hinders_s",)),
    ("fault", "fired"): _fields(
        "fault",
        "kind",
        "fired",
        "left",
        "excuses",
        may=("built_in", "operation", "device", "gpuid", "verb", "resource", "hinders_s"),
    ),
    ("fault", "cleared"): _fields("fault", "kind", may=("hinders_s",)),
}
"""As ``mews.harness.journal`` lists them."""

_NO_WORDS = re.compile(r"""None$|\(['"]|<[A-Z]\w* |<[\w.]+ object at |<class """)
"""So begin tuples and objects of Python; a message may begin with None of the nodes, or with <none>."""
_LAYERS = frozenset(layer for layer, _ in WORDS)


class Vocabulary(Invariant[ObservedState]):
    """Every reader of a journal, above all the laws, relies on these names. A reader would overlook an event with an
    unknown name or without a field. A host's line about a device names the device and its address. An event that a
    component reports has a message, which is no value of Python's."""

    number = 75
    name = "every line of hardware, kubelets and faults has a known name and all its fields"
    ours_alone = True

    def on_line(self, line: Line, state: ObservedState) -> Iterable[Breach]:
        """Judge one line; of all lines, so that most must cost nothing."""
        if line.layer not in _LAYERS:
            if line.event == "event" and (not line.fields["message"] or _NO_WORDS.match(line.fields["message"])):
                what = f"{line.actor} reports {line.fields['reason']} of {line.fields['object']} without a word"
                return (Breach((line.actor, line.fields["reason"], "message"), what, line),)
            return ()
        known = WORDS.get((line.layer, line.event))
        if known is None:
            return (Breach((line.layer, line.event), f"{line.actor} writes {line.event!r}: no such event", line),)
        there = line.fields.keys()
        if not known[0] <= there:
            missing = ", ".join(sorted(known[0] - there))
            return (Breach((line.actor, line.event), f"{line.actor} writes {line.event} without {missing}", line),)
        if not there <= known[1]:
            more = ", ".join(sorted(there - known[1]))
            return (Breach((line.actor, line.event), f"{line.actor} writes {line.event} with {more}", line),)
        if line.layer == "host" and "gpuid" in there and not (line.fields["gpuid"] and line.fields["bdf"]):
            return (Breach((line.actor, line.event), f"{line.actor} writes {line.event} of no device", line),)
        return ()
