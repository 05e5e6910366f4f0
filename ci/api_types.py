"""Makes ``kube/releases/1.34/types/*.json`` from a real control plane: facts, nothing else.

    KUBECONFIG=... python ci/api_types.py kube/releases/1.34/types

It reads the OpenAPI documents; asks, field by field, with a value of a wrong type, how the decoder names the field's Go
type; and listens, as an admission webhook that refuses everything, to what the server makes of objects that say nothing
and of objects that say only empty values. Words of a field: see ``kube/emulated/types/gotypes.py``.
"""

# A tool for developers: it prints, and talks to a server of its own choice.
# ruff: noqa: T201

from __future__ import annotations

import base64
import http.client
import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Body = dict[str, Any]
LEAVES = {"Time": "time", "MicroTime": "microtime", "Quantity": "quantity", "IntOrString": "intstr"}
LEAVES |= {"RawExtension": "raw", "FieldsV1": "fields"}
LEAVES |= {"JSONSchemaPropsOrArray": "schemaorlist", "JSONSchemaPropsOrBool": "schemaorbool"}
SCALARS = frozenset(("string", "int32", "int64", "float64", "bool", "bytes", "any", *LEAVES.values()))
GO = {"bytes": "[]uint8", "time": "v1.Time", "microtime": "v1.MicroTime", "quantity": "resource.Quantity"}
GO |= {"intstr": "intstr.IntOrString", "raw": "runtime.RawExtension", "any": "v1.JSON"}
GO |= {"schemaorlist": "v1.JSONSchemaPropsOrArray", "schemaorbool": "v1.JSONSchemaPropsOrBool"}
ZEROS: Body = {"string": "", "bool": False, "bytes": "", "quantity": "0", "raw": {}, "fields": {}}
ZEROS |= dict.fromkeys(("int32", "int64", "float64", "intstr"), 0)
UNTOLD = ("any", "time", "microtime")

OF_RULES = frozenset(
    f"{struct}.{field}"
    for struct, fields in {
        "core/v1.Container": "imagePullPolicy",
        "core/v1.EphemeralContainer": "imagePullPolicy",
        "core/v1.NodeSpec": "taints",
        "core/v1.Node": "spec",
        "core/v1.NamespaceStatus": "phase",
        "core/v1.PodSpec": "tolerations preemptionPolicy enableServiceLinks priority",
        "core/v1.ServicePort": "targetPort",
        "core/v1.ServiceSpec": "internalTrafficPolicy",
        "core/v1.Volume": "emptyDir",
        "apps/v1.DaemonSetUpdateStrategy": "rollingUpdate",
        "apps/v1.DeploymentStrategy": "rollingUpdate",
        "apps/v1.RollingUpdateDaemonSet": "maxUnavailable maxSurge",
        "apps/v1.StatefulSetUpdateStrategy": "rollingUpdate",
        "apiextensions/v1.CustomResourceDefinitionSpec": "conversion",
        "autoscaling/v1.HorizontalPodAutoscalerSpec": "targetCPUUtilizationPercentage",
        "autoscaling/v2.HPAScalingRules": "policies",
        "autoscaling/v2.HorizontalPodAutoscalerBehavior": "scaleUp scaleDown",
        "autoscaling/v2.HorizontalPodAutoscalerSpec": "metrics",
        "batch/v1.JobSpec": "parallelism completions backoffLimit manualSelector suspend completionMode "
        "podReplacementPolicy",
        "networking/v1.NetworkPolicySpec": "policyTypes",
        "resource/v1.DeviceSubRequest": "count",
        "resource/v1.DeviceTaint": "timeAdded",
        "resource/v1.ExactDeviceRequest": "count",
    }.items()
    for field in fields.split()
)
"""Defaults that depend on other fields or on other objects: rules fill them in."""
SERVERS_OWN = frozenset({"meta/v1.ObjectMeta." + name for name in ("name", "namespace", "managedFields")}) | frozenset(
    "meta/v1.ManagedFieldsEntry." + name
    for name in ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1")
)


class Server:
    """The control plane of a kubeconfig with a token."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        address = config["clusters"][0]["cluster"]["server"].removeprefix("https://")
        self._token = config["users"][0]["user"]["token"]
        self._connection = http.client.HTTPSConnection(address, context=ssl._create_unverified_context())

    def ask(self, method: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
        """Return the answer's JSON."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Accept": accept}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        return json.loads(self._connection.getresponse().read())


