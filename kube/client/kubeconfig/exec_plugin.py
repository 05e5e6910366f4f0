"""Credential plugins: programs that print a credential (``client.authentication.k8s.io``, v1 and v1beta1).

A plugin runs once at first, and again when its credential has expired; one without an expiry is kept.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.kube.client.kubeconfig.errors import CredentialPluginError
from mews.kube.client.kubeconfig.files import KubeconfigEntry
from mews.kube.client.kubeconfig.tls import load_client_certificate
from mews.names import must_be

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")
_PLUGIN_S = 60.0
_SHOWN = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


class PluginCommand(Struct, frozen=True):
    """What a user's ``exec`` has."""

    entry: KubeconfigEntry
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    api_version: str
    install_hint: str
    with_cluster: bool


class PluginCredential(Struct, frozen=True):
    """What a plugin printed; ``expires_s`` in seconds since 1970, None for a credential that does not expire."""

    token: str
    certificate: bytes
    key: bytes
    expires_s: float | None


def plugin_command(user: KubeconfigEntry) -> PluginCommand:
    """Return the plugin of a user.

    Raises KubeconfigError for a value that cannot be used.
    """
    given = user.value["exec"]
    if not isinstance(given, dict):
        raise user.refuse("exec", "must be a mapping")
    entry = KubeconfigEntry(user.file, f"{user.place}.exec", given)
    command, version, mode = entry.text("command"), entry.text("apiVersion"), entry.text("interactiveMode")
    if not command:
        raise entry.refuse("command", "is not set")
    if version not in VERSIONS:
        raise entry.refuse("apiVersion", f"{version!r}: {must_be(version, VERSIONS)}")
    mode = mode or ("" if version == VERSIONS[0] else "IfAvailable")
    if mode not in _MODES:
        raise entry.refuse("interactiveMode", f"{mode!r}: {must_be(mode, _MODES)}")
    if mode == "Always":
        raise entry.refuse("interactiveMode", "Always is not supported: plugins get no terminal")
    return PluginCommand(
        entry,
        str(user.file.parent / command) if os.sep in command else command,
        _args(entry),
        dict(_env(entry)),
        version,
        " ".join(entry.text("installHint").split()),
        entry.flag("provideClusterInfo"),
    )


def _args(entry: KubeconfigEntry) -> tuple[str, ...]:
    args = entry.value.get("args") or []
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        raise entry.refuse("args", "must be a list of texts")
    return tuple(args)


def _env(entry: KubeconfigEntry) -> Iterator[tuple[str, str]]:
    env = entry.value.get("env") or []
    if not isinstance(env, list):
        raise entry.refuse("env", "must be a list")
    for number, each in enumerate(env):
        name, value = (each.get("name"), each.get("value", "")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(value, str) or not name:
            raise entry.refuse(f"env.{number}", "must have name and value, both texts")
        yield name, value


class CredentialPlugin:
    """Runs a plugin when its credential is missing or has expired; a certificate goes into the TLS context.

    ``now`` gives the time in seconds since 1970. Blocking.
    """

    def __init__(
        self,
        command: PluginCommand,
        cluster: KubeconfigEntry,
        context: ssl.SSLContext | None,
        now: Callable[[], float],
    ) -> None:
        self._command = command
        self._cluster = cluster
        self._context = context
        self._now = now
        self._held: PluginCredential | None = None

    def token(self) -> str | None:
        """Return the token to send now, None where the certificate stands for the user.

        Raises CredentialPluginError.
        """
        if self._held is None or (self._held.expires_s is not None and self._held.expires_s <= self._now()):
            self._held = self._asked()
        return self._held.token or None

    def _asked(self) -> PluginCredential:
        credential = _parsed(self._command, self._run())
        if credential.certificate and self._context is not None:
            try:
                load_client_certificate(self._context, credential.certificate, credential.key)
            except ssl.SSLError:
                raise _failure(self._command, "clientCertificateData and clientKeyData are no pair in PEM") from None
        return credential

    def _run(self) -> str:
        command = self._command
        info = json.dumps(_request(command, self._cluster))
        env = {**os.environ, **command.env, "KUBERNETES_EXEC_INFO": info}
        try:
            done = subprocess.run(
                [command.command, *command.args],
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PLUGIN_S,
            )
        except FileNotFoundError:
            hint = f"; {command.install_hint}" if command.install_hint else ""
            raise _failure(command, f"is not on this machine{hint}") from None
        except OSError as error:
            raise _failure(command, f"cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise _failure(command, f"took more than {_PLUGIN_S:g} s") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["(no message)"])[-1]
            raise _failure(command, f"exit code {done.returncode}: {last}")
        return done.stdout


def _request(command: PluginCommand, cluster: KubeconfigEntry) -> dict[str, Any]:
    """Return what a plugin is given in ``KUBERNETES_EXEC_INFO``."""
    spec: dict[str, Any] = {"interactive": False}
    if command.with_cluster:
        spec["cluster"] = dict(_cluster_info(cluster))
    return {"kind": "ExecCredential", "apiVersion": command.api_version, "spec": spec}


def _cluster_info(cluster: KubeconfigEntry) -> Iterator[tuple[str, Any]]:
    yield from ((key, cluster.value[key]) for key in _SHOWN if cluster.value.get(key))
    authority = cluster.path("certificate-authority")
    if authority is not None:
        yield "certificate-authority-data", _base64_of(authority)
    for each in cluster.value.get("extensions") or ():
        if isinstance(each, dict) and each.get("name") == f"{GROUP}/exec":
            yield "config", each.get("extension")


def _base64_of(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _parsed(command: PluginCommand, printed: str) -> PluginCredential:
    """Return the credential of what a plugin printed. Raises CredentialPluginError."""
    try:
        answer = json.loads(printed)
    except ValueError:
        raise _failure(command, "printed no JSON") from None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise _failure(command, "printed no ExecCredential")
    if answer.get("apiVersion") != command.api_version:
        raise _failure(command, f"printed apiVersion {answer.get('apiVersion')!r}, not {command.api_version}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise _failure(command, "printed no status")
    parts = [status.get(key) or "" for key in ("token", "clientCertificateData", "clientKeyData")]
    token, certificate, key = parts
    if not all(isinstance(part, str) for part in parts) or not (token or certificate) or bool(certificate) != bool(key):
        raise _failure(command, "status must have token, or clientCertificateData and clientKeyData")
    return PluginCredential(token, certificate.encode(), key.encode(), _expiry(command, status))


def _expiry(command: PluginCommand, status: Mapping[str, Any]) -> float | None:
    written = status.get("expirationTimestamp")
    if not written:
        return None
    try:
        moment = datetime.fromisoformat(str(written))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _failure(command, f"expirationTimestamp: {written!r}: must be a time as in RFC 3339")
    return moment.timestamp()


def _failure(command: PluginCommand, problem: str) -> CredentialPluginError:
    return CredentialPluginError(f"{command.entry.file}: {command.entry.place}.command: {command.command}: {problem}")
