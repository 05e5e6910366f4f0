"""Drives the emulators and the cluster, and judges what happens. May import everything; nothing imports it."""
