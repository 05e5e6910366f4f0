"""Volumes of pods as folders and files of this machine, for containers that are processes or run in an engine."""
