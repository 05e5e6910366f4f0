"""The emulated kubelet, over KubeApi only."""
