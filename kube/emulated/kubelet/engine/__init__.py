"""Containers of real images, run by the Docker engine of this machine through the ``docker`` Python SDK."""
