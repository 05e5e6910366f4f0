"""The structured allocator of dynamic resource allocation: which devices a pod's claims get on a node. Pure.

Source: k8s.io/dynamic-resource-allocation/structured of Kubernetes 1.34 and 1.37.
"""
