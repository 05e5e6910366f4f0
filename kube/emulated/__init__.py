"""An embedded Kubernetes: API server, controllers and kubelets. Knows no system and no harness."""
