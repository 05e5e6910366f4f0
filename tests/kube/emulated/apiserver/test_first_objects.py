"""What a served cluster has from its first second."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.housekeeping import COMPACTION_S, EVENT_LIFE_S, Housekeeping
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.core.store.kinds import version_rank
from mews.kube.emulated.core.store.store import Store

Ask = Callable[..., Awaitable[tuple[int, Any]]]
NETWORKING = "/apis/networking.k8s.io/v1"


def served(check: Callable[[Ask, Store], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        store = fresh_store(Clock.wall().now, random.Random(1))
        server = ApiServer(store, **options)
        await server.start()

        async def ask(path: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
            async with aiohttp.ClientSession() as session, session.request(method, server.url + path, json=body) as got:
                text = await got.text()
                return got.status, json.loads(text) if text.startswith("{") else text

        try:
            await check(ask, store)
        finally:
            await server.stop()

    asyncio.run(main())


def test_the_api_server_s_own_service_is_there_with_its_address() -> None:
    async def check(ask: Ask, store: Store) -> None:
        _, service = await ask("/api/v1/namespaces/default/services/kubernetes")
        assert service["spec"]["clusterIP"] == "10.96.0.1" and service["spec"]["ports"][0]["port"] == 443
        _, piece = await ask("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
        assert piece["endpoints"][0]["addresses"] == ["127.0.0.1"]
        assert piece["ports"][0]["port"] == service["spec"]["ports"][0]["targetPort"]
        _, cidr = await ask(f"{NETWORKING}/servicecidrs/kubernetes")
        assert cidr["spec"] == {"cidrs": ["10.96.0.0/16"]} and cidr["status"]["conditions"][0]["status"] == "True"

    served(check)


def test_each_address_of_a_service_is_an_object_while_it_is_there() -> None:
    async def check(ask: Ask, store: Store) -> None:
        body = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
        _, made = await ask("/api/v1/namespaces/default/services", "POST", body)
        path = f"{NETWORKING}/ipaddresses/{made['spec']['clusterIP']}"
        _, address = await ask(path)
        assert address["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "web"}
        await ask("/api/v1/namespaces/default/services/web", "DELETE")
        assert (await ask(path))[0] == 404

    served(check)


@pytest.mark.parametrize(("name", "code"), [("2001:db8::ffff", 201), ("2001:db8:0::ffff", 422), ("10.1.2", 422)])
def test_addresses_are_named_by_what_they_are(name: str, code: int) -> None:
    async def check(ask: Ask, store: Store) -> None:
        parent = {"resource": "services", "namespace": "default", "name": "kubernetes"}
        body = {"metadata": {"name": name}, "spec": {"parentRef": parent}}
        assert (await ask(f"{NETWORKING}/ipaddresses", "POST", body))[0] == code

    served(check)


def test_policy_is_that_of_a_bare_api_server() -> None:
    async def check(ask: Ask, store: Store) -> None:
        counts = {}
        for path in (
            "rbac.authorization.k8s.io/v1/clusterroles",
            "rbac.authorization.k8s.io/v1/clusterrolebindings",
            "rbac.authorization.k8s.io/v1/roles",
            "flowcontrol.apiserver.k8s.io/v1/flowschemas",
            "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            "apiregistration.k8s.io/v1/apiservices",
        ):
            _, found = await ask(f"/apis/{path}")
            counts[path.rpartition("/")[2]] = len(found["items"])
        assert counts == {  # as `kubectl get` counts them on kube-apiserver 1.34.2
            "clusterroles": 68,
            "clusterrolebindings": 49,
            "roles": 7,
            "flowschemas": 11,
            "prioritylevelconfigurations": 8,
            "apiservices": 21,
        }
        _, flow = await ask("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all")
        assert flow["status"]["conditions"][0]["status"] == "False"

    served(check)


def test_strangers_can_check_tokens_by_the_published_keys() -> None:
    async def check(ask: Ask, store: Store) -> None:
        await ask("/api/v1/namespaces/default/serviceaccounts", "POST", {"metadata": {"name": "bob"}})
        _, made = await ask("/api/v1/namespaces/default/serviceaccounts/bob/token", "POST", {"spec": {}})
        _, configuration = await ask("/.well-known/openid-configuration")
        _, keys = await ask("/" + configuration["jwks_uri"].partition("//")[2].partition("/")[2])
        head, claims, signature = made["status"]["token"].split(".")
        key = next(key for key in keys["keys"] if key["kid"] == json.loads(_bytes(head))["kid"])
        numbers = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1())
        both = _bytes(signature)
        shown = encode_dss_signature(int.from_bytes(both[:32], "big"), int.from_bytes(both[32:], "big"))
        numbers.public_key().verify(shown, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))  # raises if not
        assert json.loads(_bytes(claims))["iss"] == configuration["issuer"]

    served(check)


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text), "big")


def test_health_is_asked_check_by_check() -> None:
    async def check(ask: Ask, store: Store) -> None:
        assert await ask("/readyz") == (200, "ok")
        _, text = await ask("/readyz?verbose")
        assert "[+]poststarthook/rbac/bootstrap-roles ok\n" in text and text.endswith("readyz check passed\n")
        assert await ask("/livez/etcd") == (200, "ok")
        assert (await ask("/livez/nothing"))[0] == 404
        await ask("/api/v1/namespaces/default/services/kubernetes", "DELETE")
        code, text = await ask("/livez")
        assert code == 500 and "[-]poststarthook/bootstrap-controller failed: reason withheld\n" in text
        assert (await ask("/livez?exclude=poststarthook/bootstrap-controller"))[0] == 200

    served(check)


def test_metrics_count_the_requests() -> None:
    async def check(ask: Ask, store: Store) -> None:
        await ask("/api/v1/namespaces/default/pods")
        await ask("/api/v1/namespaces/default/pods/none")
        _, text = await ask("/metrics")
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total")]
        assert [('verb="LIST"' in line, 'code="200"' in line) for line in lines if 'resource="pods"' in line] == [
            (True, True),
            (False, False),
        ]
        assert 'apiserver_storage_objects{group="",resource="namespaces"} 4\n' in text

    served(check)


def test_versions_of_a_group_go_by_kubernetes_priority() -> None:
    versions = ["foo10", "v1alpha1", "v1beta1", "v3beta1", "v2", "v1", "v11alpha2", "v10beta3", "v1beta2", "foo1"]
    assert sorted(versions, key=version_rank) == [
        "v2", "v1", "v10beta3", "v3beta1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo1", "foo10",
    ]  # fmt: skip


def test_history_and_events_are_forgotten_in_time() -> None:
    now = 1000.0
    store = fresh_store(lambda: now, random.Random(1))
    keeping = Housekeeping(store)
    from mews.kube.api.resources import EVENTS, NAMESPACES
    from mews.kube.emulated.core.objects.creation import create

    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    create(store, store.kinds.of(EVENTS), "default", {"metadata": {"name": "e"}, "involvedObject": about})
    keeping.look()
    first = store.version
    create(store, store.kinds.of(NAMESPACES), "", {"metadata": {"name": "later"}})
    now += COMPACTION_S
    keeping.look()
    shelf = store.shelf(store.kinds.of(NAMESPACES))
    assert shelf._floor == first and len(shelf._history) == 1
    assert store.find(store.kinds.of(EVENTS), "default", "e") is not None
    now += EVENT_LIFE_S
    keeping.look()
    assert store.find(store.kinds.of(EVENTS), "default", "e") is None


def test_packed_history_is_read_as_it_was() -> None:
    from mews.kube.api.resources import CONFIGMAPS
    from mews.kube.emulated.core.objects.creation import create
    from mews.kube.emulated.core.objects.deletion import delete
    from mews.kube.emulated.core.objects.update import replace
    from mews.kube.emulated.core.store.selection import EVERYTHING

    store = fresh_store(lambda: 1000.0, random.Random(1))
    kind = store.kinds.of(CONFIGMAPS)
    start = store.version
    made = create(store, kind, "default", {"metadata": {"name": "c"}, "data": {"a": "ä"}})
    replace(store, kind, "default", "c", {**made, "data": {"a": "2"}})
    delete(store, kind, "default", "c")
    shelf = store.shelf(kind)
    expected = shelf.subscribe(EVERYTHING, start).ready()
    middle = shelf.at(int(made["metadata"]["resourceVersion"]))
    assert shelf.pack(store.version, 2)
    assert not shelf.pack(store.version, 2)
    assert shelf.subscribe(EVERYTHING, start).ready() == expected
    assert [event.type.value for event in expected] == ["ADDED", "MODIFIED", "DELETED"]
    assert shelf.at(int(made["metadata"]["resourceVersion"])) == middle


def test_only_so_many_events_are_kept_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from mews.kube.api.resources import EVENTS
    from mews.kube.emulated.core.objects.creation import create

    monkeypatch.setattr("mews.kube.emulated.apiserver.housekeeping.MOST_EVENTS", 2)
    store = fresh_store(lambda: 1000.0, random.Random(1))
    keeping, kind = Housekeeping(store), store.kinds.of(EVENTS)
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    for name in ("a", "b", "c"):
        create(store, kind, "default", {"metadata": {"name": name}, "involvedObject": about})
    keeping.look()
    assert [store.find(kind, "default", name) is not None for name in ("a", "b", "c")] == [False, True, True]
