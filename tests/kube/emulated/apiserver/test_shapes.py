"""Bodies whose fields have another shape than the kind's are refused, before any component sees them."""

import random

import pytest

from mews.kube.api.errors import BadRequestError
from mews.kube.api.resources import NODES, PODS
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.store.request import ADMIN
from mews.kube.emulated.core.wire.negotiation import parse_json
from mews.kube.emulated.types.bodies import decode

GOOD = {"name": "c", "image": "i:1"}


def pod(**spec):
    return {"metadata": {"name": "a"}, "spec": {"containers": [GOOD], **spec}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (pod(nodeName=7), "number into Go struct field PodSpec.spec.nodeName of type string"),
        (pod(containers="x"), "string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (pod(containers=[1]), "number into Go struct field PodSpec.spec.containers of type v1.Container"),
        (
            pod(containers=[{"name": "c", "command": "x"}]),
            "string into Go struct field Container.spec.containers.command of type []string",
        ),
        (pod(priority=2**31), "number 2147483648 into Go struct field PodSpec.spec.priority of type int32"),
        (pod(priority=True), "bool into Go struct field PodSpec.spec.priority of type int32"),
        (
            pod(tolerations=[{"tolerationSeconds": "x"}]),
            "string into Go struct field Toleration.spec.tolerations.tolerationSeconds of type int64",
        ),
        (pod(nodeSelector=[]), "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
        ({"metadata": 1}, "number into Go struct field Pod.metadata of type v1.ObjectMeta"),
        ({"metadata": {"name": 1}}, "number into Go struct field ObjectMeta.metadata.name of type string"),
        (
            {"metadata": {"ownerReferences": [1]}},
            "number into Go struct field ObjectMeta.metadata.ownerReferences of type v1.OwnerReference",
        ),
        (
            pod(containers=[{**GOOD, "resources": {"limits": {"x": []}}}]),
            "quantities must match the regular expression",
        ),
    ],
)
def test_a_field_of_another_shape_is_a_bad_request(body, words):
    store = fresh_store(lambda: 0.0, random.Random(1))
    with pytest.raises(BadRequestError) as refused:
        create(store, store.kinds.of(PODS), "default", body)
    assert str(refused.value).startswith('Pod in version "v1" cannot be handled as a Pod: ')
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("group", "plural", "kind", "words"),
    [
        ("", "pods", "PersistentVolume", "converting (v1.PersistentVolume) to (core.Pod): unknown conversion"),
        ("", "pods", "PodList", "converting (v1.PodList) to (core.Pod): unknown conversion"),
        ("", "pods", "PodProxyOptions", "converting (v1.PodProxyOptions) to (core.Pod): unknown conversion"),
        ("", "pods", "Status", "converting (v1.Status) to (core.Pod): unknown conversion"),
        ("", "pods", "Eviction", 'no kind "Eviction" is registered for version "v1"'),
        ("apps", "replicasets", "Deployment", "converting (v1.Deployment) to (apps.ReplicaSet): unknown conversion"),
        ("apps", "replicasets", "Status", "converting (v1.Status) to (apps.ReplicaSet): unknown conversion"),
        ("apps", "replicasets", "List", 'no kind "List" is registered for version "apps/v1"'),
        ("", "pods", "List", "converting (v1.List) to (core.Pod): unknown conversion"),
        ("policy", "poddisruptionbudgets", "Eviction", "converting (v1.Eviction) to (policy.PodDisruptionBudget)"),
        ("apps", "replicasets", "DeleteOptions", "converting (v1.DeleteOptions) to (apps.ReplicaSet)"),
        ("rbac.authorization.k8s.io", "clusterroles", "Role", "converting (v1.Role) to (rbac.ClusterRole)"),
    ],
)
def test_an_object_of_another_kind_is_refused_in_the_words_of_its_version(group, plural, kind, words):
    """The words of a real kube-apiserver 1.34.2."""
    store = fresh_store(lambda: 0.0, random.Random(1))
    other = store.kinds.find(group, "v1", plural)
    with pytest.raises(BadRequestError) as refused:
        create(store, other, "default", {"kind": kind, "apiVersion": other.resource.api_version})
    begun = f'{kind} in version "v1" cannot be handled as a {other.resource.kind}: '
    assert str(refused.value).startswith(begun + words)


def test_what_is_well_shaped_passes_and_nulls_are_as_good_as_absent():
    kinds = fresh_store(lambda: 0.0, random.Random(1)).kinds
    made = decode(kinds.of(PODS), pod(priority=-5, terminationGracePeriodSeconds=0, volumes=None), ADMIN)
    assert (made["spec"]["priority"], made["spec"]["terminationGracePeriodSeconds"]) == (-5, 0)
    assert "volumes" not in made["spec"]
    decode(kinds.of(NODES), {"metadata": {}, "status": {"capacity": {"cpu": 4, "memory": "1Gi"}}}, ADMIN)
    assert "unknown" not in decode(kinds.of(PODS), {"metadata": {}, "spec": {"unknown": [1]}}, ADMIN)["spec"]


def test_an_amount_beyond_all_bounds_is_a_bad_request():
    store = fresh_store(lambda: 0.0, random.Random(1))
    limits = {"resources": {"limits": {"x/y": "1e99999999"}}}
    with pytest.raises(BadRequestError, match="quantities must match"):
        create(store, store.kinds.of(PODS), "default", pod(containers=[{**GOOD, **limits}]))


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    assert parse_json(b'{"a": ["x\\ud800"]}') == {"a": ["x\ufffd"]}
    assert parse_json(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
