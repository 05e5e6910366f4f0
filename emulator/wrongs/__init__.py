"""Chassis that are wrong on purpose: named deviations that stand between a client and a chassis, ours or any other."""
