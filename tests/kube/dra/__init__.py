"""Drivers that others wrote, unmodified, on emulated nodes."""
