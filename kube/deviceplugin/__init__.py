"""Device plugins: the kubelet's v1beta1 and podresources v1 interfaces as ports, with gRPC adapters."""
