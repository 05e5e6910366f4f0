"""The embedded Kubernetes: a versioned object store with watches behind KubeApi, in process and over HTTP."""
