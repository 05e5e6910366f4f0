"""Who may do what on the served API: tokens, service accounts, impersonation, roles; the words are kube-apiserver's."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.core.store.users import AUTHENTICATED, User
from tests.kube.emulated.apiserver.faces import Face, face
from tests.kube.emulated.apiserver.serving import find_kubectl

pytestmark = pytest.mark.wall

ROLES = "/apis/rbac.authorization.k8s.io/v1"
JANE = User("jane", ("dev", AUTHENTICATED), "jane")


@pytest.fixture(scope="module", params=["http", "tls"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    tokens = {"root": "admin", "janes": JANE}
    with face(tmp_path_factory.mktemp("access"), tls=request.param == "tls", tokens=tokens) as opened:
        yield opened


def ask(
    served: Face, path: str, body: Any = None, *, token: str = "", method: str = "", **headers: str
) -> tuple[int, Any]:
    """Status and body of one request; header names with ``_`` for ``-``."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    sent |= {"Content-Type": "application/json"} if data is not None else {}
    request = urllib.request.Request(served.url + path, data, sent, method=method or None)
    context = ssl.create_default_context(cafile=str(served.authority)) if served.authority else None
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            text, status = answer.read(), answer.status
    except urllib.error.HTTPError as error:
        with error:
            text, status = error.read(), error.code
    return status, json.loads(text) if text.startswith(b"{") else text.decode()


def refusal(served: Face, path: str, body: Any = None, **options: str) -> tuple[int, str]:
    status, answer = ask(served, path, body, **options)
    return status, answer["message"]


def test_anonymous_sees_version_and_health_and_nothing_else(served: Face) -> None:
    for path in ("/version", "/healthz", "/livez", "/readyz"):
        assert ask(served, path)[0] == 200
    user = 'User "system:anonymous" cannot'
    for path, text in {
        "/": f'forbidden: {user} get path "/"',
        "/apis": f'forbidden: {user} get path "/apis"',
        "/healthz/ping": f'forbidden: {user} get path "/healthz/ping"',
        "/api/v1/pods": f'pods is forbidden: {user} list resource "pods" in API group "" at the cluster scope',
        "/apis/no/v1/foos": f'foos.no is forbidden: {user} list resource "foos" in API group "no" at the cluster scope',
        "/api/v1/namespaces/a": f'namespaces "a" is forbidden: {user} get resource "namespaces" in API group "" in the '
        'namespace "a"',
        "/api/v1/namespaces/a/pods/x/log": f'pods "x" is forbidden: {user} get resource "pods/log" in API group "" in '
        'the namespace "a"',
    }.items():
        assert refusal(served, path) == (403, text)


def test_a_wrong_token_is_401_even_where_anonymous_may_look(served: Face) -> None:
    for path in ("/api/v1/pods", "/version"):
        assert refusal(served, path, token="wrong") == (401, "Unauthorized")


def test_users_do_what_roles_bound_to_them_allow(served: Face) -> None:
    pods = "/api/v1/namespaces/default/pods"
    denied = 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    assert refusal(served, pods, token="janes") == (403, denied)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}]
    binding = {"metadata": {"name": "see"}, "roleRef": reference, "subjects": subjects}
    assert ask(served, f"{ROLES}/namespaces/default/rolebindings", binding, token="root")[0] == 201
    assert ask(served, pods, token="janes")[0] == 200
    assert ask(served, "/apis/apps/v1/namespaces/default/deployments?watch=1&timeoutSeconds=1", token="janes")[0] == 200
    assert refusal(served, "/api/v1/namespaces/default/secrets", token="janes")[0] == 403
    assert refusal(served, "/api/v1/namespaces/kube-system/pods", token="janes")[0] == 403
    assert refusal(served, pods, {"metadata": {"name": "x"}}, token="janes")[0] == 403
    question = {"user": "jane", "groups": ["dev"], "resourceAttributes": {"namespace": "default", "verb": "get"}}
    question["resourceAttributes"]["resource"] = "pods"
    review = {"spec": question}
    status, answer = ask(served, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, token="root")
    assert (status, answer["status"]) == (
        201,
        {"allowed": True, "reason": 'RBAC: allowed by RoleBinding "see/default" of ClusterRole "view" to Group "dev"'},
    )
    assert ask(served, f"{ROLES}/namespaces/default/rolebindings/see", token="root", method="DELETE")[0] == 200


