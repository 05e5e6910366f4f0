"""resource.k8s.io."""
