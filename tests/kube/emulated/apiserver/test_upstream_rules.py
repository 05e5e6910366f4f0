from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import InvalidError
from mews.kube.api.objects import Object
from mews.kube.api.resources import NAMESPACES, NODES, PODS, Resource
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store

JOBS = Resource("batch", "v1", "jobs", "Job")
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
SERVICES = Resource("", "v1", "services", "Service")

UNREAD = "error parsing succeededIndexes"
ONCE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
ALWAYS = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def job(**spec: Any) -> Object:
    return {"metadata": {"name": "x"}, "spec": {"template": ONCE, **spec}}


def faults(resource: Resource, body: Object, *, status: Mapping[str, Any] | None = None) -> list[str]:
    """What a new object is refused for, or with ``status`` a write of its status; ``field: message`` each."""
    found: list[str] = []

    async def main() -> None:
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        space = "default" if resource.namespaced else ""
        try:
            made = await kube.create(resource, body, namespace=space)
            if status is not None:
                await kube.replace(resource, {**made, "status": status}, namespace=space, subresource="status")
        except InvalidError as refusal:
            causes = refusal.details["causes"]
            found.extend(f"{cause['field']}: {cause['message']}" for cause in causes)

    run_virtual(main)
    return found


def policy(**rule: Any) -> Object:
    return job(podFailurePolicy={"rules": [{"action": "FailJob", **rule}]})


def test_a_rule_about_failed_pods_names_exit_codes_or_conditions() -> None:
    path = "spec.podFailurePolicy.rules[0]"
    assert faults(JOBS, policy()) == [
        f"{path}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
    ]
    codes = {"operator": "In", "values": [3, 0, 3], "containerName": "other"}
    assert faults(JOBS, policy(onExitCodes=codes)) == [
        f'{path}.onExitCodes.containerName: Invalid value: "other": '
        "must be one of the container or initContainer names in the pod template",
        f"{path}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
        f"{path}.onExitCodes.values[2]: Duplicate value: 3",
        f"{path}.onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
    ]
    assert faults(JOBS, policy(onExitCodes={"operator": "In", "values": [1, 3]})) == []


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ({"succeededIndexes": "0,2"}, []),
        (
            {"succeededIndexes": "2-1"},
            ["error parsing succeededIndexes: non-increasing order, previous: 2, current: 1"],
        ),
        ({"succeededIndexes": "7"}, [f'{UNREAD}: too large index: "7"']),
        ({"succeededCount": 4}, ["must be less than or equal to 3 (the number of specified completions)"]),
    ],
)
def test_a_job_succeeds_by_indexes_that_it_has(rule: dict[str, Any], wrong: list[str]) -> None:
    body = job(completionMode="Indexed", completions=3, successPolicy={"rules": [rule]})
    assert [fault.split(": ", 3)[3] for fault in faults(JOBS, body)] == wrong


def test_the_status_of_a_job_agrees_with_itself() -> None:
    done = {"type": "Complete", "status": "True"}
    assert faults(JOBS, job(), status={"conditions": [done], "active": 1}) == [
        "status.completionTime: Required value: completionTime is required for Complete jobs",
        "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true "
        "condition",
        "status.active: Invalid value: 1: active>0 is invalid for finished job",
        "status.startTime: Required value: startTime is required for finished job",
    ]
    assert faults(JOBS, job(), status={"active": 1, "ready": 2}) == [
        "status.ready: Invalid value: 2: cannot set more ready pods than active"
    ]


@pytest.mark.parametrize(
    ("schedule", "wrong"),
    [
        ("*/5 0-6 * jan-mar mon", ""),
        ("@every 1h30m", ""),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("@never", "unrecognized descriptor: @never"),
    ],
)
def test_a_schedule_is_read_as_cron_reads_it(schedule: str, wrong: str) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": ONCE}}}}
    shown = f'spec.schedule: Invalid value: "{schedule}": {wrong}'
    assert faults(CRON_JOBS, body) == ([shown] if wrong else [])


