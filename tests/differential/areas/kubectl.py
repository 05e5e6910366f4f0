"""kubectl commands, with the requests that prepare for them."""

# One case a line.
# ruff: noqa: E501

from tests.differential.areas.bodies import event, opened, place, pod, workload
from tests.differential.areas.manifests import CONFIGMAP, DEPLOYMENT, POD, REVISIONS, SERVICE
from tests.differential.model import STRATEGIC, Case, Run, Sent

N = place("kubectl")
APPS = "/apis/apps/v1/namespaces/kubectl"
_READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
_FULL = {
    "observedGeneration": 1,
    "replicas": 2,
    "updatedReplicas": 2,
    "readyReplicas": 2,
    "availableReplicas": 2,
    "conditions": [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ],
}


def _runs(*lines: str) -> tuple[Run, ...]:
    return tuple(Run(line, line) for line in lines)


def _get(*lines: str) -> tuple[Run, ...]:
    return _runs(*(f"get {line}" for line in lines))


_CREATING = _runs(
    "create configmap cm --from-literal=a=1 --from-literal=b=2",
    "create configmap cm --from-literal=a=1",
    "create configmap files --from-file=files/a.txt --from-file=k=files/a.txt",
    "create configmap dry --from-literal=a=1 --dry-run=server -o yaml",
    "create secret generic s --from-literal=a=1",
    "create secret docker-registry reg --docker-username=u --docker-password=p --docker-server=r.test",
    "create serviceaccount robot",
    "create token nobody",
    "create deployment gen --image=nginx:1 --replicas=2 --port=80",
    "create job once --image=busybox:1 -- echo hello",
    "create cronjob often --image=busybox:1 --schedule='*/5 * * * *' -- date",
    "create job manual --from=cronjob/often",
    "create service clusterip web --tcp=80:8080 --clusterip=None",
    "create service externalname out --external-name example.com",
    "create role reader --verb=get,list --resource=pods,deployments.apps",
    "create rolebinding readers --role=reader --user=jane --serviceaccount=kubectl:robot",
    "create clusterrole kubectl-reader --verb=get --resource=nodes",
    "create clusterrolebinding kubectl-readers --clusterrole=kubectl-reader --group=g",
    "create quota q --hard=pods=100,configmaps=100",
    "create priorityclass kubectl-high --value=10 --description=high",
    "create poddisruptionbudget pdb --selector=app=guarded --min-available=1",
    "create ingress ing --rule=a.test/=web:80",
    "create namespace kubectl-other",
    "create namespace kubectl",
    "create configmap Bad_Name",
)  # fmt: skip

_READING = (
    *_get(
        "configmaps", "configmaps -o wide", "cm cm -o yaml", "cm cm -o json", "cm -o name", "cm cm -o jsonpath={.data.a}",
        "cm -o custom-columns=NAME:.metadata.name,A:.data.a", "cm --show-labels", "cm --no-headers", "cm -L app",
        "cm nobody", "cm cm nobody", "podlings", "pods", "pods -o wide", "pods -A", "pods -l app=x", "pods -l 'a b'",
        "pods --field-selector=status.phase=Running", "pods --field-selector=frob=1", "pods --sort-by=.metadata.name",
        "pods ready -o yaml", "deploy", "deploy -o wide", "deploy gen -o yaml", "rs", "jobs", "cronjobs", "svc", "svc -o wide", "sa",
        "secrets", "roles", "rolebindings", "quota", "pdb", "ingress", "ns kubectl", "all", "deploy,svc,cm", "pods/ready cm/cm",
        "events", "priorityclass", "pods --chunk-size=1", "pods -o go-template='{{len .items}}'", "cm -n nowhere", "nodes",
        "nodes -o wide", "pods ready -w --request-timeout=2s", "pods --watch-only --request-timeout=1s", "pods ready --output-watch-events -w --request-timeout=1s",
        "deploy gen --subresource=scale", "pods ready --subresource=status -o name", "--raw /healthz", "--raw /api/v1/namespaces/kubectl/configmaps/nobody",
        "--raw /nothing", "clusterrole kubectl-reader -o yaml", "ns -l kubernetes.io/metadata.name=kubectl", "lease -A", "crd",
    ),
    *_runs(
        "describe pod ready", "describe deploy gen", "describe svc web", "describe cm cm", "describe secret s", "describe node kubectl-node",
        "describe ns kubectl", "describe job once", "describe cronjob often", "describe quota q", "describe sa robot", "describe role reader",
        "describe rolebinding readers", "describe pdb pdb", "describe ingress ing", "describe rs hist-1", "describe pod nobody", "describe priorityclass kubectl-high",
        "events", "events --for pod/ready", "events --types=Warning", "explain pod", "explain pod.spec.containers", "explain deployment.spec.strategy --recursive",
        "explain podling", "explain pod.frob", "api-resources --sort-by=name", "api-resources --api-group=apps -o wide", "api-resources --namespaced=false -o name", "api-versions",
        "cluster-info", "version", "auth can-i create pods", "auth whoami", "auth can-i get podlings", "top nodes", "top pods",
        "wait --for=condition=Ready pod/ready --timeout=5s", "wait --for=condition=Ready pod/plain --timeout=1s", "wait --for=jsonpath='{.status.phase}'=Running pod/ready --timeout=5s",
        "wait --for=delete pod/nobody --timeout=1s", "wait --for=create pod/ready --timeout=1s",
        "logs plain", "logs nobody", "exec plain -- ls", "exec nobody -- ls", "cp plain:/x y", "attach plain", "port-forward pod/plain 0:80",
        "certificate approve nobody", "rollout status deploy/gen --timeout=1s", "rollout status deploy/hist --timeout=3s", "rollout history deploy/hist", "rollout history deploy/hist --revision=1",
        "rollout history deploy/nobody", "diff -f files/cm.yaml", "diff -f files/changed.yaml", "get -k files", "kustomize files",
    ),
    Run("options", "options"),
    Run("auth can-i --list", "auth can-i --list", sorted=True),
)  # fmt: skip

