"""Good objects of the other groups: kind, plural, body, whether namespaced, updated and with a status of its own."""

from __future__ import annotations

from typing import Any

Entry = tuple[Any, ...]

_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQ1pUQ0NBVTBDQVFBd0lERU5NQXNHQTFVRUNnd0VkR1ZoYlRF"
    "UE1BMEdBMVVFQXd3R1ptbGxiR1J6TUlJQgpJakFOQmdrcWhraUc5dzBCQVFFRkFBT0NBUThBTUlJQkNnS0NBUUVBMXJzUDNFNHU4"
    "YzlIb2tOZWxKVFdJcUJxCkJ1U2YyY0U2UVg5ZWozSUoyZ2ptZFFoSzZDekd5YUp6cmZheUhQbk4xajFzcUdhWURIczhRT05aZ2VQ"
    "TGUzTWkKWSthbmVZZWhuZitDdVIyVCtVUUVjcUNhUTRodXFFTlZOYmlENXBSTXd5RVFpWllLeTBkMy83K0ZIeDRGQ1FuSAowcytT"
    "dFE4RHdEMVNjcUFjMnZMZG40MWF0dUV3VG9yTCsycmtOZ3I0Z2FrYmR2aVUwY3VqeWhBUlA5YXEybU5OCm84VEtCVDhRUDJvRGVj"
    "ZitYL2xIS3RBdkQzMW03OHFudnJpSU1xUVJNeTIvbkhNYjFqVnlWZUl0SWVBZWVYSWgKRWdOUVNtNFJqaXdZZFZMczkxcGtIQ0FG"
    "TXA5N0pGVmhiNzRTNUpYTFFEV1RYc0RDaksxOTNpMDNKMWY2RlFJRApBUUFCb0FBd0RRWUpLb1pJaHZjTkFRRUxCUUFEZ2dFQkFE"
    "OElkUWZSN29MNUlyUDVmdWkyRG81QkdyaTRNUGU0ClB3Skc2cDVBQ3JVUENsdmZ4K3E4ZE9lUzhkR0VreFN3bW8wb1BNa3ZkOGN6"
    "dEpMNUJWZFFBRGtEeWFQempDZzgKVUNvekk5bndFZEtXSEF4ZzMvUjhSUVZpUGJ3TVo4aUVkdmFWeVllMFhYWDNjK1J4WlpROG5K"
    "VHd3emd1QVEwUwo5eUNvbE5td2hlQzUyVTI1NkFMVUIxUzRkV0pWSUU0eUc1OXgvMUJuUDVnNUEwSC9lTWorcnJsOVpmMFdYcktI"
    "ClZRMlNiUGpJTDBFZXN5NmJpOGpwazJKNUxTYjhDNStoekYvN1l4bU50SFV5WUV1T2NQNGR3T01aOU53MXFsYjkKU1VsSFpvUGZn"
    "anEvOWJVMy9mWkV1amR4SWN3b1N4NVo2ekN4QTJDVEZ6RzBKVGE3T1ZuTWtQQT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVT"
    "VC0tLS0tCg=="
)
"""A certificate request for CN=fields, O=team; its key is nowhere."""

_SUBJECT = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
_RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_REVIEW = {"resourceAttributes": {"namespace": "x", "verb": "get", "resource": "pods", "version": "v1"}, "user": "u"}


def _flow(name: str) -> dict[str, str]:
    return {"old": f"fields-old-{name}", "new": f"fields-new-{name}"}


