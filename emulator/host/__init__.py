"""What one server sees of the devices on its chassis ports: PCI, drivers, device nodes, NVML (contract host.md).

Pure: the time is an argument, chance is injected, no I/O. One state (``Host``), every layer derived from it.
"""
