"""What the proxy reads of requests, and what it writes in the server's place."""

import json

import pytest

from mews.harness.api_faults.plans import ApiFailure, ApiRequest
from mews.harness.api_faults.wire import (
    call_of,
    initial_events,
    list_query,
    one_query,
    readable_forms,
    snapshot_query,
    status_of,
)

PODS = "/api/v1/namespaces/team/pods"
WIDGETS = "/apis/example.com/v1/widgets"


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "what", "collection"),
    [
        ("GET", "/api/v1/pods", {}, "list", ("pods", "", ""), "/api/v1/pods"),
        ("GET", "/api/v1/pods", {"watch": "true"}, "watch", ("pods", "", ""), "/api/v1/pods"),
        ("GET", "/api/v1/pods", {"watch": "0"}, "list", ("pods", "", ""), "/api/v1/pods"),
        ("GET", f"{PODS}/a", {}, "get", ("pods", "a", ""), PODS),
        ("GET", f"{PODS}/a/log", {"follow": "true"}, "get", ("pods", "a", "log"), PODS),
        ("POST", PODS, {}, "create", ("pods", "", ""), PODS),
        ("POST", f"{PODS}/a/binding", {}, "create", ("pods", "a", "binding"), PODS),
        ("PUT", f"{PODS}/a/status", {}, "update", ("pods", "a", "status"), PODS),
        ("PATCH", "/api/v1/nodes/n", {}, "patch", ("nodes", "n", ""), "/api/v1/nodes"),
        ("DELETE", f"{PODS}/a", {}, "delete", ("pods", "a", ""), PODS),
        ("DELETE", PODS, {}, "deletecollection", ("pods", "", ""), PODS),
        ("GET", "/api/v1/namespaces/team", {}, "get", ("namespaces", "team", ""), "/api/v1/namespaces"),
        ("PUT", "/api/v1/namespaces/t/finalize", {}, "update", ("namespaces", "t", "finalize"), "/api/v1/namespaces"),
        ("GET", WIDGETS, {}, "list", ("widgets", "", ""), WIDGETS),
        ("GET", f"{WIDGETS}/w/scale", {}, "get", ("widgets", "w", "scale"), WIDGETS),
        ("GET", "/api/v1/watch/pods", {}, "watch", ("pods", "", ""), "/api/v1/watch/pods"),
    ],
)
def test_a_request_is_what_rbac_says_it_is(method, path, query, verb, what, collection):
    call = call_of(method, path, query)
    assert (call.request, call.path) == (ApiRequest(verb, *what), collection)


@pytest.mark.parametrize("path", ["/", "/version", "/healthz", "/api", "/api/v1", "/apis/apps/v1", "/openapi/v3"])
def test_what_is_no_resource_is_none(path):
    assert call_of("GET", path, {}) is None


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("application/vnd.kubernetes.protobuf, */*", "application/json"),
        ("application/vnd.kubernetes.protobuf;stream=watch", "application/json"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", None),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/cbor, application/json", "application/json"),
    ],
)
def test_a_watch_is_asked_for_in_a_form_that_can_be_read(asked, sent):
    assert readable_forms(asked) == (sent or asked.replace(",", ", "))


@pytest.mark.parametrize(
    ("query", "version"),
    [
        ([], "7"),
        ([("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan")], "7"),
        ([("resourceVersion", "6")], "7"),
        ([("resourceVersion", "8")], None),
        ([("resourceVersion", "3"), ("resourceVersionMatch", "Exact")], None),
        ([("continue", "abc")], None),
    ],
)
def test_a_list_of_the_past_asks_for_exactly_that_version(query, version):
    sent = dict(pair.split("=") for pair in list_query([*query, ("limit", "5")], "7").split("&"))
    shown = {"resourceVersion": version, "resourceVersionMatch": "Exact"} if version else dict(query)
    assert sent == {"limit": "5", **shown}


def test_one_object_of_the_past_is_found_by_its_name():
    assert one_query("a", "7") == "fieldSelector=metadata.name%3Da&resourceVersion=7&resourceVersionMatch=Exact"


def test_a_watch_that_begins_with_all_objects_shows_those_of_the_past():
    asked = [("sendInitialEvents", "true"), ("labelSelector", "a=b"), ("watch", "true")]
    assert snapshot_query(asked, "7") == "labelSelector=a%3Db&resourceVersion=7&resourceVersionMatch=Exact"
    listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {}}]}
    added, end = (json.loads(line) for line in initial_events(listed))
    assert (added["type"], added["object"]["kind"]) == ("ADDED", "Pod")
    assert end["object"]["metadata"] == {
        "resourceVersion": "7",
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


def test_a_refusal_is_a_status():
    status = status_of(ApiFailure(429, "TooManyRequests", "later", 3))
    assert (status["code"], status["reason"], status["details"]) == (429, "TooManyRequests", {"retryAfterSeconds": 3})
    assert "details" not in status_of(ApiFailure(409, "Conflict"))
