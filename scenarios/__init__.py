"""Runnable scenarios shipped with Mews."""
