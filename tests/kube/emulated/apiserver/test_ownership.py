"""Server-side apply by the types' own lists and maps, and the owners of plain writes."""

import random

import pytest

from mews.kube.api.errors import ConflictError, ServerError
from mews.kube.api.resources import CONFIGMAPS, PODS
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.apply import apply
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.update import patch
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.store import Store


@pytest.fixture
def store() -> Store:
    made = fresh_store(lambda: 0.0, random.Random(1))
    made.keeps_owners = True
    return made


def by(manager: str) -> WriteRequest:
    return WriteRequest(manager=manager)


def pod(*ports: int, **env: str):
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"containerPort": port} for port in ports],
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}


def test_a_writer_owns_what_it_wrote_and_defaults_but_not_what_admission_added(store):
    made = create(store, store.kinds.of(PODS), "default", pod(80), by("writer"))
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("writer", "Update")
    spec = entry["fieldsV1"]["f:spec"]
    assert "f:restartPolicy" in spec and "f:priority" not in spec and "f:tolerations" not in spec
    container = spec["f:containers"]['k:{"name":"c"}']
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in container["f:ports"]


def test_applied_items_are_owned_by_their_keys(store):
    kind = store.kinds.of(PODS)
    apply(store, kind, "default", "p", pod(A="1", B="2"), request=by("one"))
    found = store.get(kind, "default", "p")
    fields = found["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert set(fields["f:env"]) == {'k:{"name":"A"}', 'k:{"name":"B"}'}


def test_an_apply_over_a_plain_write_is_a_conflict_until_it_is_forced(store):
    kind = store.kinds.of(CONFIGMAPS)
    create(store, kind, "default", {"metadata": {"name": "s"}, "data": {"a": "1", "b": "1"}}, by("writer"))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "2"}}
    with pytest.raises(ConflictError, match=r'conflict with "writer" using v1: \.data\.a'):
        apply(store, kind, "default", "s", config, request=by("one"))
    apply(store, kind, "default", "s", config, request=by("one"), force=True)
    left = apply(store, kind, "default", "s", {**config, "data": {}}, request=by("one"))
    assert left["data"] == {"b": "1"}


def test_a_field_that_somebody_changes_is_no_longer_the_appliers(store):
    kind = store.kinds.of(CONFIGMAPS)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "1"}}
    apply(store, kind, "default", "s", config, request=by("one"))
    body = {"data": {"a": "2"}}
    changed = patch(store, kind, "default", "s", body, patch_kind=Patch.MERGE, request=by("two"))
    owners = {entry["manager"]: entry["fieldsV1"] for entry in changed["metadata"]["managedFields"]}
    assert owners == {"two": {"f:data": {"f:a": {}}}}


def test_what_no_schema_declares_cannot_be_applied(store):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "frob": 1}
    with pytest.raises(ServerError, match=r"\.frob: field not declared in schema"):
        apply(store, store.kinds.of(CONFIGMAPS), "default", "s", config, request=by("one"))
    with pytest.raises(ServerError, match="duplicate entries for key"):
        apply(store, store.kinds.of(PODS), "default", "p", pod(80, 80), request=by("one"))
