"""NVML for unmodified programs: the state file, its requests, the library and nvidia-smi that read it."""
