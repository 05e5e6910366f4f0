"""Dynamic resource allocation on the node: drivers, prepared claims, their checkpoint (pkg/kubelet/cm/dra)."""
