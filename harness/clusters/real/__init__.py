"""What ``--cluster kind`` and ``--cluster kubeconfig`` share: our components in the pods of a real cluster."""
