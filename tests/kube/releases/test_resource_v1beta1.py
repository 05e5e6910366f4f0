"""resource.k8s.io/v1beta1 over the objects of v1 (pkg/apis/resource/v1beta1/conversion_test.go, 1.34 to 1.37)."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.api.errors import ApiError
from mews.kube.client.port import Patch
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.update import patch, replace
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.packs.devices.beta_views import shown, stored
from tests.kube.releases.test_cluster_release import kind_of, store_of

BETA = {"resource.k8s.io/v1beta1": True}
GROUP = "resource.k8s.io"


def claim(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests)}}}


def requests_of(obj: Any) -> Any:
    return obj["spec"]["devices"]["requests"]


EXACT = {
    "deviceClassName": "k",
    "allocationMode": "ExactCount",
    "count": 2,
    "selectors": [{"cel": {"expression": "true"}}],
}
SUB = {"name": "s", "deviceClassName": "k", "allocationMode": "ExactCount", "count": 1}


@pytest.mark.parametrize(
    ("beta", "ours"),
    [
        ({"name": "r", **EXACT}, {"name": "r", "exactly": EXACT}),
        ({"name": "r", "deviceClassName": "k", "adminAccess": False},
         {"name": "r", "exactly": {"deviceClassName": "k", "adminAccess": False}}),
        ({"name": "r", "deviceClassName": "", "firstAvailable": [SUB]}, {"name": "r", "firstAvailable": [SUB]}),
        ({"name": "r", "deviceClassName": "", "selectors": []},
         {"name": "r", "exactly": {"deviceClassName": "", "selectors": []}}),
        ({"name": "r", "deviceClassName": ""}, {"name": "r"}),
    ],
)  # fmt: skip
def test_requests_have_their_fields_in_exactly_and_back(beta: dict[str, Any], ours: dict[str, Any]) -> None:
    for plural in ("resourceclaims", "resourceclaimtemplates"):

        def inside(request: dict[str, Any], plural: str = plural) -> dict[str, Any]:
            body = {"spec": {"devices": {"requests": [request]}}, "status": {"kept": 1}}
            return body if plural == "resourceclaims" else {"spec": body}

        assert stored(plural, inside(beta)) == inside(ours)
        assert shown(plural, inside(ours)) == inside(beta)


def test_zero_numbers_and_empty_words_make_no_exact_request() -> None:
    body = claim({"name": "r", "deviceClassName": "", "count": 0, "allocationMode": "", "firstAvailable": [SUB]})
    assert requests_of(stored("resourceclaims", body)) == [{"name": "r", "firstAvailable": [SUB]}]


def test_devices_have_their_fields_in_basic_and_back() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    more = {"attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1"}}, "taints": [taint], "nodeName": "n"}
    ours = {"spec": {"driver": "d", "nodeName": "n", "devices": [{"name": "g", **more}, {"name": "h"}]}}
    beta = {
        "spec": {"driver": "d", "nodeName": "n", "devices": [{"name": "g", "basic": more}, {"name": "h", "basic": {}}]}
    }
    assert shown("resourceslices", ours) == beta
    assert stored("resourceslices", beta) == ours
    assert stored("resourceslices", {"spec": {"devices": [{"name": "h"}]}}) == {"spec": {"devices": [{"name": "h"}]}}


@pytest.mark.parametrize("field", [{"nodeName": ""}, {"allNodes": False}])
def test_an_empty_place_of_a_slice_is_none(field: dict[str, Any]) -> None:
    assert stored("resourceslices", {"spec": {"driver": "d", **field}}) == {"spec": {"driver": "d"}}


def test_classes_and_objects_without_a_spec_stay_as_they_are() -> None:
    for plural in ("deviceclasses", "resourceclaims", "resourceslices", "resourceclaimtemplates"):
        for body in ({"metadata": {"name": "c"}}, {"spec": {}}, {"spec": None}):
            assert shown(plural, body) == stored(plural, body) == body


# Through the API


@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_a_claim_of_either_version_is_the_same_claim(release: str) -> None:
    store = store_of(release, runtime=BETA)
    beta, ours = (kind_of(store, GROUP, version, "resourceclaims") for version in ("v1beta1", "v1"))
    made = create(store, beta, "default", claim({"name": "r", "deviceClassName": "k"}))
    assert made["apiVersion"] == "resource.k8s.io/v1beta1"
    whole = {"deviceClassName": "k", "allocationMode": "ExactCount", "count": 1}
    assert requests_of(made) == [{"name": "r", **whole}]
    kept = store.find(ours, "default", "c")
    assert (kept["apiVersion"], requests_of(kept)) == ("resource.k8s.io/v1", [{"name": "r", "exactly": whole}])
    assert view_of(beta).show(kept)["spec"] == made["spec"]
    labelled = patch(store, beta, "default", "c", {"metadata": {"labels": {"a": "b"}}}, patch_kind=Patch.MERGE)
    assert requests_of(labelled) == requests_of(made)
    again = replace(store, beta, "default", "c", labelled)
    assert again["metadata"]["resourceVersion"] == labelled["metadata"]["resourceVersion"]
    with pytest.raises(ApiError, match=r"spec: Invalid value: .*: field is immutable"):
        patch(store, beta, "default", "c", {"spec": {"devices": {"requests": []}}}, patch_kind=Patch.MERGE)


def test_a_refusal_names_the_fields_of_the_stored_version() -> None:
    store = store_of("1.34", runtime=BETA)
    kind = kind_of(store, GROUP, "v1beta1", "resourceclaims")
    with pytest.raises(ApiError, match=r"spec\.devices\.requests\[0\]\.exactly\.deviceClassName: Required value"):
        create(store, kind, "default", claim({"name": "r", "count": 1}))


@pytest.mark.parametrize(("gate", "kept"), [(True, ["k"]), (False, [])])
def test_fields_of_a_feature_that_is_off_are_dropped_wherever_they_are(gate: bool, kept: list[str]) -> None:
    gates = {"DRADeviceTaints": gate, "DRAConsumableCapacity": gate}
    store = store_of("1.34", gates=gates, runtime=BETA)
    body = claim({"name": "r", "deviceClassName": "k", "capacity": {"requests": {"k": "1"}}})
    made = create(store, kind_of(store, GROUP, "v1beta1", "resourceclaims"), "default", body)
    assert list(requests_of(made)[0].get("capacity", {}).get("requests", {})) == kept
    device = {"name": "g", "basic": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [device]}
    slices = kind_of(store, GROUP, "v1beta1", "resourceslices")
    made = create(store, slices, "", {"metadata": {"name": "s"}, "spec": spec})
    assert [each["key"] for each in made["spec"]["devices"][0]["basic"].get("taints", [])] == kept


def test_a_field_of_the_other_version_is_unknown() -> None:
    store = store_of("1.34", runtime=BETA)
    made = create(
        store,
        kind_of(store, GROUP, "v1beta1", "resourceclaims"),
        "default",
        claim({"name": "r", "deviceClassName": "k", "exactly": {"deviceClassName": "other"}}),
    )
    assert requests_of(made)[0]["deviceClassName"] == "k"
