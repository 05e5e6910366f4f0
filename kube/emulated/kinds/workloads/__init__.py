"""Workloads of apps and batch."""
