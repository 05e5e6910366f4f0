"""Lists, pages, selectors and watches."""

# One case a line.
# ruff: noqa: E501

import base64
import json
from urllib.parse import quote

from tests.differential.areas.bodies import configmap, labelled, opened, place, pod
from tests.differential.model import MERGE, PARTIAL, PARTIALS, TABLE, YAML, Case, Sent

N = place("lists")
M = f"{N}/configmaps"
V1 = "meta.k8s.io/v1"


def _token(name: str, limit: int = 2, query: str = "", **fields: object) -> Sent:
    """Go on with a list by a token of those fields."""
    text = json.dumps(fields, separators=(",", ":"))
    token = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return Sent(f"a token {name}", "GET", f"{M}?limit={limit}&continue={token}{query}")


def _labels(selector: str) -> Sent:
    return Sent(f"labels {selector}", "GET", f"{M}?labelSelector={quote(selector)}")


def _fields(selector: str, what: str = "pods") -> Sent:
    return Sent(f"fields of {what} {selector}", "GET", f"{N}/{what}?fieldSelector={quote(selector)}", accept=PARTIALS)


def _watch(name: str, query: str = "", path: str = M, accept: str = "application/json") -> Sent:
    return Sent(f"watch {name}", "GET", f"{path}?watch=true&timeoutSeconds=1{query}", accept=accept)