def test_a_missing_role_is_told_in_the_refusal(served: Face) -> None:
    binding = {
        "metadata": {"name": "void"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nope"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    assert ask(served, f"{ROLES}/clusterrolebindings", binding, token="root")[0] == 201
    status, text = refusal(served, "/api/v1/nodes", token="janes")
    assert status == 403
    assert text.endswith('at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found')
    assert ask(served, f"{ROLES}/clusterrolebindings/void", token="root", method="DELETE")[0] == 200


def test_service_accounts_come_in_with_tokens_made_for_them(served: Face) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert ask(served, accounts, {"metadata": {"name": "bob"}}, token="root")[0] == 201
    status, made = ask(served, f"{accounts}/bob/token", {"spec": {}}, token="root")
    assert status == 201
    token = made["status"]["token"]
    status, me = ask(served, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)
    info = me["status"]["userInfo"]
    assert (status, info["username"]) == (201, "system:serviceaccount:default:bob")
    assert info["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert list(info["extra"]) == ["authentication.kubernetes.io/credential-id"]
    text = 'User "system:serviceaccount:default:bob" cannot list resource "pods" in API group "" at the cluster scope'
    assert refusal(served, "/api/v1/pods", token=token) == (403, f"pods is forbidden: {text}")
    assert refusal(served, "/api/v1/pods", token=token[:-2] + "xx")[0] == 401
    assert refusal(served, f"{accounts}/bob/token", {"spec": {"expirationSeconds": 60}}, token="root") == (
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 60: '
        "may not specify a duration less than 10 minutes",
    )
    bound = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}}
    assert refusal(served, f"{accounts}/bob/token", bound, token="root") == (404, 'pods "none" not found')
    assert ask(served, f"{accounts}/bob", token="root", method="DELETE")[0] == 200
    assert refusal(served, "/api/v1/pods", token=token) == (401, "Unauthorized")


def test_a_token_that_is_bound_to_a_pod_names_its_node_and_ends_with_the_pod_alone(served: Face) -> None:
    home = "/api/v1/namespaces/default"
    assert ask(served, f"{home}/serviceaccounts", {"metadata": {"name": "pat"}}, token="root")[0] == 201
    node = ask(served, "/api/v1/nodes", {"metadata": {"name": "host"}}, token="root")[1]
    spec = {"nodeName": "host", "serviceAccountName": "pat", "containers": [{"name": "c", "image": "x"}]}
    pod = ask(served, f"{home}/pods", {"metadata": {"name": "p"}, "spec": spec}, token="root")[1]
    bound = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}}
    token = ask(served, f"{home}/serviceaccounts/pat/token", bound, token="root")[1]["status"]["token"]

    def extra() -> dict[str, list[str]]:
        answer = ask(served, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)[1]
        found = answer["status"]["userInfo"]["extra"]
        return {
            key.removeprefix("authentication.kubernetes.io/"): found[key] for key in found if "JTI" not in found[key][0]
        }

    named = {"pod-name": ["p"], "pod-uid": [pod["metadata"]["uid"]], "node-name": ["host"]}
    assert extra() == {**named, "node-uid": [node["metadata"]["uid"]]}
    assert ask(served, "/api/v1/nodes/host", token="root", method="DELETE")[0] == 200
    assert extra()["node-name"] == ["host"]
    gone = {"gracePeriodSeconds": 0}
    assert ask(served, f"{home}/pods/p", gone, token="root", method="DELETE")[0] == 200
    assert refusal(served, "/api/v1/pods", token=token) == (401, "Unauthorized")


def test_a_token_has_an_end(served: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert ask(served, accounts, {"metadata": {"name": "eve"}}, token="root")[0] == 201
    token = ask(served, f"{accounts}/eve/token", {"spec": {}}, token="root")[1]["status"]["token"]
    assert refusal(served, "/api/v1/pods", token=token)[0] == 403
    now = served.store.now
    monkeypatch.setattr(served.store, "now", lambda: now() + 3601)
    assert refusal(served, "/api/v1/pods", token=token)[0] == 401


def test_administrators_may_play_other_users_and_others_may_not(served: Face) -> None:
    me = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status, answer = ask(served, me, {}, token="root", Impersonate_User="kim", Impersonate_Group="ops")
    assert (status, answer["status"]["userInfo"]) == (
        201,
        {"username": "kim", "groups": ["ops", "system:authenticated"]},
    )
    account = "system:serviceaccount:default:bob"
    answer = ask(served, me, {}, token="root", Impersonate_User=account, Impersonate_Extra_a="b")[1]
    assert answer["status"]["userInfo"]["groups"][0] == "system:serviceaccounts"
    assert answer["status"]["userInfo"]["extra"] == {"a": ["b"]}
    assert refusal(served, me, {}, token="janes", Impersonate_User="kim") == (
        403,
        'users "kim" is forbidden: User "jane" cannot impersonate resource "users" in API group "" '
        "at the cluster scope",
    )
    assert ask(served, me, {}, token="root", Impersonate_Group="ops")[0] == 500


def test_kubectl_tells_who_one_is_and_what_one_may_do(tmp_path: Path) -> None:
    with face(tmp_path, tls=True) as served:

        def kubectl(command: str) -> tuple[int, str]:
            argv = [find_kubectl(), "--kubeconfig", str(served.kubeconfig), *command.split()]
            environment = {"HOME": str(tmp_path), "PATH": os.defpath}
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environment, check=False)
            return done.returncode, done.stdout + done.stderr

        assert kubectl("auth whoami -o jsonpath={.status.userInfo.username}") == (0, "admin")
        assert kubectl("auth can-i create pods") == (0, "yes\n")
        account = "system:serviceaccount:default:bob"
        assert kubectl(f"auth can-i delete pods --as {account}") == (1, "no\n")
        assert kubectl("create serviceaccount bob")[0] == 0
        assert kubectl("create rolebinding bobs --clusterrole=edit --serviceaccount=default:bob")[0] == 0
        assert kubectl(f"auth can-i delete pods --as {account}") == (0, "yes\n")
        assert kubectl("create role look --verb=get --resource=nodes")[0] == 0
        code, listed = kubectl(f"auth can-i --list --as {account}")
        assert code == 0 and "selfsubjectreviews.authentication.k8s.io" in listed and "/openapi/*" in listed
        code, token = kubectl("create token bob")
        assert (code, token.count(".")) == (0, 2)
        me = kubectl(f"--token {token.strip()} auth whoami -o jsonpath={{.status.userInfo.username}}")
        assert me[0] == 0


def test_a_server_without_tokens_still_knows_accounts_and_parts_played(tmp_path: Path) -> None:
    with face(tmp_path, tls=False) as served:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        assert ask(served, accounts, {"metadata": {"name": "bob"}})[0] == 201
        token = ask(served, f"{accounts}/bob/token", {"spec": {}})[1]["status"]["token"]
        assert refusal(served, "/api/v1/pods", token=token)[0] == 403
        assert refusal(served, "/api/v1/pods", Impersonate_User="kim")[0] == 403
        assert ask(served, "/api/v1/pods", token="anything")[0] == 200
