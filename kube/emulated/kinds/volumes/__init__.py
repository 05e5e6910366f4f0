"""Persistent volumes and the claims to them."""
