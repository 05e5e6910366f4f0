"""How to reach the cluster of a kubeconfig's context, and as whom."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mews.kube.client.kubeconfig.endpoint import KubeconfigAccess, server_of
from mews.kube.client.kubeconfig.exec_plugin import CredentialPlugin, plugin_command
from mews.kube.client.kubeconfig.files import KubeconfigEntry, read_files
from mews.kube.client.kubeconfig.selection import SelectedContext, selected
from mews.kube.client.kubeconfig.tls import load_client_certificate, pem, tls_context
from mews.kube.clock import wall_now

if TYPE_CHECKING:
    from mews.kube.client.connection import Tokens

_BASIC = ("username", "password")


def read_kubeconfig(path: str | None, context: str | None, now: Callable[[], float] = wall_now) -> KubeconfigAccess:
    """Return the access that a context describes; None stands for the usual files and their current context.

    Raises KubeconfigError, and ModuleNotFoundError where the user's auth provider needs the official client and it is
    not installed.
    """
    found = selected(read_files(path), context)
    if found.user.value.get("auth-provider"):
        if found.user.value.get("exec"):
            raise found.user.refuse("auth-provider", "cannot be combined with exec")
        from mews.kube.client.kubeconfig.legacy import legacy_access

        return legacy_access(path, found)
    url = server_of(found.cluster)
    context_of = tls_context(found.cluster) if url.startswith("https://") else None
    _show_certificate(found.user, context_of)
    return KubeconfigAccess(url, _tokens(found, context_of, now), context_of, dict(_headers(found.user)))


def contexts(path: str | None) -> list[str]:
    """Return the names of the contexts of a file, or of the usual ones.

    Raises KubeconfigError.
    """
    return list(read_files(path).contexts)


def check_kubeconfig_context(path: str | None, context: str | None) -> None:
    """Raise KubeconfigError unless the context leads to a cluster and a user; nothing is run, no key is read."""
    server_of(selected(read_files(path), context).cluster)


def _show_certificate(user: KubeconfigEntry, context: ssl.SSLContext | None) -> None:
    certificate, key = pem(user, "client-certificate"), pem(user, "client-key")
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        missing = "client-key" if key is None else "client-certificate"
        raise user.refuse(missing, f"is not set: give {missing} or {missing}-data")
    if context is None:
        return
    try:
        load_client_certificate(context, certificate[1], key[1])
    except ssl.SSLError:
        raise user.refuse(certificate[0], f"must be a certificate in PEM that belongs to {key[0]}") from None


def _headers(user: KubeconfigEntry) -> Iterator[tuple[str, str]]:
    """Basic authentication and impersonation."""
    name, password = (user.text(key) for key in _BASIC)
    if name or password:
        if user.text("token"):
            raise user.refuse("token", "cannot be combined with username and password")
        yield "Authorization", f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
    impersonated = user.text("as")
    if impersonated:
        yield "Impersonate-User", impersonated
    if user.text("as-uid"):
        yield "Impersonate-Uid", user.text("as-uid")
    groups = user.value.get("as-groups") or []
    if not isinstance(groups, list) or len(groups) > 1 or not all(isinstance(each, str) for each in groups):
        raise user.refuse("as-groups", "must be a list of at most one group")
    yield from (("Impersonate-Group", group) for group in groups)
    if user.value.get("as-user-extra"):
        raise user.refuse("as-user-extra", "is not supported")
    if not impersonated and (groups or user.text("as-uid")):
        raise user.refuse("as", "is not set: as-uid and as-groups need it")


def _tokens(found: SelectedContext, context: ssl.SSLContext | None, now: Callable[[], float]) -> Tokens | None:
    """Return what gives the bearer token; a file's wins over one that is written down, as in client-go."""
    user = found.user
    if user.value.get("exec") is not None:
        plugin = CredentialPlugin(plugin_command(user), found.cluster, context, now)
        plugin.token()
        return plugin.token
    file = user.path("tokenFile")
    if file is not None:
        return TokenFile(user, file).token
    written = user.text("token")
    return (lambda: written) if written else None


class TokenFile:
    """A token that others renew: its file is read again each time, and the last token stays where that fails."""

    def __init__(self, user: KubeconfigEntry, file: Path) -> None:
        self._file = file
        try:
            self._last = file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise user.refuse("tokenFile", f"{file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise user.refuse("tokenFile", f"{file}: not a text file in UTF-8") from None

    def token(self) -> str:
        """Return the current one."""
        try:
            self._last = self._file.read_text(encoding="utf-8").strip() or self._last
        except (OSError, UnicodeDecodeError):
            return self._last
        return self._last
