"""The same kubeconfigs read by kubectl and by the official Python client."""

from __future__ import annotations

import base64
import itertools
import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mews.kube.client.kubeconfig.access import read_kubeconfig
from mews.kube.client.kubeconfig.errors import KubeconfigError
from mews.kube.client.kubeconfig.files import read_files
from mews.kube.client.kubeconfig.selection import selected
from mews.kube.client.kubeconfig.tls import pem
from tests.kube.kubeconfig.documents import Identity, document, written

HTTPS = {"server": "https://a.example"}
V1 = "client.authentication.k8s.io/v1"


def drawn(seed: int) -> dict[str, Any]:
    """A part of a kubeconfig: few names, so that files of one run have some in common."""
    dice = random.Random(seed)

    def some() -> list[str]:
        return dice.sample(["a", "b", "c"], dice.randint(0, 3))

    return {
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{seed}-{name}", "certificate-authority": f"{name}.crt"}}
            for name in some()
        ],
        "users": [{"name": name, "user": {"token": f"{seed}-{name}"}} for name in some()],
        "contexts": [
            {"name": name, "context": {"cluster": dice.choice("abc"), "user": dice.choice("abc")}} for name in some()
        ],
        **({"current-context": dice.choice("abc")} if dice.random() < 0.6 else {}),
    }


def kubectl(files: list[Path], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not on PATH")
    env = {**os.environ, "KUBECONFIG": ":".join(map(str, files))}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=env)


def ours(monkeypatch: pytest.MonkeyPatch, files: list[Path]) -> dict[str, Any]:
    """What our reader merges, in the shape in which kubectl prints it."""
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, files)))
    config = read_files(None)
    shown: dict[str, Any] = {"current-context": config.current_context}
    for key, one in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        entries = getattr(config, key)
        shown[key] = [{"name": name, one: dict(entries[name].value)} for name in sorted(entries)]
        for each in shown[key] if key == "clusters" else ():
            del each["cluster"]["certificate-authority"]
            _, content = pem(entries[each["name"]], "certificate-authority") or ("", b"")
            each["cluster"]["certificate-authority-data"] = base64.b64encode(content).decode()
    return shown


@pytest.mark.parametrize("seed", range(12))
def test_files_are_merged_as_kubectl_merges_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int):
    files = [tmp_path / f"{number}" / "config" for number in range(3)]
    for number, file in enumerate(files):
        file.parent.mkdir()
        for name in "abc":  # paths are relative to the file that has them
            (file.parent / f"{name}.crt").write_text(f"{number}-{name}")
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **drawn(3 * seed + number)}))
    given = [files[0], tmp_path / "missing", *files[1:]]
    done = kubectl(given, "config", "view", "--merge", "--flatten", "-o", "json")
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    expected = {key: theirs.get(key) or [] for key in ("clusters", "users", "contexts")}
    assert ours(monkeypatch, given) == {**expected, "current-context": theirs.get("current-context", "")}


CASES: list[tuple[str, Any]] = [
    ("token", document(HTTPS, {"token": "t"})),
    ("no user of that name", document(HTTPS, {}, users=[])),
    ("no cluster of that name", document(HTTPS, {}, clusters=[])),
    ("no such current context", document(HTTPS, {}, **{"current-context": "y"})),
    ("no server", document({"tls-server-name": "n"}, {})),
    ("no file of the authority", document({**HTTPS, "certificate-authority": "gone"}, {})),
    ("two authorities", document({**HTTPS, "certificate-authority": "a", "certificate-authority-data": "eA=="}, {})),
    ("a certificate without a key", document(HTTPS, {"client-certificate-data": "eA=="})),
    ("token and password", document(HTTPS, {"token": "t", "username": "n"})),
    ("groups without a user", document(HTTPS, {"as-groups": ["g"]})),
    ("a number as token", document(HTTPS, {"token": 5})),
    ("a text as switch", document({**HTTPS, "insecure-skip-tls-verify": "yes"}, {})),
    ("another kind", document(HTTPS, {}, kind="Pod")),
    ("a name that is listed twice", document(HTTPS, {}, users=[{"name": "u", "user": {}}] * 2)),
    ("base64 that is none", document({**HTTPS, "certificate-authority-data": "§"}, {})),
    (
        "a plugin without a mode",
        document(HTTPS, {"exec": {"command": "true", "apiVersion": "client.authentication.k8s.io/v1"}}),
    ),
]


