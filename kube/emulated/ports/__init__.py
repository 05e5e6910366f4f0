"""What the API server and the kubelets are for each other, and what whoever runs them brings."""
