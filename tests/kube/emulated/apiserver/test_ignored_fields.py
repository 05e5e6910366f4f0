"""Each field of a pod and each served kind acts here, is dropped, or is in the table of what is ignored."""

# One case a line.
# ruff: noqa: E501

import pytest

from mews.kube.emulated.core.store.released_kinds import standard_kinds
from mews.kube.emulated.types.gotypes import struct
from mews.kube.emulated.types.ignored_fields import (
    ACTING,
    ACTING_KINDS,
    CONTAINERS_ONLY,
    DROPPED,
    IGNORED,
    IGNORED_KINDS,
    NEEDS_ADD_ONS,
    POD,
    PROCESSES_ONLY,
    REFUSED_IN_CONTAINERS,
    WHOLE,
)
from mews.kube.emulated.types.ignored_warnings import ignored_warnings, reached


def placed(ref):
    """Every field of a struct as often as the tables name it."""
    ignored = [name for row in IGNORED if row.struct == ref for name in row.fields.split()]
    acting = ACTING.get(ref)
    if acting is None and (ref.partition(".")[2] in WHOLE or ignored):
        acting = " ".join(name for name in struct(ref).fields if name not in ignored)
    return sorted([*(acting or "").split(), *DROPPED.get(ref, "").split(), *ignored])


@pytest.mark.parametrize("ref", reached())
def test_each_field_of_a_pod_in_the_published_types_is_in_exactly_one_table(ref):
    assert placed(ref) == sorted(struct(ref).fields)


def test_a_field_that_no_table_names_is_missed(monkeypatch):
    monkeypatch.setitem(ACTING, POD, ACTING[POD].replace("tolerations ", ""))
    assert placed(POD) != sorted(struct(POD).fields)


def test_tables_name_no_struct_that_a_pod_does_not_reach():
    named = {
        *ACTING,
        *DROPPED,
        *CONTAINERS_ONLY,
        *PROCESSES_ONLY,
        *REFUSED_IN_CONTAINERS,
        *(row.struct for row in IGNORED),
    }
    assert named | {f"core/v1.{name}" for name in WHOLE} == set(reached())


@pytest.mark.parametrize("table", [CONTAINERS_ONLY, PROCESSES_ONLY, REFUSED_IN_CONTAINERS])
def test_what_acts_or_is_refused_in_some_containers_alone_is_among_what_acts(table):
    assert not [name for ref, names in table.items() for name in names.split() if name not in ACTING[ref].split()]


def test_each_served_kind_acts_needs_an_add_on_or_is_ignored():
    acting = [(group, kind) for group, kinds in ACTING_KINDS.items() for kind in kinds.split()]
    served = {(kind.resource.group, kind.resource.kind) for kind in standard_kinds()}
    assert sorted([*acting, *IGNORED_KINDS, *NEEDS_ADD_ONS]) == sorted(served)


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c"}], **spec}}


def test_one_line_for_each_reason_names_the_fields_where_they_are():
    profile = {"seccompProfile": {"type": "RuntimeDefault"}}
    containers = [{"name": "c"}, {"name": "d", "securityContext": profile}]
    [kernel, registry] = ignored_warnings(
        pod(securityContext=profile, containers=containers, imagePullSecrets=[{"name": "s"}])
    )
    assert kernel == (
        "spec.containers[1].securityContext.seccompProfile, spec.securityContext.seccompProfile: ignored here: "
        "no emulated node has a kernel that could confine a container"
    )
    assert registry.startswith("spec.imagePullSecrets: ignored here: no registry is asked")


@pytest.mark.parametrize(
    "spec",
    [
        {"dnsPolicy": "ClusterFirst"},
        {"securityContext": {}},
        {"hostUsers": True},
        {"volumes": [{"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"audience": "a"}}]}}]},
        {"containers": [{"name": "c", "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/a"}]}]},
        {"containers": "no list", "securityContext": 7, "frob": True},
    ],
)  # fmt: skip
def test_defaults_and_what_admission_adds_are_not_warned_of(spec):
    assert ignored_warnings(pod(**spec)) == []


def test_what_containers_do_is_not_ignored_where_images_run_in_them():
    spec = {"hostUsers": False, "securityContext": {"supplementalGroups": [7]}}
    both = ["spec.hostUsers", "spec.securityContext.supplementalGroups"]
    assert sorted(line.partition(":")[0] for line in ignored_warnings(pod(**spec))) == both
    assert [line.partition(":")[0] for line in ignored_warnings(pod(**spec), containers=True)] == ["spec.hostUsers"]


def test_what_processes_do_is_ignored_where_images_run_in_containers():
    assert ignored_warnings(pod(dnsPolicy="Default")) == []
    [line] = ignored_warnings(pod(dnsPolicy="Default"), containers=True)
    assert line == "spec.dnsPolicy: ignored here: acts in processes alone"


def test_templates_of_workloads_are_looked_into_and_kinds_that_nothing_acts_on_are_named():
    template = {"spec": pod(hostUsers=False)["spec"]}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template}}}}
    [line] = ignored_warnings(cron)
    assert line.startswith("spec.jobTemplate.spec.template.spec.hostUsers: ignored here: ")
    schema = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "spec": {}}
    [line] = ignored_warnings(schema)
    assert line.startswith("FlowSchema is stored and ignored here: ")
    assert ignored_warnings({**schema, "apiVersion": "example.com/v1"}) == []
    assert ignored_warnings({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {}}) == []
