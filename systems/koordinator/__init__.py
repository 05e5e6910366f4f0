"""Koordinator: fine-grained devices, from the device's own report to the container."""
