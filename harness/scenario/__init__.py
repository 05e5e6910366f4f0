"""Scenario files: model, loader, steps, checks, runner."""
