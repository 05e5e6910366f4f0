"""Drivers of dynamic resource allocation: what a node's kubelet and a driver say to each other, and a helper that makes
a driver of fifteen lines."""
