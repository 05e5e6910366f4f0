"""Binds claims to volumes."""
