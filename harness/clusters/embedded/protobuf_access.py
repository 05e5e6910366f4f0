"""Protobuf messages of who may do what: field numbers of k8s.io/api authentication, authorization and rbac v1."""

from __future__ import annotations

from collections.abc import Mapping

ACCESS_MESSAGES: Mapping[str, Mapping[int, tuple[str, str]]] = {
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta"), 2: ("status", "SelfSubjectReviewStatus")},
    "SelfSubjectReviewStatus": {1: ("userInfo", "UserInfo")},
    "UserInfo": {1: ("username", "string"), 2: ("uid", "string"), 3: ("groups", "[string]")},
    "TokenRequest": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenRequestSpec"), 3: ("status", "TokenRequestStatus"),
    },
    "TokenRequestSpec": {
        1: ("audiences", "[string]"), 3: ("boundObjectRef", "BoundObjectReference"), 4: ("expirationSeconds", "int"),
    },
    "TokenRequestStatus": {1: ("token", "string"), 2: ("expirationTimestamp", "time")},
    "BoundObjectReference": {
        1: ("kind", "string"), 2: ("apiVersion", "string"), 3: ("name", "string"), 4: ("uid", "string"),
    },
    "TokenReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenReviewSpec"), 3: ("status", "TokenReviewStatus")},
    "TokenReviewSpec": {1: ("token", "string"), 2: ("audiences", "[string]")},
    "TokenReviewStatus": {
        1: ("authenticated", "bool"), 2: ("user", "UserInfo"), 3: ("error", "string"), 4: ("audiences", "[string]"),
    },
    "SelfSubjectAccessReview": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "SubjectAccessReviewSpec"),
        3: ("status", "SubjectAccessReviewStatus"),
    },
    "SubjectAccessReview": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "SubjectAccessReviewSpec"),
        3: ("status", "SubjectAccessReviewStatus"),
    },
    "LocalSubjectAccessReview": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "SubjectAccessReviewSpec"),
        3: ("status", "SubjectAccessReviewStatus"),
    },
    "SubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"), 2: ("nonResourceAttributes", "NonResourceAttributes"),
        3: ("user", "string"), 4: ("groups", "[string]"), 6: ("uid", "string"),
    },
    "SubjectAccessReviewStatus": {
        1: ("allowed", "bool"), 2: ("reason", "string"), 3: ("evaluationError", "string"), 4: ("denied", "bool"),
    },
    "ResourceAttributes": {
        1: ("namespace", "string"), 2: ("verb", "string"), 3: ("group", "string"), 4: ("version", "string"),
        5: ("resource", "string"), 6: ("subresource", "string"), 7: ("name", "string"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "SelfSubjectRulesReview": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectRulesReviewSpec"),
        3: ("status", "SubjectRulesReviewStatus"),
    },
    "SelfSubjectRulesReviewSpec": {1: ("namespace", "string")},
    "SubjectRulesReviewStatus": {
        1: ("resourceRules", "[PolicyRule]"), 2: ("nonResourceRules", "[PolicyRule]"), 3: ("incomplete", "bool"),
        4: ("evaluationError", "string"),
    },
    "Role": {1: ("metadata", "ObjectMeta"), 2: ("rules", "[PolicyRule]")},
    "ClusterRole": {
        1: ("metadata", "ObjectMeta"), 2: ("rules", "[PolicyRule]"), 3: ("aggregationRule", "AggregationRule"),
    },
    "AggregationRule": {1: ("clusterRoleSelectors", "[LabelSelector]")},
    "PolicyRule": {
        1: ("verbs", "[string]"), 2: ("apiGroups", "[string]"), 3: ("resources", "[string]"),
        4: ("resourceNames", "[string]"), 5: ("nonResourceURLs", "[string]"),
    },
    "RoleBinding": {1: ("metadata", "ObjectMeta"), 2: ("subjects", "[Subject]"), 3: ("roleRef", "RoleRef")},
    "ClusterRoleBinding": {1: ("metadata", "ObjectMeta"), 2: ("subjects", "[Subject]"), 3: ("roleRef", "RoleRef")},
    "Subject": {1: ("kind", "string"), 2: ("apiGroup", "string"), 3: ("name", "string"), 4: ("namespace", "string")},
    "RoleRef": {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")},
}  # fmt: skip
