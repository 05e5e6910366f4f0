"""Koordinator's own components in the place of ours."""
