"""Decisions of ours beside those of the published systems: drawn cases, recorded answers, tables of differences."""
