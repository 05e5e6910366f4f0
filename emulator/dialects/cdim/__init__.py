"""Dialect ``cdim``: NEC's composable infrastructure, its configuration manager and layout-apply (contract cohdi.md 2.4,
2.5)."""
