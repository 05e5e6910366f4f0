"""The admission chain in virtual time: built-in plugins, policies, and webhooks as ports that are called in process."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import ApiError, ForbiddenError, InvalidError
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, JOBS, NAMESPACES, PODS, RESOURCE_QUOTAS, SERVICE_ACCOUNTS, Resource
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.plugins import PLUGINS
from mews.kube.emulated.core.admission.chain import AdmissionChain
from mews.kube.emulated.core.store.admission import WebhookCall, WebhookError
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.policies import policy_admission

GROUP = "admissionregistration.k8s.io"
POLICIES = Resource(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
BINDINGS = Resource(
    GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
MUTATING = Resource(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False)
VALIDATING = Resource(
    GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")

MAP_RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class FakeWebhooks:
    """Webhooks by name; each answers after ``delay_s`` with what its function makes of the request."""

    def __init__(self, *, delay_s: float = 0.0, **answers: Answer) -> None:
        self._answers = answers
        self._delay_s = delay_s
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def review(self, call: WebhookCall) -> Any:
        request = call.review["request"]
        self.asked.append((call.name, request))
        if self._delay_s > call.timeout_s:
            await asyncio.sleep(call.timeout_s)
            raise WebhookError(f'Post "{call.url}": context deadline exceeded')
        await asyncio.sleep(self._delay_s)
        response = {"uid": request["uid"], **self._answers[call.name.partition(".")[0]](request)}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def patched(*operations: Mapping[str, Any]) -> Mapping[str, Any]:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def webhook(name: str, **more: Any) -> dict[str, Any]:
    client = {"url": f"https://{name}.test/"}
    given = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client, "rules": MAP_RULES}
    return {"name": f"{name}.mews.test", **given, **more}


def policy(name: str, *expressions: str, **spec: Any) -> dict[str, Any]:
    validations = [{"expression": each} for each in expressions]
    return {
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": MAP_RULES}, "validations": validations, **spec},
    }


def binding(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"], **spec}}


def data(name: str, **values: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": values}


def pod(name: str, cpu: str = "") -> dict[str, Any]:
    resources = {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x", **resources}]}}


def with_store(check: Callable[[Store, InProcessKube], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        store = fresh_store(virtual_clock().now, random.Random(1), **options)
        await check(store, InProcessKube(store))

    run_virtual(main)


async def made(kube: InProcessKube, name: str, body: Object | None = None, *, at: str = "default") -> Object:
    return await kube.create(CONFIGMAPS, body or data(name), namespace=at)


def test_a_policy_refuses_what_its_expression_is_false_for() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        await kube.create(POLICIES, policy("short", "size(object.metadata.name) < 4"))
        await made(kube, "toolong")  # nothing binds it yet
        await kube.create(BINDINGS, binding("short"))
        await made(kube, "ok")
        with pytest.raises(ApiError) as caught:
            await made(kube, "toolonger")
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")
        assert caught.value.message == (
            "configmaps \"toolonger\" is forbidden: ValidatingAdmissionPolicy 'short' with binding 'short' denied "
            "request: failed expression: size(object.metadata.name) < 4"
        )
        await kube.delete(BINDINGS, "short")
        await made(kube, "toolonger")

    with_store(check)


_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"


def test_the_expressions_of_a_policy_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_admission, "POLICY_STEPS", 40)

    async def check(_store: Store, kube: InProcessKube) -> None:
        few, many = ["1 + 1 == 2"] * 2, [f"1 + {number} > 0" for number in range(1, 30)]
        await kube.create(POLICIES, policy("few", *few))
        await kube.create(BINDINGS, binding("few"))
        await made(kube, "a")
        await kube.create(POLICIES, policy("many", *many))
        await kube.create(BINDINGS, binding("many"))
        with pytest.raises(ApiError, match=_SPENT):
            await made(kube, "b")
        await kube.delete(POLICIES, "many")
        await kube.create(POLICIES, policy("many", *many, failurePolicy="Ignore"))
        await made(kube, "c")

    with_store(check)


def test_a_policy_sees_both_states_its_parameters_and_its_variables() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        await made(kube, "limits", data("limits", most="1"))
        grown = "variables.old == null || size(object.data) - size(variables.old.data) <= int(params.data.most)"
        spec = {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "variables": [{"name": "old", "expression": "oldObject"}],
        }
        await kube.create(POLICIES, policy("grow", grown, **spec))
        reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
        await kube.create(BINDINGS, binding("grow", paramRef=reference))
        await made(kube, "a", data("a", x="1"))
        await kube.patch(CONFIGMAPS, "a", {"data": {"y": "1"}}, namespace="default")
        with pytest.raises(ApiError, match="failed expression"):
            await kube.patch(CONFIGMAPS, "a", {"data": {"z": "1", "w": "1"}}, namespace="default")
        with pytest.raises(ApiError, match="no such key: data"):
            await kube.delete(CONFIGMAPS, "a", namespace="default")  # a deletion has no object: failurePolicy is Fail

    with_store(check)


def test_every_kind_of_write_passes_the_chain() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        await made(kube, "a")
        await kube.create(POLICIES, policy("never", "false"))
        await kube.create(BINDINGS, binding("never"))
        writes: list[Awaitable[Any]] = [
            made(kube, "b"),
            kube.replace(CONFIGMAPS, data("a", x="1"), namespace="default"),
            kube.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace="default"),
            kube.patch(
                CONFIGMAPS,
                "c",
                {"apiVersion": "v1", "kind": "ConfigMap", **data("c")},
                kind=Patch.APPLY,
                namespace="default",
                field_manager="me",
            ),
            kube.delete(CONFIGMAPS, "a", namespace="default"),
            kube.delete_collection(CONFIGMAPS, namespace="default"),
        ]
        for write in writes:
            with pytest.raises(ApiError, match="denied request"):
                await write

    with_store(check)


def test_a_policy_is_not_asked_about_policies() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
        await kube.create(POLICIES, policy("never", "false", matchConstraints={"resourceRules": everything}))
        await kube.create(BINDINGS, binding("never"))
        with pytest.raises(ApiError, match="denied request"):
            await kube.create(NAMESPACES, {"metadata": {"name": "n"}})
        await kube.delete(BINDINGS, "never")
        await kube.create(NAMESPACES, {"metadata": {"name": "n"}})

    with_store(check)


def test_a_mutating_webhook_changes_what_validation_and_policies_then_see() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        hooks = FakeWebhooks(adds=lambda _: patched({"op": "add", "path": "/data", "value": {"by": "webhook"}}))
        store.webhooks = hooks
        await kube.create(MUTATING, {"metadata": {"name": "m"}, "webhooks": [webhook("adds")]})
        await kube.create(POLICIES, policy("has", "object.data.by == 'webhook'"))
        await kube.create(BINDINGS, binding("has"))
        stored = await made(kube, "a")
        assert stored["data"] == {"by": "webhook"}
        [(_, request)] = hooks.asked
        assert (request["operation"], request["name"], request["namespace"]) == ("CREATE", "a", "default")
        assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert request["userInfo"]["username"] == "system:admin"

    with_store(check)


def test_webhooks_that_wish_it_are_asked_again_after_others_have_changed_the_object() -> None:
    def counted(request: Mapping[str, Any]) -> Mapping[str, Any]:
        count = str(len(request["object"].get("data") or {}))
        return patched({"op": "add", "path": "/metadata/annotations", "value": {"count": count}})

    def added(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if "data" in request["object"]:
            return {"allowed": True}
        return patched({"op": "add", "path": "/data", "value": {"x": "1"}})

    async def check(store: Store, kube: InProcessKube) -> None:
        store.webhooks = hooks = FakeWebhooks(counts=counted, adds=added)
        again = webhook("counts", reinvocationPolicy="IfNeeded")
        await kube.create(MUTATING, {"metadata": {"name": "m"}, "webhooks": [again, webhook("adds")]})
        stored = await made(kube, "a")
        assert stored["metadata"]["annotations"] == {"count": "1"}
        assert [name.partition(".")[0] for name, _ in hooks.asked] == ["counts", "adds", "counts"]

    with_store(check)


def test_a_validating_webhook_denies_with_its_own_status_and_warns() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        store.webhooks = FakeWebhooks(no=lambda _: {"allowed": False, "status": {"message": "not today", "code": 418}})
        await kube.create(VALIDATING, {"metadata": {"name": "v"}, "webhooks": [webhook("no")]})
        with pytest.raises(ApiError) as caught:
            await made(kube, "a")
        assert caught.value.code == 418
        assert caught.value.message == 'admission webhook "no.mews.test" denied the request: not today'

    with_store(check)


def test_a_webhook_that_hangs_delays_only_its_own_request() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        store.webhooks = FakeWebhooks(delay_s=100.0, slow=lambda _: {"allowed": True})
        slow = webhook("slow", timeoutSeconds=5, objectSelector={"matchLabels": {"slow": "yes"}})
        await kube.create(VALIDATING, {"metadata": {"name": "v"}, "webhooks": [slow]})
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        body = {"metadata": {"name": "a", "labels": {"slow": "yes"}}}
        hanging = asyncio.create_task(made(kube, "a", body))
        await made(kube, "b")
        assert loop.time() - begun_s < 1.0
        with pytest.raises(ApiError, match="context deadline exceeded") as caught:
            await hanging
        assert caught.value.code == 500
        assert loop.time() - begun_s == pytest.approx(5.0, abs=0.1)

    with_store(check)


def test_failure_policy_ignore_lets_a_request_pass_whose_webhook_cannot_be_asked() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        store.webhooks = FakeWebhooks(delay_s=100.0, slow=lambda _: {"allowed": True})
        hook = webhook("slow", timeoutSeconds=1, failurePolicy="Ignore")
        await kube.create(VALIDATING, {"metadata": {"name": "v"}, "webhooks": [hook]})
        await made(kube, "a")

    with_store(check)


def test_an_answer_about_an_older_state_is_not_used_for_a_newer_one() -> None:
    async def check(store: Store, kube: InProcessKube) -> None:
        await made(kube, "a", data("a", n="0"))
        store.webhooks = hooks = FakeWebhooks(delay_s=1.0, yes=lambda _: {"allowed": True})
        labelled = {"objectSelector": {"matchLabels": {"asked": "yes"}}}
        await kube.create(VALIDATING, {"metadata": {"name": "v"}, "webhooks": [webhook("yes", **labelled)]})
        asked = {"metadata": {"labels": {"asked": "yes"}}}
        first = asyncio.create_task(kube.patch(CONFIGMAPS, "a", asked, namespace="default"))
        await asyncio.sleep(0.5)
        await kube.patch(CONFIGMAPS, "a", {"data": {"n": "1"}}, namespace="default")
        stored = await first
        assert stored["data"] == {"n": "1"}
        assert [request["object"]["data"]["n"] for _, request in hooks.asked] == ["0", "1"]

    with_store(check)


def test_a_quota_is_counted_in_the_same_step_as_the_pod_is_stored() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        quota = await kube.create(
            RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}}, namespace="default"
        )
        status = {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}
        await kube.replace(RESOURCE_QUOTAS, {**quota, "status": status}, subresource="status")
        results = await asyncio.gather(
            *(kube.create(PODS, pod(f"p{n}", "400m"), namespace="default") for n in range(5)), return_exceptions=True
        )
        refused = [each for each in results if isinstance(each, ForbiddenError)]
        assert len(refused) == 3
        assert str(refused[0].message).endswith(
            "exceeded quota: q, requested: requests.cpu=400m, used: requests.cpu=800m, limited: requests.cpu=1"
        )
        stored = await kube.get(RESOURCE_QUOTAS, "q", namespace="default")
        assert stored["status"]["used"] == {"requests.cpu": "800m"}

    with_store(check)


def test_a_pod_gets_the_limits_of_its_namespace_and_says_so() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}, "max": {"cpu": "3"}}
        ranges = {"metadata": {"name": "r"}, "spec": {"limits": [item]}}
        await kube.create(LIMIT_RANGES, ranges, namespace="default")
        stored = await kube.create(PODS, pod("p"), namespace="default")
        assert stored["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
        note = "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
        assert stored["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": note}

    with_store(check)


def test_where_controllers_run_a_pod_waits_for_its_service_account_and_mounts_its_token() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        waiting = asyncio.create_task(kube.create(PODS, pod("p"), namespace="default"))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        spec = (await waiting)["spec"]
        assert spec["serviceAccountName"] == "default"
        [volume] = spec["volumes"]
        [mount] = spec["containers"][0]["volumeMounts"]
        assert mount["name"] == volume["name"]
        assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
        with pytest.raises(ForbiddenError, match='serviceaccount "nobody" not found'):
            body = pod("q")
            body["spec"]["serviceAccountName"] = "nobody"
            await kube.create(PODS, body, namespace="default")

    with_store(check, attended=True)


def test_where_controllers_run_a_policy_is_told_what_its_expressions_do_wrong_with_its_kinds() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        await kube.create(POLICIES, policy("odd", "object.data.x == 'y' && object.nope == 1"))
        status = (await kube.get(POLICIES, "odd"))["status"]
        assert status["observedGeneration"] == 1
        [warning] = status["typeChecking"]["expressionWarnings"]
        assert warning["fieldRef"] == "spec.validations[0].expression"
        assert warning["warning"].startswith("/v1, Kind=ConfigMap: ERROR: <input>:1:31: undefined field 'nope'")

    with_store(check, attended=True)


def test_the_namespace_that_asks_for_it_takes_restricted_pods_only() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        labels = {"pod-security.kubernetes.io/enforce": "baseline"}
        await kube.create(NAMESPACES, {"metadata": {"name": "n", "labels": labels}})
        await kube.create(PODS, pod("p"), namespace="n")
        body = pod("q")
        body["spec"]["hostPID"] = True
        with pytest.raises(ForbiddenError) as caught:
            await kube.create(PODS, body, namespace="n")
        assert caught.value.message == (
            'pods "q" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
        )

    with_store(check)


def test_a_plugin_that_is_not_known_cannot_be_disabled() -> None:
    with pytest.raises(ValueError, match="disabled admission plugin Nope: must be one of NamespaceLifecycle, "):
        AdmissionChain(PLUGINS, disabled=("Nope",))


def test_an_overhead_needs_a_runtime_class_with_one_even_when_it_is_empty() -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        for overhead in ({}, {"cpu": "1"}):
            body = pod("p")
            body["spec"]["overhead"] = overhead
            with pytest.raises(
                ForbiddenError, match="Pod Overhead set without corresponding RuntimeClass defined Overhead"
            ):
                await kube.create(PODS, body, namespace="default")
        template = pod("t")["spec"] | {"overhead": {}, "restartPolicy": "Never"}
        job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": template}}}
        made = await kube.create(JOBS, job, namespace="default")
        assert "overhead" not in made["spec"]["template"]["spec"]

    with_store(check)


@pytest.mark.parametrize(
    ("name", "is_whole"),
    [("example.com/x", True), ("limits.example.com/x", True), ("requests.example.com/x", False), ("cpu", False)],
)
def test_a_quota_of_an_extended_resource_takes_whole_numbers_only(name: str, is_whole: bool) -> None:
    async def check(_store: Store, kube: InProcessKube) -> None:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {name: "1500m"}}}
        if is_whole:
            with pytest.raises(InvalidError, match=r'spec.hard\[.*\]: Invalid value: "1500m": must be an integer'):
                await kube.create(RESOURCE_QUOTAS, quota, namespace="default")
        else:
            made = await kube.create(RESOURCE_QUOTAS, quota, namespace="default")
            assert made["spec"]["hard"] == {name: "1500m"}

    with_store(check)


def test_tolerations_of_a_claims_requests_are_judged_and_kept() -> None:
    def claim(toleration: Mapping[str, str]) -> Object:
        wanted = {"deviceClassName": "x", "tolerations": [toleration]}
        return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}}}

    async def check(_store: Store, kube: InProcessKube) -> None:
        with pytest.raises(InvalidError, match=r'tolerations\[0\].operator: Unsupported value: "Other"'):
            await kube.create(CLAIMS, claim({"operator": "Other"}), namespace="default")
        kept = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
        made = await kube.create(CLAIMS, claim(kept), namespace="default")
        assert made["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] == [kept]

    with_store(check)
