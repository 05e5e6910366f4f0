"""The Common Expression Language as Kubernetes 1.34 speaks it: parsed, checked against types, priced, evaluated.

Written after the language's definition and cel-go 0.26 with the libraries of k8s.io/apiserver/pkg/cel; knows nothing of
API servers or schemas. No library in Python checks types or estimates costs, and both decide what a cluster takes.
"""
