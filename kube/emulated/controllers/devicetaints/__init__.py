"""Eviction of pods whose devices are tainted."""
