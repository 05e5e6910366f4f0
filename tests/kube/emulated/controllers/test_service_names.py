"""Names and tables that stand in for cluster DNS and kube-proxy."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.emulated.controllers.service_names import (
    host_port_rows,
    names,
    pod_names,
    service_addresses,
    service_rows,
)


def pod(name: str, ip: str, *, ready: bool = True, namespace: str = "ns", **spec: Any) -> dict[str, Any]:
    ports = [{"name": "web", "containerPort": 8443}]
    status = {"podIP": ip, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    body = {"containers": [{"name": "c", "ports": ports}], **spec}
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"a": "1"}}, "spec": body, "status": status}


def service(ip: str, *ports: Any, name: str = "s", **spec: Any) -> dict[str, Any]:
    body = {"clusterIP": ip, "ports": list(ports), "selector": {"a": "1"}, **spec}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": body}


WEB = {"port": 443, "targetPort": "web", "protocol": "TCP"}
PODS = [pod("p", "127.77.1.2"), pod("q", "127.77.1.3", ready=False), pod("r", "127.77.1.4", namespace="other")]


def test_a_service_leads_to_its_ready_pods_at_their_port() -> None:
    rows = [("10.0.0.1", "443", "TCP"), ("10.0.0.1", "443", "TCP", "127.77.1.2", "8443")]
    assert list(service_rows([service("10.0.0.1", WEB)], PODS)) == rows
    both = list(service_rows([service("10.0.0.1", WEB, publishNotReadyAddresses=True)], PODS))
    assert both == [*rows, ("10.0.0.1", "443", "TCP", "127.77.1.3", "8443")]


def test_a_port_is_a_number_a_name_or_the_services_own() -> None:
    ports = ({"port": 80, "targetPort": 8080}, {"port": 53, "protocol": "UDP"}, {"port": 1, "targetPort": "none"})
    assert list(service_rows([service("10.0.0.1", *ports)], PODS[:1])) == [
        ("10.0.0.1", "80", "TCP"),
        ("10.0.0.1", "80", "TCP", "127.77.1.2", "8080"),
        ("10.0.0.1", "53", "UDP"),
        ("10.0.0.1", "53", "UDP", "127.77.1.2", "53"),
        ("10.0.0.1", "1", "TCP"),
    ]


def test_headless_services_and_those_without_a_selector_lead_nowhere_but_the_apis() -> None:
    api = service("10.96.0.1", {"port": 443}, name="kubernetes", selector=None)
    assert list(service_rows([service("None", WEB), service("10.0.0.1", WEB, selector=None), api], PODS)) == []
    api["metadata"]["namespace"] = "default"
    assert list(service_rows([api], PODS)) == [("10.96.0.1", "443", "TCP"), ("10.96.0.1", "443", "TCP", "api")]


def test_names_lead_to_the_services_address_and_of_a_headless_one_to_its_pods() -> None:
    known = ("s.ns", "s.ns.svc", "s.ns.svc.cluster.local")
    assert list(service_addresses([service("10.0.0.1", WEB)], PODS)) == [("10.0.0.1", known)]
    assert list(service_addresses([service("None", WEB)], PODS)) == [("127.77.1.2", known), ("127.77.1.3", known)]
    assert names([service("10.0.0.1", WEB)], PODS) == [("127.77.1.2", known), ("127.77.1.3", known)]


def test_pods_with_a_host_name_in_a_subdomain_have_a_name() -> None:
    named = pod("p", "127.77.1.2", hostname="job-0", subdomain="jobs")
    short = "job-0.jobs.ns"
    assert list(pod_names([named, *PODS])) == [("127.77.1.2", (short, f"{short}.svc", f"{short}.svc.cluster.local"))]


def test_a_port_of_the_node_leads_to_the_pod_whether_it_is_ready_or_not() -> None:
    at_node = pod("p", "127.77.1.2", ready=False)
    at_node["spec"]["containers"][0]["ports"] = [
        {"containerPort": 8443, "hostPort": 443, "protocol": "TCP"},
        {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "172.18.0.2"},
        {"containerPort": 80},
        {"containerPort": 81, "hostPort": 81, "hostIP": "127.0.0.1"},
    ]
    at_node["status"]["hostIP"] = "172.18.0.2"
    tcp = ("172.18.0.2", "443", "TCP", "127.77.1.2", "8443")
    assert list(host_port_rows([at_node, *PODS])) == [tcp, ("172.18.0.2", "53", "UDP", "127.77.1.2", "53")]


@pytest.mark.parametrize("spec", [{}, {"hostNetwork": True}])
@pytest.mark.parametrize("status", [{"phase": "Failed"}, {"podIP": ""}])
def test_no_port_of_the_node_leads_to_a_pod_that_has_ended_or_has_no_address(
    spec: dict[str, Any], status: dict[str, Any]
) -> None:
    at_node = pod("p", "127.77.1.2", **spec)
    at_node["spec"]["containers"][0]["ports"] = [{"containerPort": 8443, "hostPort": 8443}]
    at_node["status"].update({"hostIP": "172.18.0.2", "phase": "Running"})
    assert list(host_port_rows([at_node])) == [("172.18.0.2", "8443", "TCP", "127.77.1.2", "8443")]
    at_node["status"].update(status)
    assert list(host_port_rows([at_node])) == []
