"""The KubeApi port, its HTTP adapter, informers and the work queue."""
