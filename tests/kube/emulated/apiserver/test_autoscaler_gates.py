"""Fields of autoscalers that act behind feature gates: scaling to zero, and tolerances of their own."""

import asyncio

import pytest

from mews.kube.api.errors import InvalidError
from mews.kube.api.resources import AUTOSCALERS
from mews.kube.clock import stream
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.releases.cluster_release import cluster_release

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
OUTSIDE = {
    "type": "External",
    "external": {"metric": {"name": "qps"}, "target": {"type": "Value", "value": "1"}},
}


def made(gates, release="1.34", **spec):
    kube = InProcessKube(fresh_store(lambda: 0.0, stream(1, "store"), release=cluster_release(release, gates)))
    body = {"metadata": {"name": "hpa"}, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}}
    return asyncio.run(kube.create(AUTOSCALERS, body, namespace="default"))["spec"]


def test_minimum_of_zero_needs_the_gate_and_a_metric_from_outside():
    text = "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
    with pytest.raises(InvalidError, match=text):
        made({}, minReplicas=0, metrics=[OUTSIDE])
    gates = {"HPAScaleToZero": True}
    assert made(gates, minReplicas=0, metrics=[OUTSIDE])["minReplicas"] == 0
    assert made({}, "1.37", minReplicas=0, metrics=[OUTSIDE])["minReplicas"] == 0
    with pytest.raises(InvalidError, match="must specify at least one Object or External metric"):
        made(gates, minReplicas=0)
    with pytest.raises(InvalidError, match=r"spec\.minReplicas: Invalid value: -1: must be greater than or equal to 0"):
        made(gates, minReplicas=-1, metrics=[OUTSIDE])


@pytest.mark.parametrize(("gates", "kept"), [({}, False), ({"HPAConfigurableTolerance": True}, True)])
def test_tolerances_are_dropped_where_their_gate_is_off(gates, kept):
    """The controller relies on that: it takes whatever tolerance an autoscaler has."""
    spec = made(gates, behavior={"scaleUp": {"tolerance": "50m"}})
    assert ("tolerance" in spec["behavior"]["scaleUp"]) == kept
