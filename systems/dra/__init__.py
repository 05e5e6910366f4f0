"""A DRA driver for the GPUs of a host, whose devices look as those of NVIDIA's driver do."""
