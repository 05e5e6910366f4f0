"""Upstream's own programs as judges: suites that others wrote, built from their Go modules where Go is there."""