class Listener:
    """An admission webhook that keeps every object it is shown, by name, and refuses it."""

    def __init__(self, folder: Path) -> None:
        heard = self.heard = dict[str, Body]()
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-days", "2", *names]
        subprocess.run([*make, "-out", str(certificate)], check=True, capture_output=True)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
                heard[request["name"] or request["object"]["metadata"].get("name", "")] = request["object"]
                head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
                answer = json.dumps({**head, "response": {"uid": request["uid"], "allowed": False}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Silent."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._authority = base64.b64encode(certificate.read_bytes()).decode()

    def configuration(self) -> Body:
        """Return what makes the server call: for objects whose names begin with zz."""
        ours = "request.name.startsWith('zz') || (has(object.metadata.name) && object.metadata.name.startsWith('zz'))"
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"], "scope": "*"}
        url = f"https://127.0.0.1:{self._server.server_port}/"
        hook = {
            "name": "hear.mews.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "matchConditions": [{"name": "ours", "expression": ours}],
            "clientConfig": {"url": url, "caBundle": self._authority},
            "rules": [rule],
        }
        return {"metadata": {"name": "hear"}, "webhooks": [hook]}


def short(name: str) -> str:
    """``core/v1.Pod`` of ``io.k8s.api.core.v1.Pod``."""
    group, version, kind = name.split(".")[-3:]
    return f"{group}/{version}.{kind}"


def read_types(server: Server) -> dict[str, Body]:
    """Return all structs of the server's OpenAPI: fields with type, lists, patches, enums, defaults."""
    schemas: dict[str, Body] = {}
    for path in server.ask("GET", "/openapi/v3")["paths"]:
        if re.search(r"^api.*/v\d", path):
            document = server.ask("GET", f"/openapi/v3/{path}")
            schemas |= document.get("components", {}).get("schemas", {})
    return {
        short(name): {
            "fields": {key: _field(key, given, schema, schemas) for key, given in schema.get("properties", {}).items()},
            "kinds": schema.get("x-kubernetes-group-version-kind") or [],
            "atomic": schema.get("x-kubernetes-map-type") == "atomic",
        }
        for name, schema in schemas.items()
        if name.rpartition(".")[2] not in LEAVES and (schema.get("properties") or schema.get("type") == "object")
    }


def _field(name: str, given: Body, owner: Body, schemas: Mapping[str, Body]) -> Body:
    merge_key = given.get("x-kubernetes-patch-merge-key")
    strategy = given.get("x-kubernetes-patch-strategy")
    keys = ",".join(given.get("x-kubernetes-list-map-keys") or ())
    kind = given.get("x-kubernetes-list-type")
    return {
        "type": _type(given, schemas),
        "required": name in owner.get("required", ()),
        "list": f"map:{keys}" if kind == "map" else kind,
        "atomic": given.get("x-kubernetes-map-type") == "atomic",
        "patch": f"{strategy}:{merge_key}" if merge_key else strategy,
        "enum": given.get("enum") or (given.get("items") or {}).get("enum"),
        **({"default": given["default"]} if "default" in given else {}),
    }


def _type(given: Body, schemas: Mapping[str, Body]) -> str:
    reference = given.get("$ref") or (given["allOf"][0]["$ref"] if "allOf" in given else "")
    if reference:
        name = reference.rpartition("/")[2]
        target = schemas[name]
        if name.rpartition(".")[2] in LEAVES:
            return LEAVES[name.rpartition(".")[2]]
        return short(name) if target.get("properties") or target.get("type") == "object" else "any"
    match given.get("type"):
        case "array":
            return f"[]{_type(given['items'], schemas)}"
        case "object":
            extra = given.get("additionalProperties")
            return f"{{}}{_type(extra, schemas)}" if extra else "raw"
        case "string":
            return {"byte": "bytes", "date-time": "time"}.get(given.get("format", ""), "string")
        case "integer":
            return str(given.get("format", "int64"))
        case "boolean" | "number" as kind:
            return {"boolean": "bool", "number": "float64"}[kind]
    return "any"


Place = tuple[str, Body, list[tuple[str, str]]]
"""Where a struct can be said: the path to post to, the head of the object, the fields that lead there."""


# Complex: two passes over one table: the kinds, then the way to each struct.
def places(server: Server, types: Mapping[str, Body]) -> dict[str, Place]:  # noqa: C901
    """Return them for each struct the shortest way to it from a kind that can be created; Pods and Deployments
    first."""
    roots = {}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for start in ("/api", "/apis"):
        for group in server.ask("GET", start, accept=accept)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                prefix = f"/apis/{name}/{version['version']}" if name else "/api/v1"
                for resource in version["resources"]:
                    if "create" in resource["verbs"]:
                        inside = "/namespaces/default" if resource["scope"] == "Namespaced" else ""
                        key = (name, version["version"], resource["responseKind"]["kind"])
                        roots[key] = f"{prefix}{inside}/{resource['resource']}"
    known = {(kind["group"], kind["version"], kind["kind"]): ref for ref in types for kind in types[ref]["kinds"]}
    found: dict[str, Place] = {}
    order = sorted(roots, key=lambda key: (key[2] != "Pod", key[2] != "Deployment", key))
    for group, version, kind in order:
        if (group, version, kind) in known:
            head = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
            found.setdefault(known[group, version, kind], (roots[group, version, kind], head, []))
    queue = list(found)
    for ref in queue:
        path, head, way = found[ref]
        for name, field in types[ref]["fields"].items():
            wraps, inner = _unwrapped(field["type"])
            if inner in types and inner not in found:
                found[inner] = (path, head, [*way, (name, wraps)])
                queue.append(inner)
    return found


def _unwrapped(type_: str) -> tuple[str, str]:
    wraps = ""
    while type_[:2] in ("[]", "{}"):
        wraps, type_ = wraps + type_[0], type_[2:]
    return wraps, type_


def said_at(place: Place, value: Any, name: str | None) -> Body:
    """Return an object that says the value at the place, and nothing else."""
    _, head, way = place
    for field, wraps in reversed(way):
        for wrap in reversed(wraps):
            value = [value] if wrap == "[" else {"k": value}
        value = {field: value}
    body = {**head, **value}
    metadata = body.get("metadata", {})
    if isinstance(metadata, dict):
        body["metadata"] = {**metadata, **({"name": name} if name else {})}
    return body


def found_at(place: Place, obj: Any) -> Any:
    """Return what an object holds at the place."""
    for field, wraps in place[2]:
        obj = (obj or {}).get(field)
        for wrap in wraps:
            obj = (obj[0] if wrap == "[" else obj.get("k")) if obj else None
    return obj or {}


def ask_go_types(server: Server, types: Mapping[str, Body], where: Mapping[str, Place]) -> None:
    """Give each field a value of a wrong type, and read the Go type in the complaint."""
    pattern = re.compile(r"Go struct field \w+\.(\S+) of type (.*)$")
    for ref, place in where.items():
        for name, field in types[ref]["fields"].items():
            wraps, inner = _unwrapped(field["type"])
            if inner in (*LEAVES.values(), "any") and not wraps:
                continue
            wrong = 7 if inner in ("string", "bytes") and not wraps else "x"
            answer = server.ask("POST", f"{place[0]}?dryRun=All", said_at(place, {name: wrong}, "a"))
            match = pattern.search(answer.get("message", ""))
            if match and match[1] == ".".join([step for step, _ in place[2]] + [name]):
                field["go"] = match[2]


def hear_defaults(server: Server, types: Mapping[str, Body], where: Mapping[str, Place], folder: Path) -> None:
    """Say nothing, then only empty values, and hear what the server makes of it."""
    hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    listener = Listener(folder)
    server.ask("POST", hooks, listener.configuration())
    time.sleep(2)
    try:
        for number, (ref, place) in enumerate(where.items()):
            fields = types[ref]["fields"]
            absent = _heard(server, listener, place, {}, f"zz{number}a")
            if absent is None:
                continue
            types[ref]["absent"] = absent
            zeros = {
                name: _zero(field["type"])
                for name, field in fields.items()
                if field["type"] not in UNTOLD and (place[2] or name not in ("apiVersion", "kind", "metadata"))
            }
            kept = _heard(server, listener, place, zeros, f"zz{number}b")
            if kept is None:
                one = {name: _heard(server, listener, place, {name: zero}, "zzc") for name, zero in zeros.items()}
                kept = {name: said[name] for name, said in one.items() if said and name in said}
            types[ref]["kept"] = kept
    finally:
        server.ask("DELETE", f"{hooks}/hear")


def _heard(server: Server, listener: Listener, place: Place, value: Body, name: str) -> Body | None:
    listener.heard.pop(name, None)
    server.ask("POST", f"{place[0]}?dryRun=All", said_at(place, value, name))
    obj = listener.heard.get(name)
    found: Body | None = None if obj is None else found_at(place, obj)
    return found


def _zero(type_: str) -> Any:
    return [] if type_[:2] == "[]" else {} if type_[:2] == "{}" else ZEROS.get(type_, {})


def _is_zero(value: Any) -> bool:
    return all(map(_is_zero, value.values())) if isinstance(value, dict) else value in ("", 0, False, None, [])


def line_of(ref: str, name: str, field: Body, struct: Body) -> str:
    """Return the words of a field."""
    type_, key = field["type"], f"{ref}.{name}"
    is_struct = type_ not in SCALARS and type_[:2] not in ("[]", "{}")
    absent, kept = struct.get("absent"), struct.get("kept", {})
    shown, default = "", None
    if name in ("kind", "apiVersion") and struct["kinds"]:
        pass
    elif key == "core/v1.PodSpec.securityContext":
        default = {}
    elif absent is None:
        shown = "keep" if "default" in field and _is_zero(field["default"]) else ""
        shown = "null" if key == "authentication/v1.TokenRequestSpec.boundObjectRef" else shown
    elif name in absent and key not in SERVERS_OWN | OF_RULES:
        value = absent[name]
        shown = "null" if value is None else "keep" if is_struct or _is_zero(value) else ""
        default = None if shown else value
    elif is_struct and "default" in field and _is_zero(field["default"]):
        shown = "keep"
    told = not is_struct and type_[:2] not in ("[]", "{}") and name in kept and _is_zero(kept[name])
    guessed = (
        absent is None
        and name not in ("kind", "apiVersion")
        and not field["required"]
        and type_ in ("int32", "int64", "bool", "string", "intstr")
    )
    pointer = (told or guessed or type_ == "quantity") and not shown
    words = [
        type_,
        "ptr" if pointer or key == "meta/v1.ObjectMeta.deletionGracePeriodSeconds" else "",
        f"oadefault={_text(field['default'])}" if _tells_default(field, shown) else "",
        shown,
        "req" if field["required"] else "",
        f"go={field['go']}" if field.get("go", go_name(type_)) != go_name(type_) else "",
        f"list={field['list']}" if field["list"] else "",
        "atomic" if field["atomic"] else "",
        f"patch={field['patch']}" if field["patch"] else "",
        f"enum={'|'.join(field['enum']).replace(' ', '%20')}" if field["enum"] else "",
        f"default={_text(default)}" if default is not None else "",
    ]
    return " ".join(word for word in words if word)


def _tells_default(field: Body, shown: str) -> bool:
    return "default" in field and not (shown == "keep" and _is_zero(field["default"]))


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def go_name(type_: str) -> str:
    """Return the Go type that a type has if nothing else is known."""
    if type_[:2] in ("[]", "{}"):
        return ("[]" if type_[0] == "[" else "map[string]") + go_name(type_[2:])
    return GO.get(type_, type_.rpartition("/")[2])


def write(types: Mapping[str, Body], folder: Path) -> None:
    """One file per group."""
    groups: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for ref, struct in sorted(types.items()):
        group, _, name = ref.partition("/")
        kinds = [f"kind={kind['group']}/{kind['version']}/{kind['kind']}" for kind in struct["kinds"]]
        head = ["atomic"] * struct["atomic"] + (kinds if len(kinds) == 1 else [])
        lines = {field: line_of(ref, field, known, struct) for field, known in struct["fields"].items()}
        groups[group][name] = {**({"": " ".join(head)} if head else {}), **lines}
    for group, structs in groups.items():
        parts = (f" {json.dumps(name)}: {{\n{_members(lines)}\n }}" for name, lines in structs.items())
        (folder / f"{group}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")
        print(f"{group}: {len(structs)} types")


def _members(lines: Mapping[str, str]) -> str:
    return ",\n".join(f"  {json.dumps(name)}: {json.dumps(line)}" for name, line in lines.items())


def main(folder: Path) -> None:
    """Ask, listen, write."""
    server = Server(Path(os.environ["KUBECONFIG"]))
    types = read_types(server)
    where = places(server, types)
    ask_go_types(server, types, where)
    with tempfile.TemporaryDirectory() as temporary:
        hear_defaults(server, types, where, Path(temporary))
    write(types, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
