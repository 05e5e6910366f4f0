"""Credential plugins: what they are given, what they may print, and when they run again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mews.kube.client.kubeconfig.access import read_kubeconfig
from mews.kube.client.kubeconfig.errors import CredentialPluginError, KubeconfigError
from tests.kube.kubeconfig.documents import Identity, written

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
HTTPS = {"server": "https://a.example"}
PLUGIN = """#!{python}
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
runs = folder / "runs"
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
(folder / "seen").write_text(json.dumps([sys.argv[1:], os.environ.get("GIVEN"), os.environ["KUBERNETES_EXEC_INFO"]]))
sys.stdout.write((folder / "answer").read_text())
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A program in the kubeconfig's folder that prints what ``answer`` has."""
    program = tmp_path / "bin" / "plugin"
    program.parent.mkdir()
    program.write_text(PLUGIN.format(python=sys.executable))
    program.chmod(0o755)
    answers(program, token="first")
    return program


def answers(plugin: Path, version: str = V1, **status: Any) -> None:
    answer = {"kind": "ExecCredential", "apiVersion": version, "status": status}
    (plugin.parent / "answer").write_text(json.dumps(answer))


def by_plugin(folder: Path, cluster: Any = HTTPS, **more: Any) -> str:
    given = {"command": "./bin/plugin", "apiVersion": V1, "interactiveMode": "Never", **more}
    return str(written(folder, cluster, {"exec": {key: value for key, value in given.items() if value is not None}}))


def test_a_plugin_gets_its_arguments_environment_and_cluster_and_gives_a_token(
    tmp_path: Path, plugin: Path, identity: Identity
):
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
    cluster = {**HTTPS, "certificate-authority": str(identity.certificate), "extensions": [extension]}
    more = {"args": ["get-token", "-q"], "env": [{"name": "GIVEN", "value": "yes"}], "provideClusterInfo": True}
    access = read_kubeconfig(by_plugin(tmp_path, cluster, **more), None)
    assert access.tokens is not None
    assert access.tokens() == "first"
    args, environment, info = json.loads((plugin.parent / "seen").read_text())
    assert (args, environment) == (["get-token", "-q"], "yes")
    shown = {
        "server": HTTPS["server"],
        "certificate-authority-data": identity.data()[0],
        "config": {"audience": "us"},
    }
    spec = {"interactive": False, "cluster": shown}
    assert json.loads(info) == {"kind": "ExecCredential", "apiVersion": V1, "spec": spec}


def test_a_credential_is_kept_until_it_expires(tmp_path: Path, plugin: Path):
    answers(plugin, token="first", expirationTimestamp="2026-01-01T00:00:10Z")
    moment = [1767225600.0]  # 2026-01-01T00:00:00Z
    access = read_kubeconfig(by_plugin(tmp_path), None, now=lambda: moment[0])
    assert access.tokens is not None
    answers(plugin, token="second")
    moment[0] += 9
    assert access.tokens() == "first"
    moment[0] += 1
    assert access.tokens() == "second"
    moment[0] += 1_000_000
    assert access.tokens() == "second", "without an expiry it is kept"
    assert (plugin.parent / "runs").read_text() == "xx"


def test_a_certificate_of_a_plugin_is_shown(tmp_path: Path, plugin: Path, identity: Identity):
    certificate, key = identity.certificate.read_text(), identity.key.read_text()
    answers(plugin, clientCertificateData=certificate, clientKeyData=key)
    access = read_kubeconfig(by_plugin(tmp_path), None)
    assert access.tokens is not None
    assert access.tokens() is None
    answers(plugin, clientCertificateData=certificate, clientKeyData="no key")
    with pytest.raises(CredentialPluginError, match=r"clientCertificateData and clientKeyData are no pair in PEM$"):
        read_kubeconfig(by_plugin(tmp_path), None)


def test_the_older_version_needs_no_mode(tmp_path: Path, plugin: Path):
    answers(plugin, V1BETA1, token="older")
    access = read_kubeconfig(by_plugin(tmp_path, apiVersion=V1BETA1, interactiveMode=None), None)
    assert access.tokens is not None
    assert access.tokens() == "older"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"command": None}, "exec.command: is not set"),
        (
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "exec.apiVersion: 'client.auth",
        ),
        ({"interactiveMode": None}, "exec.interactiveMode: '': must be one of Never, IfAvailable, Always"),
        ({"interactiveMode": "Always"}, "exec.interactiveMode: Always is not supported: plugins get no terminal"),
        ({"args": "x"}, "exec.args: must be a list of texts"),
        ({"env": [{"value": "x"}]}, "exec.env.0: must have name and value, both texts"),
        ({"provideClusterInfo": "yes"}, "exec.provideClusterInfo: must be true or false"),
    ],
)
def test_a_plugin_that_is_not_described_is_refused_and_not_run(
    tmp_path: Path, plugin: Path, given: dict[str, Any], problem: str
):
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(by_plugin(tmp_path, **given), None)
    assert str(caught.value).startswith(f"{tmp_path}/kubeconfig: users.u.{problem}")
    assert not (plugin.parent / "runs").exists()


PRINTED = [
    ("text", "printed no JSON"),
    ("[]", "printed no ExecCredential"),
    ({"kind": "Pod"}, "printed no ExecCredential"),
    ({"kind": "ExecCredential", "apiVersion": V1BETA1}, f"printed apiVersion '{V1BETA1}', not {V1}"),
    ({"kind": "ExecCredential", "apiVersion": V1}, "printed no status"),
    ({"status": {}}, "status must have token, or clientCertificateData and clientKeyData"),
    ({"status": {"token": 5}}, "status must have token, or"),
    ({"status": {"clientCertificateData": "x"}}, "status must have token, or"),
    (
        {"status": {"token": "t", "expirationTimestamp": "soon"}},
        "expirationTimestamp: 'soon': must be a time",
    ),
]


@pytest.mark.parametrize(("printed", "problem"), PRINTED, ids=[problem for _, problem in PRINTED])
def test_what_is_no_credential_is_refused_in_one_line(tmp_path: Path, plugin: Path, printed: Any, problem: str):
    whole = {"kind": "ExecCredential", "apiVersion": V1, **printed} if "status" in printed else printed
    (plugin.parent / "answer").write_text(printed if isinstance(printed, str) else json.dumps(whole))
    with pytest.raises(CredentialPluginError) as caught:
        read_kubeconfig(by_plugin(tmp_path), None)
    command = f"{tmp_path}/kubeconfig: users.u.exec.command: {tmp_path}/./bin/plugin"
    assert str(caught.value).startswith(f"{command.replace('/./', '/')}: {problem}")


def test_a_plugin_that_is_missing_or_fails_is_named_with_the_hint(tmp_path: Path, plugin: Path):
    hint = {"command": "mews-no-such-plugin", "installHint": "install it\nfrom there"}
    with pytest.raises(CredentialPluginError, match=r"-plugin: is not on this machine; install it from there$"):
        read_kubeconfig(by_plugin(tmp_path, **hint), None)
    fails = {"command": "sh", "args": ["-c", "echo first >&2; echo no account >&2; exit 3"]}
    with pytest.raises(CredentialPluginError, match=r"sh: exit code 3: no account$"):
        read_kubeconfig(by_plugin(tmp_path, **fails), None)
