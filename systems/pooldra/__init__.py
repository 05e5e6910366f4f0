"""A pool driver for dynamic resource allocation: GPUs of a chassis are attached because a claim was given them."""