CASES: tuple[Case, ...] = (
    opened("lists"),
    Sent("list nothing", "GET", M),
    Sent("list nothing as a table", "GET", M, accept=TABLE),
    *(Sent(f"configmap {n}", "POST", M, labelled(configmap(n, x="1"), app=n, tier="x", size=str(i))) for i, n in enumerate("abc")),
    Sent("pod", "POST", f"{N}/pods", labelled(pod("p"), app="a")),
    Sent("list", "GET", M),
    Sent("list with a limit", "GET", f"{M}?limit=500"),
    Sent("list as a table", "GET", f"{M}?limit=500", accept=TABLE),
    Sent("list metadata", "GET", M, accept=PARTIALS),
    Sent("list as yaml", "GET", M, accept=YAML),
    Sent("list across namespaces", "GET", "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dlists"),
    Sent("a page", "GET", f"{M}?limit=1"),
    Sent("a page as a table", "GET", f"{M}?limit=1", accept=TABLE),
    Sent("a page of metadata", "GET", f"{M}?limit=2", accept=PARTIALS),
    Sent("a page of the selected", "GET", f"{M}?limit=1&labelSelector=tier%3Dx"),
    Sent("a bad token", "GET", f"{M}?limit=1&continue=frob"),
    _token("of now", v=V1, rv=-1, start="/a\0"),
    _token("of now with its last key", v=V1, rv=-1, start="/a"),
    _token("of now without a slash", v=V1, rv=-1, start="a\0"),
    _token("of now behind the end", v=V1, rv=-1, start="/zzz\0"),
    _token("of another format", v="v2", rv=-1, start="/a\0"),
    _token("of no format", rv=-1, start="/a\0"),
    _token("of no version", v=V1, start="/a\0"),
    _token("of a version in words", v=V1, rv="1", start="/a\0"),
    _token("of a version to come", v=V1, rv=10**15, start="/a\0"),
    _token("of no start", v=V1, rv=-1),
    _token("of a start that is a number", v=V1, rv=-1, start=5),
    _token("of a start that climbs", v=V1, rv=-1, start="/../a"),
    _token("of a start with two slashes", v=V1, rv=-1, start="//a"),
    _token("with a version", query="&resourceVersion=1", v=V1, rv=-1, start="/a\0"),
    _token("with any version", limit=1, query="&resourceVersion=0", v=V1, rv=-1, start="/a\0"),
    Sent("a page of a compacted version", "GET", f"{M}?limit=2&resourceVersion=1"),
    Sent("a bad limit", "GET", f"{M}?limit=x"),
    Sent("a negative limit", "GET", f"{M}?limit=-1"),
    Sent("a bad timeout", "GET", f"{M}?timeoutSeconds=x"),
    Sent("any version", "GET", f"{M}?resourceVersion=0"),
    Sent("any version and a page", "GET", f"{M}?resourceVersion=0&limit=1"),
    Sent("not older than a version", "GET", f"{M}?resourceVersion=1&resourceVersionMatch=NotOlderThan"),
    Sent("an exact compacted version", "GET", f"{M}?resourceVersion=1&resourceVersionMatch=Exact"),
    Sent("an exact version of zero", "GET", f"{M}?resourceVersion=0&resourceVersionMatch=Exact"),
    Sent("a match without version", "GET", f"{M}?resourceVersionMatch=Exact"),
    Sent("a strange match", "GET", f"{M}?resourceVersion=1&resourceVersionMatch=Frob"),
    Sent("a version yet to come", "GET", f"{M}?resourceVersion=999999999"),
    Sent("a garbage version", "GET", f"{M}?resourceVersion=abc"),
    Sent("initial events of a list", "GET", f"{M}?sendInitialEvents=true"),
    _labels("app=a"),
    _labels("app==a"),
    _labels("app!=a"),
    _labels("app in (a,b)"),
    _labels("app notin (a,b)"),
    _labels("app"),
    _labels("!app"),
    _labels("app,tier=x,app!=b"),
    _labels("size>0"),
    _labels("size<1"),
    _labels("none"),
    _labels(" app = a "),
    _labels("app="),
    _labels("a b"),
    _labels("app in a"),
    _labels("app in ()"),
    _labels("=a"),
    _labels("app=a,"),
    _labels("size>x"),
    _labels("app=-bad-"),
    _labels("a b=c"),
    _labels("app in (a"),
    _labels("!app=a"),
    _fields("metadata.name=p"),
    _fields("metadata.name!=p"),
    _fields("metadata.namespace=lists"),
    _fields("spec.nodeName="),
    _fields("status.phase=Pending"),
    _fields("status.phase!=Succeeded,status.phase!=Failed"),
    _fields("spec.restartPolicy=Always,spec.schedulerName=default-scheduler"),
    _fields("spec.hostNetwork=false"),
    _fields("status.podIP=1.2.3.4"),
    _fields("spec.foo=1"),
    _fields("metadata.uid=1"),
    _fields("frob"),
    _fields("metadata.name==p"),
    _fields("data.x=1", "configmaps"),
    _fields("metadata.name=a", "configmaps"),
    _fields("type=Opaque", "secrets"),
    _fields("reason=x,involvedObject.kind=Pod,type!=Normal", "events"),
    _fields("spec.unschedulable=false", "services"),
    Sent("fields of nodes", "GET", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse"),
    Sent("fields of namespaces", "GET", "/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3Dlists"),
    Sent("fields of jobs", "GET", "/apis/batch/v1/namespaces/lists/jobs?fieldSelector=status.successful%3D1"),
    Sent("fields of replica sets", "GET", "/apis/apps/v1/namespaces/lists/replicasets?fieldSelector=status.replicas%3D1"),
    Sent("fields of deployments", "GET", "/apis/apps/v1/namespaces/lists/deployments?fieldSelector=status.replicas%3D1"),
    Sent("a field of one object", "GET", f"{M}/a?fieldSelector=metadata.name%3Db"),
    _watch("from nothing"),
    _watch("from any version", "&resourceVersion=0"),
    _watch("some", "&labelSelector=app%3Da"),
    _watch("one by name", "&fieldSelector=metadata.name%3Db"),
    _watch("one by its path", "", f"{M}/b"),
    _watch("across namespaces", "&fieldSelector=metadata.namespace%3Dlists", "/api/v1/pods"),
    _watch("a table", "", accept=TABLE),
    _watch("metadata", "", accept=PARTIAL),
    _watch("in yaml", "", accept=YAML),
    _watch("from too old a version", "&resourceVersion=1"),
    _watch("from garbage", "&resourceVersion=abc"),
    _watch("from a version to come", "&resourceVersion=999999999"),
    _watch("with a bad selector", "&labelSelector=a%20b"),
    _watch("with a bad field", "&fieldSelector=x%3Dy"),
    _watch("with a bad field of a pod", "&fieldSelector=x%3Dy", f"{N}/pods"),
    _watch("bookmarks", "&allowWatchBookmarks=true"),
    _watch("with initial events", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
    _watch("with initial events from any", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0"),
    _watch("a table with initial events", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", accept=TABLE),
    _watch("with initial events but no match", "&sendInitialEvents=true&allowWatchBookmarks=true"),
    _watch("without initial events", "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
    _watch("with a match only", "&resourceVersionMatch=NotOlderThan"),
    _watch("with an exact match", "&sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true"),
    _watch("a missing one", "&fieldSelector=metadata.name%3Dnobody"),
    _watch("nothing served", "", f"{N}/podlings"),
    _watch("by a word", "&resourceVersion=0&limit=1"),
    Sent("watch by the old path", "GET", "/api/v1/watch/namespaces/lists/configmaps?timeoutSeconds=1"),
    Sent("watch one by the old path", "GET", "/api/v1/watch/namespaces/lists/configmaps/a?timeoutSeconds=1"),
    Sent("watch by 1", "GET", f"{M}?watch=1&timeoutSeconds=1&labelSelector=app%3Da"),
    Sent("watch is no boolean", "GET", f"{M}?watch=frob&timeoutSeconds=1&labelSelector=app%3Da"),
    Sent("leave the selector", "PATCH", f"{M}/a", {"metadata": {"labels": {"app": "z"}}}, MERGE),
    Sent("list after leaving", "GET", f"{M}?labelSelector=app%3Da"),
)  # fmt: skip