@pytest.mark.parametrize(("name", "content"), CASES, ids=[name for name, _ in CASES])
def test_what_kubectl_refuses_is_refused(tmp_path: Path, name: str, content: Any):
    """By its own words: it must not come as far as asking the server, which is not there."""
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(content).replace("https://a.example", "https://127.0.0.1:9"))
    done = kubectl([file], "version", "--request-timeout=1s")
    refuses = "127.0.0.1:9" not in done.stderr
    try:
        read_kubeconfig(str(file), None)
    except KubeconfigError:
        assert refuses, done.stderr
    else:
        assert not refuses, done.stderr


def users(identity: Identity) -> list[tuple[Any, Any]]:
    """Clusters and users of all plain ways in."""
    certificate, key = identity.data()
    clusters = [
        {"server": "http://a.example:8080"},
        HTTPS,
        {**HTTPS, "certificate-authority-data": certificate},
        {**HTTPS, "certificate-authority": str(identity.certificate)},
        {**HTTPS, "insecure-skip-tls-verify": True},
    ]
    ways = [
        {},
        {"token": "t"},
        {"username": "n", "password": "p"},
        {"client-certificate-data": certificate, "client-key-data": key},
        {"client-certificate": str(identity.certificate), "client-key": str(identity.key)},
        {
            "exec": {
                "command": "echo",
                "args": [
                    '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"e"}}'
                ],
                "apiVersion": "client.authentication.k8s.io/v1",
                "interactiveMode": "Never",
            }
        },
    ]
    return list(itertools.product(clusters, ways))


def test_the_official_client_gives_the_same_access(tmp_path: Path, identity: Identity):
    from kubernetes import client, config

    for number, (cluster, user) in enumerate(users(identity)):
        file = written(tmp_path, cluster, user, name=f"kubeconfig-{number}")
        theirs = client.Configuration()
        config.load_kube_config(str(file), client_configuration=theirs)
        access = read_kubeconfig(str(file), None)
        assert access.base_url == theirs.host
        token = None if access.tokens is None else f"Bearer {access.tokens()}"
        shown = [theirs.get_api_key_with_prefix(name) for name in ("authorization", "BearerToken")]
        assert access.headers.get("Authorization", token) in shown
        if access.ssl_context is not None:
            assert (access.ssl_context.verify_mode != 0) == theirs.verify_ssl
            assert bool(access.ssl_context.get_ca_certs()) >= bool(theirs.ssl_ca_cert)


def test_an_auth_provider_is_read_by_the_official_client(tmp_path: Path):
    pytest.importorskip("kubernetes")
    later = "2999-01-01T00:00:00Z"
    provider = {"name": "gcp", "config": {"access-token": "from-gcp", "expiry": later}}
    file = written(tmp_path, HTTPS, {"auth-provider": provider})
    access = read_kubeconfig(str(file), None)
    assert access.tokens is not None
    assert access.tokens() == "from-gcp"
    with pytest.raises(KubeconfigError, match=r"users\.u\.auth-provider: "):
        read_kubeconfig(str(written(tmp_path, HTTPS, {"auth-provider": {"name": "frob", "config": {}}})), None)


def test_the_selection_is_what_kubectl_minifies(tmp_path: Path):
    more = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}} for name in "cd"],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in "cd"],
        "current-context": "d",
    }
    file = written(tmp_path, HTTPS, {"token": "t"}, **more)
    done = kubectl([file], "config", "view", "--minify", "--raw", "-o", "json")
    [theirs] = json.loads(done.stdout)["clusters"]
    assert theirs["cluster"] == selected(read_files(str(file)), None).cluster.value
