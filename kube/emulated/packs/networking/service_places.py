"""Where the API server reaches the pods behind a Service, since no kube-proxy stands between, and how Go's client says
why it does not."""

from __future__ import annotations

import ssl

import aiohttp

from mews.kube.api.objects import Object
from mews.kube.api.resources import ENDPOINTS
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds.server_conditions import slices_of


def ready_addresses(store: Store, namespace: str, name: str) -> list[tuple[str, list[Object]]]:
    """Ready addresses of a Service with their ports: of EndpointSlices, else of Endpoints."""
    found = []
    for part in slices_of(store, namespace, name):
        for endpoint in part.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("addresses"):
                found.append((str(endpoint["addresses"][0]), list(part.get("ports") or ())))
    whole = store.find(store.kinds.of(ENDPOINTS), namespace, name)
    for subset in (whole or {}).get("subsets") or ():
        found += [(str(each["ip"]), list(subset.get("ports") or ())) for each in subset.get("addresses") or ()]
    return found


def places_of(store: Store, namespace: str, name: str, port_name: str) -> list[tuple[str, int]]:
    """(address, port) of all that is ready behind the Service's port of that name, each once."""
    found = [
        (host, int(each["port"]))
        for host, ports in ready_addresses(store, namespace, name)
        for each in ports
        if (each.get("name") or "") == port_name
    ]
    return list(dict.fromkeys(found))


def untrusted(error: Exception) -> str:
    """Return why a certificate is not trusted, as crypto/tls says it."""
    text = "tls: failed to verify certificate: x509: "
    if isinstance(error, ssl.SSLCertVerificationError) and "match" in error.verify_message.lower():
        return f"{text}certificate is not valid for the name that was asked for"
    return f"{text}certificate signed by unknown authority"


def unreached(error: BaseException, shown: str) -> str:
    """Return why nothing was answered at the address that is ``shown``, as Go's client says it."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(error.certificate_error)
        case aiohttp.ClientSSLError():
            return f"tls: {error.os_error}"
        case aiohttp.ClientConnectorError():
            refused = isinstance(error.os_error, ConnectionRefusedError)
            reason = "connection refused" if refused else (error.os_error.strerror or str(error.os_error)).lower()
            return f"dial tcp {shown}: connect: {reason}"
    return str(error) or "EOF"
