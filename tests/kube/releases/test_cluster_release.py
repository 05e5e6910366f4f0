"""A cluster is a release: its data alone say what it serves, knows and drops."""

import json
import random
from pathlib import Path

import pytest

from mews.kube.api.errors import ApiError
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.update import replace
from mews.kube.emulated.core.store.kinds import Registry
from mews.kube.emulated.core.store.released_kinds import kinds_of, standard_kinds
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.wire import discovery, openapi
from mews.kube.emulated.types.gotypes import SCALARS, release_mark, struct, table
from mews.kube.releases import release_data
from mews.kube.releases.cluster_release import STANDARD, cluster_release, offered_versions
from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.release_data import merge, merged, names, read

FOLDERS = Path(release_data.__file__).parent
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "p", "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "taints": [TAINT]}],
    },
}


def store_of(release, **more):
    return fresh_store(lambda: 1e9, random.Random(1), release=cluster_release(release, **more))


def kind_of(store, group, version, plural):
    found = store.kinds.find(group, version, plural)
    assert found is not None
    return found


def created_slice(release, **more):
    store = store_of(release, **more)
    return create(store, kind_of(store, "resource.k8s.io", "v1", "resourceslices"), "", SLICE)


def taints(obj):
    return [device.get("taints") for device in obj["spec"]["devices"]]


@pytest.mark.parametrize(("release", "kept"), [("1.34", False), ("1.35", False), ("1.36", True), ("1.37", True)])
def test_a_field_is_dropped_while_its_gate_is_off(release, kept):
    assert (taints(created_slice(release)) != [None]) is kept


def test_a_gate_that_is_switched_keeps_or_drops_its_fields():
    assert taints(created_slice("1.34", gates={"DRADeviceTaints": True}))[0][0]["key"] == TAINT["key"]
    assert taints(created_slice("1.36", gates={"DRADeviceTaints": False})) == [None]


def test_fields_of_a_feature_are_judged_where_it_is_on():
    bad = {**SLICE, "spec": {**SLICE["spec"], "devices": [{"name": "gpu-0", "taints": [{**TAINT, "effect": "Gone"}]}]}}
    store = store_of("1.37")
    with pytest.raises(
        ApiError, match=r'taints\[0\]\.effect: Unsupported value: "Gone": supported values: "NoExecute"'
    ):
        create(store, kind_of(store, "resource.k8s.io", "v1", "resourceslices"), "", bad)
    former = store_of("1.34")
    create(former, kind_of(former, "resource.k8s.io", "v1", "resourceslices"), "", bad)


def test_the_first_release_as_data_is_the_table_of_the_code():
    """Discovery as upstream publishes it says the same of each kind as the hand-written table."""
    derived = kinds_of(cluster_release("1.34", runtime={"resource.k8s.io/v1beta2": True}))
    ours = Registry(standard_kinds())
    for core in (True, False):
        wanted = discovery.aggregated(ours, core=core, version="v2")["items"]
        found = discovery.aggregated(derived, core=core, version="v2")["items"]
        for group in found:
            group["versions"] = [each for each in group["versions"] if each["version"] != "v1beta2"]
        assert found == wanted


def test_discovery_and_openapi_follow_the_release():
    served = {release: {kind.plural for kind in store_of(release).kinds} for release in names()}
    assert "mutatingadmissionpolicies" not in served["1.35"]
    assert "mutatingadmissionpolicies" in served["1.36"]
    assert "devicetaintrules" in served["1.37"] - served["1.36"]
    kinds = store_of("1.37").kinds
    assert discovery.version(kinds.release)["gitVersion"] == "v1.37.2"
    document = openapi.document(kinds, "apis/resource.k8s.io/v1")
    assert document["info"]["version"] == "1.37"
    assert "io.k8s.api.resource.v1.DeviceTaintRule" in document["components"]["schemas"]
    assert all("@" not in name for name in document["components"]["schemas"])


def test_a_kind_is_served_by_its_gate():
    without = store_of("1.37", gates={"ClusterTrustBundle": False}).kinds
    assert without.find("certificates.k8s.io", "v1", "clustertrustbundles") is None
    assert store_of("1.37").kinds.find("certificates.k8s.io", "v1", "clustertrustbundles") is not None


def test_an_older_version_shows_the_stored_objects_under_its_own():
    store = store_of("1.36", runtime={"resource.k8s.io/v1beta2": True})
    older = kind_of(store, "resource.k8s.io", "v1beta2", "deviceclasses")
    newer = kind_of(store, "resource.k8s.io", "v1", "deviceclasses")
    made = create(store, older, "", {"apiVersion": "resource.k8s.io/v1beta2", "metadata": {"name": "c"}, "spec": {}})
    assert made["apiVersion"] == "resource.k8s.io/v1beta2"
    assert store.find(newer, "", "c")["apiVersion"] == "resource.k8s.io/v1"


