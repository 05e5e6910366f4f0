"""`--cluster kubeconfig` on a real API server: what a user gives wrongly is told in one line, and nothing is made."""

import asyncio
import json
import socket
import urllib.request

import pytest

from mews.harness.cli import exit_code
from mews.harness.clusters.control_plane.backend import servers_of
from mews.harness.clusters.kubeconfig.target import HOST_LABEL
from mews.kube.api.resources import NAMESPACES, NODES, SERVICE_ACCOUNTS, Resource
from mews.kube.client.http import HttpKube
from mews.project import DOCUMENTATION

pytestmark = pytest.mark.wall

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """Whose state is the test's own, and who has named an image."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MEWS_COMPONENT_IMAGE", "registry.example.com/mews:1")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def servers(shared):
    servers = servers_of(shared)
    servers.ready()
    return servers


def kubeconfig(folder, url, token):
    """A file that lets one in with that token, without a look at certificates."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "somebody", "user": {"token": token}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "somebody"}}],
        "current-context": "real",
    }
    (folder / "kubeconfig").write_text(json.dumps(content))
    return folder / "kubeconfig"


def refused(capsys, file, *more):
    """The exit code and what is said, which is one line."""
    code = exit_code(["run", "demo", "--cluster", "kubeconfig", "--kubeconfig", str(file), *more])
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1, told.err
    return code, told.err


def token_of(servers, account):
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}).encode()
    headers = {"Authorization": f"Bearer {servers.identity.token}", "Content-Type": "application/json"}
    url = f"{servers.url}/api/v1/namespaces/default/serviceaccounts/{account}/token"
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, context=servers.identity.client_context(), timeout=30) as answer:
        return json.load(answer)["status"]["token"]


def prepared(servers, account, verbs):
    """An account that may do that with nodes, and a node for each host; the names of the namespaces."""

    async def main():
        kube = HttpKube(servers.url, token=servers.identity.token, ssl=servers.identity.client_context())
        subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": account}
        try:
            await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": account}}, namespace="default")
            if verbs:
                rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": verbs}]
                await kube.create(ROLES, {"metadata": {"name": account}, "rules": rules})
                binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
                await kube.create(BINDINGS, binding)
            for number in range(3):
                await kube.create(NODES, {"metadata": {"name": f"node-{number}", "labels": {HOST_LABEL: "any"}}})
            return [obj["metadata"]["name"] for obj in (await kube.list(NAMESPACES)).items]
        finally:
            await kube.close()

    return asyncio.run(main())


def test_a_user_who_may_do_nothing_is_told_before_anything_is_made(servers, capsys, tmp_path):
    prepared(servers, "nobody", [])
    file = kubeconfig(tmp_path, servers.url, token_of(servers, "nobody"))
    code, told = refused(capsys, file)
    assert code == 3
    assert 'cannot list resource "nodes"' in told
    assert not (tmp_path / "state").exists()


def test_a_user_who_may_only_look_is_told_all_that_is_missing_before_anything_is_made(servers, capsys, tmp_path):
    prepared(servers, "looker", ["get", "list", "watch"])
    file = kubeconfig(tmp_path, servers.url, token_of(servers, "looker"))
    code, told = refused(capsys, file)
    assert code == 3
    assert "this user may not get/list/create/patch/delete namespaces, get/list/watch/create/delete pods" in told
    assert " nodes" not in told
    assert not (tmp_path / "state").exists()


def test_a_token_that_is_none_is_told(servers, capsys, tmp_path):
    code, told = refused(capsys, kubeconfig(tmp_path, servers.url, "nonsense"))
    assert (code, "Unauthorized" in told) == (3, True)


def test_nodes_without_our_label_are_told_with_the_command_that_labels_them(servers, capsys, tmp_path):
    code, told = refused(capsys, kubeconfig(tmp_path, servers.url, servers.identity.token))
    assert (code, "kubectl label node NODE mews.dev/host=host-1" in told) == (3, True)