_CHANGING = (
    Run("apply configmap", "apply -f -", CONFIGMAP),
    Run("apply configmap again", "apply -f -", CONFIGMAP),
    Run("apply configmap changed", "apply -f -", CONFIGMAP.replace("one", "two")),
    Run("apply as a client's trial", "apply --dry-run=client -f -", CONFIGMAP),
    Run("apply as a server's trial", "apply --dry-run=server -o yaml -f -", CONFIGMAP),
    Run("apply unknown field", "apply -f -", CONFIGMAP + "frob: 1\n"),
    Run("apply unknown field unchecked", "apply --validate=false -f -", CONFIGMAP + "frob: 1\n"),
    Run("apply wrong type", "apply -f -", CONFIGMAP.replace("one", "[1]")),
    Run("apply several", "apply -f -", f"{DEPLOYMENT}---\n{SERVICE}---\n{POD}"),
    Run("apply several again", "apply -f -", f"{DEPLOYMENT}---\n{SERVICE}---\n{POD}"),
    Run("apply another image", "apply -f -", DEPLOYMENT.replace("nginx:1", "nginx:2")),
    Run("apply a fixed field", "apply -f -", POD.replace("restartPolicy: Never", "restartPolicy: Always")),
    Run("what apply left", "get deploy web -o yaml"),
    Run("apply on the server", "apply --server-side -f -", CONFIGMAP.replace("applied", "served")),
    Run("apply on the server again", "apply --server-side -f -", CONFIGMAP.replace("applied", "served")),
    Run("apply on the server in conflict", "apply --server-side --field-manager=other -f -", CONFIGMAP.replace("applied", "served").replace("one", "two")),
    Run("apply on the server by force", "apply --server-side --field-manager=other --force-conflicts -f -", CONFIGMAP.replace("applied", "served").replace("one", "two")),
    Run("apply on the server over a client's", "apply --server-side -f -", CONFIGMAP.replace("one", "two")),
    Run("managed fields", "get cm served -o yaml --show-managed-fields"),
    Run("view last applied", "apply view-last-applied deploy/web"),
    Run("apply kustomization", "apply -k files"),
    Run("apply and prune", "apply -f files/cm.yaml --prune -l prune=me --prune-allowlist=core/v1/ConfigMap"),
    Run("apply in another namespace", "apply -n kubectl-other -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: kubectl}\n"),
    Run("create from file", "create -f -", POD.replace("applied", "made")),
    Run("create from file again", "create -f -", POD.replace("applied", "made")),
    Run("create with unknown field", "create -f -", POD.replace("applied", "more").replace("spec:", "spec:\n  frob: 1")),
    Run("create with generated name refused", "create -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"),
    Run("create of an unknown kind", "create -f -", "apiVersion: frob.test/v1\nkind: Frob\nmetadata: {name: x}\n"),
    Run("replace", "replace -f -", CONFIGMAP.replace("one", "three")),
    Run("replace missing", "replace -f -", CONFIGMAP.replace("applied", "nobody")),
    Run("replace by force", "replace --force -f -", CONFIGMAP.replace("one", "four")),
    Run("edit", "edit cm applied", env={"KUBE_EDITOR": "./editor.sh"}),
    Run("edit without change", "edit cm applied", env={"KUBE_EDITOR": "true"}),
    Run("edit badly", "edit pod ready", env={"KUBE_EDITOR": "./breaker.sh"}),
    Run("edited", "get cm applied -o jsonpath={.data}"),
    *_runs(
        """patch cm applied -p '{"data":{"p":"1"}}'""", """patch cm applied --type=merge -p '{"data":{"p":null}}'""",
        """patch cm applied --type=json -p '[{"op":"add","path":"/data/j","value":"1"}]'""", """patch cm applied --type=json -p '[{"op":"remove","path":"/data/none"}]'""",
        """patch cm applied -p '{"data":{"p":"1"}}'""" + " --dry-run=server -o yaml", """patch cm nobody -p '{}'""", """patch cm applied -p '{x'""", """patch deploy web --subresource=scale --type=merge -p '{"spec":{"replicas":3}}'""",
        "label cm applied a=b", "label cm applied a=c", "label cm applied a=c --overwrite", "label cm applied a-", "label cm applied none-", "label cm applied 'a b=c'", "label cm --all x=y",
        "annotate cm applied a=b", "annotate cm applied a-", "annotate pods --all note=x", "scale deploy web --replicas=4", "scale deploy web --replicas=5 --current-replicas=1", "scale deploy nobody --replicas=1",
        "scale rs hist-1 --replicas=0", "set image deploy/web c=nginx:3", "set image deploy/web nobody=nginx:3", "set env deploy/web A=1", "set env deploy/web --list", "set env deploy/web A-",
        "set resources deploy/web --limits=cpu=1,memory=1Gi", "set serviceaccount deploy/web robot", "set selector svc/web app=y", "set subject rolebinding readers --user=joe",
        "autoscale deploy web --min=1 --max=3 --cpu=80%", "get hpa", "describe hpa web", "expose deploy web --port=80 --name=exposed --cluster-ip=None", "expose deploy nobody --port=80",
        "run runner --image=busybox:1 --restart=Never", "run runner --image=busybox:1", "run dry --image=busybox:1 --dry-run=server -o yaml", "run labelled --image=i --labels=a=b --env=A=1 --port=80 -- x y",
        "rollout restart deploy/web", "rollout pause deploy/web", "rollout resume deploy/web", "rollout pause deploy/nobody", "rollout undo deploy/hist", "rollout undo deploy/hist --to-revision=9", "get deploy hist -o jsonpath={.spec.template.spec.containers[0].image}",
        "taint node kubectl-node a=b:NoSchedule", "taint node kubectl-node a=c:NoSchedule", "taint node kubectl-node a-", "taint node kubectl-node a=b:Frob", "cordon kubectl-node", "get node kubectl-node",
        "drain kubectl-node --force --ignore-daemonsets --timeout=3s", "drain kubectl-node --timeout=2s", "uncordon kubectl-node", "cordon nobody", "drain nobody", "label node kubectl-node node-role.kubernetes.io/worker=",
    ),
)  # fmt: skip

