"""What each key of a scenario file is, where its model does not say it beside the key: for the JSON Schema, and for the
reference that is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COMMON: Mapping[str, str] = {
    "apiVersion": "the kind's group and version; may be left out where only one group has such a kind",
    "kind": "the kind of object, such as Pod",
    "name": "the object's name",
    "namespace": "its namespace; kinds without namespaces take none",
    "labels": "a label selector, as `kubectl -l` takes it",
    "pod": "the pod's name",
    "container": "the container's name; default: the pod's only one, or its first",
    "gracePeriod": "seconds that the pod has to end; default: its own",
    "exitCode": "what the program must end with",
    "chassis": "a chassis of the hardware",
    "device": "a device, by the chassis' own ID or by its pool-wide GPUID",
    "host": "a host of the hardware",
}
"""Key -> words, in whichever mapping it stands."""

OWN: Mapping[str, Mapping[str, str]] = {
    "Scenario": {
        "apiVersion": "the version of the format",
        "kind": "what the file is",
        "hardware": "an included inventory's name, a file, {file, profile}, or the hardware itself",
        "seed": "what all chance is drawn from",
        "steps": "what is done, one after the other",
        "metrics": "what the run's figures must be",
    },
    "AbsentExpectation": {"name": "the object's name; without a name, labels select objects"},
    "ChassisAction": {"reset": "the whole hardware as it was at the start"},
    "ComponentAction": {
        "component": "its name, such as scheduler, kubelet/host-1 or chassis/A",
        "at": "a pattern: it dies at the very next line of the journal that matches",
    },
    "CountExpectation": {"namespace": "its namespace; null: all of them"},
    "DefaultSchedulerOptions": {
        "scoring": "random: any node that fits; default: as kube-scheduler scores",
        "strategy": "whether nodes with much or with little room come first",
        "ignoredResourceGroups": "groups of resources that NodeResourcesFit leaves to others",
    },
    "DeleteAction": {
        "wait": "until it is gone",
        "missingOk": "true: a missing object is no error",
    },
    "EditAction": {
        "port": "the port that it is on from now on; null: on none",
        "host": "the port of that host, which must have a device already",
    },
    "EventExpectation": {
        "reason": "the event's reason",
        "object": "what it is about: KIND/NAME or KIND/NAMESPACE/NAME",
        "type": "Normal or Warning",
    },
    "ExecAction": {"command": "the program and its arguments"},
    "Extender": {"env": "more environment variables"},
    "FaultAction": {
        "chassis": "the name of a chassis; '*': all chassis",
        "host": "the name of a host, instead of a chassis",
        "component": "the component between which and the API it is, instead of a chassis",
        "add": "the fault: its kind and what that takes",
        "clear": "end the faults of that chassis, host or component, or all",
    },
    "GetAction": {"name": "the object's name; without a name, labels select objects"},
    "GpusExpectation": {
        "count": "how many devices it holds, over all its containers",
        "host": "where it must run",
        "containers": "how many each container holds",
    },
    "HoldAction": {"for": "how long it must hold, in emulated time"},
    "HostAction": {
        "do": "the action",
        "driver": "of bind and unbind; default: the device's own",
        "on": "of power, machine-power, drain, persistence and persistence-daemon: on or off",
        "text": "what a write writes",
        "key": "of hold and release: which process it is",
        "result": "how it must end: done, a refusal's code, or waiting where it still blocks",
        "within": "how long is waited for its end",
    },
    "Job": {
        "job": "its name, unique in the workload",
        "type": "one of `types`, for what it does not say itself",
        "arrival": "when it comes, counted from the workload's start",
        "gpus": "how many devices it asks for",
        "cpus": "how many processors it asks for",
        "duration": "how long it runs",
    },
    "JobType": {
        "gpus": "how many devices such a job asks for",
        "cpus": "how many processors it asks for",
        "memory": "how much memory it asks for, such as 16Gi",
        "duration": "how long it runs",
    },
    "JournalExpectation": {
        "occurs": "a line like each of these is there",
        "never": "no line is like any of these",
        "since": "only lines after the step of that name began",
    },
    "LineCount": {"of": "what the lines are like", "is": "how many there are"},
    "LogsAction": {"previous": "of the container before its last restart"},
    "LogsExpectation": {"text": "all of it, as one text", "lines": "its lines, as a list"},
    "Metadata": {
        "name": "what the run and its artefacts are called",
        "description": "a sentence for reports",
        "labels": "what `mews run --select` picks by",
    },
    "MetricBound": {
        "of": "the value that it should have, with `within`",
        "within": "how far off it may be, as a share: 0.1 or 10%",
        "min": "it is at least that",
        "max": "it is at most that",
        "is": "it is exactly that",
    },
    "NodeExpectation": {
        "ready": "whether its condition Ready is True",
        "allocatable": "amounts by resource that pods may have",
        "capacity": "amounts by resource that it has",
    },
    "ObjectsOfTemplate": {"template": "one of `templates`, by name"},
    "Output": {"type": "what it is used as; default: a text"},
    "PatchAction": {
        "type": "how the body is merged, or json for a list of operations (RFC 6902)",
        "subresource": "patch that part alone, such as status or scale",
        "body": "the patch: a mapping, or the operations of a JSON patch",
    },
    "PodExpectation": {
        "name": "the pod's name",
        "phase": "its phase",
        "node": "the host whose node it is bound to",
        "reason": "status.reason, such as Evicted",
        "message": "status.message",
        "ready": "whether its condition Ready is True",
        "restarts": "how often its containers were restarted, together",
        "annotations": "annotations by name; null: not there",
        "scheduled": "whether it is bound to a node",
    },
    "PodTemplate": {
        "image": "the image of its one container",
        "command": "its command; default: the image's own",
        "labels": "labels of the pod",
        "annotations": "annotations of the pod",
        "priorityClassName": "its priority class",
    },
    "Requires": {
        "time": "only in that time",
        "dialect": "only in one of these dialects",
        "cluster": "only on one of these clusters",
        "features": "what the way to run must be able to do",
        "nodeCpus": "processors that each node must have",
    },
    "ScriptAction": {"env": "more environment variables"},
    "Stack": {"dialect": "how the chassis is spoken to"},
    "TelemetryAction": {
        "device": "a device, by its ID or GPUID; all: every GPU",
        "set": "values to show from now on, by name; none: the value from its load",
    },
    "Workload": {
        "trace": "a CSV file with a job a row",
        "jobs": "the jobs, instead of a trace",
        "types": "what jobs of a type ask for, by type",
    },
}
"""Definition -> key -> words; ``Scenario`` is the file's top."""


def add_words(published: dict[str, Any]) -> None:
    """Describe each key of the published schema that has no words of its own."""
    definitions = {"Scenario": published, **published["$defs"]}
    for name, definition in definitions.items():
        for key, each in definition.get("properties", {}).items():
            text = OWN.get(name, {}).get(key) or COMMON.get(key)
            if text is not None and not each.get("description") and "$ref" not in each:
                each["description"] = text
