"""Releases of Kubernetes as data: a folder a release, made by ``ci/release_data.py`` from what upstream publishes."""
