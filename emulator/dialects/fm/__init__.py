"""Dialect ``fm``: Fujitsu's fabric manager, its cluster manager and their token service (contract cohdi.md 2.1-2.3)."""