OF_GROUPS: tuple[Entry, ...] = (
    (
        "apiregistration.k8s.io/v1/APIService",
        "apiservices",
        {
            "spec": {
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "service": {"namespace": "default", "name": "none", "port": 443},
                "insecureSkipTLSVerify": True,
            }
        },
        False,
        True,
        True,
        {"old": "v1.fieldsold.example.com", "new": "v1.fieldsnew.example.com"},
    ),
    (
        "events.k8s.io/v1/Event",
        "events",
        {
            "eventTime": "2024-01-02T03:04:05.678901Z",
            "reportingController": "example.com/me",
            "reportingInstance": "me-1",
            "action": "Testing",
            "reason": "Tested",
            "note": "hello",
            "type": "Normal",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "fields", "apiVersion": "v1"},
            "series": {"count": 2, "lastObservedTime": "2024-01-02T03:04:05.678901Z"},
        },
        True,
        True,
        False,
        _flow("event"),
    ),
    ("authentication.k8s.io/v1/TokenReview", "tokenreviews", {"spec": {"token": "x"}}, False, False, False),
    (
        "authorization.k8s.io/v1/LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        {"metadata": {"namespace": "fields"}, "spec": {**_REVIEW, "resourceAttributes": {"namespace": "fields"}}},
        True,
        False,
        False,
    ),
    (
        "authorization.k8s.io/v1/SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": _REVIEW["resourceAttributes"]}},
        False,
        False,
        False,
    ),
    ("authorization.k8s.io/v1/SubjectAccessReview", "subjectaccessreviews", {"spec": _REVIEW}, False, False, False),
    (
        "autoscaling/v1/HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "minReplicas": 1,
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "targetCPUUtilizationPercentage": 50,
            }
        },
        True,
        True,
        True,
        _flow("one"),
    ),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        {
            "spec": {
                "minReplicas": 1,
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                    }
                ],
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 10,
                        "selectPolicy": "Max",
                        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
                    }
                },
            }
        },
        True,
        True,
        True,
        _flow("two"),
    ),
    (
        "certificates.k8s.io/v1/CertificateSigningRequest",
        "certificatesigningrequests",
        {
            "spec": {
                "request": _REQUEST,
                "signerName": "example.com/signer",
                "usages": ["digital signature", "client auth"],
                "expirationSeconds": 3600,
            }
        },
        False,
        True,
        True,
    ),
    (
        "networking.k8s.io/v1/IngressClass",
        "ingressclasses",
        {"spec": {"controller": "example.com/c", "parameters": {"apiGroup": "a.b", "kind": "K", "name": "n"}}},
        False,
        True,
        False,
    ),
    (
        "networking.k8s.io/v1/Ingress",
        "ingresses",
        {
            "spec": {
                "ingressClassName": "c",
                "defaultBackend": _BACKEND,
                "tls": [{"hosts": ["a.example.com"], "secretName": "s"}],
                "rules": [
                    {
                        "host": "a.example.com",
                        "http": {"paths": [{"path": "/x", "pathType": "Prefix", "backend": _BACKEND}]},
                    }
                ],
            }
        },
        True,
        True,
        True,
    ),
    (
        "networking.k8s.io/v1/IPAddress",
        "ipaddresses",
        {"spec": {"parentRef": {"group": "", "resource": "services", "namespace": "fields", "name": "s"}}},
        False,
        True,
        False,
        {"old": "10.97.0.1", "new": "10.97.0.2"},
    ),
    (
        "networking.k8s.io/v1/ServiceCIDR",
        "servicecidrs",
        {"spec": {"cidrs": ["10.98.0.0/24"]}},
        False,
        True,
        True,
    ),
    (
        "networking.k8s.io/v1/NetworkPolicy",
        "networkpolicies",
        {
            "spec": {
                "podSelector": {"matchLabels": {"app": "x"}},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [
                    {
                        "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                        "ports": [{"protocol": "TCP", "port": 80, "endPort": 90}],
                    }
                ],
                "egress": [
                    {
                        "to": [{"podSelector": {"matchLabels": {"a": "b"}}}],
                        "ports": [{"protocol": "UDP", "port": "dns"}],
                    }
                ],
            }
        },
        True,
        True,
        False,
    ),
    (
        "policy/v1/PodDisruptionBudget",
        "poddisruptionbudgets",
        {
            "spec": {
                "minAvailable": 1,
                "selector": {"matchLabels": {"app": "x"}},
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            }
        },
        True,
        True,
        True,
    ),
    (
        "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
        "clusterrolebindings",
        {
            "subjects": [_SUBJECT],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        },
        False,
        True,
        False,
    ),
    (
        "rbac.authorization.k8s.io/v1/ClusterRole",
        "clusterroles",
        {"rules": [_RULE, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
        False,
        True,
        False,
    ),
    (
        "rbac.authorization.k8s.io/v1/RoleBinding",
        "rolebindings",
        {
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "fields"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        },
        True,
        True,
        False,
    ),
    ("rbac.authorization.k8s.io/v1/Role", "roles", {"rules": [_RULE]}, True, True, False),
)
