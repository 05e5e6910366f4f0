"""Pods, and what admission does for them."""
