"""Rules of kinds, by the name in the table of kinds."""

from __future__ import annotations

from collections.abc import Mapping

from mews.harness.clusters.embedded.rules import crds, events, namespaces, nodes, pods, small, workloads
from mews.harness.clusters.embedded.rules.base import Rules

RULES: Mapping[str, Rules] = {
    "plain": Rules(),
    "crds": crds.RULES,
    "events": events.RULES,
    "leases": small.LEASES,
    "namespaces": namespaces.RULES,
    "nodes": nodes.RULES,
    "pods": pods.RULES,
    "priorityclasses": small.PRIORITY_CLASSES,
    "secrets": small.SECRETS,
    "services": small.SERVICES,
    "cronjobs": workloads.CRON_JOBS,
    "daemonsets": workloads.DAEMON_SETS,
    "deployments": workloads.DEPLOYMENTS,
    "jobs": workloads.JOBS,
    "replicasets": workloads.REPLICA_SETS,
    "replicationcontrollers": workloads.REPLICATION_CONTROLLERS,
    "statefulsets": workloads.STATEFUL_SETS,
}
