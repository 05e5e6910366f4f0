"""Traces played by policies alone: the same pure decisions and the same chassis core as the components, no API."""
