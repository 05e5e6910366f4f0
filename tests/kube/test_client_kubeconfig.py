"""Kubeconfigs that need no other client than ours."""

import json
import ssl
import subprocess
import sys

import pytest

from mews.kube.client.kubeconfig import read_kubeconfig, read_plain


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A certificate in a folder."""
    file = tmp_path_factory.mktemp("authority") / "ca.crt"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca", "-keyout", "/dev/null"]
    subprocess.run([*made, "-out", str(file)], check=True, capture_output=True)
    return file


def written(folder, cluster, user, **more):
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **more,
    }
    (folder / "kubeconfig").write_text(json.dumps(content))
    return folder / "kubeconfig"


def test_a_pods_kubeconfig_reads_its_tokens_file_again_and_again(tmp_path, authority, monkeypatch):
    (tmp_path / "token").write_text("one\n")
    cluster = {"server": "https://kubernetes.default.svc", "certificate-authority": str(authority)}
    path = written(tmp_path, cluster, {"tokenFile": "token"})
    monkeypatch.setitem(sys.modules, "kubernetes", None)  # as in the component image
    access = read_kubeconfig(str(path), None)
    assert access.base_url == "https://kubernetes.default.svc"
    assert access.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert access.tokens() == "one"
    (tmp_path / "token").write_text("two\n")
    assert access.tokens() == "two"
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert read_kubeconfig(None, None).tokens() == "two"


def test_whatever_is_not_as_plain_is_left_to_the_official_client(tmp_path, authority):
    cluster = {"server": "https://a", "certificate-authority": str(authority)}
    assert read_plain(written(tmp_path, cluster, {"token": "t"})) is not None
    others = [
        (cluster, {"exec": {"command": "x"}}, {}),
        ({**cluster, "proxy-url": "http://b"}, {"token": "t"}, {}),
        ({"server": "https://a"}, {"token": "t"}, {}),
        (cluster, {"token": "t"}, {"current-context": "y"}),
        (cluster, {"token": "t"}, {"users": []}),
        ({**cluster, "certificate-authority": "nowhere"}, {"token": "t"}, {}),
    ]
    for there, user, more in others:
        assert read_plain(written(tmp_path, there, user, **more)) is None
    assert read_plain(tmp_path / "nowhere") is None
