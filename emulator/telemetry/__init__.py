"""One state per GPU over time: load, power, temperature, energy, clocks, counters. Every reader reads this one."""
