"""Convert objects between versions by a definition's webhook: ConversionReview v1 over TLS.

The call is made within the request that needs it, as upstream's is. All else waits for it, ten seconds at most where
upstream gives it thirty: the server answers one request after the other. Results are remembered by ``crd_versions``.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mews.kube.api.errors import ServerError
from mews.kube.api.objects import Object

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.store import Store

_TIMEOUT_S = 10.0
_KNOWN = ("v1", "v1beta1")

Convert = Callable[[Object, str], Object]
"""``(object, apiVersion)`` -> the object in that version."""


def webhook_converter(store: Store, crd: Mapping[str, Any]) -> Convert:
    """The converter of a definition whose strategy is Webhook."""
    webhook = crd["spec"]["conversion"]["webhook"]
    config = webhook["clientConfig"]
    review = next(version for version in webhook["conversionReviewVersions"] if version in _KNOWN)

    def convert(obj: Object, api_version: str) -> Object:
        request = {"uid": store.new_uid(), "desiredAPIVersion": api_version, "objects": [obj]}
        body = {"kind": "ConversionReview", "apiVersion": f"apiextensions.k8s.io/{review}", "request": request}
        prefix = f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']} failed: "
        try:
            answer = _post(store, config, body)
            return _converted(answer, request, obj)
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as error:
            raise ServerError(f"{prefix}{error}", reason="") from None

    return convert


def _post(store: Store, config: Mapping[str, Any], body: Mapping[str, Any]) -> Any:
    url, host, port, server_name = _address(store, config)
    context = ssl.create_default_context()
    if config.get("caBundle"):
        context = ssl.create_default_context(cadata=base64.b64decode(config["caBundle"]).decode())
    connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
    path = urlsplit(url).path or "/"
    try:
        _connect(connection, context, server_name)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Host": urlsplit(url).netloc}
        connection.request("POST", f"{path}?timeout=30s", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
    except OSError as error:
        raise OSError(f'Post "{url}?timeout=30s": {error}') from None
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise ValueError(f"the server rejected our request for an unknown reason ({response.status})")
    return json.loads(text)


def _connect(connection: http.client.HTTPSConnection, context: ssl.SSLContext, server_name: str) -> None:
    """Reach the address, but ask for the certificate of the name."""
    import socket

    plain = socket.create_connection((connection.host, connection.port), _TIMEOUT_S)
    connection.sock = context.wrap_socket(plain, server_hostname=server_name)


def _address(store: Store, config: Mapping[str, Any]) -> tuple[str, str, int, str]:
    """URL as it is shown, host and port to reach, name that the certificate is for."""
    if config.get("url"):
        parts = urlsplit(config["url"])
        host = parts.hostname or ""
        return config["url"], host, parts.port or 443, host
    service = config["service"]
    namespace, name, port = service["namespace"], service["name"], service.get("port", 443)
    server_name = f"{name}.{namespace}.svc"
    url = f"https://{server_name}:{port}{service.get('path') or ''}"
    host, port = _endpoint(store, namespace, name, port, url)
    return url, host, port, server_name


def _endpoint(store: Store, namespace: str, name: str, port: int, url: str) -> tuple[str, int]:
    """The address of a running pod behind a Service."""
    services, pods = store.kinds.find("", "v1", "services"), store.kinds.find("", "v1", "pods")
    service = store.find(services, namespace, name) if services is not None else None
    if service is None or pods is None:
        raise OSError(f'Post "{url}?timeout=30s": service "{name}" not found')
    wanted = (service["spec"].get("selector") or {}).items()
    target = next((one for one in service["spec"].get("ports") or () if one["port"] == port), None)
    for pod in store.list(pods).items if target is not None else ():
        labels = (pod["metadata"].get("labels") or {}).items()
        ip = (pod.get("status") or {}).get("podIP")
        if pod["metadata"]["namespace"] == namespace and ip and wanted and wanted <= labels:
            return ip, _target_port(pod, target.get("targetPort", port) if target is not None else port)
    raise OSError(f'Post "{url}?timeout=30s": no endpoints available for service "{name}"')


def _target_port(pod: Object, target: Any) -> int:
    if isinstance(target, int):
        return target
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == target:
                return int(port["containerPort"])
    raise ValueError(f"no port named {target!r} in pod {pod['metadata']['name']!r}")


def _converted(answer: Any, request: Mapping[str, Any], obj: Object) -> Object:
    """The object in the answer, with the metadata that a webhook may not change."""
    response = answer["response"]
    if response.get("uid") != request["uid"]:
        raise ValueError(f"expected response.uid={request['uid']}")
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise ValueError(result.get("message") or "<nil>")
    objects = response.get("convertedObjects") or []
    if len(objects) != 1:
        raise ValueError(f"webhook returned {len(objects)} objects, expected 1")
    found: Object = objects[0]
    for key in ("apiVersion", "kind"):
        wanted = request["desiredAPIVersion"] if key == "apiVersion" else obj["kind"]
        if found.get(key) != wanted:
            raise ValueError(f"webhook returned object with {key} {found.get(key)!r}, expected {wanted!r}")
    metadata = dict(obj["metadata"])
    for key in ("labels", "annotations"):
        metadata.pop(key, None)
        if given := (found.get("metadata") or {}).get(key):
            metadata[key] = given
    return {**found, "metadata": metadata}