_DELETING = _runs(
    "delete cm cm --dry-run=server", "delete cm cm", "delete cm cm --ignore-not-found", "delete cm -l x=y", "delete cm --all", "delete pods plain --now", "delete pods ready --grace-period=0 --force", "delete pod/made pod/nobody",
    "delete deploy gen --cascade=orphan --wait=false", "delete deploy web --cascade=foreground --wait=false", "delete deploy hist --cascade=background", "delete job once", "delete svc,ingress --all", "delete podlings x", "delete cm", "delete secrets -l none=such",
    "delete priorityclass kubectl-high", "delete clusterrole kubectl-reader", "delete clusterrolebinding kubectl-readers", "delete node kubectl-node", "delete ns kube-system", "delete ns kubectl-other --wait=false", "delete -f files/cm.yaml", "delete -k files",
)  # fmt: skip

_PREPARED: tuple[Case, ...] = (
    Sent("node", "POST", "/api/v1/nodes", {"metadata": {"name": "kubectl-node", "labels": {"kubernetes.io/hostname": "kubectl-node"}}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "falcon.com/gpu": "2"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}),
    Sent("node is ready", "PATCH", "/api/v1/nodes/kubectl-node", {"spec": {"taints": None}}, STRATEGIC),
    Sent("ready pod", "POST", f"{N}/pods", {**pod("ready", nodeName="kubectl-node"), "metadata": {"name": "ready", "labels": {"app": "x"}}}),
    Sent("it is ready", "PATCH", f"{N}/pods/ready/status", _READY, STRATEGIC),
    Sent("plain pod", "POST", f"{N}/pods", pod("plain")),
    Sent("event", "POST", f"{N}/events", event("e", involvedObject={"apiVersion": "v1", "kind": "Pod", "namespace": "kubectl", "name": "ready"}, firstTimestamp="2026-01-01T00:00:00Z", lastTimestamp="2026-01-01T00:00:00Z")),
    Sent("deployment with a history", "POST", f"{APPS}/deployments", {**workload("hist", replicas=2), "metadata": {"name": "hist", "annotations": {"deployment.kubernetes.io/revision": "2"}}}),
    Sent("it is rolled out", "PATCH", f"{APPS}/deployments/hist/status", {"status": _FULL}, STRATEGIC),
    *(Sent(f"revision {index}", "POST", f"{APPS}/replicasets", body) for index, body in enumerate(REVISIONS, 1)),
)  # fmt: skip

CASES: tuple[Case, ...] = (opened("kubectl"), *_CREATING, *_PREPARED, *_READING, *_CHANGING, *_DELETING)
