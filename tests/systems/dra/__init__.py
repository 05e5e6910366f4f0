"""The remediation of broken GPUs."""
