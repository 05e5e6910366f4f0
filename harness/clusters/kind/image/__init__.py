"""The component image: a Dockerfile and what is installed in it, as data."""
