"""Good pods and workloads: kind, plural, body, whether namespaced, updated and with a status of its own."""

from __future__ import annotations

from typing import Any

Entry = tuple[Any, ...]

POD_SPEC: dict[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "automountServiceAccountToken": False,
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "example.com/t", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
    "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "conf", "configMap": {"name": "c"}}],
    "containers": [
        {
            "name": "main",
            "image": "busybox:1",
            "command": ["sleep"],
            "args": ["10"],
            "workingDir": "/",
            "ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}],
            "env": [{"name": "A", "value": "b"}],
            "envFrom": [{"prefix": "P", "configMapRef": {"name": "c"}}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "periodSeconds": 10},
            "readinessProbe": {"exec": {"command": ["true"]}},
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            "imagePullPolicy": "IfNotPresent",
            "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
        }
    ],
    "initContainers": [{"name": "init", "image": "busybox:1"}],
}
_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
_NODE_TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
RARE_POD_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "serviceAccountName": "default",
    "hostname": "h",
    "subdomain": "s",
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a.example.com"]}],
    "dnsConfig": {
        "nameservers": ["10.0.0.2"],
        "searches": ["example.com"],
        "options": [{"name": "ndots", "value": "2"}],
    },
    "imagePullSecrets": [{"name": "p"}],
    "schedulingGates": [{"name": "example.com/gate"}],
    "readinessGates": [{"conditionType": "example.com/ready"}],
    "activeDeadlineSeconds": 100,
    "os": {"name": "linux"},
    "securityContext": {
        "runAsUser": 1000,
        "fsGroup": 1000,
        "supplementalGroups": [1],
        "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}],
        "seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"},
        "appArmorProfile": {"type": "RuntimeDefault"},
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _NODE_TERM}],
        },
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": _TERM}]
        },
    },
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
    "volumes": [
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"secret": {"name": "s", "items": [{"key": "k", "path": "p/q", "mode": 256}]}},
                    {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                ]
            },
        },
        {
            "name": "own",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            },
        },
        {"name": "block", "persistentVolumeClaim": {"claimName": "c"}},
    ],
    "initContainers": [
        {
            "name": "side",
            "image": "busybox:1",
            "restartPolicy": "Always",
            "startupProbe": {"tcpSocket": {"port": "web"}, "failureThreshold": 3},
        }
    ],
    "containers": [
        {
            "name": "main",
            "image": "busybox:1",
            "env": [
                {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ],
            "volumeMounts": [{"name": "all", "mountPath": "/all", "subPath": "x", "readOnly": True}],
            "volumeDevices": [{"name": "block", "devicePath": "/dev/x"}],
            "resources": {"limits": {"example.com/gpu": "1"}, "claims": [{"name": "gpu"}]},
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "livenessProbe": {"grpc": {"port": 80, "service": "s"}, "terminationGracePeriodSeconds": 5},
        }
    ],
}
_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "main", "image": "busybox:1"}]},
}
_SELECTOR = {"matchLabels": {"app": "x"}}
_RUN_ONCE = {**_TEMPLATE, "spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}

WORKLOADS: tuple[Entry, ...] = (
    ("v1/PodTemplate", "podtemplates", {"template": _TEMPLATE}, True, True, False),
    (
        "v1/ReplicationController",
        "replicationcontrollers",
        {"spec": {"replicas": 2, "minReadySeconds": 1, "selector": {"app": "x"}, "template": _TEMPLATE}},
        True,
        True,
        True,
    ),
    ("apps/v1/ControllerRevision", "controllerrevisions", {"data": {"a": 1}, "revision": 1}, True, True, False),
    (
        "apps/v1/DaemonSet",
        "daemonsets",
        {
            "spec": {
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "minReadySeconds": 1,
                "revisionHistoryLimit": 3,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            }
        },
        True,
        True,
        True,
    ),
    (
        "apps/v1/Deployment",
        "deployments",
        {
            "spec": {
                "replicas": 2,
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "minReadySeconds": 1,
                "revisionHistoryLimit": 3,
                "progressDeadlineSeconds": 100,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": "25%"}},
            }
        },
        True,
        True,
        True,
    ),
    (
        "apps/v1/ReplicaSet",
        "replicasets",
        {"spec": {"replicas": 2, "minReadySeconds": 1, "selector": _SELECTOR, "template": _TEMPLATE}},
        True,
        True,
        True,
    ),
    (
        "apps/v1/StatefulSet",
        "statefulsets",
        {
            "spec": {
                "replicas": 2,
                "serviceName": "s",
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "podManagementPolicy": "OrderedReady",
                "ordinals": {"start": 1},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "data"},
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                    }
                ],
            }
        },
        True,
        True,
        True,
    ),
    (
        "batch/v1/CronJob",
        "cronjobs",
        {
            "spec": {
                "schedule": "*/5 * * * *",
                "timeZone": "Europe/Berlin",
                "concurrencyPolicy": "Allow",
                "startingDeadlineSeconds": 100,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"spec": {"template": _RUN_ONCE, "backoffLimit": 3}},
            }
        },
        True,
        True,
        True,
    ),
    (
        "batch/v1/Job",
        "jobs",
        {
            "spec": {
                "completions": 3,
                "parallelism": 2,
                "completionMode": "Indexed",
                "backoffLimit": 3,
                "activeDeadlineSeconds": 100,
                "ttlSecondsAfterFinished": 100,
                "podFailurePolicy": {
                    "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [7]}}]
                },
                "template": _RUN_ONCE,
            }
        },
        True,
        True,
        True,
    ),
)