def test_a_server_that_is_not_there_is_told(capsys, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{probe.getsockname()[1]}"
        code, told = refused(capsys, kubeconfig(tmp_path, url, "x"))
    assert (code, f"the cluster cannot be asked for its nodes: {url}" in told) == (3, True)


def test_a_context_that_is_not_there_is_told_with_those_that_are(capsys, tmp_path):
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", "x")
    assert refused(capsys, file, "--context", "other") == (2, "--context other: must be one of real\n")


@pytest.mark.parametrize("text", ["", "garbage: [", "only a word", "[1, 2]", "contexts: 1"])
def test_a_file_that_is_no_kubeconfig_is_named(capsys, tmp_path, text):
    (tmp_path / "file").write_text(text)
    code, told = refused(capsys, tmp_path / "file")
    assert (code, told.startswith(f"--kubeconfig {tmp_path}/file:")) == (2, True)


def test_a_kubeconfig_is_for_its_own_cluster_only(capsys, tmp_path):
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", "x")
    for option, value in (("--kubeconfig", str(file)), ("--context", "real")):
        assert exit_code(["run", "demo", option, value]) == 2
        told = f"{option} {value}: only with --cluster kubeconfig, not with embedded\n"
        assert capsys.readouterr().err == told


def test_a_state_folder_that_cannot_be_made_is_told_before_anything_is_made(servers, capsys, tmp_path, monkeypatch):
    before = prepared(servers, "anybody", [])
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    code, told = refused(capsys, kubeconfig(tmp_path, servers.url, servers.identity.token))
    assert (code, "cannot be written: Not a directory; set XDG_STATE_HOME or HOME" in told) == (3, True)

    async def namespaces():
        kube = HttpKube(servers.url, token=servers.identity.token, ssl=servers.identity.client_context())
        try:
            return [obj["metadata"]["name"] for obj in (await kube.list(NAMESPACES)).items]
        finally:
            await kube.close()

    assert asyncio.run(namespaces()) == before


def test_mews_down_says_what_it_cannot_remove_and_keeps_the_record(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", "x")
    folder = tmp_path / "state" / "mews" / "kubeconfig" / "mews-7-abc"
    folder.mkdir(parents=True)
    (folder / "owner.json").write_text(json.dumps({"pid": 0, "born": ""}))
    site = {"kubeconfig": str(file), "context": None, "namespaces": ["mews-7-abc"], "prefix": "mews-7-abc-"}
    for text, told in (
        (json.dumps(site), "namespaces mews-7-abc could not be removed: https://127.0.0.1:1: "),
        ("garbage", "cannot be read (JSONDecodeError"),
        (json.dumps({**site, "kubeconfig": "/nowhere"}), "kubeconfig /nowhere: "),
    ):
        (folder / "site.json").write_text(text)
        assert exit_code(["down"]) == 3
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert said.err.startswith(f"{folder}")
        assert told in said.err
        assert (folder / "site.json").exists()


def test_a_namespace_that_does_not_go_is_told_and_tried_again(servers, capsys, tmp_path, monkeypatch):
    """Where nobody runs the namespace controller, none ever goes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("mews.harness.clusters.kubeconfig.cluster._GONE_S", 0.5)
    folder = tmp_path / "state" / "mews" / "kubeconfig" / "mews-7-abc"
    folder.mkdir(parents=True)
    (folder / "owner.json").write_text(json.dumps({"pid": 0, "born": ""}))
    file = kubeconfig(tmp_path, servers.url, servers.identity.token)
    site = {"kubeconfig": str(file), "context": None, "namespaces": ["mews-7-abc"], "prefix": "mews-7-abc-"}
    (folder / "site.json").write_text(json.dumps(site))

    async def main():
        kube = HttpKube(servers.url, token=servers.identity.token, ssl=servers.identity.client_context())
        try:
            await kube.create(NAMESPACES, {"metadata": {"name": "mews-7-abc"}})
        finally:
            await kube.close()

    asyncio.run(main())
    for _ in range(2):
        assert exit_code(["down"]) == 3
        told = capsys.readouterr().err
        assert told.startswith(f"{folder}: namespace mews-7-abc is not gone after 0.5 s: ")
        assert told.endswith(f"mews down tries again (see {DOCUMENTATION})\n")
        assert (folder / "site.json").exists()
