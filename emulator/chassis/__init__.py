"""The pure chassis core: model, device lookup table, latency profiles, faults, events. No I/O, no clock, no dice."""
