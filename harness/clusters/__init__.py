"""Clusters behind one narrow Cluster protocol."""
