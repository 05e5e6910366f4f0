"""Nobody gives out rights that they do not have, in process."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.api.errors import ApiError
from mews.kube.client.port import Patch
from mews.kube.clock import stream
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.update import patch
from mews.kube.emulated.core.store.request import ADMIN, WriteRequest
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import AUTHENTICATED, User
from mews.kube.emulated.packs.access.authorization import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES

_ANN = WriteRequest(User("ann", (AUTHENTICATED,)))
_PODS = {"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get", "list"]}
_ROLES = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "patch"]}
_MORE = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@pytest.fixture
def store() -> Store:
    made = fresh_store(lambda: 0.0, stream(1, "store"))
    _role(made, "mine", [_PODS, _ROLES], ADMIN)
    _bind(made, "mine", "mine", ADMIN)
    return made


def _role(store: Store, name: str, rules: list[dict[str, Any]], request: WriteRequest) -> None:
    kind = store.kinds.of(CLUSTER_ROLES)
    create(store, kind, "", {"metadata": {"name": name}, "rules": rules}, request)


def _bind(store: Store, name: str, role: str, request: WriteRequest) -> None:
    body = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    create(store, store.kinds.of(CLUSTER_ROLE_BINDINGS), "", body, request)


@pytest.mark.parametrize(
    "rule",
    [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": ["one"]},
        {"apiGroups": [""], "resources": ["replicationcontrollers/scale"], "verbs": ["get"]},
    ],
)
def test_rights_that_one_has_may_be_given(store: Store, rule: dict[str, Any]) -> None:
    _role(store, "given", [rule], _ANN)


@pytest.mark.parametrize(
    ("rule", "lacking"),
    [
        (
            {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "delete"]},
            '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
            '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "delete"]}',
        ),
        ({"nonResourceURLs": ["/logs"], "verbs": ["get"]}, '{NonResourceURLs:["/logs"], Verbs:["get"]}'),
        (
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]},
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
        ),
    ],
)
def test_rights_that_one_lacks_are_named(store: Store, rule: dict[str, Any], lacking: str) -> None:
    with pytest.raises(ApiError) as refused:
        _role(store, "given", [rule], _ANN)
    text = 'user "ann" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
    assert refused.value.code == 403
    assert refused.value.message == f'clusterroles.rbac.authorization.k8s.io "given" is forbidden: {text}{lacking}'


def test_a_role_with_more_may_not_be_bound_but_by_who_may_bind_it(store: Store) -> None:
    _role(store, "more", [_MORE], ADMIN)
    with pytest.raises(ApiError, match="permissions not currently held"):
        _bind(store, "refused", "more", _ANN)
    binder = {"apiGroups": [_ROLES["apiGroups"][0]], "resources": ["clusterroles"], "verbs": ["bind"]}
    _role(store, "binder", [{**binder, "resourceNames": ["more"]}], ADMIN)
    _bind(store, "binder", "binder", ADMIN)
    _bind(store, "allowed", "more", _ANN)


@pytest.mark.parametrize("refused", [{"metadata": {"labels": {"a": "b"}}}, {"rules": [_PODS, _MORE]}])
def test_a_role_with_more_is_written_anew_only_by_who_has_as_much_but_may_be_collected(
    store: Store, refused: dict[str, Any]
) -> None:
    _role(store, "more", [_MORE], ADMIN)
    with pytest.raises(ApiError, match="permissions not currently held"):
        _patch(store, "more", refused)
    _patch(store, "more", {"metadata": {"finalizers": ["example.com/kept"]}})


def test_an_aggregated_role_stays_one_where_its_editor_has_not_everything(store: Store) -> None:
    kind = store.kinds.of(CLUSTER_ROLES)
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    create(store, kind, "", {"metadata": {"name": "gathers"}, "aggregationRule": aggregation}, ADMIN)
    with pytest.raises(ApiError, match="must have cluster-admin privileges"):
        _patch(store, "gathers", {"aggregationRule": None})


def test_a_right_to_escalate_one_role_by_name_is_none_to_make_it(store: Store) -> None:
    escalate = {"apiGroups": [_ROLES["apiGroups"][0]], "resources": ["clusterroles"], "verbs": ["escalate"]}
    _role(store, "escalator", [{**escalate, "resourceNames": ["named"]}], ADMIN)
    _bind(store, "escalator", "escalator", ADMIN)
    with pytest.raises(ApiError, match="permissions not currently held"):
        _role(store, "named", [_MORE], _ANN)
    _role(store, "named", [], ADMIN)
    _patch(store, "named", {"rules": [_MORE]})


def _patch(store: Store, name: str, body: dict[str, Any]) -> None:
    patch(store, store.kinds.of(CLUSTER_ROLES), "", name, body, patch_kind=Patch.MERGE, request=_ANN)
