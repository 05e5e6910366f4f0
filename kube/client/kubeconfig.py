"""Kubeconfigs, read by the official Kubernetes client: it knows all the ways in which users' clusters authenticate.

Those of pods, with nothing but an authority's file and a token, are read here: where components run there is no such
client, and the file of a token is read again as it is renewed."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from mews.kube.client.connection import Tokens

_PLAIN_CLUSTER = {"server", "certificate-authority"}
_PLAIN_USERS = ({"tokenFile"}, {"token"})


class KubeconfigAccess(Struct, frozen=True):
    """How to reach a cluster, and as whom."""

    base_url: str
    tokens: Tokens | None
    ssl_context: ssl.SSLContext | None
    headers: Mapping[str, str]


def read_kubeconfig(path: str | None, context: str | None) -> KubeconfigAccess:
    """The access that a context describes; None stands for the usual file and its current context.

    Raises ``ConfigException`` of the client, or OSError for certificates, of a file that cannot be used.
    """
    named = path or os.environ.get("KUBECONFIG")
    plain = None if named is None or context is not None else read_plain(Path(named))
    if plain is not None:
        return plain
    from kubernetes import client, config  # a second to import, so only where it is needed

    settings = client.Configuration()
    _from_file(config.load_kube_config, path, context=context, client_configuration=settings)
    headers = {}
    if settings.username and settings.password:
        headers["Authorization"] = str(settings.get_basic_auth_token())
    return KubeconfigAccess(settings.host, _tokens(settings), _ssl_context(settings), headers)


def contexts(path: str | None) -> list[str]:
    """The names of the contexts of a file, or of the usual one.

    Raises ``ConfigException`` for a file that cannot be used.
    """
    from kubernetes import config

    known, _ = _from_file(config.list_kube_config_contexts, path)
    return [str(each["name"]) for each in known]


def _from_file(read: Any, path: str | None, **more: Any) -> Any:
    """What the library reads; it lets whatever a file is not be its own kind of error."""
    from kubernetes.config import ConfigException
    from yaml import YAMLError

    try:
        return read(config_file=path, **more)
    except (YAMLError, UnicodeDecodeError) as error:
        raise ConfigException(f"not YAML: {error}") from error
    except (TypeError, AttributeError, LookupError) as error:
        raise ConfigException(f"not a kubeconfig: {type(error).__name__}: {error}") from error


def read_plain(file: Path) -> KubeconfigAccess | None:
    """The access of a kubeconfig with one cluster, by its authority's file, and one user, by a token; else None."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        (cluster,), (user,), (context,) = document["clusters"], document["users"], document["contexts"]
        there, who, named = cluster["cluster"], user["user"], context["context"]
        pairs = (
            (named["cluster"], cluster["name"]),
            (named["user"], user["name"]),
            (document["current-context"], context["name"]),
        )
        if set(there) != _PLAIN_CLUSTER or set(who) not in _PLAIN_USERS or any(one != other for one, other in pairs):
            return None
        trusted = ssl.create_default_context(cafile=str(file.parent / there["certificate-authority"]))
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
        return None
    token_file = None if "token" in who else file.parent / who["tokenFile"]

    def current() -> str | None:
        return str(who["token"]) if token_file is None else token_file.read_text(encoding="utf-8").strip()

    return KubeconfigAccess(str(there["server"]), current, trusted, {})


def _tokens(settings: Any) -> Tokens | None:
    if not settings.api_key and settings.refresh_api_key_hook is None:
        return None

    def current() -> str | None:
        for name in ("authorization", "BearerToken"):
            value = settings.get_api_key_with_prefix(name)
            if value:
                return str(value).removeprefix("Bearer ")
        return None

    return current


def _ssl_context(settings: Any) -> ssl.SSLContext | None:
    if not settings.host.startswith("https"):
        return None
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if not settings.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.assert_hostname is False:
        context.check_hostname = False
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context
