"""Runs the experiments that systems declare, and writes what comes of them."""
