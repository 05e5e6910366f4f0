"""Good objects of storage, admission, scheduling and the groups after them, as in ``bases_of_groups``."""

from __future__ import annotations

from typing import Any

Entry = tuple[Any, ...]

_WEBHOOK: dict[str, Any] = {
    "name": "hook.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "matchPolicy": "Equivalent",
    "timeoutSeconds": 5,
    "clientConfig": {"url": "https://hook.example.com/x"},
    "rules": [
        {
            "operations": ["CREATE"],
            "apiGroups": ["none.example.com"],
            "apiVersions": ["v1"],
            "resources": ["nones"],
            "scope": "Namespaced",
        }
    ],
    "matchConditions": [{"name": "never", "expression": "false"}],
}
_MATCHED = {
    "resourceRules": [
        {"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nones"]}
    ]
}
_CLAIM = {
    "devices": {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
    }
}

OF_LATE_GROUPS: tuple[Entry, ...] = (
    (
        "storage.k8s.io/v1/CSIDriver",
        "csidrivers",
        {
            "spec": {
                "attachRequired": True,
                "podInfoOnMount": False,
                "volumeLifecycleModes": ["Persistent"],
                "fsGroupPolicy": "File",
                "tokenRequests": [{"audience": "a", "expirationSeconds": 3600}],
                "requiresRepublish": False,
            }
        },
        False,
        True,
        False,
    ),
    (
        "storage.k8s.io/v1/CSINode",
        "csinodes",
        {
            "spec": {
                "drivers": [
                    {"name": "d.example.com", "nodeID": "n", "topologyKeys": ["a.b/zone"], "allocatable": {"count": 5}}
                ]
            }
        },
        False,
        True,
        False,
    ),
    (
        "storage.k8s.io/v1/CSIStorageCapacity",
        "csistoragecapacities",
        {
            "storageClassName": "standard",
            "capacity": "10Gi",
            "maximumVolumeSize": "1Gi",
            "nodeTopology": {"matchLabels": {"zone": "a"}},
        },
        True,
        True,
        False,
    ),
    (
        "storage.k8s.io/v1/StorageClass",
        "storageclasses",
        {
            "provisioner": "example.com/p",
            "parameters": {"a": "b"},
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": True,
            "mountOptions": ["ro"],
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
        },
        False,
        True,
        False,
    ),
    (
        "storage.k8s.io/v1/VolumeAttachment",
        "volumeattachments",
        {"spec": {"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
        False,
        True,
        True,
    ),
    (
        "storage.k8s.io/v1/VolumeAttributesClass",
        "volumeattributesclasses",
        {"driverName": "d.example.com", "parameters": {"a": "b"}},
        False,
        True,
        False,
    ),
    (
        "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        {"webhooks": [{**_WEBHOOK, "reinvocationPolicy": "Never"}]},
        False,
        True,
        False,
    ),
    (
        "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        {"webhooks": [_WEBHOOK]},
        False,
        True,
        False,
    ),
    (
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        {
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": _MATCHED,
                "variables": [{"name": "v", "expression": "1"}],
                "matchConditions": [{"name": "never", "expression": "false"}],
                "validations": [{"expression": "variables.v == 1", "message": "m", "reason": "Invalid"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "'x'"}],
            }
        },
        False,
        True,
        True,
    ),
    (
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        {"spec": {"policyName": "none-such", "validationActions": ["Deny"], "matchResources": _MATCHED}},
        False,
        True,
        False,
    ),
    (
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        "customresourcedefinitions",
        {
            "spec": {
                "scope": "Namespaced",
                "names": {"shortNames": ["fo"], "categories": ["all"]},
                "conversion": {"strategy": "None"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {
                            "status": {},
                            "scale": {
                                "specReplicasPath": ".spec.replicas",
                                "statusReplicasPath": ".status.replicas",
                                "labelSelectorPath": ".status.selector",
                            },
                        },
                        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {
                                        "type": "object",
                                        "properties": {
                                            "size": {"type": "integer", "minimum": 1},
                                            "replicas": {"type": "integer"},
                                        },
                                    }
                                },
                            }
                        },
                    }
                ],
            }
        },
        False,
        True,
        True,
        {"old": "fieldolds.fields.example.com", "new": "fieldnews.fields.example.com"},
    ),
    (
        "scheduling.k8s.io/v1/PriorityClass",
        "priorityclasses",
        {"value": 1000, "globalDefault": False, "description": "x", "preemptionPolicy": "PreemptLowerPriority"},
        False,
        True,
        False,
    ),
    (
        "coordination.k8s.io/v1/Lease",
        "leases",
        {
            "spec": {
                "holderIdentity": "h",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 1,
                "acquireTime": "2024-01-02T03:04:05.678901Z",
                "renewTime": "2024-01-02T03:04:05.678901Z",
            }
        },
        True,
        True,
        False,
    ),
    (
        "node.k8s.io/v1/RuntimeClass",
        "runtimeclasses",
        {
            "handler": "runc",
            "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            },
        },
        False,
        True,
        False,
    ),
    (
        "discovery.k8s.io/v1/EndpointSlice",
        "endpointslices",
        {
            "addressType": "IPv4",
            "endpoints": [
                {
                    "addresses": ["10.0.0.1"],
                    "conditions": {"ready": True},
                    "hostname": "h",
                    "nodeName": "n",
                    "zone": "z",
                    "hints": {"forZones": [{"name": "z"}]},
                }
            ],
            "ports": [{"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
        },
        True,
        True,
        False,
    ),
    (
        "resource.k8s.io/v1/DeviceClass",
        "deviceclasses",
        {
            "spec": {
                "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
                "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}],
            }
        },
        False,
        True,
        False,
    ),
    ("resource.k8s.io/v1/ResourceClaim", "resourceclaims", {"spec": _CLAIM}, True, True, True),
    (
        "resource.k8s.io/v1/ResourceClaimTemplate",
        "resourceclaimtemplates",
        {"spec": {"metadata": {"labels": {"a": "b"}}, "spec": _CLAIM}},
        True,
        True,
        False,
    ),
    (
        "resource.k8s.io/v1/ResourceSlice",
        "resourceslices",
        {
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "gpu-0",
                        "attributes": {"model": {"string": "x"}},
                        "capacity": {"memory": {"value": "16Gi"}},
                    }
                ],
            }
        },
        False,
        True,
        False,
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1/FlowSchema",
        "flowschemas",
        {
            "spec": {
                "matchingPrecedence": 5000,
                "priorityLevelConfiguration": {"name": "workload-low"},
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                        "resourceRules": [
                            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["none"]}
                        ],
                        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/none"]}],
                    }
                ],
            }
        },
        False,
        True,
        True,
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        {
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 5,
                    "lendablePercent": 10,
                    "borrowingLimitPercent": 20,
                    "limitResponse": {
                        "type": "Queue",
                        "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 10},
                    },
                },
            }
        },
        False,
        True,
        True,
    ),
)
