"""Selectors over devices and statuses of shared ones, as kube-apiserver 1.34.2 and 1.37.2 took the same."""

import random

import pytest

from mews.kube.api.errors import InvalidError
from mews.kube.api.resources import DEVICE_CLASSES, RESOURCE_CLAIMS
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects import creation, update
from mews.kube.releases.cluster_release import cluster_release

NESTED = "device.attributes.all(a, device.capacity.all(b, a + b == 'x'))"


def store_of(release):
    return fresh_store(lambda: 1e9, random.Random(1), release=cluster_release(release))


def made(store, expression):
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    creation.create(store, store.kinds.of(DEVICE_CLASSES), "", {"metadata": {"name": "k"}, "spec": spec})


def many(times):
    return f"[{','.join('0' * times)}].all(n, {NESTED})"


@pytest.mark.parametrize(("times", "passes"), [(50, True), (51, False)])
def test_what_costs_too_much_at_worst_is_refused(times, passes):
    if passes:
        made(store_of("1.37"), many(times))
        return
    with pytest.raises(
        InvalidError, match=r"spec.selectors\[0\].cel.expression: Forbidden: too complex, exceeds cost limit"
    ):
        made(store_of("1.37"), many(times))


def test_whether_a_device_is_shared_may_be_asked_where_devices_may_be():
    made(store_of("1.37"), "device.allowMultipleAllocations")
    with pytest.raises(InvalidError, match="undefined field 'allowMultipleAllocations'"):
        made(store_of("1.34"), "device.allowMultipleAllocations")


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("device.attributes", "map(string, map(string, google.protobuf.Any))"), ("dyn(true)", "dyn"), ("1", "int")],
)
def test_an_expression_is_true_or_false_or_an_attribute(expression, kind):
    made(store_of("1.37"), "device.attributes['d'].healthy")
    with pytest.raises(InvalidError) as refusal:
        made(store_of("1.37"), expression)
    assert f"must evaluate to bool or the unknown type, not {kind}" in str(refusal.value)


def test_shares_of_one_device_have_statuses_of_their_own():
    store = store_of("1.37")
    kind = store.kinds.of(RESOURCE_CLAIMS)
    requests = [{"name": name, "exactly": {"deviceClassName": "k"}} for name in ("a", "b")]
    body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    claim = creation.create(store, kind, "default", body)
    shares = [f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2)]
    device = {"driver": "d.example.com", "pool": "p", "device": "gpu"}
    results = [{**device, "request": name, "shareID": share} for name, share in zip("ab", shares, strict=True)]
    devices = [{**device, "shareID": share} for share in shares]
    status = {"allocation": {"devices": {"results": results}}, "devices": devices}
    written = update.replace(store, kind, "default", "c", {**claim, "status": status}, subresource="status")
    assert [each["shareID"] for each in written["status"]["devices"]] == shares
    with pytest.raises(InvalidError, match="must be an allocated device in the claim"):
        wrong = {**status, "devices": [device]}
        update.replace(store, kind, "default", "c", {**written, "status": wrong}, subresource="status")
