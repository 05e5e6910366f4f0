"""Deployments: ReplicaSets that take over from each other."""
