"""Admission policies and webhooks."""
