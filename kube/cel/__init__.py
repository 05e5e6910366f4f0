"""The Common Expression Language as Kubernetes has it: syntax, checks, evaluation, libraries. Knows no API object."""
