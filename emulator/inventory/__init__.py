"""Reads hardware files."""
