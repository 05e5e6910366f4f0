"""What upstream's update strategies ask of all kinds, and conditions that the API server itself keeps."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mews.kube.api.errors import InvalidError, NotFoundError
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.checks import addresses
from mews.kube.emulated.core.objects import creation, update
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.policies.webhook_urls import url_errors


def _store() -> Store:
    return fresh_store(lambda: 1_700_000_000.0, random.Random(1))


def _create(store: Store, group: str, plural: str, body: Any, space: str = "") -> Any:
    kind = store.kinds.find(group, "v1", plural)
    assert kind is not None
    return creation.create(store, kind, space, body, WriteRequest())


def _put(store: Store, group: str, plural: str, body: Any) -> Any:
    kind = store.kinds.find(group, "v1", plural)
    assert kind is not None
    return update.replace(store, kind, "", body["metadata"]["name"], body)


_ROLE = {"metadata": {"name": "reader"}, "rules": []}
_DRIVER = {"metadata": {"name": "disk.example.com"}, "spec": {}}


def test_a_put_creates_a_role_but_no_driver() -> None:
    store = _store()
    assert _put(store, "rbac.authorization.k8s.io", "clusterroles", _ROLE)["metadata"]["uid"]
    with pytest.raises(NotFoundError):
        _put(store, "storage.k8s.io", "csidrivers", _DRIVER)


def test_kinds_that_name_their_version_refuse_an_update_that_does_not() -> None:
    store = _store()
    _create(store, "storage.k8s.io", "csidrivers", _DRIVER)
    with pytest.raises(InvalidError, match="must be specified for an update"):
        _put(store, "storage.k8s.io", "csidrivers", _DRIVER)


def test_a_prefix_for_names_is_checked_when_it_changes_and_named_as_often_as_it_is_looked_at() -> None:
    store = _store()
    made = _create(store, "storage.k8s.io", "storageclasses", {"metadata": {"name": "a"}, "provisioner": "x.io/y"})
    made["metadata"]["generateName"] = "not/good"
    with pytest.raises(InvalidError) as refusal:
        _put(store, "storage.k8s.io", "storageclasses", made)
    causes = [cause["message"] for cause in refusal.value.details["causes"]]
    assert len(causes) == 2
    assert causes[0].endswith("may not contain '/'")


def test_an_event_owns_nothing() -> None:
    owner = {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u"}
    body = {**_ROLE, "metadata": {"name": "owned", "ownerReferences": [owner]}}
    with pytest.raises(InvalidError, match="/v1, Kind=Event is disallowed from being an owner"):
        _create(_store(), "rbac.authorization.k8s.io", "clusterroles", body)


def test_a_flow_schema_says_whether_its_level_is_there() -> None:
    store = _store()
    schema = {"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": "lvl"}}}
    level = {"metadata": {"name": "lvl"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}
    kind = store.kinds.find("flowcontrol.apiserver.k8s.io", "v1", "flowschemas")
    assert kind is not None
    _create(store, "flowcontrol.apiserver.k8s.io", "flowschemas", schema)
    assert store.get(kind, "", "s")["status"]["conditions"][0]["reason"] == "NotFound"
    _create(store, "flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", level)
    found = store.get(kind, "", "s")["status"]["conditions"]
    assert [(each["status"], each["reason"]) for each in found] == [("False", "Found")]


def test_an_api_service_is_not_available_without_its_service() -> None:
    store = _store()
    spec = {"group": "g.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    body = {"metadata": {"name": "v1.g.io"}, "spec": {**spec, "service": {"name": "s", "namespace": "n"}}}
    kind = store.kinds.find("apiregistration.k8s.io", "v1", "apiservices")
    assert kind is not None
    _create(store, "apiregistration.k8s.io", "apiservices", body)
    condition = store.get(kind, "", "v1.g.io")["status"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == ("ServiceNotFound", 'service/s in "n" is not present')


def test_old_forms_of_addresses_are_warned_of() -> None:
    assert addresses.address_warnings("p", "10.0.0.1") == []
    assert addresses.address_warnings("p", "010.0.0.1")[0].endswith('use "10.0.0.1"')
    assert "ambiguous" in addresses.range_warnings("p", "10.0.0.1/8")[0]


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("150%", 'parse "150%": invalid URL escape "%"'),
        ("HTTPS://a", ""),
        ("https://a:b", 'invalid port ":b" after host'),
        ("a b:c/d", "first path segment in URL cannot contain colon"),
        ("https://u@a", "user information is not permitted"),
    ],
)
def test_urls_of_webhooks_are_read_as_go_reads_them(url: str, text: str) -> None:
    found = " ".join(str(fault) for fault in url_errors(url, "url"))
    assert text in found
    assert bool(found) == bool(text)
