"""What a kubeconfig's context gives: URL, trust, token, certificate and headers; or one line that refuses it."""

from __future__ import annotations

import base64
import json
import re
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from mews.kube.client.kubeconfig.access import contexts, read_kubeconfig
from mews.kube.client.kubeconfig.errors import KubeconfigError
from tests.kube.kubeconfig.documents import Identity, document, written

HTTPS = {"server": "https://a.example:6443/k8s/clusters/c-1"}
TOKEN = {"token": "t"}


@pytest.fixture(autouse=True)
def without_the_official_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The daily ways need no other client, and no file of whoever runs the tests is read."""
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_a_plain_user_is_let_in_by_token(tmp_path: Path):
    access = read_kubeconfig(str(written(tmp_path, HTTPS, TOKEN)), None)
    assert access.base_url == HTTPS["server"]
    assert access.tokens is not None
    assert access.tokens() == "t"
    assert access.ssl_context is not None
    assert access.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert access.ssl_context.check_hostname
    assert access.headers == {}


def test_a_tokens_file_is_read_again_and_again_and_wins_over_a_token(tmp_path: Path):
    (tmp_path / "token").write_text("one\n")
    access = read_kubeconfig(str(written(tmp_path, HTTPS, {"tokenFile": "token", **TOKEN})), None)
    assert access.tokens is not None
    assert access.tokens() == "one"
    (tmp_path / "token").write_text("two\n")
    assert access.tokens() == "two"
    (tmp_path / "token").write_text("")
    assert access.tokens() == "two", "it is about to be written"
    (tmp_path / "token").unlink()
    assert access.tokens() == "two", "a token that cannot be read again stays"


@pytest.mark.parametrize("inline", [True, False], ids=["data", "files"])
def test_an_authority_alone_is_trusted_and_a_certificate_is_shown(tmp_path: Path, identity: Identity, inline: bool):
    certificate, key = identity.data()
    if inline:
        cluster = {**HTTPS, "certificate-authority-data": certificate}
        user = {"client-certificate-data": certificate, "client-key-data": key}
    else:
        cluster = {**HTTPS, "certificate-authority": str(identity.certificate)}
        user = {"client-certificate": str(identity.certificate), "client-key": str(identity.key)}
    access = read_kubeconfig(str(written(tmp_path, cluster, user)), None)
    assert access.ssl_context is not None
    [trusted] = access.ssl_context.get_ca_certs()
    assert trusted["subject"] == ((("commonName", "one"),),)
    assert access.tokens is None
    assert not access.ssl_context.verify_flags & ssl.VERIFY_X509_STRICT


def test_without_an_authority_those_of_the_machine_are_trusted(
    tmp_path: Path, identity: Identity, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(identity.certificate))
    access = read_kubeconfig(str(written(tmp_path, HTTPS, TOKEN)), None)
    assert access.ssl_context is not None
    assert [each["subject"] for each in access.ssl_context.get_ca_certs()] == [((("commonName", "one"),),)]


def test_paths_are_relative_to_the_file_that_has_them(tmp_path: Path, identity: Identity, monkeypatch: Any):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "ca.crt").write_bytes(identity.certificate.read_bytes())
    file = written(tmp_path / "deep", {**HTTPS, "certificate-authority": "ca.crt"}, TOKEN)
    monkeypatch.chdir(tmp_path)
    access = read_kubeconfig(str(file.relative_to(tmp_path)), None)
    assert access.ssl_context is not None
    assert len(access.ssl_context.get_ca_certs()) == 1


def test_verification_can_be_switched_off(tmp_path: Path):
    access = read_kubeconfig(str(written(tmp_path, {**HTTPS, "insecure-skip-tls-verify": True}, TOKEN)), None)
    assert access.ssl_context is not None
    assert access.ssl_context.verify_mode is ssl.CERT_NONE
    assert not access.ssl_context.check_hostname


def test_the_server_is_asked_for_the_name_that_the_file_gives(tmp_path: Path):
    access = read_kubeconfig(str(written(tmp_path, {**HTTPS, "tls-server-name": "inside.example"}, TOKEN)), None)
    assert access.ssl_context is not None
    bio = access.ssl_context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="outside.example")
    assert bio.server_hostname == "inside.example"


def test_basic_authentication_and_impersonation_are_headers(tmp_path: Path):
    user = {"username": "n", "password": "p", "as": "jane", "as-uid": "7", "as-groups": ["devs"]}
    access = read_kubeconfig(str(written(tmp_path, {"server": "http://a"}, user)), None)
    assert access.ssl_context is None
    assert access.headers == {
        "Authorization": f"Basic {base64.b64encode(b'n:p').decode()}",
        "Impersonate-User": "jane",
        "Impersonate-Uid": "7",
        "Impersonate-Group": "devs",
    }


def test_a_context_is_chosen_by_name(tmp_path: Path):
    more = {
        "clusters": [{"name": "c", "cluster": HTTPS}, {"name": "d", "cluster": {"server": "https://b"}}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "y", "context": {"cluster": "d", "user": "u"}},
        ],
    }
    file = str(written(tmp_path, HTTPS, TOKEN, **more))
    assert read_kubeconfig(file, "y").base_url == "https://b"
    assert contexts(file) == ["x", "y"]


def test_the_files_of_the_variable_are_merged_and_the_usual_file_is_the_last_resort(tmp_path: Path, monkeypatch: Any):
    with pytest.raises(KubeconfigError, match=re.escape(f"{tmp_path}/home/.kube/config: no such file")):
        read_kubeconfig(None, None)
    written(tmp_path / "home" / ".kube", {"server": "https://home"}, TOKEN, name="config")
    assert read_kubeconfig(None, None).base_url == "https://home"
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(json.dumps({"current-context": "y", "users": [{"name": "u", "user": {"token": "first"}}]}))
    more = {"contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in "xy"]}
    written(tmp_path, {"server": "https://second"}, {"token": "second"}, name="second", **more)
    monkeypatch.setenv("KUBECONFIG", f"{first}::{tmp_path / 'missing'}:{second}")
    access = read_kubeconfig(None, None)
    assert access.base_url == "https://second"
    assert access.tokens is not None
    assert access.tokens() == "first"


def with_(cluster: Any = HTTPS, user: Any = TOKEN, **more: Any) -> dict[str, Any]:
    return document(cluster, user, **more)


REFUSED: list[tuple[Any, str]] = [
    ([1], "is not a kubeconfig: must be a mapping, not list"),
    ({}, "is not a kubeconfig: has no contexts"),
    (with_(kind="Pod"), "kind: 'Pod': must be Config"),
    (with_(apiVersion="v2"), "apiVersion: 'v2': must be v1"),
    (with_(clusters={}, users=5), "users: must be a list"),
    (with_(clusters=["c"]), "clusters.0: must be a mapping with name and cluster"),
    (with_(users=[{"user": {}}]), "users.0.name: None: must be a name"),
    (with_(users=[{"name": "u", "user": "t"}]), "users.0.user: must be a mapping"),
    (with_(users=[{"name": "u"}, {"name": "u"}]), "users.1.name: 'u' is listed twice"),
    (with_(**{"current-context": ""}), "current-context: is not set: set one of x, or give --context"),
    (with_(**{"current-context": 5}), "current-context: must be text, not int"),
    (with_(**{"current-context": "xx"}), "current-context: 'xx': must be one of x (did you mean x?)"),
    (with_(contexts=[{"name": "x", "context": {"user": "u"}}]), "contexts.x.cluster: is not set"),
    (with_(contexts=[{"name": "x", "context": {"cluster": "c"}}]), "contexts.x.user: is not set"),
    (
        with_(contexts=[{"name": "x", "context": {"cluster": "k", "user": "u"}}]),
        "contexts.x.cluster: 'k': must be one of c",
    ),
    (with_({}), "clusters.c.server: '': must be a URL that begins with https:// or http://"),
    (with_({"server": 5}), "clusters.c.server: must be text, not int"),
    (with_({"server": "a:6443"}), "clusters.c.server: 'a:6443': must be a URL that begins with https:// or http://"),
    (with_({"server": "https://[::1"}), "clusters.c.server: 'https://[::1': must be a URL"),
    (with_({**HTTPS, "proxy-url": "http://p"}), "clusters.c.proxy-url: proxies are not supported"),
    (
        with_({**HTTPS, "certificate-authority": "gone"}),
        "clusters.c.certificate-authority: FOLDER/gone: cannot be read: No such file or directory",
    ),
    (with_({**HTTPS, "certificate-authority-data": "§"}), "clusters.c.certificate-authority-data: must be base64"),
    (
        with_({**HTTPS, "certificate-authority-data": "eA=="}),
        "clusters.c.certificate-authority-data: must be certificates in PEM",
    ),
    (
        with_({**HTTPS, "certificate-authority": "a", "certificate-authority-data": "eA=="}),
        "clusters.c.certificate-authority: cannot be combined with certificate-authority-data",
    ),
    (with_({**HTTPS, "insecure-skip-tls-verify": "yes"}), "clusters.c.insecure-skip-tls-verify: must be true or false"),
    (with_(user={"client-key-data": "eA=="}), "users.u.client-certificate: is not set: give client-certificate or"),
    (with_(user={"client-certificate-data": "eA=="}), "users.u.client-key: is not set: give client-key or client-key-"),
    (
        with_(user={"client-certificate-data": "eA==", "client-key-data": "eA=="}),
        "users.u.client-certificate-data: must be a certificate in PEM that belongs to client-key-data",
    ),
    (with_(user={"token": 5}), "users.u.token: must be text, not int"),
    (with_(user={"tokenFile": "gone"}), "users.u.tokenFile: FOLDER/gone: cannot be read: No such file or directory"),
    (with_(user={"token": "t", "username": "n"}), "users.u.token: cannot be combined with username and password"),
    (with_(user={"as-groups": ["g"]}), "users.u.as: is not set: as-uid and as-groups need it"),
    (with_(user={"as": "j", "as-groups": ["g", "h"]}), "users.u.as-groups: must be a list of at most one group"),
    (with_(user={"as": "j", "as-user-extra": {"a": ["b"]}}), "users.u.as-user-extra: is not supported"),
    (
        with_(user={"exec": {"command": "x"}, "auth-provider": {"name": "gcp"}}),
        "users.u.auth-provider: cannot be combined with exec",
    ),
]


@pytest.mark.parametrize(("content", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_what_cannot_be_used_is_refused_in_one_line(tmp_path: Path, content: Any, problem: str):
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(content))
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(str(file), None)
    assert str(caught.value).startswith(f"{file}: {problem.replace('FOLDER', str(tmp_path))}")
    assert "\n" not in str(caught.value)


def test_an_authority_beside_a_check_that_is_switched_off_is_refused(tmp_path: Path, identity: Identity):
    cluster = {**HTTPS, "certificate-authority": str(identity.certificate), "insecure-skip-tls-verify": True}
    with pytest.raises(KubeconfigError, match="skip-tls-verify: cannot be combined with a certificate authority"):
        read_kubeconfig(str(written(tmp_path, cluster, TOKEN)), None)


def test_an_encrypted_key_is_refused_and_asks_nobody(tmp_path: Path, identity: Identity):
    import subprocess

    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:x1234", "-in", identity.key, "-out", locked],
        check=True,
        capture_output=True,
    )
    user = {"client-certificate": str(identity.certificate), "client-key": str(locked)}
    with pytest.raises(KubeconfigError, match=r"users\.u\.client-certificate: must be a certificate in PEM"):
        read_kubeconfig(str(written(tmp_path, HTTPS, user)), None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a: [\n", ":2: not YAML: "),
        (b"\xff\xfe\x00", ": not a text file in UTF-8"),
        (b"a: " + b"[" * 200, ": not YAML: nested too deeply"),
    ],
)
def test_what_is_no_text_of_yaml_is_refused_with_its_line(tmp_path: Path, text: bytes, problem: str):
    file = tmp_path / "kubeconfig"
    file.write_bytes(text)
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(str(file), None)
    assert str(caught.value).startswith(f"{file}{problem}")


def test_an_unknown_context_is_shown_the_nearest(tmp_path: Path):
    file = written(tmp_path, HTTPS, TOKEN)
    with pytest.raises(KubeconfigError, match=re.escape("context: 'X': must be one of x (did you mean x?)")):
        read_kubeconfig(str(file), "X")


def test_a_file_that_is_named_must_exist(tmp_path: Path):
    with pytest.raises(KubeconfigError, match=r"gone: no such file$"):
        read_kubeconfig(str(tmp_path / "gone"), None)


def test_an_auth_provider_asks_for_the_client_that_knows_it(tmp_path: Path):
    file = written(tmp_path, HTTPS, {"auth-provider": {"name": "oidc", "config": {}}})
    with pytest.raises(ModuleNotFoundError) as caught:
        read_kubeconfig(str(file), None)
    assert caught.value.name == "kubernetes"
