"""The stack as Kubernetes manifests: chassis, components, their accounts and rights."""
