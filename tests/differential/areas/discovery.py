"""What is served: discovery, media types, paths, identity, health."""

# One case a line.
# ruff: noqa: E501

from tests.differential.areas.bodies import opened, place, pod
from tests.differential.model import Case, Sent

N = place("discovery")
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
BOTH = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_GROUPS = (
    ("apps", "v1"), ("batch", "v1"), ("events.k8s.io", "v1"), ("coordination.k8s.io", "v1"), ("scheduling.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"), ("policy", "v1"), ("autoscaling", "v2"), ("autoscaling", "v1"),
    ("rbac.authorization.k8s.io", "v1"), ("authentication.k8s.io", "v1"), ("authorization.k8s.io", "v1"),
    ("storage.k8s.io", "v1"), ("resource.k8s.io", "v1"), ("discovery.k8s.io", "v1"), ("networking.k8s.io", "v1"),
    ("node.k8s.io", "v1"), ("admissionregistration.k8s.io", "v1"), ("apiregistration.k8s.io", "v1"),
    ("certificates.k8s.io", "v1"), ("flowcontrol.apiserver.k8s.io", "v1"),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    opened("discovery"),
    Sent("core versions", "GET", "/api"),
    Sent("groups", "GET", "/apis"),
    Sent("core resources", "GET", "/api/v1"),
    Sent("core aggregated", "GET", "/api", accept=V2),
    Sent("core aggregated beta", "GET", "/api", accept=V2BETA1),
    Sent("groups aggregated", "GET", "/apis", accept=V2),
    Sent("groups aggregated as kubectl asks", "GET", "/apis", accept=BOTH),
    *(Sent(f"resources of {group}/{version}", "GET", f"/apis/{group}/{version}") for group, version in _GROUPS),
    *(Sent(f"group {group}", "GET", f"/apis/{group}") for group in ("apps", "events.k8s.io", "autoscaling", "policy", "batch")),
    Sent("aggregated in an unknown version", "GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"),
    Sent("core as yaml", "GET", "/api", accept="application/yaml"),
    Sent("unknown group", "GET", "/apis/nothing.test"),
    Sent("unknown version", "GET", "/apis/apps/v9"),
    Sent("unknown core version", "GET", "/api/v2"),
    Sent("things of an unknown group", "GET", "/apis/nothing.test/v1/things"),
    Sent("unknown resource", "GET", "/api/v1/podlings"),
    Sent("unknown resource in a namespace", "GET", f"{N}/podlings/x"),
    Sent("unknown subresource", "GET", f"{N}/pods/a/frob"),
    Sent("a namespaced object without namespace", "GET", "/api/v1/pods/a"),
    Sent("a cluster object in a namespace", "GET", f"{N}/nodes/a"),
    Sent("unknown path", "GET", "/nothing"),
    Sent("post to discovery", "POST", "/apis", {}),
    Sent("openapi index", "GET", "/openapi/v3"),
    Sent("openapi of nothing", "GET", "/openapi/v3/apis/nothing.test/v1"),
    Sent("version", "GET", "/version"),
    Sent("healthz", "GET", "/healthz", accept="*/*"),
    Sent("livez", "GET", "/livez", accept="*/*"),
    Sent("readyz", "GET", "/readyz", accept="*/*"),
    Sent("ping", "GET", "/livez/ping", accept="*/*"),
    Sent("health of nothing", "GET", "/healthz/nothing", accept="*/*"),
    Sent("xml", "GET", f"{N}/pods", accept="application/xml"),
    Sent("any application", "GET", f"{N}/pods", accept="application/*"),
    Sent("xml or json", "GET", f"{N}/pods", accept="application/xml,application/json"),
    Sent("json with quality", "GET", f"{N}/pods", accept="application/json;q=0.9,*/*;q=0.8"),
    Sent("pretty", "GET", f"{N}/pods/nobody?pretty=true"),
    Sent("no accept", "GET", f"{N}/pods/nobody", headers={"Accept": "*/*"}),
    Sent("protobuf or json", "GET", f"{N}/pods/nobody", accept=f"{PROTOBUF},application/json"),
    Sent("trailing slash", "GET", f"{N}/pods/"),
    Sent("put a collection", "PUT", f"{N}/pods", pod("a")),
    Sent("patch a collection", "PATCH", f"{N}/pods", {}),
    Sent("post an object", "POST", f"{N}/pods/a", pod("a")),
    Sent("post across namespaces", "POST", "/api/v1/pods", pod("a")),
    Sent("delete across namespaces", "DELETE", "/api/v1/pods"),
    Sent("delete all namespaces", "DELETE", "/api/v1/namespaces"),
    Sent("options", "OPTIONS", f"{N}/pods"),
    Sent("head of an object", "HEAD", f"{N}/pods/a"),
    Sent("head of a list", "HEAD", f"{N}/pods"),
    Sent("anonymous", "GET", f"{N}/pods", headers={"Authorization": ""}),
    Sent("anonymous writes a status", "PUT", f"{N}/pods/a/status", {}, headers={"Authorization": ""}),
    Sent("anonymous at a node", "GET", "/api/v1/nodes/a", headers={"Authorization": ""}),
    Sent("anonymous at a deployment", "DELETE", "/apis/apps/v1/namespaces/discovery/deployments/a", headers={"Authorization": ""}),
    Sent("anonymous watches", "GET", f"{N}/pods?watch=true", headers={"Authorization": ""}),
    Sent("anonymous at discovery", "GET", "/apis", headers={"Authorization": ""}),
    Sent("anonymous at the version", "GET", "/version/", headers={"Authorization": ""}),
    Sent("anonymous at openapi", "GET", "/openapi/v3", headers={"Authorization": ""}),
    Sent("anonymous at health", "GET", "/healthz", headers={"Authorization": ""}, accept="*/*"),
    Sent("wrong token", "GET", f"{N}/pods", headers={"Authorization": "Bearer wrong"}),
    Sent("basic credentials", "GET", f"{N}/pods", headers={"Authorization": "Basic YTpi"}),
    Sent("who am i", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
    Sent("may i", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "discovery"}}}),
    Sent("may i nothing", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}),
    Sent("may somebody", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "discovery"}}}),
    Sent("my rules", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "discovery"}}),
    Sent("list reviews", "GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    Sent("token review", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "wrong"}}),
)  # fmt: skip
