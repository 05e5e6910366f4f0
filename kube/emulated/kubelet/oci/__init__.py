"""What a container runtime does to a container before it starts: CDI devices, and NVIDIA's runtime hook."""
