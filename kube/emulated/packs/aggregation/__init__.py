"""API aggregation: groups that other servers answer, as APIServices say (k8s.io/kube-aggregator)."""