def test_a_daemon_set_surges_or_does_without() -> None:
    def body(**rolling: Any) -> Object:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        selector = {"matchLabels": {"a": "b"}}
        return {
            "metadata": {"name": "x"},
            "spec": {"selector": selector, "template": ALWAYS, "updateStrategy": strategy},
        }

    path = "spec.updateStrategy.rollingUpdate"
    assert faults(DAEMON_SETS, body(maxSurge=1)) == [
        f"{path}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
    ]
    assert faults(DAEMON_SETS, body(maxUnavailable=0)) == [
        f"{path}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"
    ]
    assert faults(DAEMON_SETS, body(maxUnavailable=0, maxSurge="10%")) == []


def test_a_claim_asks_for_devices_in_one_way() -> None:
    exactly = {"deviceClassName": "gpu"}

    def body(**request: Any) -> Object:
        return {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [{"name": "r", **request}]}}}

    path = "spec.devices.requests[0]"
    assert faults(CLAIMS, body(exactly=exactly)) == []
    text = "exactly one of `exactly` or `firstAvailable` is required"
    assert faults(CLAIMS, body()) == [f"{path}: Required value: {text}"]
    assert faults(CLAIMS, body(exactly={**exactly, "adminAccess": True})) == [
        f"{path}.adminAccess: Forbidden: admin access to devices requires the "
        "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
    ]


def test_the_expression_of_a_class_must_be_about_a_device() -> None:
    def body(expression: str) -> Object:
        return {"metadata": {"name": "x"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}

    assert faults(CLASSES, body("device.driver == 'd' && device.attributes['d'].memory > 3")) == []
    assert "undeclared reference to 'gadget'" in faults(CLASSES, body("gadget.driver == 'd'"))[0]
    assert faults(CLASSES, body("device.driver"))[0].endswith("must evaluate to bool or the unknown type, not string")


def test_a_slice_is_of_one_place() -> None:
    pool = {"name": "p", "resourceSliceCount": 1}
    body: Object = {"metadata": {"name": "x"}, "spec": {"driver": "d.example.com", "pool": pool}}
    text = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    assert faults(SLICES, body) == [f"spec: Required value: {text}"]
    body["spec"] |= {"nodeName": "n", "allNodes": True}
    assert faults(SLICES, body) == [
        f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {text}, but multiple fields are set'
    ]


def test_the_scopes_of_a_quota_go_together() -> None:
    spec = {"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}
    shown = 'Invalid value: ["BestEffort","NotBestEffort"]'
    assert faults(QUOTAS, {"metadata": {"name": "x"}, "spec": spec}) == [f"spec.scopes: {shown}: conflicting scopes"]
    spec = {"hard": {"services": "1"}, "scopes": ["BestEffort"]}
    assert faults(QUOTAS, {"metadata": {"name": "x"}, "spec": spec}) == [
        'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'
    ]


def test_only_a_balanced_service_has_an_ingress() -> None:
    body = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}
    assert faults(SERVICES, body, status={"loadBalancer": {"ingress": [{"hostname": "h"}]}}) == [
        "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
    ]


def test_the_status_of_a_pod_names_addresses_and_its_own_claims() -> None:
    body = {"metadata": {"name": "x"}, **ONCE}
    status = {"podIPs": [{"ip": "here"}], "resourceClaimStatuses": [{"name": "c"}]}
    assert faults(PODS, body, status=status) == [
        'status.resourceClaimStatuses[0].name: Invalid value: "c": '
        "must match the name of an entry in `spec.resourceClaims`",
        'status.podIPs[0]: Invalid value: "here": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ]


def test_a_namespace_is_active_until_it_is_deleted() -> None:
    assert faults(NAMESPACES, {"metadata": {"name": "x"}}, status={"phase": "Terminating"}) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]


def test_nobody_but_the_server_says_when_an_object_goes() -> None:
    async def main() -> None:
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        made = await kube.create(NODES, {"metadata": {"name": "x"}})
        going = {**made, "metadata": {**made["metadata"], "deletionGracePeriodSeconds": 5}}
        with pytest.raises(InvalidError, match="deletionGracePeriodSeconds: Invalid value: 5: field is immutable"):
            await kube.replace(NODES, going)

    run_virtual(main)
