"""What hardware files describe, as values: chassis, servers, GPUs, their profiles and how they are joined. The floor of
the emulator."""
