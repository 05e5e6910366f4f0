"""What components serve others with, as manifests: a Service each, their certificate, and how kube-scheduler is told of
those that are its extenders."""

from __future__ import annotations

import base64
from typing import Any

from mews.harness.manifests.kube_scheduler import configuration, extender_place
from mews.harness.manifests.parts import CA_FILE, SERVICE, Object, config_map, metadata
from mews.harness.manifests.spec import StackSpec, deployment_of
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.yaml_text import written_yaml

SERVICES_TLS, SERVICES_CA = "mews-services-tls", "mews-services-ca"
"""The Secret with the certificate of all services, and the ConfigMap of what to trust."""
TLS_FOLDER = "/etc/mews-service"
SCHEDULER_CONFIG = "mews-kube-scheduler"
_KUBECONFIG = "/etc/kubernetes/scheduler.conf"


def service_host(namespace: str, service: str) -> str:
    """Return it by which others in the cluster call it."""
    return f"{service}.{namespace}.svc"


def services_of(spec: StackSpec) -> list[str]:
    """Return what the components serve, ours or those in their places."""
    served = (component.service for _, component in spec.components() if component.service)
    return list(dict.fromkeys(served))


def port_of(spec: StackSpec, service: str) -> int:
    """Return the port of a service, and of each pod behind it."""
    ports = [deployment_of(each).service_port for _, each in spec.components() if each.service == service]
    assert ports and ports[0] is not None, "a component that serves says where"
    return ports[0]


def services(spec: StackSpec) -> list[Object]:
    """Services and their certificate; nothing where no component serves others."""
    names = services_of(spec)
    if not names:
        return []
    made = [_service(spec, name) for name in names]
    if spec.service_certificate is not None:
        made_of = spec.service_certificate
        files = {"tls.crt": made_of.certificate, "tls.key": made_of.key, CA_FILE: made_of.trusted}
        data = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
        secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(spec, SERVICES_TLS)}
        made.append({**secret, "type": "kubernetes.io/tls", "data": data})
        made.append(config_map(SERVICES_CA, _owner(spec), spec.namespace, {CA_FILE: spec.service_certificate.trusted}))
    return made


def _owner(spec: StackSpec) -> str:
    return next(name for name, component in spec.components() if component.service)


def _metadata(spec: StackSpec, name: str) -> Object:
    return metadata(name, _owner(spec), spec.namespace)


def _service(spec: StackSpec, name: str) -> Object:
    port = port_of(spec, name)
    made = {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(spec, name)}
    return {**made, "spec": {"selector": {SERVICE: name}, "ports": [{"port": port, "targetPort": port}]}}


def extender_entries(spec: StackSpec) -> list[dict[str, Any]]:
    """Return the extenders that the stack's systems bring, as entries of a KubeSchedulerConfiguration: under TLS, by
    the names of their services."""
    return [
        {**_place(spec, each.service, each.path), **each.config}
        for installed in spec.systems
        if installed.components
        for each in installed.system.extenders(installed.configuration)
    ]


def _place(spec: StackSpec, service: str, path: str) -> dict[str, Any]:
    host, served = service_host(spec.namespace, service), spec.service_certificate
    scheme, authority = ("http", None) if served is None else ("https", served.trusted)
    return extender_place(f"{scheme}://{host}:{port_of(spec, service)}{path}", authority, host)


def scheduler_configuration(spec: StackSpec) -> list[Object]:
    """Return a KubeSchedulerConfiguration in a ConfigMap, for kube-scheduler's ``--config``, where the stack has
    extenders."""
    entries = extender_entries(spec)
    if not entries:
        return []
    text = written_yaml(configuration(_KUBECONFIG, entries))
    return [config_map(SCHEDULER_CONFIG, DEFAULT_SCHEDULER, spec.namespace, {"kube-scheduler.yaml": text})]
