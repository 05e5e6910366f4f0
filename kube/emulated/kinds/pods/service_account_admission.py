"""ServiceAccount: every pod runs as an account of its namespace and gets its token.

Source: k8s.io/kubernetes plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.resources import SERVICE_ACCOUNTS
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, handles, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation, PendingCallsError
from mews.kube.emulated.core.store.store import Store

_DEFAULT = "default"
_MIRROR = "kubernetes.io/config.mirror"
_PREFIX = "kube-api-access-"
_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_LISTS = ("initContainers", "containers")
_ATTEMPTS, _PAUSE_S = 10, 0.15
_ENFORCED = "kubernetes.io/enforce-mountable-secrets"


def _admit(store: Store, attributes: AdmissionAttributes) -> None:
    pod = attributes.obj
    assert pod is not None
    spec = pod["spec"]
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        _validate(store, attributes)
        return
    name = spec.get("serviceAccountName") or _DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = _account(store, attributes, name)
    if _mounts(account, spec):
        _mount_token(store, attributes, spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]
    _validate(store, attributes)


def _account(store: Store, attributes: AdmissionAttributes, name: str) -> Object:
    """Return the account; the default one of a namespace just made is waited for, as upstream does."""
    found = store.find(store.kinds.of(SERVICE_ACCOUNTS), attributes.namespace, name)
    if found is not None:
        return found
    answers = attributes.request.answers
    if name == _DEFAULT and answers is not None:
        for attempt in range(_ATTEMPTS):
            if ("service account", attempt) not in answers:
                raise PendingCallsError({("service account", attempt): _pause})
    text = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
    raise refused(attributes, text)


async def _pause() -> None:
    await asyncio.sleep(_PAUSE_S)


def _mounts(account: Object, spec: Mapping[str, Any]) -> bool:
    """Return whether a pod gets a token: as it says, else as its account says."""
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount_token(store: Store, attributes: AdmissionAttributes, spec: dict[str, Any]) -> None:
    volumes = spec.get("volumes") or []
    volume = next((each["name"] for each in volumes if each["name"].startswith(_PREFIX)), "")
    is_there = bool(volume)
    volume = volume or attributes.request.once("token volume", lambda: store.other_name(_PREFIX))
    needed = False
    for container in _containers(spec):
        mounts = container.get("volumeMounts") or []
        if all(mount.get("mountPath") != _FOLDER for mount in mounts):
            added = {"name": volume, "readOnly": True, "mountPath": _FOLDER}
            container["volumeMounts"] = [*mounts, added]
            needed = True
    if needed and not is_there:
        spec["volumes"] = [*volumes, {"name": volume, "projected": _projected()}]


def _containers(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in _LISTS:
        yield from spec.get(name) or ()


def _projected() -> dict[str, Any]:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
    }


def _validate(store: Store, attributes: AdmissionAttributes) -> None:
    pod = attributes.obj
    assert pod is not None
    spec = pod["spec"]
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        if spec.get("serviceAccountName"):
            raise refused(attributes, "a mirror pod may not reference service accounts")
        for volume in spec.get("volumes") or ():
            sources = (volume.get("projected") or {}).get("sources") or ()
            if any("serviceAccountToken" in source for source in sources):
                raise refused(attributes, "a mirror pod may not use service account token volume projections")
        return
    account = _account(store, attributes, spec.get("serviceAccountName") or _DEFAULT)
    if (account["metadata"].get("annotations") or {}).get(_ENFORCED) == "true":
        _check_secrets(attributes, account, spec)


def _check_secrets(attributes: AdmissionAttributes, account: Object, spec: Mapping[str, Any]) -> None:
    """Of an account that asks for it pods may mount its own secrets only."""
    allowed = {each.get("name") for each in account.get("secrets") or ()}
    name = account["metadata"]["name"]
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if secret and secret not in allowed:
            text = f'volume with secret.secretName="{secret}" is not allowed because service account {name} does not '
            raise refused(attributes, f"{text}reference that secret")
    for container in _containers(spec):
        for each in container.get("env") or ():
            secret = ((each.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
            if secret and secret not in allowed:
                text = f"container {container.get('name')} with envVar {each.get('name')} referencing "
                raise refused(
                    attributes,
                    f'{text}secret.secretName="{secret}" is not allowed because service account {name} does not '
                    "reference that secret",
                )


PLUGIN = AdmissionPlugin(
    "ServiceAccount", handles("pods", AdmissionOperation.CREATE), mutate=_admit, validate=_validate
)