def test_strict_decoding_knows_the_fields_of_its_release():
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {}}}
    request = WriteRequest(User("admin", ("system:masters",)), "test", validation="Strict")
    for release, fails in (("1.34", True), ("1.37", False)):
        store = store_of(release)
        kind = kind_of(store, "", "v1", "pods")
        if fails:
            with pytest.raises(ApiError, match=r'unknown field "spec.schedulingGroup"'):
                create(store, kind, "default", pod, request)
        else:
            create(store, kind, "default", pod, request)


def test_an_error_is_told_in_the_words_of_the_release():
    body = {"metadata": {"name": "c", "labels": {"a" * 64: ""}}}
    for release, word in (("1.34", "characters"), ("1.37", "bytes")):
        store = store_of(release)
        with pytest.raises(ApiError, match=f"name part must be no more than 63 {word}"):
            create(store, kind_of(store, "", "v1", "configmaps"), "default", body)


@pytest.mark.parametrize("release", names())
def test_every_type_of_a_release_can_be_read_with_all_it_refers_to(release):
    groups = {file.stem for name in names() for file in (FOLDERS / name / "types").glob("*.json") if name <= release}
    for group in groups:
        mark = group + release_mark(release)
        for name in table(mark):
            for field in struct(f"{mark}/{name}").fields.values():
                inner = field.type
                while inner[:2] in ("[]", "{}"):
                    inner = inner[2:]
                assert inner in SCALARS or struct(inner) is not None


def test_a_release_is_a_folder_of_data_and_no_line_of_python_names_1_35():
    assert {file.suffix for file in (FOLDERS / "1.35").rglob("*") if file.is_file()} == {".json"}
    root = FOLDERS.parent.parent
    lines = [
        f"{file.relative_to(root)}: {line.strip()}"
        for room in ("emulator", "harness", "kube", "systems", "src")
        for file in (root / room).rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if '"1.35"' in line and not any(kind in line for kind in ("csidrivers", "resourceslices"))
    ]
    assert lines == []


@pytest.mark.parametrize(("release", "refused"), [("1.34", False), ("1.35", True), ("1.37", True)])
def test_counter_sets_lie_beside_their_devices_in_the_first_release_alone(release, refused):
    """pkg/apis/resource/validation of 1.34 and 1.35; upstream dra.go 1687 has both in one slice."""
    store = store_of(release, gates={"DRAPartitionableDevices": True})
    kind, counters = kind_of(store, "resource.k8s.io", "v1", "resourceslices"), {"memory": {"value": "6Gi"}}
    plain = {name: part for name, part in SLICE["spec"].items() if name != "devices"}
    shared = {**plain, "sharedCounters": [{"name": "c", "counters": counters}]}
    device = {"name": "gpu-0", "consumesCounters": [{"counterSet": "c", "counters": counters}]}
    made = create(store, kind, "", {**SLICE, "spec": shared})
    for write in (
        lambda: create(store, kind, "", {"metadata": {"name": "both"}, "spec": {**shared, "devices": [device]}}),
        lambda: replace(store, kind, "", "s", {**made, "spec": {**made["spec"], "devices": [device]}}),
    ):
        if refused:
            with pytest.raises(ApiError, match="only one of `sharedCounters` or `devices` is allowed"):
                write()
        else:
            assert write()["spec"]["sharedCounters"][0]["name"] == "c"


def test_a_diff_adds_replaces_and_removes():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": None, "e": 4}, "d": 5}) == {"a": {"c": 2, "e": 4}, "d": 5}
    assert merge(1, None) is None


def test_a_release_stores_only_what_differs_from_its_base():
    for name in names():
        base = read(name, "release.json").get("base")
        for file in (FOLDERS / name / "types").glob("*.json") if base else ():
            before = merged(base, f"types/{file.name}")
            for struct_name, lines in json.loads(file.read_text(encoding="utf-8")).items():
                assert before.get(struct_name) != lines


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": "1.33"}, "'1.33': must be a release of Kubernetes: 1.34, 1.35, 1.36, 1.37"),
        ({"runtime": {"apps/v1": False}}, "apps/v1=false: served by default, and always required"),
        (
            {"runtime": {"resource.k8s.io/v1beta3": True}},
            "resource.k8s.io/v1beta3: no API version that can be switched",
        ),
        ({"gates": {"DRADeviceTaint": True}}, "DRADeviceTaint: no feature gate of Kubernetes 1.34; did you mean"),
    ],
)
def test_what_there_is_not_is_refused_in_one_line(given, told):
    with pytest.raises(ReleaseError) as caught:
        cluster_release(**given)
    assert str(caught.value).startswith(told)


def test_nothing_said_is_the_first_release():
    assert cluster_release() == STANDARD
    assert STANDARD.is_default
    assert not cluster_release("1.34", gates={"DRADeviceTaints": True}).is_default
    assert "resource.k8s.io/v1beta2" in offered_versions("1.34")
    assert cluster_release("1.34", runtime={"apps/v1": True}).serves("apps/v1")
