"""Fake hardware. No word of Kubernetes; never imports mews.kube or mews.harness."""
