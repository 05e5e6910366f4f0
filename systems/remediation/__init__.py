"""Remediation of broken GPUs after NVIDIA's NVSentinel: cordon, drain, reset, uncordon."""
