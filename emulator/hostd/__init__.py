"""The hosts of a hardware file as a process in wall time: files that act, NVML's state and socket, the back door."""
