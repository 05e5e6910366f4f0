"""Kubeconfigs: files merged as kubectl merges them, and all their ways to authenticate but the retired auth providers.

Those, ``gcp`` and ``oidc`` before exec plugins came, are left to the official Kubernetes client (``legacy``)."""
